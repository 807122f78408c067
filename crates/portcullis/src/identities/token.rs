//! `portcullis token create|list|revoke`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;
use portcullis_identity::{NewToken, Token};

use super::{RoleName, actor, limited, limits, now, open, time, time_or};
use crate::outcome::{Failure, print};
use crate::time_arg;

/// Tokens that are read from the file at a time.
const PAGE: usize = 1000;

/// Arguments of `portcullis token`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Create a token and print it, and nothing else; it cannot be shown again
    Create {
        /// Folder of the event store, identities and certificates
        #[arg(long, value_name = "DIR")]
        data: PathBuf,
        /// What it may do
        #[arg(long, value_enum)]
        role: RoleName,
        /// A site that it is limited to; may be given several times, without it all sites
        #[arg(long = "site", value_name = "SITE")]
        sites: Vec<String>,
        /// What it is for
        #[arg(long)]
        name: String,
        /// How long it works: 30d, 12h, 90m or 45s; by default until it is revoked
        #[arg(long, value_name = "TIME", value_parser = time_arg::seconds)]
        expires: Option<u64>,
    },
    /// List tokens, without their secrets
    List {
        /// Folder of the event store, identities and certificates
        #[arg(long, value_name = "DIR")]
        data: PathBuf,
    },
    /// Revoke a token, for good
    Revoke {
        /// Its number, as `list` shows it
        id: i64,
        /// Folder of the event store, identities and certificates
        #[arg(long, value_name = "DIR")]
        data: PathBuf,
    },
}

/// Exit code 1 if the file cannot be used, or there is no such token.
pub fn run(args: &Args) -> ExitCode {
    match answer(&args.action) {
        Ok(text) => print(&text),
        Err(failure) => failure.exit(),
    }
}

fn answer(action: &Action) -> Result<String, Failure> {
    let now = now();
    match action {
        Action::Create { data, role, sites, name, expires } => {
            let expires = expires.map(|seconds| now.saturating_add(seconds));
            let new = NewToken { name: name.clone(), role: (*role).into(), sites: limited(sites)?, expires };
            let (_, secret) = open(data)?.create_token(&new, &actor(), now).map_err(Failure::failed)?;
            Ok(format!("{secret}\n"))
        }
        Action::List { data } => {
            let identities = open(data)?;
            let mut text = format!(
                "{:<5} {:<8} {:<9} {:<25} {:<25} name\n",
                "id", "role", "state", "last used", "expires"
            );
            let mut after = None;
            loop {
                let page = identities.tokens(after, PAGE).map_err(Failure::failed)?;
                let Some(last) = page.last() else { return Ok(text) };
                after = Some(last.id);
                page.iter().for_each(|token| text.push_str(&line(token, now)));
            }
        }
        Action::Revoke { id, data } => {
            open(data)?.revoke_token(*id, &actor(), now).map_err(Failure::failed)?;
            Ok(format!("token {id} is revoked\n"))
        }
    }
}

fn line(token: &Token, now: u64) -> String {
    let state = match token.revoked {
        Some(_) => "revoked",
        None if token.is_valid(now) => "valid",
        None => "expired",
    };
    let (used, expires) = (time_or(token.last_used, "never"), token.expires.map_or("never".to_owned(), time));
    let (name, sites) = (&token.name, limits(&token.sites));
    let role = token.role.name();
    format!("{:<5} {role:<8} {state:<9} {used:<25} {expires:<25} {name}{sites}\n", token.id)
}
