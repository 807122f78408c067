//! Certificates by ACME (RFC 8555): ordered, proved by HTTP-01, kept, and renewed in time.
//!
//! ```text
//!  keeper thread                                                         workers
//!  task: which name is due (schedule) ──> order ──> client (HTTP) ··> authority
//!                                           │                            │ GET /.well-known/acme-challenge/TOKEN
//!                                           ├──> Challenges <── exchange ┘
//!                                           └──> files ──> STATE/DIRECTORY/NAME.pem <── tls (looks each second)
//! ```
//!
//! Each name has a certificate of its own, so that one whose challenge fails does not keep others from
//! theirs. Nothing of it runs on a worker, and neither a start nor a reload waits for it.

mod challenges;
mod client;
mod files;
mod order;
mod schedule;
mod task;

use std::path::PathBuf;
use std::sync::Arc;

use portcullis_config::{Acme, Config};
use portcullis_fetch::Authorities;

use crate::StartError;

pub use challenges::Challenges;
pub use task::{Host, run};

use files::Folder;

/// The account and the names of all listeners.
#[derive(Debug)]
pub struct Settings {
    account: Acme,
    /// They may have signed the certificate of the directory.
    authorities: Authorities,
    folder: Folder,
    /// Each once.
    names: Vec<String>,
}

impl Settings {
    /// None if nothing is ordered.
    pub fn build(config: &Config) -> Result<Option<Arc<Self>>, StartError> {
        let Some(account) = &config.acme else { return Ok(None) };
        let of_listeners = config.listeners.iter().filter_map(|listener| listener.tls.as_ref());
        let mut names: Vec<String> = of_listeners.flat_map(|tls| &tls.acme).cloned().collect();
        names.sort_unstable();
        names.dedup();
        if names.is_empty() {
            return Ok(None);
        }
        let authorities = Authorities::load(account.ca.as_deref(), "acme.ca").map_err(StartError::new)?;
        let folder = Folder::open(account)?;
        Ok(Some(Arc::new(Settings { account: account.clone(), authorities, folder, names })))
    }

    /// The file of the certificate of a name, with its key.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.certificate(name)
    }
}

/// The reason why there is no certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The authority cannot be reached, or does not answer as ACME has it.
    Unreachable,
    /// It wants less of us.
    RateLimited,
    /// It did not find the proof that we serve the name.
    Challenge,
    /// It says no for another reason.
    Refused,
    /// Its certificate cannot be kept or used.
    Unusable,
}

/// An order that came to nothing.
#[derive(Debug)]
struct Failure {
    kind: Kind,
    /// Other names would fare no better.
    of_all: bool,
    /// The authority does not know the account.
    account_unknown: bool,
    text: String,
}

impl Failure {
    /// `text` may come from the authority.
    fn new(kind: Kind, text: impl std::fmt::Display) -> Self {
        const CHARS_MAX: usize = 500;
        let visible = |letter: char| if letter.is_control() { ' ' } else { letter };
        let text = text.to_string().chars().map(visible).take(CHARS_MAX).collect();
        let of_all = matches!(kind, Kind::Unreachable | Kind::Unusable);
        Failure { kind, of_all, account_unknown: false, text }
    }
}
