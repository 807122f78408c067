//! `portcullis token`, `portcullis user`: who may ask the admin API. They work on the file in the data
//! folder, whether an instance runs or not; one that runs sees the change at its next request.

mod secret_input;
pub mod token;
pub mod user;

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::ValueEnum;
use portcullis_event::Timestamp;
use portcullis_identity::{Actor, Identities, Role};

use crate::cli::Failure;

/// Role of an identity.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum RoleName {
    /// Read events, bans and the state of the program
    Viewer,
    /// Also lift bans
    Analyst,
    /// Also manage users and tokens, read the audit trail and reload the configuration
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

fn open(folder: &Path) -> Result<Identities, Failure> {
    Identities::open(folder).map_err(Failure::failed)
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
