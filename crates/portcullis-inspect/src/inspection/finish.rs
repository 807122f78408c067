//! The end of an exchange: its report, and what its site learns.

use portcullis_engine::Interruption;
use portcullis_event::{Action, AgentWord};

use super::Inspection;
use crate::exchange::{Outcome, Report};
use crate::inspector::Scratch;

impl Inspection {
    /// Phase 5 unless it has run, verdict and event.
    pub fn finish(mut self: Box<Self>, outcome: &Outcome) -> Report {
        self.set_elapsed(outcome.duration);
        self.tell_answer();
        self.transaction.finish();
        let coverage = self.coverage(outcome);
        let action = self.action(outcome);
        let matched_rules = self
            .transaction
            .matches()
            .iter()
            .filter(|found| found.log)
            .map(|found| self.inspector.plan.rule(found.rule).id)
            .collect();
        self.audit(action, outcome);
        let scores = self.semantic.as_ref().map(|semantic| semantic.sorted_scores()).unwrap_or_default();
        let anomaly = (action != Action::Pass).then(|| self.anomaly()).flatten();
        let event = match outcome.no_event {
            true => None,
            false => self.event(action, outcome, &coverage, &scores),
        };
        let captured = match event {
            None => self.captured(action, outcome, &coverage, &scores),
            Some(_) => None,
        };
        self.learn(action, outcome);
        self.discover(action, outcome);
        let findings = self.semantic.as_ref().map(|semantic| semantic.outcomes(&scores)).unwrap_or_default();
        let (excluded, trial) = (self.excluded(), self.trial());
        self.try_openings();
        let cookies = self.semantic.as_ref().map(|semantic| semantic.cookie_counts()).unwrap_or_default();
        let buffers = self.semantic.take().map(|semantic| semantic.into_buffers()).or(self.spare);
        let kept_files = self.transaction.kept_files();
        Report {
            kept_files,
            action,
            event,
            captured,
            anomaly,
            matched_rules,
            findings,
            cookies,
            excluded,
            trial,
            coverage,
            ambiguities: self.transaction.body_ambiguities(),
            patterns_exhausted: self.transaction.patterns_exhausted(),
            patterns_unusable: self.transaction.patterns_unusable(),
            expansions_cut: self.transaction.expansions_cut(),
            score_withheld: self.transaction.withheld().is_some() && self.interruption.is_none(),
            scratch: Scratch {
                engine: self.transaction.into_scratch(),
                semantic: buffers.unwrap_or_default(),
                seen: self.seen.into_buffer(),
                kept: self.kept_body.into_buffer(),
            },
        }
    }

    /// Has the fields of the request learned, if it was let through and answered well.
    fn learn(&mut self, action: Action, outcome: &Outcome) {
        let is_answered = outcome.status.is_some_and(|status| (200..400).contains(&status));
        let is_passed = matches!(action, Action::Pass | Action::Detect) && outcome.upstream_error.is_none();
        let is_clean = self.would_interrupt().is_none();
        let (client, time) = (self.connection.client.ip(), self.connection.epoch_millis);
        let Inspection { semantic: Some(semantic), transaction, inspector, issued_to, .. } = self else {
            return;
        };
        let rules = || match &inspector.weighing {
            Some(weighing) => weighing.evidence(transaction.as_view(), issued_to.as_deref()),
            None => Vec::new(),
        };
        if is_passed && is_answered && !self.request_body_forgotten {
            semantic.learn_fields(is_clean, rules, client, time);
        } else if !is_passed {
            semantic.learn_refused(is_clean, rules, client, time);
        }
    }

    /// Has kinds of findings on trial tell what would have become of the request.
    fn try_openings(&mut self) {
        let is_matched =
            self.interrupted_by().is_some() || self.transaction.matches().iter().any(|found| found.log);
        let (client, time) = (self.connection.client.ip(), self.connection.epoch_millis);
        if let Some(semantic) = &mut self.semantic {
            semantic.try_openings(is_matched, client, time);
        }
    }

    pub(crate) fn action(&self, outcome: &Outcome) -> Action {
        match &self.interruption {
            Some(Interruption::Deny { .. }) => Action::Deny,
            Some(Interruption::Redirect { .. }) => Action::Redirect,
            Some(Interruption::Drop) => Action::Drop,
            Some(Interruption::Proxy { .. }) => Action::Proxy,
            None if self.refusal.is_some() => Action::Refuse,
            None if let Some(rejection) = &outcome.rejection => rejection.action,
            None if self.transaction.matches().iter().any(|found| found.log) => Action::Detect,
            None if self.semantic.as_ref().is_some_and(|semantic| semantic.decision().is_some()) => {
                Action::Detect
            }
            None if outcome.agents.iter().any(AgentWord::is_finding) => Action::Detect,
            None => Action::Pass,
        }
    }
}
