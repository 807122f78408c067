//! The SecLang text of a policy: the defaults before the rule files and the overrides after them.

use std::fmt::Write;

use crate::checked::{Body, Engine, Mode, OverLimit, Policy};

/// One thing the rules are read from, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleSource {
    /// A file; the name may hold `*`.
    File(std::path::PathBuf),
    /// Files that may be missing; the name may hold `*`.
    Optional(std::path::PathBuf),
    /// Our own text or that of the configuration file.
    Inline {
        /// The name in diagnostics.
        name: &'static str,
        /// SecLang directives.
        text: String,
    },
}

/// Read before everything else, so that a rule file can change any of it. The values are those of the
/// recommended ModSecurity configuration; without them the engine would be off, as SecLang demands. The rules
/// have ids of their own, so that a modsecurity.conf that brings the same rules can be loaded as well.
/// `SecRequestBodyNoFilesLimit` and `SecRequestBodyLimitAction` are left to the rule files: without them
/// uploads stream.
const DEFAULTS: &str = "\
SecRuleEngine On
SecRequestBodyAccess On
SecRequestBodyLimit 13107200
SecResponseBodyAccess Off
SecResponseBodyMimeType text/plain text/html text/xml
SecResponseBodyLimit 524288
SecResponseBodyLimitAction ProcessPartial
SecRule REQUEST_HEADERS:Content-Type \"^(?:application(?:/soap\\+|/)|text/)xml\" \\
    \"id:9000101,phase:1,t:none,t:lowercase,pass,nolog,ctl:requestBodyProcessor=XML\"
SecRule REQUEST_HEADERS:Content-Type \"^application/(?:[a-z0-9.-]+\\+)?json\" \\
    \"id:9000102,phase:1,t:none,t:lowercase,pass,nolog,ctl:requestBodyProcessor=JSON\"
SecRule MULTIPART_STRICT_ERROR \"!@eq 0\" \
    \"id:9000104,phase:2,t:none,log,deny,status:400,\
    msg:'Multipart request body failed strict validation.',severity:2\"
SecRule REQBODY_AMBIGUITY \"charset|lone_carriage_return|nested_multipart|transfer_encoding\" \
    \"id:9000105,phase:2,t:none,log,deny,status:400,msg:'Applications read this request body differently.',\
    logdata:'%{reqbody_ambiguity}',severity:2\"
SecSecondReadings On
";

/// Bytes of a body that can be held at most: what `SecRequestBodyLimit` takes.
pub(crate) const HELD_BYTES_MAX: u64 = 1 << 30;

/// The rule that refuses bodies which cannot be parsed.
const UNREADABLE: &str = "\
SecRule REQBODY_ERROR \"!@eq 0\" \
    \"id:9000103,phase:2,t:none,log,deny,status:400,msg:'Failed to parse request body.',\
    logdata:'%{reqbody_error_msg}',severity:2\"
";

/// The same, but for what is no JSON: the semantic detector reads it as what it is.
const UNREADABLE_BUT_JSON: &str = "\
SecRule REQBODY_ERROR \"!@eq 0\" \
    \"id:9000103,phase:2,t:none,log,deny,status:400,msg:'Failed to parse request body.',\
    logdata:'%{reqbody_error_msg}',severity:2,chain\"
    SecRule REQBODY_PROCESSOR \"!@streq JSON\" \"t:none\"
";

/// One of two types is the one by which an application reads the body; which one is unknown.
const ONE_TYPE: &str = "\
SecRule &REQUEST_HEADERS:Content-Type \"@gt 1\" \
    \"id:9000106,phase:1,t:none,log,deny,status:400,msg:'More than one Content-Type.',severity:2\"
";

/// More arguments than any form has that people fill in: the semantic detector looks at each. Each of them
/// takes 48 bytes of memory, however short it is.
const MANY_ARGUMENTS: &str = "SecArgumentsLimit 200000\n";

impl Policy {
    /// The sources of the rules, in reading order. `crs_setup` is the setup file found in the CRS folder.
    pub fn sources(&self, crs_setup: Option<std::path::PathBuf>) -> Vec<RuleSource> {
        let mut defaults = DEFAULTS.to_string();
        let is_refused = self.request_body.unreadable_refused.unwrap_or(self.mode != Mode::Semantic);
        defaults.push_str(if is_refused { UNREADABLE } else { UNREADABLE_BUT_JSON });
        if self.mode.has_semantic() {
            defaults.push_str(MANY_ARGUMENTS);
            defaults.push_str(ONE_TYPE);
        }
        if self.modsecurity3 {
            defaults.push_str("SecCompatibility ModSecurity3\n");
        }
        // The semantic detector judges what a document type names.
        if self.mode.has_semantic() {
            defaults.push_str("SecXmlExternalDtd On\n");
        }
        let mut sources = vec![RuleSource::Inline { name: "portcullis defaults", text: defaults }];
        sources.extend(self.setup.iter().cloned().map(RuleSource::File));
        if let Some(folder) = &self.crs {
            sources.extend(crs_setup.map(RuleSource::File));
            if let Some(text) = self.paranoia_directive() {
                sources.push(RuleSource::Inline { name: "paranoia", text });
            }
            // The order that the CRS documents for its plugins.
            let plugins = |suffix: &str| RuleSource::Optional(folder.join("plugins").join(suffix));
            sources.extend([plugins("*-config.conf"), plugins("*-before.conf")]);
            sources.push(RuleSource::File(folder.join("rules").join("*.conf")));
            sources.push(plugins("*-after.conf"));
        }
        sources.extend(self.include.iter().cloned().map(RuleSource::File));
        if let Some(text) = &self.directives {
            sources.push(RuleSource::Inline { name: "directives", text: text.clone() });
        }
        let overrides = self.overrides();
        if !overrides.is_empty() {
            sources.push(RuleSource::Inline { name: "site settings", text: overrides });
        }
        sources
    }

