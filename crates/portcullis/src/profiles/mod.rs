//! `portcullis profiles`: the exclusions for known applications, why each is there, and what it opens; and
//! what a profile does to requests.

mod difference;
mod draft;
mod opened;
mod tester;
mod trial;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use portcullis_config::{Profile, profile, profiles};
use portcullis_types::{Class, nearest};

use crate::outcome::{Failure, print};

/// Bytes of a profile's file that are read at most.
const FILE_BYTES_MAX: u64 = 256 << 10;

/// Arguments of `portcullis profiles`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Only this one, with all that it says
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Show requests to a policy without and with a profile: those that the profile brings, or recorded ones
    Test(TestArgs),
    /// Print the draft of a profile, from the kinds of findings that a site has learned its fields carry
    New(draft::NewArgs),
    /// Compare a profile with another one, or with what a site has learned
    Diff(difference::DiffArgs),
}

/// Arguments of `portcullis profiles test`.
#[derive(Debug, clap::Args)]
pub struct TestArgs {
    /// Profiles of the program, or files with one (.toml)
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
    /// Profiles that the site takes, too: what each of them lets pass is tried with all of them
    #[arg(long = "with", value_name = "NAME,...", value_delimiter = ',', conflicts_with = "opens")]
    others: Vec<String>,
    /// Requests of benign users in place of its own: an archive of a browser (.har), JSON lines (.jsonl:
    /// `request` or `request_base64`), a raw request (any name); may be given several times
    #[arg(long, value_name = "FILE", visible_alias = "har")]
    requests: Vec<PathBuf>,
    /// In place of its requests: attacks of every class in the places that it opens. What passes has to be
    /// what the profile says
    #[arg(long, conflicts_with = "requests")]
    opens: bool,
    /// The path of the application at its site
    #[arg(long, value_name = "PATH", default_value = "")]
    path: String,
    /// semantic, crs or both; by default each that can run
    #[arg(long, value_name = "MODE")]
    mode: Vec<String>,
    /// Folder of the CRS; by default one that is installed
    #[arg(long, value_name = "DIR")]
    crs: Option<PathBuf>,
}

/// Exit code 1 if there is no such profile, if a profile does not do what it says, or if two differ.
pub fn run(args: &Args) -> ExitCode {
    if let Some(command) = &args.command {
        let answer = match command {
            Command::Test(args) => trial::run(args),
            Command::New(args) => draft::run(args).map(|text| (text, true)),
            Command::Diff(args) => difference::run(args),
        };
        return match answer {
            Ok((text, true)) => print(&text),
            Ok((text, false)) => {
                print(&text);
                ExitCode::FAILURE
            }
            Err(failure) => failure.exit(),
        };
    }
    let Some(name) = &args.name else {
        return print(&profiles().iter().map(line).collect::<String>());
    };
    match profile(name) {
        Some(profile) => print(&text(profile)),
        None => unknown(name).exit(),
    }
}

/// The profile of this name, or of this file.
fn find(name: &str) -> Result<Profile, Failure> {
    if !name.ends_with(".toml") {
        return profile(name).cloned().ok_or_else(|| unknown(name));
    }
    let failed = |error: &dyn std::fmt::Display| Failure::failed(format_args!("{name}: {error}"));
    let text =
        portcullis_files::read_text(Path::new(name), FILE_BYTES_MAX).map_err(|error| failed(&error))?;
    Profile::from_toml(&text).map_err(|why| failed(&why))
}

fn unknown(name: &str) -> Failure {
    let names = || profiles().iter().map(|profile| profile.name.as_str());
    let hint = match nearest(name, names()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are {}", names().collect::<Vec<_>>().join(", ")),
    };
    Failure::failed(format_args!("there is no profile `{name}`; {hint}"))
}

/// A profile in a line.
fn line(profile: &Profile) -> String {
    let Profile { name, application, about, versions, .. } = profile;
    let count = profile.exclusions("").count();
    format!("{name:<28}{application} {versions}: {about}; {count} exclusions\n")
}

/// A profile with its exclusions, each with the reason and what it opens.
fn text(profile: &Profile) -> String {
    let Profile { name, application, about, versions, version, changes, requests, .. } = profile;
    let mut out = format!("{name}: {application} {versions}: {about}\n");
    let attacks: usize = requests.iter().map(|request| request.attacks.len()).sum();
    let _ = writeln!(out, "version {version}, tested with {} requests and {attacks} attacks", requests.len());
    for each in profile.exclusions("") {
        let what = match each.rules {
            [] => each.kind.or(each.class.map(Class::name)).unwrap_or_default().to_owned(),
            rules => rules.iter().map(u32::to_string).collect::<Vec<_>>().join(" "),
        };
        let place = each.location.or(each.target).unwrap_or_default();
        let _ = writeln!(out, "  {what} in {place} of {}", each.path);
        let _ = writeln!(out, "    why:   {}\n    opens: {}", each.reason, each.opens);
        if !each.lets_pass.is_empty() {
            let _ = writeln!(out, "    attacks that pass are of: {}", each.lets_pass.join(", "));
        }
    }
    for change in changes {
        let _ = writeln!(out, "  version {}: {}", change.version, change.what);
    }
    out
}
