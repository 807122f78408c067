//! From a finished inspection to its event.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use portcullis_engine::{AllowScope, Disruption, Interruption, Match, RuleEngine};
use portcullis_event::{
    Action, Coverage, Event, RuleEffect, RuleMatch, Scores, Server, Verdict, limits, text,
};
use portcullis_semantic::Score;
use portcullis_types::{Class, Phase, RuleId};

use crate::exchange::{Decision, Outcome};
use crate::inspection::Inspection;
use crate::inspector::engine_mode;

impl Inspection {
    /// The event, or nothing if the exchange is not worth one.
    pub(crate) fn event(
        &mut self,
        action: Action,
        outcome: &Outcome,
        coverage: &Coverage,
        scores: &[Score],
    ) -> Option<Box<Event>> {
        let quiet = action == Action::Pass
            && outcome.upstream_error.is_none()
            && outcome.exceptions.is_empty()
            && self.unread_by_rules().is_none();
        (!quiet).then(|| self.describe(action, outcome, coverage, scores))
    }

    /// The request of the sample, if it is one.
    pub(crate) fn captured(
        &mut self,
        action: Action,
        outcome: &Outcome,
        coverage: &Coverage,
        scores: &[Score],
    ) -> Option<Box<Event>> {
        if action != Action::Pass || !is_drawn(&self.connection.request_id, self.connection.capture_share) {
            return None;
        }
        let captured = self.describe(action, outcome, coverage, scores);
        captured.kept.is_some().then_some(captured)
    }

    fn describe(
        &mut self,
        action: Action,
        outcome: &Outcome,
        coverage: &Coverage,
        scores: &[Score],
    ) -> Box<Event> {
        let mut event = Box::new(Event::new(std::mem::take(&mut self.connection.request_id), self.time()));
        event.site = Arc::clone(&self.names.site);
        event.route = Arc::clone(&self.names.route);
        event.policy_generation = self.names.generation;
        event.mode = self.inspector.mode;
        event.engine = engine_mode(self.transaction.rule_engine());
        event.client = self.connection.client.into();
        event.server = Server {
            addr: self.connection.server.ip().to_string(),
            port: self.connection.server.port(),
            host: self.seen.host(),
            tls: self.connection.tls,
        };
        event.request = self.seen.request();
        event.request.body_bytes = outcome.request_body_bytes;
        event.request.body_error = self.unread_by_rules().map(str::to_owned);
        event.response.status = outcome.status;
        event.response.body_bytes = outcome.response_body_bytes;
        event.duration_us = outcome.duration.as_micros().try_into().unwrap_or(u64::MAX);
        event.verdict = self.verdict(action, outcome);
        event.scores = self.scores();
        for found in self.transaction.matches().iter().filter(|found| found.log) {
            event.push_match(self.rule_match(found));
        }
        let dropped = u32::try_from(self.transaction.matches_dropped()).unwrap_or(u32::MAX);
        event.matches_omitted = event.matches_omitted.saturating_add(dropped);
        if let Some(semantic) = &self.semantic {
            let told = semantic.findings(scores);
            told.findings.into_iter().for_each(|finding| event.push_finding(finding));
            event.findings_omitted = event.findings_omitted.saturating_add(told.dropped);
            event.findings_below = told.below;
            event.findings_suppressed = told.suppressed;
            event.scores.semantic = semantic.scores(scores);
        }
        event.refusal = self.refusal.map(|refusal| Cow::Borrowed(refusal.name()));
        let ambiguities = self.transaction.body_ambiguities();
        event.ambiguities = ambiguities.iter().map(|ambiguity| Cow::Borrowed(ambiguity.name())).collect();
        event.upstream_error = outcome.upstream_error;
        event.exceptions = outcome.exceptions.clone();
        event.agents = outcome.agents.clone();
        event.coverage = coverage.clone();
        self.hide_in_event(&mut event);
        self.inspector.redactor.redact(&mut event);
        event.kept = self.kept_request(outcome);
        event
    }

