//! The receivers of what exchanges leave behind.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use portcullis_config::Config;
use portcullis_event::{AccessRecord, Coverage, Event, Redactor, RedactorNames};
use portcullis_inspect::KeptFile;

/// Takes the record of a request, how much of it was inspected, and the time that this took; none: it was not
/// inspected.
pub type OnRequest = Arc<dyn Fn(&AccessRecord<'_>, &Coverage, Option<Duration>) + Send + Sync>;

/// A sample of the requests that pass.
#[derive(Clone)]
pub struct Capture {
    /// The share of them that is taken, 0 to 1.
    pub share: f64,
    /// Takes one, kept with an event that says where it went.
    pub take: Arc<dyn Fn(Event) + Send + Sync>,
}

/// The receivers of what exchanges leave behind. They are called by the threads that serve and must not wait.
#[derive(Clone)]
pub struct Outputs {
    /// Takes a finished event; none: no events are made.
    pub on_event: Option<Arc<dyn Fn(Event) + Send + Sync>>,
    /// Takes the record of each exchange.
    pub on_request: Option<OnRequest>,
    /// Takes an uploaded file that is to be kept.
    pub on_file: Arc<dyn Fn(KeptFile) + Send + Sync>,
    /// Requests are kept with their events, and of their bodies so many bytes; 0: they are not.
    pub keep_request_bytes: usize,
    /// Takes a sample of the requests that pass without an event.
    pub capture: Option<Capture>,
}

impl fmt::Debug for Outputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outputs").finish_non_exhaustive()
    }
}

/// The redactor of a configuration: the built-in names, and the configured ones wherever a name can stand.
pub fn redactor(config: &Config) -> Redactor {
    let mut names = RedactorNames::default();
    for name in &config.redact_names {
        names.add_everywhere(name);
    }
    Redactor::new(&names)
}
