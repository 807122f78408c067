use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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

/// The counts of an exclusion on trial. The metrics only rise; those of a trial begin at 0 with it.
#[derive(Clone, Debug)]
pub struct ExclusionTrial {
    counts: EnumCounters,
    since: Gauge,
    /// None: it is not on trial. Shared by all that ask for the same exclusion.
    began: Arc<Mutex<Option<Began>>>,
}

/// The beginning of a trial.
#[derive(Clone, Copy, Debug)]
struct Began {
    /// In seconds since 1970.
    since: u64,
    /// The counters at that time: those of earlier trials.
    before: [u64; TrialCount::NAMES.len()],
}

impl ExclusionTrial {
    /// The counts of the exclusion with this id.
    pub fn of(registry: &Registry, site: &str, id: &str) -> ExclusionTrial {
        let labels = [site, id];
        registry.trial(&labels, registry.gauge(&catalogue::EXCLUSION_TRIAL_START, &labels))
    }

    pub(crate) fn new(since: Gauge) -> ExclusionTrial {
        ExclusionTrial { counts: EnumCounters::new(&TrialCount::NAMES), since, began: Arc::default() }
    }

    pub(crate) fn counters(&self) -> &EnumCounters {
        &self.counts
    }

    /// Other settings serve: ends the trials that only those before had, and begins those that only those
    /// from `now` on have. An exclusion that was enforced or removed meanwhile starts from 0 when it is on
    /// trial again.
    pub fn turn<'t>(
        before: impl IntoIterator<Item = &'t ExclusionTrial>,
        serving: impl IntoIterator<Item = &'t ExclusionTrial>,
        now: u64,
    ) {
        let identity = |trial: &ExclusionTrial| Arc::as_ptr(&trial.began);
        let serving: BTreeMap<_, _> = serving.into_iter().map(|trial| (identity(trial), trial)).collect();
        for trial in before.into_iter().filter(|trial| !serving.contains_key(&identity(trial))) {
            trial.end();
        }
        serving.into_values().for_each(|trial| trial.begin(now));
    }

    /// It is on trial, from now on if it was not before; in seconds since 1970.
    pub fn begin(&self, now: u64) {
        let mut began = self.began();
        if began.is_none() {
            let before = std::array::from_fn(|what| self.counts.value(what));
            *began = Some(Began { since: now, before });
            self.since.set(seconds(now));
        }
    }

    /// It is not on trial any more.
    fn end(&self) {
        *self.began() = None;
        self.since.set(0);
    }

    /// Counts a request.
    pub fn inc(&self, what: TrialCount) {
        self.counts.inc(what as usize);
    }

    /// The count of this trial so far; 0 if it is not on trial.
    pub fn count(&self, what: TrialCount) -> u64 {
        let began = *self.began();
        let before = began.map(|began| began.before[what as usize]);
        before.map_or(0, |before| self.counts.value(what as usize).saturating_sub(before))
    }

    /// The time from which on it is on trial, in seconds since 1970; none: it is not, or was not loaded.
    pub fn since(&self) -> Option<u64> {
        self.began().map(|began| began.since)
    }

    fn began(&self) -> MutexGuard<'_, Option<Began>> {
        // Nothing here leaves it half changed, so a poisoned lock holds good data.
        self.began.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn seconds(now: u64) -> i64 {
    i64::try_from(now).unwrap_or(i64::MAX)
}

fn time(gauge: &Gauge) -> Option<u64> {
    u64::try_from(gauge.value()).ok().filter(|time| *time > 0)
}
