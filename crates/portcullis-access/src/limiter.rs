use std::time::Duration;

use crate::gcra::Rate;
use crate::table::{Key, Keying, Table};

/// One rate limit with the buckets of its keys.
#[derive(Debug)]
pub struct Limiter {
    rate: Rate,
    table: Table,
}

/// The answer to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Check {
    /// Too early by this much; none if it conforms.
    pub wait: Option<Duration>,
    /// Requests that could follow at once.
    pub remaining: u64,
    /// Another key's bucket was forgotten before it was full again.
    pub evicted: bool,
}

impl Limiter {
    /// Buckets for at least `keys` keys, 16 bytes each.
    pub fn new(rate: Rate, keys: usize) -> Limiter {
        Limiter { rate, table: Table::new(keys) }
    }

    /// Its rate.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// The key of some byte strings, good for this limiter only.
    pub fn key<'a>(&self, parts: impl IntoIterator<Item = &'a [u8]>) -> Key {
        self.table.key(parts)
    }

    /// The same, put together part by part.
    pub fn keying(&self) -> Keying {
        self.table.keying()
    }

    /// Counts a request at `now`, nanoseconds of a clock that does not go back. One that comes too early
    /// changes nothing.
    pub fn check(&self, key: Key, now: u64) -> Check {
        let mut wait = None;
        let updated = self.table.update(key, now, |tat| match self.rate.admit(tat, now) {
            Ok(next) => {
                wait = None;
                Some(next)
            }
            Err(early) => {
                wait = Some(Duration::from_nanos(early));
                None
            }
        });
        let remaining = self.rate.remaining(updated.time, now);
        Check { wait, remaining, evicted: updated.evicted }
    }
}
