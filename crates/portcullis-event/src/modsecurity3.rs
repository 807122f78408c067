//! libmodsecurity's lines in the error log of the server that it is loaded into, for tools that read those.

use std::fmt::Write as _;

use portcullis_types::Severity;

use crate::{RuleInfo, RuleMatch};

/// Bytes of fields, of an operator's argument and of a path that a line shows, as in libmodsecurity.
const FIELD_BYTES_MAX: usize = 200;
/// Bytes of a value that a line shows, as in libmodsecurity.
const VALUE_BYTES_MAX: usize = 100;

/// The request of a line.
#[derive(Clone, Copy, Debug)]
pub struct LineEnd<'a> {
    /// The host that the server took the request for, or the address that the client reached.
    pub hostname: &'a str,
    /// The path, decoded.
    pub path: &'a str,
    /// The transaction's id.
    pub unique_id: &'a str,
}

/// The line for one match, without time and client: the server adds those.
///
/// ```text
/// ModSecurity: Warning. Matched "Operator `Rx' with parameter `...' against variable `ARGS:q' (Value: `...' )
/// [file "..."] [line "66"] [id "942100"] [rev ""] [msg "..."] [data "..."] [severity "2"] [ver "..."]
/// [maturity "0"] [accuracy "0"] [tag "..."] [hostname "..."] [uri "/"] [unique_id "..."] [ref ""]
/// ```
///
/// With `denied`, the status of the answer, it is the line of the rule that decided. What is not printable
/// ASCII, quotes and backslashes are `\xhh`, so that nothing a client sends can begin a new line or field.
/// `ref` is empty: libmodsecurity has offsets of its own buffers in it.
pub fn modsecurity3_line(found: &RuleMatch, denied: Option<u16>, end: LineEnd<'_>) -> String {
    let mut out = String::with_capacity(512);
    write_decision(denied, found.rule.phase.number(), &mut out);
    write_finding(found, &mut out);
    let rule = &*found.rule;
    field(&mut out, "file", &rule.file);
    field(&mut out, "line", &rule.line.to_string());
    field(&mut out, "id", &rule.rule_id.to_string());
    field(&mut out, "rev", rule.rev.as_deref().unwrap_or_default());
    field(&mut out, "msg", &found.message);
    field(&mut out, "data", &limited(&found.data, FIELD_BYTES_MAX));
    field(&mut out, "severity", &rule.severity.map_or(0, Severity::number).to_string());
    field(&mut out, "ver", rule.ver.as_deref().unwrap_or_default());
    field(&mut out, "maturity", &rule.maturity.unwrap_or(0).to_string());
    field(&mut out, "accuracy", &rule.accuracy.unwrap_or(0).to_string());
    for tag in &rule.tags {
        field(&mut out, "tag", tag);
    }
    write_end(end, &mut out);
    field(&mut out, "ref", "");
    out
}

/// The line for a decision that no rule made: a limit, or an error in our code.
pub fn modsecurity3_remark(text: &str, denied: Option<(u16, u8)>, end: LineEnd<'_>) -> String {
    let mut out = String::with_capacity(256);
    match denied {
        Some((status, phase)) => write_decision(Some(status), phase, &mut out),
        None => write_decision(None, 0, &mut out),
    }
    escape_into(text, &mut out);
    write_end(end, &mut out);
    out
}

fn write_decision(denied: Option<u16>, phase: u8, out: &mut String) {
    let _ = match denied {
        Some(status) => write!(out, "ModSecurity: Access denied with code {status} (phase {phase}). "),
        None => write!(out, "ModSecurity: Warning. "),
    };
}

fn write_end(end: LineEnd<'_>, out: &mut String) {
    field(out, "hostname", end.hostname);
    field(out, "uri", &limited(end.path, FIELD_BYTES_MAX));
    field(out, "unique_id", end.unique_id);
}

fn write_finding(found: &RuleMatch, out: &mut String) {
    match &*found.rule.operator {
        "" => out.push_str("Unconditional match in SecAction."),
        "detectSQLi" => out.push_str("detected SQLi using libinjection."),
        "detectXSS" => out.push_str("detected XSS using libinjection."),
        _ => {
            out.push_str("Matched \"Operator `");
            write_operator(&found.rule, out);
            out.push_str("' with parameter `");
            escape_into(&limited(&found.rule.argument, FIELD_BYTES_MAX), out);
            out.push_str("' against variable `");
            escape_into(&found.target, out);
            out.push_str("' (Value: `");
            escape_into(&limited(&found.value, VALUE_BYTES_MAX), out);
            out.push_str("' )");
        }
    }
}

