//! The `portcullis` command: wiring and subcommands, one file each.
//!
//! Exit codes: 0 done, 1 the work found mistakes or failed, 2 the command line cannot be followed.

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod advise;
mod api;
mod backup;
mod bans;
#[cfg(feature = "bench")]
mod bench;
mod check;
mod checked;
mod cli;
mod crs;
mod data_folder;
mod decision;
mod discovery_files;
mod edited;
mod evaluate;
mod event_database;
mod event_text;
mod events;
mod exclude;
mod explain;
mod generate;
mod identities;
mod init;
mod learned;
mod learned_files;
mod migrate;
mod new_file;
mod outcome;
mod policy_args;
mod profiles;
mod replay;
mod rule_files;
mod rule_list;
mod rules;
mod run;
mod runtime_folder;
mod serve;
mod teaching;
mod terminal;
mod time_arg;
mod writable;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match cli::Cli::parse().command {
        cli::Command::Run(args) => run::run(&args),
        cli::Command::Serve(args) => serve::run(&args),
        #[cfg(feature = "bench")]
        cli::Command::Bench(args) => bench::run(&args),
        cli::Command::Check(args) => check::run(&args),
        cli::Command::Evaluate(args) => evaluate::run(&args),
        cli::Command::Explain(args) => explain::run(&args),
        cli::Command::Rules(args) => rules::run(&args),
        cli::Command::Crs(args) => crs::run(&args),
        cli::Command::Bans(args) => bans::run(&args),
        cli::Command::Events(args) => events::run(&args),
        cli::Command::Advise(args) => advise::run(&args),
        cli::Command::Profiles(args) => profiles::run(&args),
        cli::Command::Replay(args) => replay::run(&args),
        cli::Command::Api(args) => api::run(&args),
        cli::Command::Learn(args) => learned::learn(&args),
        cli::Command::Learned(args) => learned::run(&args),
        cli::Command::Exclude(args) => exclude::run(&args),
        cli::Command::Token(args) => identities::token::run(&args),
        cli::Command::User(args) => identities::user::run(&args),
        cli::Command::Init(args) => init::run(&args),
        cli::Command::Migrate(args) => migrate::run(&args),
        cli::Command::Backup(args) => backup::backup(&args),
        cli::Command::Restore(args) => backup::restore(&args),
        cli::Command::Completions(args) => generate::print_completions(&args, cli::Cli::command()),
        cli::Command::Generate(args) => generate::run(&args, cli::Cli::command()),
    }
}
