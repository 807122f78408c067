//! `ctl:rateLimit`: requests that rules count in rate limits. The engine does not count; it says what is to
//! be counted, and the caller does it when the phase is over.

use std::sync::Arc;

use portcullis_types::{RuleId, Span};

use crate::execution::Execution;
use crate::plan::{Act, Plan, Rule};
use crate::template::Template;
use crate::transaction::Transaction;

/// A rate limit that a rule counts requests in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// Its name in the configuration.
    pub name: Arc<str>,
    /// The key by which requests are counted.
    pub key: Template,
}

/// A request that is to be counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charge {
    /// The limit.
    pub limit: Arc<str>,
    /// The expanded key; never empty.
    pub key: Vec<u8>,
    /// The rule that says so.
    pub rule: RuleId,
}

#[derive(Clone, Debug)]
pub(crate) struct Pending {
    limit: Arc<str>,
    key: Span,
    rule: RuleId,
    taken: bool,
}

impl Transaction {
    /// Charges of one transaction; further ones are left out.
    pub const CHARGES_MAX: usize = 16;

    /// Returns the charges that rules have made since the last call.
    pub fn take_charges(&mut self) -> Vec<Charge> {
        let store = &self.message.store;
        let open = self.journal.charges.iter_mut().filter(|charge| !charge.taken);
        open.map(|charge| {
            charge.taken = true;
            Charge {
                limit: Arc::clone(&charge.limit),
                key: store.text(charge.key).to_vec(),
                rule: charge.rule,
            }
        })
        .collect()
    }
}

impl Execution<'_> {
    /// Each limit is charged once for each key, and not at all where the key is empty: the request lacks what
    /// it is made of.
    pub(crate) fn charge(&mut self, limit: &RateLimit) {
        let key = self.expand_to_store(&limit.key);
        let same = |other: &Pending| {
            other.limit == limit.name && self.message.store.text(other.key) == self.message.store.text(key)
        };
        let known = self.journal.charges.iter().any(same);
        if known
            || self.message.store.text(key).is_empty()
            || self.journal.charges.len() >= Transaction::CHARGES_MAX
        {
            return;
        }
        let rule = self.run.current_rule.map_or(RuleId(0), |rule| self.plan.rule(rule).id);
        self.journal.charges.push(Pending { limit: Arc::clone(&limit.name), key, rule, taken: false });
    }
}

impl Plan {
    /// The rules that count requests in rate limits, and in which.
    pub fn rate_limits(&self) -> impl Iterator<Item = (&Rule, &RateLimit)> {
        self.rules.iter().flat_map(|rule| {
            let acts = self.links_of(rule).iter().flat_map(|link| &link.acts);
            acts.filter_map(
                move |act| if let Act::RateLimit(limit) = act { Some((rule, limit)) } else { None },
            )
        })
    }
}
