//! `portcullis profiles`: the exclusions for known applications, why each is there, and what it opens.

use std::fmt::Write as _;
use std::process::ExitCode;

use portcullis_config::{Profile, profile, profiles};
use portcullis_types::nearest;

use crate::cli::{Failure, print};

/// Arguments of `portcullis profiles`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only this one
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

/// Exit code 1 if there is no such profile.
pub fn run(args: &Args) -> ExitCode {
    let Some(name) = &args.name else {
        return print(&profiles().iter().map(text).collect::<Vec<_>>().join("\n"));
    };
    match profile(name) {
        Some(profile) => print(&text(profile)),
        None => unknown(name).exit(),
    }
}

fn unknown(name: &str) -> Failure {
    let names = || profiles().iter().map(|profile| profile.name.as_str());
    let hint = match nearest(name, names()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are {}", names().collect::<Vec<_>>().join(", ")),
    };
    Failure::failed(format_args!("there is no profile `{name}`; {hint}"))
}

/// A profile with its exclusions, each with the reason and what it opens.
fn text(profile: &Profile) -> String {
    let Profile { name, application, exclude } = profile;
    let mut out = format!("{name}: {application}; {} exclusions\n", exclude.len());
    for each in exclude {
        let what = each.kind.as_ref().or(each.class.as_ref()).map_or("", String::as_str);
        let _ = writeln!(out, "  {what} in {} of {}", each.location, each.path);
        let _ = writeln!(out, "    why:   {}\n    opens: {}", each.reason, each.opens);
    }
    out
}
