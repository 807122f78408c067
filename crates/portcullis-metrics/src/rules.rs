use std::sync::Arc;

use crate::{Counter, OTHER, Registry, catalogue};

/// Matches by rule id, for the rules of one plan. Ids that the plan does not have count as `other`.
#[derive(Clone, Debug)]
pub struct RuleCounters(Arc<Cells>);

#[derive(Debug)]
struct Cells {
    /// Sorted by id.
    rules: Box<[(u32, Counter)]>,
    other: Counter,
}

impl RuleCounters {
    /// Registers `ids`. Plans that share ids share their counters, so counting continues over a reload.
    pub fn new(registry: &Registry, ids: impl IntoIterator<Item = u32>) -> RuleCounters {
        let mut ids: Vec<u32> = ids.into_iter().collect();
        ids.sort_unstable();
        ids.dedup();
        let counter = |label: &str| registry.counter(&catalogue::RULE_MATCHES, &[label]);
        let rules = ids.into_iter().map(|id| (id, counter(&id.to_string()))).collect();
        RuleCounters(Arc::new(Cells { rules, other: counter(OTHER) }))
    }

    /// Matches of rule `id`; 0 for one that the plan does not have.
    pub fn count(&self, id: u32) -> u64 {
        let cells = &*self.0;
        cells.rules.binary_search_by_key(&id, |rule| rule.0).map_or(0, |at| cells.rules[at].1.value())
    }

    /// Counts a match of rule `id`.
    pub fn inc(&self, id: u32) {
        let cells = &*self.0;
        match cells.rules.binary_search_by_key(&id, |rule| rule.0) {
            Ok(i) => cells.rules[i].1.inc(),
            Err(_) => cells.other.inc(),
        }
    }
}