    pub(crate) fn verdict(&self, action: Action, outcome: &Outcome) -> Verdict {
        let by = self.interrupted_by().or_else(|| self.would_be_interrupted_by(action));
        let semantic = self.semantic_verdict();
        let status = match &self.interruption {
            Some(Interruption::Deny { status } | Interruption::Redirect { status, .. }) => Some(*status),
            Some(Interruption::Drop | Interruption::Proxy { .. }) => None,
            None => match (&self.refusal, &outcome.rejection) {
                (Some(refusal), _) => Some(refusal.status()),
                (None, Some(rejection)) => Some(rejection.status),
                (None, None) => None,
            },
        };
        Verdict {
            action,
            status,
            rule_id: by.map(|(rule, _)| rule),
            class: semantic.as_ref().map(|(class, ..)| *class),
            phase: by.map(|(_, phase)| phase).or(semantic.map(|(_, phase)| phase)),
            control: None,
            reason: self.reason(outcome),
        }
    }

    /// The rule that would have interrupted where verdicts are only reported, unless the semantic detector
    /// would have.
    fn would_be_interrupted_by(&self, action: Action) -> Option<(RuleId, Phase)> {
        let decided = action == Action::Detect && self.semantic_verdict().is_none();
        let found = self.would_interrupt().filter(|_| decided)?;
        let rule = self.inspector.plan.rule(found.rule);
        Some((rule.id, rule.phase))
    }

    /// The first match that would have interrupted.
    pub(crate) fn would_interrupt(&self) -> Option<&Match> {
        let reports = self.transaction.rule_engine() == RuleEngine::DetectionOnly;
        let is_it =
            |found: &&Match| found.disruptive && self.inspector.plan.rule(found.rule).phase != Phase::Logging;
        self.transaction.matches().iter().filter(|_| reports).find(is_it)
    }

    fn reason(&self, outcome: &Outcome) -> String {
        let by_rule = self.interruption.as_ref().filter(|_| self.interrupted_by().is_some());
        if let (Some(_), Some(last)) = (by_rule, self.transaction.matches().iter().rfind(|m| m.disruptive)) {
            return text(self.transaction.view(last).msg, limits::MESSAGE_BYTES_MAX);
        }
        match (&self.refusal, &outcome.rejection) {
            (Some(refusal), _) => refusal.explanation().to_string(),
            (None, Some(rejection)) => rejection.reason.clone(),
            (None, None) => {
                let semantic = self.semantic.as_ref().filter(|_| self.semantic_verdict().is_some());
                let reason = semantic.and_then(|semantic| semantic.reason());
                let would = || self.would_interrupt().map(|found| self.transaction.view(found).msg);
                match reason {
                    Some(reason) => text(reason.as_bytes(), limits::MESSAGE_BYTES_MAX),
                    None => text(would().unwrap_or_default(), limits::MESSAGE_BYTES_MAX),
                }
            }
        }
    }

    /// The class and phase of the findings that decided, or would have; nothing if something else decided.
    fn semantic_verdict(&self) -> Option<(Class, Phase)> {
        let semantic = self.semantic.as_ref()?;
        let is_other = self.interruption.is_some() && !semantic.has_blocked();
        semantic.decision().filter(|_| !is_other)
    }

    /// The decision as it stands before phase 5, if rules or the semantic detector made one and nothing else
    /// has to be reported of the exchange.
    pub fn decision(&self, outcome: &Outcome) -> Option<Decision> {
        let is_plain = self.refusal.is_none()
            && outcome.rejection.is_none()
            && outcome.upstream_error.is_none()
            && outcome.exceptions.is_empty()
            && outcome.agents.is_empty();
        let action = self.action(outcome);
        // What reaches the application has an event each: one may hide behind another.
        if !is_plain || matches!(action, Action::Pass | Action::Detect) {
            return None;
        }
        let mut matches = DefaultHasher::new();
        for found in self.transaction.matches().iter().filter(|found| found.log) {
            (self.inspector.plan.rule(found.rule).id, found.variable).hash(&mut matches);
        }
        Some(Decision {
            action,
            rule: self.interrupted_by().map(|(rule, _)| rule),
            class: self.semantic.as_ref().and_then(|semantic| semantic.decided_in()),
            matches: matches.finish(),
        })
    }

