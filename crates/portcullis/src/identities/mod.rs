//! `portcullis token`, `portcullis user`: who may ask the admin API. They work on the file in the data
//! folder, whether an instance runs or not; one that runs sees the change at its next request.

mod secret_input;
pub mod token;
pub mod user;

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::ValueEnum;
use portcullis_event::Timestamp;
use portcullis_identity::{Actor, Identities, Role, Sites};

use crate::outcome::Failure;

/// Entries of a folder that are looked at.
const ENTRIES_MAX: usize = 1000;

/// Role of an identity.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum RoleName {
    /// Read events, bans and the state of the program
    Viewer,
    /// Also lift bans, add and remove exclusions, deny and allow clients, read kept requests
    Analyst,
    /// Also change the document and the settings of sites, manage users and tokens, read the audit trail
    Admin,
}

impl From<RoleName> for Role {
    fn from(name: RoleName) -> Role {
        match name {
            RoleName::Viewer => Role::Viewer,
            RoleName::Analyst => Role::Analyst,
            RoleName::Admin => Role::Admin,
        }
    }
}

/// The identities of a data folder. An empty folder becomes one; anything else that is none is a mistake, for
/// no instance would read what is written there.
fn open(folder: &Path) -> Result<Identities, Failure> {
    let wrong = |what: &str| {
        Failure::failed(format_args!(
            "--data {}: {what}\n  help: the data folder of an instance is `data.folder` of its document, or `--data` of \
             its command line (/var/lib/portcullis/data in packages); make an empty folder to begin one",
            folder.display()
        ))
    };
    let names = match folder.read_dir() {
        Ok(entries) => entries.flatten().map(|entry| entry.file_name()).take(ENTRIES_MAX).collect::<Vec<_>>(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(wrong("there is no such folder"));
        }
        Err(error) => return Err(wrong(&error.to_string())),
    };
    let ours = ["identities.db", "revisions.db", "events"];
    if !names.is_empty() && !names.iter().any(|name| ours.iter().any(|ours| name == ours)) {
        return Err(wrong("this is not a data folder: it has neither events nor identities"));
    }
    Identities::open(folder).map_err(Failure::failed)
}

/// The sites of these names; all if there is none.
fn limited(names: &[String]) -> Result<Sites, Failure> {
    match names {
        [] => Ok(Sites::All),
        names => Sites::named(names.iter().cloned()).map_err(Failure::failed),
    }
}

/// What a list says behind the name of an identity that is limited to sites.
fn limits(sites: &Sites) -> String {
    match sites {
        Sites::All => String::new(),
        Sites::Named(_) => format!(" ({sites})"),
    }
}

/// The audit trail's word for who works here: the user of the system.
fn actor() -> Actor {
    Actor::new(format!("command line (uid {})", rustix::process::getuid().as_raw()))
}

/// Seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn time(seconds: u64) -> String {
    Timestamp::from_epoch_millis(seconds.saturating_mul(1000)).rfc3339()
}

fn time_or(seconds: Option<u64>, none: &str) -> String {
    seconds.map_or_else(|| none.to_owned(), time)
}
