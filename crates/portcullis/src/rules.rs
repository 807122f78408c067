//! `portcullis rules`: what is loaded, what became of each rule and why, as a list, as JSON or as the
//! compiled plan.

use std::fmt::Write;
use std::process::ExitCode;

use crate::outcome::{Failure, print};
use crate::policy_args::PolicyArgs;
use crate::rule_list::{Entry, State, entries};

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