    /// The inbound anomaly score.
    pub(crate) fn anomaly(&self) -> Option<i64> {
        self.transaction.tx_number(b"blocking_inbound_anomaly_score")
    }

    fn scores(&self) -> Scores {
        let number = |key: &str| self.transaction.tx_number(key.as_bytes());
        let mut scores = Scores {
            inbound_blocking: self.anomaly(),
            inbound_detection: number("detection_inbound_anomaly_score"),
            outbound_blocking: number("blocking_outbound_anomaly_score"),
            outbound_detection: number("detection_outbound_anomaly_score"),
            ..Scores::default()
        };
        for (class, key) in [
            ("sqli", "sql_injection_score"),
            ("xss", "xss_score"),
            ("rfi", "rfi_score"),
            ("lfi", "lfi_score"),
            ("rce", "rce_score"),
            ("php", "php_injection_score"),
            ("http", "http_violation_score"),
            ("session_fixation", "session_fixation_score"),
        ] {
            if let Some(score) = number(key).filter(|&score| score != 0) {
                scores.by_class.insert(Cow::Borrowed(class), score);
            }
        }
        if self.agent_score > 0 {
            scores.by_class.insert(Cow::Borrowed("agents"), self.agent_score.into());
        }
        scores
    }

    pub(crate) fn rule_match(&self, found: &Match) -> RuleMatch {
        let view = self.transaction.view(found);
        // The largest change is the rule's own: class scores repeat it.
        let points = view.changes.iter().map(|(_, delta)| *delta).max().unwrap_or(0);
        RuleMatch {
            rule: Arc::clone(&self.inspector.rules[found.rule.0 as usize]),
            message: text(view.msg, limits::MESSAGE_BYTES_MAX),
            data: text(view.log_data, limits::DATA_BYTES_MAX),
            target: text(&view.target, limits::TARGET_NAME_BYTES_MAX),
            value: text(view.value, limits::VALUE_BYTES_MAX),
            span: found.found,
            points,
            effect: self.effect(found),
        }
    }

    fn effect(&self, found: &Match) -> RuleEffect {
        let rule = self.transaction.view(found).rule;
        let enforced = self.transaction.rule_engine() == RuleEngine::On && rule.phase != Phase::Logging;
        match (&rule.disruption, &self.interruption) {
            (Disruption::Allow(scope), _) if enforced => RuleEffect::Allowed(match scope {
                AllowScope::Transaction => "Access",
                AllowScope::Request => "Access to request",
                AllowScope::Phase => "Access to phase",
            }),
            (Disruption::Redirect { .. }, Some(Interruption::Redirect { location, .. })) => {
                RuleEffect::Redirected(text(location, limits::VALUE_BYTES_MAX))
            }
            _ => RuleEffect::None,
        }
    }

    /// Returns the error of the body's parser, if only the rules inspect the body: the semantic detector also
    /// reads bodies that their parser rejects.
    pub(crate) fn unread_by_rules(&self) -> Option<&str> {
        self.request_body_error().filter(|_| self.semantic.is_none())
    }
}

/// True for about this share of ids. Their last 64 bits are random: neither clock nor counter is needed, and
/// no client can tell which of its requests are drawn.
fn is_drawn(request_id: &str, share: f64) -> bool {
    if share <= 0.0 {
        return false;
    }
    let digits = request_id.len().checked_sub(16).and_then(|from| request_id.get(from..));
    let lot = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    lot.is_some_and(|lot| share >= 1.0 || (lot as f64) < share * u64::MAX as f64)
}

#[cfg(test)]
mod tests {
    use super::is_drawn;

    #[test]
    fn a_share_of_the_ids_is_drawn() {
        let id = |number: u64| format!("{:016x}{:016x}", 7, number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let drawn = |share: f64| (0..100_000).filter(|number| is_drawn(&id(*number), share)).count();
        assert_eq!((drawn(0.0), drawn(-1.0), drawn(f64::NAN), drawn(1.0)), (0, 0, 0, 100_000));
        assert!((900..1100).contains(&drawn(0.01)), "{}", drawn(0.01));
        for wrong in ["", "é", "short", "not hexadecimal digits at all"] {
            assert!(!is_drawn(wrong, 1.0), "{wrong}");
        }
    }
}
