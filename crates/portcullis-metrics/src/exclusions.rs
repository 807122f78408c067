use std::sync::Arc;

use crate::{Counter, Gauge, Registry, catalogue};

/// Uses of the exclusions of one policy at one site, by their numbers in it.
#[derive(Clone, Debug)]
pub struct ExclusionCounters {
    semantic: Arc<[ExclusionUse]>,
    rules: Arc<[ExclusionUse]>,
}

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
        self.last_hit.set(i64::try_from(now).unwrap_or(i64::MAX));
    }

    /// Requests so far, and the time of the last one in seconds since 1970; none: there was none.
    pub fn read(&self) -> (u64, Option<u64>) {
        let last = u64::try_from(self.last_hit.value()).ok().filter(|last| *last > 0);
        (self.hits.value(), last)
    }
}

impl ExclusionCounters {
    /// Those of exclusions with these ids, in their order: from the semantic detector, and from rules.
    pub fn new(registry: &Registry, site: &str, semantic: &[String], rules: &[String]) -> ExclusionCounters {
        let of = |ids: &[String]| ids.iter().map(|id| ExclusionUse::of(registry, site, id)).collect();
        ExclusionCounters { semantic: of(semantic), rules: of(rules) }
    }

    /// Counts a request in which the exclusions of these numbers took something away; the time is in seconds
    /// since 1970.
    pub fn hit(&self, semantic: &[u32], rules: &[u32], now: u64) {
        for (uses, numbers) in [(&self.semantic, semantic), (&self.rules, rules)] {
            numbers.iter().filter_map(|number| uses.get(*number as usize)).for_each(|each| each.hit(now));
        }
    }
}
