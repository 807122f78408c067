use std::time::Duration;

/// A time: milliseconds since an epoch of the caller's. 40 bits of it are kept, which is 34 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub u64);

/// Bits that a moment takes where it is packed with other things.
pub(crate) const MOMENT_BITS: u32 = 40;

impl Moment {
    /// This much later.
    pub fn after(self, duration: Duration) -> Moment {
        Moment(self.0.saturating_add(millis(duration)))
    }

    /// Returns the time since `earlier`; zero if that is still to come, as it may be when two threads read a
    /// clock.
    pub fn since(self, earlier: Moment) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }

    pub(crate) fn packed(self) -> u64 {
        self.0 & ((1 << MOMENT_BITS) - 1)
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