/// The name of the operator as libmodsecurity's class for it is called.
fn write_operator(rule: &RuleInfo, out: &mut String) {
    let name = rule.operator.trim_start_matches('!');
    match name {
        "streq" => out.push_str("StrEq"),
        "strmatch" => out.push_str("StrMatch"),
        "pmf" => out.push_str("PmFromFile"),
        "ipMatchF" => out.push_str("IpMatchFromFile"),
        _ => {
            let mut letters = name.chars();
            out.extend(letters.next().map(|first| first.to_ascii_uppercase()));
            out.push_str(letters.as_str());
        }
    }
}

fn limited(text: &str, bytes_max: usize) -> std::borrow::Cow<'_, str> {
    if text.len() <= bytes_max {
        return text.into();
    }
    let end = text.floor_char_boundary(bytes_max);
    format!("{} ({} characters omitted)", &text[..end], text.len() - end).into()
}

fn field(out: &mut String, name: &str, value: &str) {
    let _ = write!(out, " [{name} \"");
    escape_into(value, out);
    out.push_str("\"]");
}

fn escape_into(value: &str, out: &mut String) {
    for byte in value.bytes() {
        match byte {
            b'"' | b'\\' => {
                let _ = write!(out, "\\x{byte:02x}");
            }
            0x20..=0x7e => out.push(char::from(byte)),
            _ => {
                let _ = write!(out, "\\x{byte:02x}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use portcullis_types::{Phase, RuleId};

    use super::*;
    use crate::RuleEffect;

    fn found(operator: &str, value: &str) -> RuleMatch {
        let rule = RuleInfo {
            rule_id: RuleId(7),
            phase: Phase::RequestBody,
            severity: Some(Severity::Critical),
            operator: operator.into(),
            argument: "a\"b".into(),
            transformations: Box::default(),
            tags: ["t".into()].into(),
            ver: None,
            rev: None,
            maturity: None,
            accuracy: None,
            file: "/r.conf".into(),
            line: 3,
        };
        RuleMatch {
            rule: Arc::new(rule),
            message: "m".to_owned(),
            data: String::new(),
            target: "ARGS:q".to_owned(),
            value: value.to_owned(),
            span: None,
            points: 0,
            effect: RuleEffect::None,
        }
    }

    const END: LineEnd<'_> = LineEnd { hostname: "127.0.0.1", path: "/a", unique_id: "u" };

    #[test]
    fn a_line_has_the_fields_of_libmodsecurity_in_their_order() {
        let line = modsecurity3_line(&found("rx", "x"), None, END);
        assert_eq!(
            line,
            "ModSecurity: Warning. Matched \"Operator `Rx' with parameter `a\\x22b' against variable `ARGS:q' \
             (Value: `x' ) [file \"/r.conf\"] [line \"3\"] [id \"7\"] [rev \"\"] [msg \"m\"] [data \"\"] \
             [severity \"2\"] [ver \"\"] [maturity \"0\"] [accuracy \"0\"] [tag \"t\"] [hostname \"127.0.0.1\"] \
             [uri \"/a\"] [unique_id \"u\"] [ref \"\"]"
        );
        let line = modsecurity3_line(&found("streq", "x"), Some(403), END);
        assert!(
            line.starts_with(
                "ModSecurity: Access denied with code 403 (phase 2). Matched \"Operator `StrEq'"
            )
        );
    }

    #[test]
    fn nothing_a_client_sends_begins_a_line_or_a_field() {
        let value = "x' ) [id \"1\"]\n2026/01/01 [error] \u{1b}[31m\\";
        let line =
            modsecurity3_line(&found("rx", value), None, LineEnd { path: value, unique_id: value, ..END });
        assert_eq!(line.matches("[id \"").count(), 1, "{line}");
        assert!(line.bytes().all(|byte| (0x20..0x7f).contains(&byte)), "{line}");
        let long = modsecurity3_line(&found("rx", &"ä".repeat(500)), None, END);
        assert!(long.contains("(900 characters omitted)"), "{long}");
        let remark = modsecurity3_remark("a\nb", Some((403, 2)), END);
        assert!(remark.starts_with("ModSecurity: Access denied with code 403 (phase 2). a\\x0ab [hostname"));
    }
}
