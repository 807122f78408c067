//! The rules of a plan: what became of each, and why.

use std::collections::HashMap;

use clap::ValueEnum;
use portcullis_engine::{Act, Part, Plan, Rule, RuleIndex, SourcePlace, Template};
use serde::Serialize;

/// The state of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It runs as it was written
    Active,
    /// It runs, changed by a SecRuleUpdate directive
    Overridden,
    /// It is loaded, but no request can reach or match it with these settings
    Dead,
    /// A SecRuleRemove directive took it out
    Excluded,
}

impl State {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            State::Active => "active",
            State::Overridden => "overridden",
            State::Dead => "dead",
            State::Excluded => "excluded",
        }
    }
}

/// One rule and what became of it.
#[derive(Debug, Serialize)]
pub struct Entry {
    /// Its id.
    pub rule_id: u32,
    /// The phase, 1 to 5.
    pub phase: u8,
    /// Its state.
    pub state: State,
    /// Its severity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severity: Option<&'static str>,
    /// The file that it stands in.
    pub file: String,
    /// The line where it begins.
    pub line: u32,
    /// The message, macros not expanded.
    pub message: String,
    /// Its tags.
    #[serde(skip)]
    pub tags: Vec<String>,
    /// The reason for that state, and the effects that requests can still have on it.
    pub notes: Vec<String>,
}

/// Every rule in load order, those that were taken out at the end.
pub fn entries(plan: &Plan) -> Vec<Entry> {
    let mut notes = notes(plan);
    let dead: HashMap<RuleIndex, String> =
        plan.dead.iter().map(|dead| (dead.rule, plan.dead_cause(&dead.why))).collect();
    let loaded = (0..).map(RuleIndex).zip(&plan.rules).map(|(index, rule)| {
        let mut notes = notes.remove(&index).unwrap_or_default();
        let overridden = plan.updates.iter().any(|update| update.rule == index);
        let state = match dead.get(&index) {
            Some(why) => {
                notes.insert(0, why.clone());
                State::Dead
            }
            None if overridden => State::Overridden,
            None => State::Active,
        };
        let metadata = &rule.metadata;
        Entry {
            rule_id: rule.id.0,
            phase: rule.phase.number(),
            state,
            severity: metadata.severity.map(|severity| severity.name()),
            file: plan.file(metadata.place).to_string(),
            line: metadata.place.line,
            message: metadata
                .msg
                .as_ref()
                .map(|msg| String::from_utf8_lossy(msg.written()).into_owned())
                .unwrap_or_default(),
            tags: metadata.tags.iter().map(|tag| template(plan, tag)).collect(),
            notes,
        }
    });
    let removed = plan.removed.iter().map(|removed| Entry {
        rule_id: removed.id.0,
        phase: removed.phase.number(),
        state: State::Excluded,
        severity: None,
        file: plan.file(removed.place).to_string(),
        line: removed.place.line,
        message: String::new(),
        tags: Vec::new(),
        notes: vec![format!("{} at {}", removed.directive, place(plan, removed.by))],
    });
    loaded.chain(removed).collect()
}

/// Returns the effects of directives on rules, and those that `ctl:` actions of other rules can have in a
/// request.
fn notes(plan: &Plan) -> HashMap<RuleIndex, Vec<String>> {
    let mut notes: HashMap<RuleIndex, Vec<String>> = HashMap::new();
    for update in &plan.updates {
        let note = format!("{} at {}", update.directive, place(plan, update.by));
        notes.entry(update.rule).or_default().push(note);
    }
    let acts = |rule: &Rule| plan.links_of(rule).iter().flat_map(|link| &link.acts).collect::<Vec<_>>();
    for rule in &plan.rules {
        for act in acts(rule) {
            let (rules, what) = if let Act::RemoveRules(set) = act {
                (&plan.ctl_removals[*set as usize], String::new())
            } else if let Act::RemoveTarget(index) = act {
                let target = &plan.ctl_targets[*index as usize];
                (&target.rules, format!(" for {}", target))
            } else {
                continue;
            };
            for affected in rules.iter() {
                let note = format!("rule {} can switch it off{what} (ctl)", rule.id);
                let notes = notes.entry(RuleIndex(affected)).or_default();
                if !notes.contains(&note) {
                    notes.push(note);
                }
            }
        }
    }
    notes
}

fn place(plan: &Plan, place: SourcePlace) -> String {
    format!("{}:{}", plan.file(place), place.line)
}

/// The text as written, macros not expanded.
fn template(plan: &Plan, template: &Template) -> String {
    let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let part = |part: &Part| match part {
        Part::Literal(text) => lossy(text),
        Part::Tx(slot) => format!("%{{tx.{}}}", lossy(&plan.tx_names[slot.0 as usize])),
        Part::Variable { variable, key: None } => format!("%{{{}}}", variable.name()),
        Part::Variable { variable, key: Some(key) } => format!("%{{{}.{}}}", variable.name(), lossy(key)),
    };
    template.parts.iter().map(part).collect()
}
