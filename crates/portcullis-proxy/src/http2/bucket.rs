//! A token bucket: so many at once, and so many in each minute after that.

use std::time::{Duration, Instant};

const MINUTE: Duration = Duration::from_secs(60);

/// The number that may still come.
pub(super) struct Bucket {
    per_minute: u32,
    left: f64,
    at: Instant,
}

impl Bucket {
    /// A full one.
    pub(super) fn new(per_minute: u32, now: Instant) -> Self {
        Bucket { per_minute, left: f64::from(per_minute), at: now }
    }

    /// Takes one, if there is one.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        let max = f64::from(self.per_minute);
        let since = now.saturating_duration_since(self.at).as_secs_f64() / MINUTE.as_secs_f64();
        self.left = (self.left + since * max).min(max);
        self.at = now;
        let takes = self.left >= 1.0;
        if takes {
            self.left -= 1.0;
        }
        takes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refills_within_a_minute() {
        let start = Instant::now();
        let mut bucket = Bucket::new(2, start);
        assert!(bucket.take(start) && bucket.take(start) && !bucket.take(start));
        assert!(!bucket.take(start + Duration::from_secs(29)));
        assert!(bucket.take(start + Duration::from_secs(31)));
        let later = start + Duration::from_secs(3600);
        assert!(bucket.take(later) && bucket.take(later) && !bucket.take(later));
    }
}
