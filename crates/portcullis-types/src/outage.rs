/// The time that something has to work before it is reported to work again, in milliseconds.
const WELL_MS: u64 = 30_000;

/// The state of something that may fail, as it is reported to people: once that it fails, and once that it
/// works again when it has done so for a while. What works and fails by turns makes one line, not one for
/// each turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outage {
    fails: bool,
    /// The time since which it works.
    well_since: Option<u64>,
}

impl Outage {
    /// It has failed. True if that is to be reported.
    pub fn failed(&mut self) -> bool {
        self.well_since = None;
        !std::mem::replace(&mut self.fails, true)
    }

    /// It has worked, at this time in milliseconds of any clock. True if that is to be reported.
    pub fn worked(&mut self, now_ms: u64) -> bool {
        if !self.fails {
            return false;
        }
        // A clock may be set back.
        let since = self.well_since.filter(|since| *since <= now_ms).unwrap_or(now_ms);
        self.well_since = Some(since);
        let is_well = now_ms - since >= WELL_MS;
        if is_well {
            *self = Outage::default();
        }
        is_well
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_for_each_state() {
        let mut outage = Outage::default();
        assert!(!outage.worked(0), "nothing has failed");
        assert!(outage.failed() && !outage.failed());
        // By turns.
        for now in (0..1_000_000).step_by(10_000) {
            assert!(!outage.worked(now) && !outage.worked(now + 9_999) && !outage.failed());
        }
        assert!(!outage.worked(2_000_000) && !outage.worked(2_029_999));
        assert!(!outage.worked(1_000_000), "a clock that was set back begins anew");
        assert!(outage.worked(1_030_000) && !outage.worked(1_030_001));
        assert!(outage.failed());
    }
}
