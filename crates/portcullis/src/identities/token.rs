//! `portcullis token create|list|revoke`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;
use portcullis_identity::{NewToken, Token};

use super::{RoleName, actor, now, open, time, time_or};
use crate::cli::{Failure, print};

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
        /// What it is for
        #[arg(long)]
        name: String,
        /// How long it works: 30d, 12h, 90m or 45s; by default until it is revoked
        #[arg(long, value_name = "TIME", value_parser = duration)]
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
        Action::Create { data, role, name, expires } => {
            let expires = expires.map(|seconds| now.saturating_add(seconds));
            let new = NewToken { name: name.clone(), role: (*role).into(), expires };
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
    format!("{:<5} {:<8} {state:<9} {used:<25} {expires:<25} {}\n", token.id, token.role.name(), token.name)
}

/// A number with a unit, in seconds.
fn duration(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is not a time; write 30d, 12h, 90m or 45s");
    let unit = text.chars().next_back().ok_or_else(wrong)?;
    let seconds = match unit {
        'd' => 86_400,
        'h' => 3600,
        'm' => 60,
        's' => 1,
        _ => return Err(wrong()),
    };
    let number: u64 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    number.checked_mul(seconds).filter(|seconds| *seconds > 0).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::duration;

    #[test]
    fn times_have_a_unit() {
        for (text, seconds) in [("30d", 2_592_000), ("12h", 43_200), ("90m", 5400), ("45s", 45)] {
            assert_eq!(duration(text), Ok(seconds), "{text}");
        }
        for text in
            ["", "d", "30", "0d", "-1d", "1.5h", "30 d", "99999999999999999999d", "1é", "300000000000000d"]
        {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
