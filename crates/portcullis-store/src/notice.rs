use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The same trouble is reported once in this time.
const PERIOD: Duration = Duration::from_secs(60);

/// Takes a line for the operator.
pub type Say = Arc<dyn Fn(&str) + Send + Sync>;

/// Lines for the operator, each kind at most once a minute.
#[derive(Clone)]
pub(crate) struct Notices {
    say: Say,
    last: HashMap<&'static str, Instant>,
}

impl fmt::Debug for Notices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notices").field("last", &self.last).finish_non_exhaustive()
    }
}

impl Notices {
    pub(crate) fn new(say: Say) -> Notices {
        Notices { say, last: HashMap::new() }
    }

    pub(crate) fn say(&mut self, kind: &'static str, text: &str) {
        let now = Instant::now();
        if self.last.get(kind).is_none_or(|last| now.duration_since(*last) >= PERIOD) {
            self.last.insert(kind, now);
            (self.say)(text);
        }
    }

    /// This kind was reported and not forgotten.
    pub(crate) fn was_said(&self, kind: &'static str) -> bool {
        self.last.contains_key(kind)
    }

    pub(crate) fn forget(&mut self, kind: &'static str) {
        self.last.remove(kind);
    }
}
