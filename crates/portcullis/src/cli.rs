//! The command line; the arguments of a subcommand stand in its own file.

use clap::{Parser, Subcommand};

#[cfg(feature = "bench")]
use crate::bench;
use crate::identities::{token, user};
use crate::{
    advise, api, backup, bans, check, crs, evaluate, events, exclude, explain, generate, init, learned,
    migrate, profiles, replay, rules, run, serve,
};

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
    /// Find false positives in the event store, and measure the exclusions that would end them
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn no_command_contradicts_itself() {
        super::Cli::command().debug_assert();
    }
}
