//! The matches of rules while an exchange is still going on, for callers that log them phase by phase.

use portcullis_event::{Event, RuleMatch};

use crate::inspection::Inspection;

/// A match that a rule wants logged.
#[derive(Clone, Debug)]
pub struct Logged {
    /// The match, with nothing in it that must not be shown.
    pub found: RuleMatch,
    /// Its rule's action interrupts, or would but for the engine's mode.
    pub is_disruptive: bool,
}

impl Inspection {
    /// Number of matches so far, logged or not.
    pub fn match_count(&self) -> usize {
        self.transaction.matches().len()
    }

    /// True if a rule that wants it logged has matched, or the semantic detector has found something.
    pub fn has_found(&self) -> bool {
        self.semantic.as_ref().is_some_and(|semantic| semantic.has_findings())
            || self.transaction.matches().iter().any(|found| found.log)
    }

    /// The matches to be logged after the first `told`, redacted as those of an event are.
    pub fn logged_since(&self, told: usize) -> Vec<Logged> {
        let records = self.transaction.matches().get(told..).unwrap_or_default();
        let records: Vec<_> = records.iter().filter(|found| found.log).collect();
        if records.is_empty() {
            return Vec::new();
        }
        let mut event = Event::new("", self.time());
        event.request = self.seen.request();
        event.matches = records.iter().map(|found| self.rule_match(found)).collect();
        self.hide_in_event(&mut event);
        self.inspector.redactor.redact(&mut event);
        let logged = records.iter().zip(event.matches);
        logged.map(|(record, found)| Logged { found, is_disruptive: record.disruptive }).collect()
    }
}
