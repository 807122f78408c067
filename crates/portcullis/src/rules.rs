//! `portcullis rules`: what is loaded, what became of each rule and why, as a list, as JSON or as the
//! compiled plan.

use std::collections::HashMap;
use std::fmt::Write;
use std::process::ExitCode;

use clap::ValueEnum;
use portcullis_engine::{Act, Part, Plan, Rule, RuleIndex, SourcePlace, Template};
use serde::Serialize;

use crate::cli::{Failure, print};
use crate::policy_args::PolicyArgs;

/// Arguments of `portcullis rules`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    policy: PolicyArgs,
    /// Only rules of this state; may be given several times
    #[arg(long, value_name = "STATE")]
    state: Vec<State>,
    /// Only the rule with this id
    #[arg(long, value_name = "ID")]
    id: Option<u32>,
    /// Print JSON, one rule a line
    #[arg(long, conflicts_with = "plan")]
    json: bool,
    /// Print the compiled plan instead of the list
    #[arg(long, conflicts_with_all = ["state", "id"])]
    plan: bool,
}

/// The state of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
enum State {
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
    fn name(self) -> &'static str {
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
struct Entry {
    rule_id: u32,
    phase: u8,
    state: State,
    #[serde(skip_serializing_if = "Option::is_none")]
    severity: Option<&'static str>,
    file: String,
    line: u32,
    message: String,
    /// The reason for that state, and the effects that requests can still have on it.
    notes: Vec<String>,
}

/// Prints the rules. Exit code 1 if they do not load.
pub fn run(args: &Args) -> ExitCode {
    match text(args) {
        Ok(text) => print(&text),
        Err(failure) => failure.exit(),
    }
}

fn text(args: &Args) -> Result<String, Failure> {
    let plan = args.policy.load()?.plan;
    if args.plan {
        return Ok(plan.to_string());
    }
    let mut entries = entries(&plan);
    let all = entries.len();
    entries.retain(|entry| {
        (args.state.is_empty() || args.state.contains(&entry.state))
            && args.id.is_none_or(|id| entry.rule_id == id)
    });
    if let Some(id) = args.id.filter(|_| entries.is_empty()) {
        return Err(Failure::failed(format_args!("there is no rule {id} among the {all} rules")));
    }
    if args.json {
        let lines = entries.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>();
        return Ok(lines.map_err(Failure::failed)?.join("\n") + "\n");
    }
    Ok(list(&entries))
}

/// Every rule in load order, those that were taken out at the end.
fn entries(plan: &Plan) -> Vec<Entry> {
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
            message: metadata.msg.as_ref().map(|msg| template(plan, msg)).unwrap_or_default(),
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
            let (rules, what) = match act {
                Act::RemoveRules(set) => (&plan.ctl_removals[*set as usize], String::new()),
                Act::RemoveTarget(index) => {
                    let target = &plan.ctl_targets[*index as usize];
                    (&target.rules, format!(" for {}", target))
                }
                _ => continue,
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

/// One rule a line: id, phase, state, severity, place, message, and the reasons below it.
fn list(entries: &[Entry]) -> String {
    let mut out = String::new();
    for entry in entries {
        let name = entry.file.rsplit('/').next().unwrap_or_default();
        let line = format!(
            "{:<8} phase {} {:<10} {:<9} {name}:{} {}",
            entry.rule_id,
            entry.phase,
            entry.state.name(),
            entry.severity.unwrap_or("-"),
            entry.line,
            entry.message
        );
        out.push_str(line.trim_end());
        out.push('\n');
        for note in &entry.notes {
            let _ = writeln!(out, "         {note}");
        }
    }
    let count = |state| entries.iter().filter(|entry| entry.state == state).count();
    let _ = writeln!(
        out,
        "{} rules: {} active, {} overridden, {} dead, {} excluded",
        entries.len(),
        count(State::Active),
        count(State::Overridden),
        count(State::Dead),
        count(State::Excluded)
    );
    out
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
