use crate::{Counter, EnumCounters, Gauge, Registry, catalogue};

/// The uses of an exclusion. Counting goes on over a reload, as long as it says the same at the same place.
#[derive(Clone, Debug)]
pub struct ExclusionUse {
    hits: Counter,
    last_hit: Gauge,
}

impl ExclusionUse {
    /// The uses of the exclusion with this id.
    pub fn of(registry: &Registry, site: &str, id: &str) -> ExclusionUse {
        let labels = [site, id];
        ExclusionUse {
            hits: registry.counter(&catalogue::EXCLUSION_HITS, &labels),
            last_hit: registry.gauge(&catalogue::EXCLUSION_LAST_HIT, &labels),
        }
    }

    /// Counts a request in which it took something away; the time is in seconds since 1970.
    pub fn hit(&self, now: u64) {
        self.hits.inc();
        // Requests of the same moment may end in any order; a second is near enough.
        self.last_hit.set(seconds(now));
    }

    /// Requests so far, and the time of the last one in seconds since 1970; none: there was none.
    pub fn read(&self) -> (u64, Option<u64>) {
        (self.hits.value(), time(&self.last_hit))
    }
}

/// Results of an exclusion on trial, as they are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrialCount {
    /// A request had its field, on its path.
    Seen,
    /// A request that was stopped would have passed, and nothing else was found in it.
    Passes,
    /// The same, but something else was found in it.
    Lost,
    /// A request would have been stopped all the same.
    Stopped,
    /// A request that was stopped was not seen to its end.
    Unknown,
}

impl TrialCount {
    /// Its label values, in the order of the variants.
    pub const NAMES: [&str; 5] = ["seen", "passes", "lost", "stopped", "unknown"];
}

/// The counts of an exclusion on trial.
#[derive(Clone, Debug)]
pub struct ExclusionTrial {
    counts: EnumCounters,
    since: Gauge,
}

impl ExclusionTrial {
    /// The counts of the exclusion with this id.
    pub fn of(registry: &Registry, site: &str, id: &str) -> ExclusionTrial {
        let labels = [site, id];
        ExclusionTrial {
            counts: registry.enum_counters(&catalogue::EXCLUSION_TRIALS, &labels, &TrialCount::NAMES),
            since: registry.gauge(&catalogue::EXCLUSION_TRIAL_START, &labels),
        }
    }

    /// It is on trial, from now on if it was not before; in seconds since 1970.
    pub fn begin(&self, now: u64) {
        if self.since.value() == 0 {
            self.since.set(seconds(now));
        }
    }

    /// Counts a request.
    pub fn inc(&self, what: TrialCount) {
        self.counts.inc(what as usize);
    }

    /// The count so far.
    pub fn count(&self, what: TrialCount) -> u64 {
        self.counts.value(what as usize)
    }

    /// The time from which on it is on trial, in seconds since 1970; none: it is not, or was not loaded.
    pub fn since(&self) -> Option<u64> {
        time(&self.since)
    }
}

fn seconds(now: u64) -> i64 {
    i64::try_from(now).unwrap_or(i64::MAX)
}

fn time(gauge: &Gauge) -> Option<u64> {
    u64::try_from(gauge.value()).ok().filter(|time| *time > 0)
}
