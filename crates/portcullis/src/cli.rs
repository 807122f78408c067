//! The command line; the arguments of a subcommand stand in its own file.

use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[cfg(feature = "bench")]
use crate::bench;
use crate::identities::{token, user};
use crate::{
    advise, api, backup, bans, check, crs, evaluate, events, exclude, explain, generate, init, learned,
    migrate, profiles, replay, rules, run, serve,
};

/// The exit code of a command whose work found mistakes or failed.
pub const FAILED: u8 = 1;
/// The exit code of a command line that cannot be followed; clap uses the same.
pub const USAGE: u8 = 2;

/// Portcullis, a web application firewall: a reverse proxy that inspects every request and response with a
/// parser-based detector, SecLang rules such as the OWASP CRS, or both, and explains each verdict.
#[derive(Debug, Parser)]
#[command(name = "portcullis", version, propagate_version = true, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Put the WAF in front of an application and serve until SIGTERM; SIGHUP reloads configuration and rules
    Run(run::Args),
    /// Give verdicts to a server that asks for them (nginx, Caddy, Traefik, HAProxy, Envoy) until SIGTERM;
    /// SIGHUP reloads configuration and rules
    Serve(serve::Args),
    /// Ask for the application and write a commented configuration document for it
    Init(init::Args),
    /// Write a configuration document from that of another server or WAF, with a report of what differs
    Migrate(migrate::Args),
    /// Read rule files or a configuration document and show every mistake in them
    Check(check::Args),
    /// Inspect one request of a file and show why it would be blocked or let through
    Explain(explain::Args),
    /// Run labelled requests through a policy and count detections and false positives
    Evaluate(evaluate::Args),
    /// Measure the latency and CPU that inspection adds, on loopback
    #[cfg(feature = "bench")]
    Bench(bench::Args),
    /// List the rules that would be loaded
    Rules(rules::Args),
    /// Install a release of the OWASP CRS, or list those that are there
    Crs(crs::Args),
    /// List the bans of a running instance, or lift one
    Bans(bans::Args),
    /// Show the event of a blocked request, or the last events, of a running instance
    Events(events::Args),
    /// Print a narrow exclusion (TOML) that lets a wrongly blocked request pass
    Exclude(exclude::Args),
    /// List the profiles: exclusions for known applications, which a site takes by name, and what each opens
    Profiles(profiles::Args),
    /// Show what another document would decide on requests that were stored or saved
    Replay(replay::Args),
    /// List the endpoints that sites were seen to answer, export them as OpenAPI, compare documents, check
    /// the description of an API
    Api(api::Args),
    /// Learn what the fields of a site carry from recorded requests of benign users
    Learn(learned::LearnArgs),
    /// List what sites have learned of their fields, or export and import it
    Learned(learned::Args),
    /// Find false alarms in the event store, and measure the exclusions that would end them
    Advise(advise::Args),
    /// Create, list and revoke tokens of the admin API
    Token(token::Args),
    /// Create, list and delete users of the admin API, and set passwords
    User(user::Args),
    /// Write all that an instance keeps on disk into one file, also while it runs
    Backup(backup::BackupArgs),
    /// Put a backup into a new data folder
    Restore(backup::RestoreArgs),
    /// Print the completions of a shell: `source <(portcullis completions bash)`
    Completions(generate::CompletionsArgs),
    /// Write man pages or shell completions to a folder (packages bring them)
    Generate(generate::Args),
}

/// The reason why a command ends early.
#[derive(Debug)]
pub struct Failure {
    code: u8,
    message: String,
}

impl Failure {
    /// The command line cannot be followed.
    pub fn usage(message: impl Display) -> Failure {
        Failure { code: USAGE, message: message.to_string() }
    }

    /// The work failed.
    pub fn failed(message: impl Display) -> Failure {
        Failure { code: FAILED, message: message.to_string() }
    }

    /// Tells why and gives the exit code.
    pub fn exit(self) -> ExitCode {
        complain(self.message);
        ExitCode::from(self.code)
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

/// Writes the result of a command to standard output. A closed pipe is a reader who has seen enough.
pub fn print(text: &str) -> ExitCode {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Failure::failed(format_args!("cannot write to standard output: {error}")).exit()
        }
        _ => ExitCode::SUCCESS,
    }
}

/// Tells why the command line cannot be followed.
pub fn usage_error(message: impl Display) -> ExitCode {
    Failure::usage(message).exit()
}

/// Writes a warning to standard error.
pub fn warn(message: impl Display) {
    // If standard error is closed, the message is lost.
    let _ = writeln!(std::io::stderr(), "warning: {message}");
}

/// Writes an error message to standard error. Diagnostics of rules and descriptions begin with their
/// severity.
fn complain(message: impl Display) {
    let message = message.to_string();
    let severity = if message.starts_with("error") { "" } else { "error: " };
    // If standard error is closed, the message is lost.
    let _ = writeln!(std::io::stderr(), "{severity}{message}");
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn no_command_contradicts_itself() {
        super::Cli::command().debug_assert();
    }
}
