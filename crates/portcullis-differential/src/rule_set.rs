//! A rule set in pieces, so that it can be made smaller, and its text.
//!
//! The text is made so that four engines can be compared by one thing, the `TX` collection at the end. Every
//! link writes what it matched to `tx.trace`, in front of its other actions; two rules at the end write the
//! whole collection, in hexadecimal, to an environment variable, which both ModSecuritys let us read.

use std::fmt::Write as _;

/// Generated SecLang.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleSet {
    /// Directives in order.
    pub items: Vec<Item>,
}

/// A directive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// Any directive but a rule, as text.
    Line(String),
    /// A rule: one link, or a chain.
    Rule(Vec<Link>),
}

/// One `SecRule`, or a `SecAction`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Id of the rule and place in its chain.
    pub name: (u32, usize),
    /// Targets; none for a `SecAction`.
    pub targets: Vec<String>,
    /// Operator with its argument.
    pub operator: String,
    /// The actions that cannot be left out: id, phase, the disruptive action.
    pub head: String,
    /// Other actions, transformations included, in order.
    pub actions: Vec<String>,
}

/// In front of each entry of `tx.trace`.
pub const MARK: &str = "|#";
/// Set by the last rule to the `TX` collection in hexadecimal.
pub const DUMP: &str = "PORTCULLIS_DUMP";

/// A `TX` key of the last rules, so that the collection is never empty.
pub const ENDED: &str = "differential_ended";

impl RuleSet {
    /// The text for our own evaluators, which can be asked for `TX`.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for item in &self.items {
            match item {
                Item::Line(line) => {
                    text.push_str(line);
                    text.push('\n');
                }
                Item::Rule(links) => {
                    for (index, link) in links.iter().enumerate() {
                        link.write(&mut text, index + 1 < links.len());
                    }
                }
            }
        }
        text.push_str("SecMarker END\n");
        text
    }

    /// The text for engines that must tell us `TX` by themselves. Padding for a `skip` that reaches beyond
    /// the end.
    pub fn text_with_dump(&self) -> String {
        let mut text = self.text();
        for id in 99_001..=99_003 {
            let _ = writeln!(
                text,
                "SecAction \"id:{id},phase:5,nolog,noauditlog,pass,t:none,setvar:tx.{ENDED}=1\""
            );
        }
        let _ = writeln!(
            text,
            "SecRule TX:/^/ \"@unconditionalMatch\" \"id:99004,phase:5,nolog,noauditlog,pass,t:none,t:hexEncode,\
             setvar:'tx.dump=%{{tx.dump}}|%{{MATCHED_VAR_NAME}}|%{{MATCHED_VAR}}'\""
        );
        let _ = writeln!(
            text,
            "SecRule TX:dump \"@unconditionalMatch\" \"id:99005,phase:5,nolog,noauditlog,pass,t:none,t:hexEncode,\
             setenv:'{DUMP}=%{{MATCHED_VAR}}'\""
        );
        text
    }

    /// Every link.
    pub fn links(&self) -> impl Iterator<Item = &Link> {
        self.items
            .iter()
            .filter_map(|item| match item {
                Item::Rule(links) => Some(links),
                Item::Line(_) => None,
            })
            .flatten()
    }

    /// The link that a trace entry names.
    pub fn link(&self, name: (u32, usize)) -> Option<&Link> {
        self.links().find(|link| link.name == name)
    }

    /// The directives that are not rules.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.items.iter().filter_map(|item| match item {
            Item::Line(line) => Some(line.as_str()),
            Item::Rule(_) => None,
        })
    }
}

impl Link {
    fn write(&self, text: &mut String, is_chained: bool) {
        let mut actions = Vec::new();
        if !self.head.is_empty() {
            actions.push(self.head.clone());
        }
        if is_chained {
            actions.push("chain".to_owned());
        }
        let (id, place) = self.name;
        let what = if self.targets.is_empty() { "" } else { "|%{MATCHED_VAR_NAME}|%{MATCHED_VAR}" };
        actions.push(format!("setvar:'tx.trace=%{{tx.trace}}{MARK}{id}.{place}{what}'"));
        actions.extend(self.actions.iter().cloned());
        let actions = actions.join(",");
        let _ = if self.targets.is_empty() {
            writeln!(text, "SecAction \"{actions}\"")
        } else {
            writeln!(text, "SecRule {} \"{}\" \"{actions}\"", self.targets.join("|"), self.operator)
        };
    }

    /// True if one of its actions, its head included, begins so.
    pub fn has(&self, prefix: &str) -> bool {
        self.actions.iter().any(|action| action.starts_with(prefix))
            || self.head.split(',').any(|action| action.starts_with(prefix))
    }
}
