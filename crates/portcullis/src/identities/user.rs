//! `portcullis user add|password|list|delete`. `password` is how an administrator who cannot log in any more
//! gets back.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;
use portcullis_identity::{Change, NewUser, check_password};

use super::secret_input::read_password;
use super::{RoleName, actor, limited, limits, now, open, time};
use crate::outcome::{Failure, print};

/// Users that are read from the file at a time.
const PAGE: usize = 1000;

/// Arguments of `portcullis user`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Create a user; the password is asked for, or the first line of standard input
    Add {
        /// The user's name
        name: String,
        /// Folder of the event store, identities and certificates
        #[arg(long, value_name = "DIR")]
        data: PathBuf,
        /// What the user may do
        #[arg(long, value_enum)]
        role: RoleName,
        /// A site that they are limited to; may be given several times, without it all sites
        #[arg(long = "site", value_name = "SITE")]
        sites: Vec<String>,
    },
    /// Set a user's password, let the user log in again, and end all sessions
    Password {
        /// The user's name
        name: String,
        /// Folder of the event store, identities and certificates
        #[arg(long, value_name = "DIR")]
        data: PathBuf,
        /// Also remove the one-time code, for a user whose authenticator app is lost
        #[arg(long)]
        remove_totp: bool,
    },
    /// List users
    List {
        /// Folder of the event store, identities and certificates
        #[arg(long, value_name = "DIR")]
        data: PathBuf,
    },
    /// Delete a user, the last administrator too
    Delete {
        /// The user's name
        name: String,
        /// Folder of the event store, identities and certificates
        #[arg(long, value_name = "DIR")]
        data: PathBuf,
    },
}

/// Exit code 1 if the file cannot be used, there is no such user, or the password is not allowed.
pub fn run(args: &Args) -> ExitCode {
    match answer(&args.action) {
        Ok(text) => print(&text),
        Err(failure) => failure.exit(),
    }
}

fn answer(action: &Action) -> Result<String, Failure> {
    let now = now();
    match action {
        Action::Add { name, data, role, sites } => {
            let identities = open(data)?;
            let (role, sites) = ((*role).into(), limited(sites)?);
            let new = NewUser { name: name.clone(), role, sites, password: new_password(name)? };
            let user = identities.create_user(&new, &actor(), now).map_err(Failure::failed)?;
            Ok(format!("user {} is created with the role {}\n", user.name, user.role))
        }
        Action::Password { name, data, remove_totp } => {
            let identities = open(data)?;
            if identities.user(name).map_err(Failure::failed)?.is_none() {
                return Err(Failure::failed(format_args!("there is no user `{name}`")));
            }
            let change = Change {
                password: Some(new_password(name)?),
                disabled: Some(false),
                remove_totp: *remove_totp,
                ..Change::default()
            };
            identities.change_user(name, None, &change, &actor(), now).map_err(Failure::failed)?;
            Ok(format!("the password of {name} is set; sessions of this user have ended\n"))
        }
        Action::List { data } => {
            let identities = open(data)?;
            let mut text = format!(
                "{:<8} {:<9} {:<6} {:<5} {:<25} name\n",
                "role", "state", "origin", "code", "created"
            );
            let mut after = None;
            loop {
                let page = identities.users(after, PAGE).map_err(Failure::failed)?;
                let Some(last) = page.last() else { return Ok(text) };
                after = Some(last.id);
                for user in &page {
                    let state = if user.disabled { "disabled" } else { "active" };
                    let (role, code) = (user.role.name(), if user.totp { "yes" } else { "no" });
                    let created = time(user.created);
                    let origin = user.origin.name();
                    text.push_str(&format!(
                        "{role:<8} {state:<9} {origin:<6} {code:<5} {created:<25} {}{}\n",
                        user.name,
                        limits(&user.sites)
                    ));
                }
            }
        }
        Action::Delete { name, data } => {
            open(data)?.delete_user(name, None, true, &actor(), now).map_err(Failure::failed)?;
            Ok(format!("user {name} is deleted\n"))
        }
    }
}

fn new_password(name: &str) -> Result<String, Failure> {
    let password = read_password().map_err(Failure::failed)?;
    check_password(name, &password).map_err(Failure::failed)?;
    Ok(password)
}
