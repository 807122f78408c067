//! Requests that were refused for what one field carried, and nothing else.
//!
//! They are not learned, so that of a field in which people write code only the plain values would be. Such a
//! field stays open: not because of what was refused, but because it is not known whether that was wrong.

use serde::{Deserialize, Serialize};

use crate::sketch::Sightings;
use crate::source::{OPENING_DAYS_MIN, Source, Standing, Thresholds};

/// Networks whose requests must have been refused for a field alone before that keeps it open; more, where
/// one in [`STRAY_SHARE`](crate::STRAY_SHARE) of those that send the field are more. One or two keep none
/// open.
pub const REFUSED_NETWORKS_MIN: u64 = 3;
/// Refused requests are counted anew after so many days, and keep a field open for so many.
pub const REFUSED_WINDOW_DAYS: u32 = 30;

/// What was refused for a field alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// The requests of this window.
    pub seen: Sightings,
    /// The day on which the window began.
    since: u32,
    /// The last day on which they keep the field open.
    until: u32,
}

impl Refused {
    /// Counts a request. More than `strays` networks must have sent such ones.
    pub(crate) fn add(&mut self, from: Source, strays: u64, thresholds: &Thresholds) {
        let window_end = self.since.saturating_add(REFUSED_WINDOW_DAYS);
        if self.seen.values == 0 || from.day >= window_end {
            (self.seen, self.since) = (Sightings::default(), from.day);
        }
        self.seen.add(1, from.network, from.day);
        let networks = REFUSED_NETWORKS_MIN.min(thresholds.networks).max(2).max(strays.saturating_add(1));
        let is_common = self.seen.network_count() >= networks
            && self.seen.days.count() >= OPENING_DAYS_MIN.min(thresholds.days);
        // Trusted clients write no attacks.
        if is_common || from.standing == Standing::Trusted {
            self.until = self.until.max(from.day.saturating_add(REFUSED_WINDOW_DAYS));
        }
    }

    /// True if they keep the field from being closed on `day`.
    pub(crate) fn keeps_open(&self, day: u32) -> bool {
        self.until >= day && self.until > 0
    }

    pub(crate) fn merge(&mut self, other: &Refused) {
        self.seen.merge(&other.seen);
        self.since = self.since.max(other.since);
        self.until = self.until.max(other.until);
    }
}
