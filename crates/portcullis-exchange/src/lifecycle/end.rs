//! The end of an exchange: its verdict, its coverage and its event, for every kind of server.

use std::net::SocketAddr;

use portcullis_event::Redactor;
use portcullis_event::{
    AccessRecord, Action, AgentWord, Coverage, DetectionMode, EngineMode, Event, NotInspected, Timestamp,
    limits, text,
};
use portcullis_http::message::RequestHead;
use portcullis_inspect::{Inspector, PolicyNames, Report};

use super::Lifecycle;
use super::guard::Health;
use crate::exclusions::Exclusions;

/// The facts of an exchange that its lifecycle was not shown, or does not keep.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The head of the request.
    pub head: &'a RequestHead,
    /// The site and the route.
    pub names: &'a PolicyNames,
    /// The number of the settings that served it.
    pub generation: u64,
    /// The policy, if there is one.
    pub inspector: Option<&'a Inspector>,
    /// Those of the policy.
    pub exclusions: Option<&'a Exclusions>,
    /// For an event that no inspection makes.
    pub redactor: &'a Redactor,
    /// The id of the exchange.
    pub request_id: &'a str,
    /// Its begin, in milliseconds since 1970.
    pub epoch_millis: u64,
    /// The client, as the trust rules see it.
    pub client: SocketAddr,
    /// The address that the client reached.
    pub server: SocketAddr,
    /// The client came by TLS.
    pub tls: bool,
    /// Why no inspection ran, if none did. The event of a request that was refused before it, if there is to
    /// be one, is made by what refused it.
    pub uninspected: NotInspected,
}

/// An exchange that is over.
#[derive(Debug)]
pub struct Finished {
    /// The action that was taken.
    pub action: Action,
    /// The event, if there is something to report.
    pub event: Option<Box<Event>>,
    /// The request, if it passed without an event and is one of the sample.
    pub captured: Option<Box<Event>>,
    /// The coverage: what was inspected and what was not.
    pub coverage: Coverage,
    /// The rest of what the inspection reports; none if none came to its end.
    pub report: Option<Report>,
}

impl Lifecycle {
    /// The end of every exchange, behind phase 5: all that is known of it meets here. The site, the route and
    /// the head of the request are in `facts`; status, sizes, rejection and exceptions in
    /// [`outcome`](Lifecycle::outcome); the values of the messages in the inspection, until its report is
    /// made.
    pub fn finish(&mut self, facts: &Facts<'_>) -> Finished {
        self.note_failures();
        match self.guard.finish(&self.outcome) {
            Some(report) => reported(report, facts),
            None => self.unreported(facts),
        }
    }

    /// The end of an exchange that no inspection saw to its end.
    fn unreported(&self, facts: &Facts<'_>) -> Finished {
        let outcome = &self.outcome;
        let reason = match self.health() {
            Health::Broken => NotInspected::EngineError,
            Health::Off | Health::Well => facts.uninspected,
        };
        let mut coverage = Coverage::default();
        let bodies = outcome.request_body_bytes + outcome.response_body_bytes;
        coverage.not_inspected(reason, bodies + facts.head.received_len() as u64);
        coverage.not_inspected(NotInspected::Upgraded, outcome.upgraded_bytes);
        let passes = self.action == Action::Pass;
        let action = match (self.refusal, &outcome.rejection) {
            (Some(_), _) => Action::Refuse,
            (None, Some(rejection)) => rejection.action,
            (None, None) if passes && outcome.agents.iter().any(AgentWord::is_finding) => Action::Detect,
            (None, None) => self.action,
        };
        let is_silent =
            action == Action::Pass && outcome.upstream_error.is_none() && outcome.exceptions.is_empty();
        let is_refused = reason == NotInspected::AfterVerdict;
        let event = match is_silent || outcome.no_event || is_refused {
            true => None,
            false => Some(self.describe(facts, action, &coverage)),
        };
        Finished { action, event, captured: None, coverage, report: None }
    }

    /// An event about what no inspection has reported.
    pub fn describe(&self, facts: &Facts<'_>, action: Action, coverage: &Coverage) -> Box<Event> {
        let Facts { head, names, inspector, .. } = facts;
        let outcome = &self.outcome;
        let mut event = Box::new(Event::new(facts.request_id.to_owned(), facts.time()));
        event.site = names.site.clone();
        event.route = names.route.clone();
        event.policy_generation = facts.generation;
        event.engine = inspector.map_or(EngineMode::Off, |inspector| inspector.engine_mode());
        event.mode = inspector.map_or(DetectionMode::Off, |inspector| inspector.mode());
        event.client = facts.client.into();
        event.server.addr = facts.server.ip().to_string();
        event.server.port = facts.server.port();
        event.server.host = text(head.host(), limits::REQUEST_TOKEN_BYTES_MAX);
        event.server.tls = facts.tls;
        event.request.method = text(head.method(), limits::REQUEST_TOKEN_BYTES_MAX);
        event.request.target = text(head.target(), limits::REQUEST_TARGET_BYTES_MAX);
        event.request.protocol = text(head.version_bytes(), limits::REQUEST_TOKEN_BYTES_MAX);
        event.request.head_bytes = head.received_len() as u64;
        event.request.body_bytes = outcome.request_body_bytes;
        event.response.status = outcome.status;
        event.duration_us = self.duration_us();
        event.verdict.action = action;
        if action != Action::Pass {
            event.verdict.status = outcome.status;
        }
        if let Some(refusal) = self.refusal {
            event.refusal = Some(refusal.name().into());
            event.verdict.reason = refusal.explanation().to_string();
        } else if let Some(rejection) = &outcome.rejection {
            event.verdict.reason.clone_from(&rejection.reason);
        }
        event.upstream_error = outcome.upstream_error;
        event.exceptions.clone_from(&outcome.exceptions);
        event.agents.clone_from(&outcome.agents);
        event.coverage = coverage.clone();
        facts.redactor.redact(&mut event);
        event
    }

    /// The record of the exchange, as far as every caller knows it.
    pub fn record<'a>(&self, facts: &Facts<'a>, action: Action) -> AccessRecord<'a> {
        let Facts { head, names, .. } = *facts;
        let outcome = &self.outcome;
        AccessRecord {
            time: facts.time(),
            request_id: facts.request_id,
            client: facts.client.ip(),
            country: None,
            asn: None,
            site: &names.site,
            route: &names.route,
            method: head.method(),
            host: head.host(),
            target: head.target(),
            protocol: head.version_bytes(),
            status: outcome.status,
            request_body_bytes: outcome.request_body_bytes,
            body_bytes: outcome.response_body_bytes + outcome.own_body_bytes,
            duration_us: self.duration_us(),
            upstream: None,
            trace_id: None,
            verdict: action,
            control: None,
            referer: head.header("referer").next(),
            user_agent: head.header("user-agent").next(),
        }
    }

    fn duration_us(&self) -> u64 {
        self.outcome.duration.as_micros().try_into().unwrap_or(u64::MAX)
    }
}

impl Facts<'_> {
    fn time(&self) -> Timestamp {
        Timestamp::from_epoch_millis(self.epoch_millis)
    }
}

/// The end of an exchange whose inspection has made its report.
fn reported(mut report: Report, facts: &Facts<'_>) -> Finished {
    if let Some(exclusions) = facts.exclusions {
        exclusions.note(&mut report, facts.epoch_millis / 1000);
    }
    Finished {
        action: report.action,
        event: report.event.take(),
        captured: report.captured.take(),
        coverage: std::mem::take(&mut report.coverage),
        report: Some(report),
    }
}
