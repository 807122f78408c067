//! The plan in words: `portcullis rules --plan`.

use std::fmt;

use crate::plan::{CtlTarget, DeadCause, Disruption, Exclusion, KeyFilter, Plan, Rule, TargetList, XmlPath};

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "plan: {} rules, {} of them dead, {} links, {} transformation chains, {} tx keys, {} files, {} not loaded",
            self.rules.len(),
            self.dead.len(),
            self.links.len(),
            self.chains.len(),
            self.tx_names.len(),
            self.files.len(),
            self.removed.len()
        )?;
        let types = self.settings.response_body_mime_types.iter().map(|mime| mime.escape_ascii().to_string());
        let over_limit = match self.settings.request_body_limit_action {
            Some(action) => format!("{action:?}"),
            None => "Reject but uploads".to_owned(),
        };
        writeln!(
            f,
            "settings: engine {:?}; request body {} up to {} bytes, over it {}; response body {} up to {} bytes of {}, \
             over it {:?}; {} arguments",
            self.settings.rule_engine,
            if self.settings.request_body_access { "read" } else { "not read" },
            self.settings.request_body_limit,
            over_limit,
            if self.settings.response_body_access { "read" } else { "not read" },
            self.settings.response_body_limit,
            types.collect::<Vec<_>>().join(" "),
            self.settings.response_body_limit_action,
            self.settings.arguments_limit,
        )?;
        for signature in &self.settings.component_signatures {
            writeln!(f, "rule set: {}", signature.escape_ascii())?;
        }
        for (number, steps) in (1..).zip(&self.steps) {
            writeln!(f, "phase {number}: {} rules", steps.len())?;
            for (at, step) in steps.iter().enumerate() {
                let rule = self.rule(step.rule);
                write!(f, "  {at:4} rule {}", rule.id)?;
                if step.skip_to != u32::MAX {
                    write!(f, " -> {}", step.skip_to)?;
                }
                let pause = if rule.pause.is_some() { " pause" } else { "" };
                writeln!(f, " {}{pause}{}", Disrupt(&rule.disruption), step.kind)?;
                self.write_links(f, rule)?;
            }
        }
        for dead in &self.dead {
            writeln!(f, "dead: {}: {}", self.rule(dead.rule).id, self.dead_cause(&dead.why))?;
        }
        for removed in &self.removed {
            writeln!(f, "not loaded: {}: {}", removed.id, removed.directive)?;
        }
        Ok(())
    }
}

impl Plan {
    /// Describes in words why a rule is dead.
    pub fn dead_cause(&self, why: &DeadCause) -> String {
        match why {
            DeadCause::Skipped { by } => format!("rule {} always skips it", self.rule(*by).id),
            DeadCause::Never { slot, value } => {
                let name = self.tx_names[slot.0 as usize].escape_ascii();
                match value {
                    Some(value) => format!("TX:{name} is always {} here", value.escape_ascii()),
                    None => format!("TX:{name} is never set here"),
                }
            }
        }
    }

    fn write_links(&self, f: &mut fmt::Formatter<'_>, rule: &Rule) -> fmt::Result {
        for link in self.links_of(rule) {
            if link.unconditional {
                writeln!(f, "         always, {} acts", link.acts.len())?;
                continue;
            }
            let not = if link.negated { "!" } else { "" };
            let names: Vec<_> = self.chains.transformations(link.chain).iter().map(|t| t.name()).collect();
            writeln!(
                f,
                "         {} t:[{}] {not}{} acts:{}{}",
                Targets(&link.targets),
                names.join(","),
                link.operator_text,
                link.acts.len(),
                if link.multi_match { " multiMatch" } else { "" },
            )?;
        }
        Ok(())
    }
}

struct Disrupt<'a>(&'a Disruption);

impl fmt::Display for Disrupt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Disruption::Pass => f.write_str("pass"),
            Disruption::Allow(scope) => write!(f, "allow:{scope:?}"),
            Disruption::Deny { status } => write!(f, "deny {status}"),
            Disruption::Drop => f.write_str("drop"),
            Disruption::Redirect { status, .. } => write!(f, "redirect {status}"),
            Disruption::Proxy(to) => write!(f, "proxy {}", to.origin),
        }
    }
}

struct Targets<'a>(&'a TargetList);

impl fmt::Display for Targets<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut exclusions = self.0.exclude.iter().peekable();
        let mut bar = "";
        for (place, target) in self.0.include.iter().enumerate() {
            while let Some(exclusion) = exclusions.next_if(|exclusion| exclusion.reach <= place) {
                write!(f, "{bar}{exclusion}")?;
                bar = "|";
            }
            let count = if target.count { "&" } else { "" };
            write!(f, "{bar}{count}{}{}", target.variable.name(), Key(&target.filter))?;
            bar = "|";
        }
        exclusions.try_for_each(|exclusion| write!(f, "{bar}{exclusion}"))
    }
}

impl fmt::Display for Exclusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "!{}{}", self.variable.name(), Key(&self.filter))
    }
}

impl fmt::Display for CtlTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.variable.name(), Key(&self.filter))
    }
}

struct Key<'a>(&'a KeyFilter);

impl fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            KeyFilter::All => Ok(()),
            KeyFilter::Key(key) => write!(f, ":{}", key.escape_ascii()),
            KeyFilter::Regex(regex) => write!(f, ":/{}/", regex.pattern().escape_ascii()),
            KeyFilter::Xml(XmlPath::Text) => f.write_str(":/*"),
            KeyFilter::Xml(XmlPath::Attributes) => f.write_str("://@*"),
            KeyFilter::Xml(XmlPath::Search(path)) => write!(f, ":{}", path.text),
        }
    }
}
