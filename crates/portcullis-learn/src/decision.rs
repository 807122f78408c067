//! What people have decided about kinds of findings in fields, beside the fields: a node that has not seen a
//! field keeps what was decided about it, and of two decisions the later one counts on all nodes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::opening::{KIND_IDLE_DAYS, OpeningState};

/// Decisions that are kept.
pub const DECISIONS_MAX: usize = 1_024;
/// Bytes of the name by which people call a kind in a field.
const ID_BYTES_MAX: usize = 16;

/// A decision about one kind in one field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Decision {
    /// One more than that of the decision before, on whatever node.
    number: u64,
    state: OpeningState,
    day: u32,
}

/// By the name of the kind in its field.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Decisions(BTreeMap<String, Decision>);

impl Decisions {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The decision about `id`, and its day.
    pub fn get(&self, id: &str) -> Option<(OpeningState, u32)> {
        self.0.get(id).map(|decision| (decision.state, decision.day))
    }

    /// A user has decided about `id`. The oldest decision is dropped where there is no room.
    pub fn add(&mut self, id: &str, state: OpeningState, day: u32) {
        let number = self.0.get(id).map_or(0, |before| before.number).saturating_add(1);
        self.insert(id, Decision { number, state, day });
    }

    /// Nothing is decided about `id` any more.
    pub fn remove(&mut self, id: &str) {
        self.0.remove(id);
    }

    /// Takes over those of another node that are later than its own, but for those that have run out on
    /// `day`. True if there are any.
    pub fn take_over(&mut self, others: &Decisions, day: u32) -> bool {
        let is_later = |id: &String, other: &Decision| {
            self.0.get(id).is_none_or(|own| own < other) && !has_run_out(other, day)
        };
        let later: Vec<_> = others.0.iter().filter(|(id, other)| is_later(id, other)).collect();
        let is_any = !later.is_empty();
        for (id, decision) in later {
            self.insert(id, *decision);
        }
        is_any
    }

    fn insert(&mut self, id: &str, decision: Decision) {
        if !self.0.contains_key(id) && self.0.len() >= DECISIONS_MAX {
            let oldest = self.0.iter().min_by_key(|(_, decision)| decision.day).map(|(id, _)| id.clone());
            if let Some(oldest) = oldest {
                self.0.remove(&oldest);
            }
        }
        self.0.insert(id.to_owned(), decision);
    }

    /// Forgets those that have run out on `day` and whose field `is_known` no more.
    pub fn retain(&mut self, day: u32, is_known: impl Fn(&str) -> bool) {
        self.0.retain(|id, decision| !has_run_out(decision, day) || is_known(id));
    }

    /// What is wrong with them, if they were read from somewhere.
    pub fn mistake(&self) -> Option<&'static str> {
        match () {
            () if self.0.len() > DECISIONS_MAX => Some("there are too many decisions"),
            () if self.0.keys().any(|id| id.len() > ID_BYTES_MAX) => Some("a decision is about no field"),
            () => None,
        }
    }
}

fn has_run_out(decision: &Decision, day: u32) -> bool {
    decision.day.saturating_add(KIND_IDLE_DAYS) < day
}