    fn paranoia_directive(&self) -> Option<String> {
        let level = self.paranoia?;
        // 9000100 to 9000106 are ours; both variables are what crs-setup.conf sets.
        Some(format!(
            "SecAction \"id:9000100,phase:1,pass,nolog,t:none,setvar:tx.blocking_paranoia_level={level},\
             setvar:tx.detection_paranoia_level={level}\"\n"
        ))
    }

    fn overrides(&self) -> String {
        let mut text = String::new();
        match self.engine {
            Some(Engine::Blocking) => text.push_str("SecRuleEngine On\n"),
            Some(Engine::DetectionOnly) => text.push_str("SecRuleEngine DetectionOnly\n"),
            None => {}
        }
        body(&mut text, "Request", &self.request_body);
        if let Some(limit) = self.request_body.limit_bytes {
            // Reaching it is too much, while the limit of the whole may be reached.
            let no_files = limit.saturating_add(1).min(HELD_BYTES_MAX);
            let _ = writeln!(text, "SecRequestBodyNoFilesLimit {no_files}");
        }
        if self.request_body.ambiguous_pass {
            text.push_str("SecRuleRemoveById 9000105\n");
        }
        if let Some(on) = self.request_body.second_readings {
            let _ = writeln!(text, "SecSecondReadings {}", if on { "On" } else { "Off" });
        }
        body(&mut text, "Response", &self.response_body);
        text
    }
}

fn body(text: &mut String, which: &str, body: &Body) {
    if let Some(inspect) = body.inspect {
        let _ = writeln!(text, "Sec{which}BodyAccess {}", if inspect { "On" } else { "Off" });
    }
    if let Some(limit) = body.limit_bytes {
        let _ = writeln!(text, "Sec{which}BodyLimit {}", limit.min(HELD_BYTES_MAX));
    }
    match body.over_limit {
        Some(OverLimit::Reject) => {
            let _ = writeln!(text, "Sec{which}BodyLimitAction Reject");
        }
        Some(OverLimit::PassUninspected) => {
            let _ = writeln!(text, "Sec{which}BodyLimitAction ProcessPartial");
        }
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use portcullis_types::Level;

    use super::*;

    #[test]
    fn reads_in_order_and_overrides_last() {
        let policy = Policy {
            mode: Mode::Both,
            level: Level::Strict,
            semantic: crate::checked::Semantic::default(),
            setup: vec!["before.conf".into()],
            crs: Some("crs".into()),
            paranoia: Some(2),
            include: vec!["after.conf".into()],
            directives: Some("SecRuleRemoveById 1\n".to_string()),
            rule_exclude: Vec::new(),
            engine: Some(Engine::DetectionOnly),
            request_body: Body {
                limit_bytes: Some(1000),
                over_limit: Some(OverLimit::Reject),
                upload_limit_bytes: Some(2000),
                unreadable_refused: None,
                ambiguous_pass: true,
                decoded_ratio: None,
                uninspected_codings: Vec::new(),
                second_readings: Some(false),
                inspect: None,
            },
            weighted: None,
            fields: None,
            api: None,
            discovery: None,
            modsecurity3: true,
            response_body: Body { inspect: Some(true), ..Body::default() },
        };
        let sources = policy.sources(Some("crs/crs-setup.conf".into()));
        let shown: Vec<String> = sources
            .iter()
            .map(|source| match source {
                RuleSource::File(path) => path.display().to_string(),
                RuleSource::Optional(path) => format!("{}?", path.display()),
                RuleSource::Inline { name, .. } => format!("<{name}>"),
            })
            .collect();
        assert_eq!(
            shown,
            [
                "<portcullis defaults>",
                "before.conf",
                "crs/crs-setup.conf",
                "<paranoia>",
                "crs/plugins/*-config.conf?",
                "crs/plugins/*-before.conf?",
                "crs/rules/*.conf",
                "crs/plugins/*-after.conf?",
                "after.conf",
                "<directives>",
                "<site settings>"
            ]
        );
        let RuleSource::Inline { text, .. } = &sources[10] else { panic!("not inline") };
        assert_eq!(
            text,
            "SecRuleEngine DetectionOnly\nSecRequestBodyLimit 1000\nSecRequestBodyLimitAction Reject\n\
             SecRequestBodyNoFilesLimit 1001\nSecRuleRemoveById 9000105\nSecSecondReadings Off\nSecResponseBodyAccess On\n"
        );
        let RuleSource::Inline { text, .. } = &sources[0] else { panic!("not inline") };
        assert!(
            text.ends_with("\nSecCompatibility ModSecurity3\nSecXmlExternalDtd On\n")
                && text.contains(MANY_ARGUMENTS)
                && text.contains(ONE_TYPE)
                && text.contains(UNREADABLE)
        );
    }
}
