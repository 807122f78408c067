//! Messages in a minute.

use std::time::{Duration, Instant};

/// A bucket that holds the messages of a minute and fills evenly.
#[derive(Clone, Debug)]
pub(super) struct Rate {
    per_minute: u32,
    /// Since then it is full.
    full_at: Instant,
}

impl Rate {
    pub(super) fn new(per_minute: u32, now: Instant) -> Rate {
        Rate { per_minute: per_minute.max(1), full_at: now }
    }

    /// Credit that one message takes.
    fn share(&self) -> Duration {
        Duration::from_secs(60) / self.per_minute
    }

    /// The moment from which on a message may go.
    pub(super) fn next(&self) -> Instant {
        let burst = Duration::from_secs(60) - self.share();
        self.full_at.checked_sub(burst).unwrap_or(self.full_at)
    }

    /// A message goes.
    pub(super) fn take(&mut self, now: Instant) {
        self.full_at = self.full_at.max(now) + self.share();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_has_so_many_messages_and_then_one_at_a_time() {
        let begin = Instant::now() + Duration::from_secs(3600);
        let mut rate = Rate::new(6, begin);
        let mut sent = Vec::new();
        for second in 0..120 {
            let now = begin + Duration::from_secs(second);
            while rate.next() <= now {
                rate.take(now);
                sent.push(second);
            }
        }
        assert_eq!(sent, [0, 0, 0, 0, 0, 0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110]);
    }
}
