//! `portcullis rules`: what would be loaded, as a list or as the compiled plan.

use std::fmt::Write;
use std::process::ExitCode;

use portcullis_engine::{Part, Plan, Template};

use crate::cli::{Failure, print};
use crate::policy_args::PolicyArgs;

/// Arguments of `portcullis rules`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    policy: PolicyArgs,
    /// Print the compiled plan instead of the list
    #[arg(long)]
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
    Ok(if args.plan { plan.to_string() } else { list(&plan) })
}

/// One rule a line: id, phase, severity, place, message.
fn list(plan: &Plan) -> String {
    let mut out = String::new();
    for rule in &plan.rules {
        let metadata = &rule.metadata;
        let severity = metadata.severity.map_or("-", |severity| severity.name());
        let file = plan.files.get(metadata.file as usize).map_or("", |file| file);
        let name = file.rsplit('/').next().unwrap_or_default();
        let message = metadata.msg.as_ref().map(|msg| template(plan, msg)).unwrap_or_default();
        let end = out.len();
        let _ = write!(
            out,
            "{:<8} phase {} {severity:<9} {name}:{} {message}",
            rule.id.0,
            rule.phase.number(),
            metadata.line
        );
        out.truncate(end.max(out.trim_end().len()));
        out.push('\n');
    }
    for (id, why) in &plan.removed {
        let _ = writeln!(out, "{:<8} not loaded: {why}", id.0);
    }
    let _ = writeln!(out, "{} rules, {} not loaded", plan.rules.len(), plan.removed.len());
    out
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
