//! The end of a request: its account is closed in one record, which bans, metrics, traces, the access log and
//! events each read.

use std::time::Instant;

use portcullis_access::Code;
use portcullis_config::OpenOrClosed;
use portcullis_event::{
    AccessRecord, Action, AgentWord, Control, Coverage, DetectionMode, EngineMode, Event, Exception,
    ExceptionCause, ExceptionPolicy, NotInspected, Timestamp, UpstreamError, limits, text,
};
use portcullis_http::message::Version;
use portcullis_inspect::{Outcome, Report};
use portcullis_metrics::Protocol;

use crate::access::{Conduct, ControlDecision, Entry, Sight};
use crate::exchange::Exchange;
use crate::guard::{Health, Phase};
use crate::trace::RequestSummary;
use crate::{agents, client};

/// The record of a request that is over.
struct Record<'a> {
    exchange: &'a Exchange<'a>,
    /// The time of its end.
    now: Instant,
    outcome: Outcome,
    /// The verdict of inspection and proxy.
    verdict: Action,
    /// The same as it is told: what a control would have refused is told of as detected.
    action: Action,
    control: Option<Control>,
    coverage: Coverage,
    trace_id: Option<String>,
    /// The event, if there is one.
    event: Option<Box<Event>>,
    /// The request, if it is one of the sample of those that passed.
    captured: Option<Box<Event>>,
}

/// Closes the account of a request: phase 5, then everybody who observes requests sees the record.
pub(crate) async fn close(exchange: &mut Exchange<'_>) {
    let now = Instant::now();
    let outcome = end(exchange, now).await;
    let transaction = &mut exchange.transaction;
    let phases = transaction.inspection.take_phases();
    let mut report = transaction.inspection.finish(&outcome);
    let captured = report.as_mut().and_then(|report| report.captured.take());
    let (decision, trace) = (transaction.decision.take(), transaction.trace.take());
    let (verdict, event, coverage) = match report {
        Some(report) => count_report(exchange, report),
        None => uninspected(exchange, &outcome),
    };
    let mut record = Record {
        exchange,
        now,
        outcome,
        verdict,
        action: verdict,
        control: decision.as_ref().map(|decision| decision.control.clone()),
        coverage,
        trace_id: trace.as_ref().map(|trace| trace.id()),
        event,
        captured,
    };
    if let Some(decision) = decision {
        record.note(decision);
    }
    record.judge();
    record.count();
    if let Some(trace) = trace {
        trace.finish(record.summary(phases));
    }
    record.log();
    record.tell();
}

/// Phase 5, and what it comes to.
async fn end(exchange: &mut Exchange<'_>, now: Instant) -> Outcome {
    let shared = &exchange.connection.worker.shared;
    let transaction = &mut exchange.transaction;
    shared.overload.charge_request(transaction.account, transaction.uncharged_time(), shared.clock(now));
    let duration = now.saturating_duration_since(transaction.began.instant);
    if let Some(rejection) = &transaction.rejection {
        transaction.inspection.answered(rejection.status);
    }
    let step = transaction.inspection.logging(now, duration);
    // The answer is on its way: nothing can be refused any more.
    transaction.lookup_failure = OpenOrClosed::Open;
    exchange.settle(step).await;
    let transaction = &mut exchange.transaction;
    if transaction.inspection.health() == Health::Broken {
        let open = exchange.route.is_some_and(|route| route.failure.engine_error == OpenOrClosed::Open);
        let policy = if open { ExceptionPolicy::Open } else { ExceptionPolicy::Closed };
        transaction.exception(ExceptionCause::EngineError, policy);
    }
    // In the response, or where a rule had refused the request by then.
    let is_told = transaction.exceptions.iter().any(|known| known.cause == ExceptionCause::BudgetSpent);
    if !is_told && transaction.inspection.given_up().is_some() {
        let policy = match transaction.action {
            Action::Pass | Action::Detect => ExceptionPolicy::Open,
            _ => ExceptionPolicy::Closed,
        };
        transaction.exception(ExceptionCause::BudgetSpent, policy);
    }
    Outcome {
        status: transaction.status,
        request_body_bytes: transaction.request_body_bytes,
        response_body_bytes: transaction.passed_body_bytes,
        own_body_bytes: transaction.own_body_bytes,
        own_headers: transaction.own_headers.take(),
        upgraded_bytes: transaction.upgraded_bytes,
        duration,
        upstream_error: transaction.upstream_error,
        rejection: transaction.rejection.clone(),
        agents: std::mem::take(&mut transaction.agent_words),
        exceptions: std::mem::take(&mut transaction.exceptions),
        no_event: exchange.shared().services.on_event.is_none(),
    }
}

/// Takes over what the inspection reports, and counts what only it knows.
fn count_report(exchange: &Exchange<'_>, mut report: Report) -> (Action, Option<Box<Event>>, Coverage) {
    let services = &exchange.shared().services;
    if let Some(exclusions) = exchange.route.and_then(|route| route.exclusions.as_ref()) {
        exclusions.note(&mut report, exchange.transaction.began.epoch_millis() / 1000);
    }
    for file in report.kept_files {
        (services.on_file)(file);
    }
    exchange.connection.worker.keep_scratch(report.scratch);
    let counters = &services.metrics;
    counters.patterns_exhausted.add(report.patterns_exhausted);
    counters.patterns_unusable.add(report.patterns_unusable);
    counters.expansions_cut.add(report.expansions_cut);
    counters.scores_withheld.add(report.score_withheld.into());
    for ambiguity in report.ambiguities.iter() {
        counters.ambiguous_bodies.inc(ambiguity as usize);
    }
    for (class, outcome) in report.findings {
        if let Some(of_class) = counters.semantic_findings.get(class as usize) {
            of_class.inc(outcome as usize);
        }
    }
    for rule in report.matched_rules {
        exchange.generation.rule_matches.inc(rule.0);
    }
    (report.action, report.event, report.coverage)
}

/// The same for a request that no inspection saw to its end.
fn uninspected(exchange: &Exchange<'_>, outcome: &Outcome) -> (Action, Option<Box<Event>>, Coverage) {
    let transaction = &exchange.transaction;
    let reason = match transaction.inspection.health() {
        Health::Broken => NotInspected::EngineError,
        _ if transaction.entry == Entry::Refused => NotInspected::AfterVerdict,
        _ if transaction.entry == Entry::Bypassed => NotInspected::Bypassed,
        Health::Off | Health::Well => NotInspected::EngineOff,
    };
    let mut coverage = Coverage::default();
    let bodies = outcome.request_body_bytes + outcome.response_body_bytes;
    coverage.not_inspected(reason, bodies + exchange.head.received_len() as u64);
    coverage.not_inspected(NotInspected::Upgraded, outcome.upgraded_bytes);
    let passes = transaction.action == Action::Pass;
    let action = match (transaction.refusal, &transaction.rejection) {
        (Some(_), _) => Action::Refuse,
        (None, Some(rejection)) => rejection.action,
        (None, None) if passes && outcome.agents.iter().any(AgentWord::is_finding) => Action::Detect,
        (None, None) => transaction.action,
    };
    let is_silent =
        action == Action::Pass && transaction.upstream_error.is_none() && outcome.exceptions.is_empty();
    // Whether a refused client makes an event is decided where it was refused.
    if is_silent || outcome.no_event || transaction.entry == Entry::Refused {
        return (action, None, coverage);
    }
    let event = describe(exchange, outcome, action, &coverage);
    (action, Some(event), coverage)
}

/// An event about what no inspection has told.
fn describe(exchange: &Exchange<'_>, outcome: &Outcome, action: Action, coverage: &Coverage) -> Box<Event> {
    let Exchange { connection, generation, head, route, transaction } = exchange;
    let names = route.map_or(&connection.worker.shared.unrouted_names, |route| &route.names);
    let time = Timestamp::from_epoch_millis(transaction.began.epoch_millis());
    let mut event = Box::new(Event::new(transaction.request_id.clone(), time));
    event.site = names.site.clone();
    event.route = names.route.clone();
    event.policy_generation = generation.number;
    let inspector = route.and_then(|route| route.inspector.as_ref());
    event.engine = inspector.map_or(EngineMode::Off, |inspector| inspector.engine_mode());
    event.mode = inspector.map_or(DetectionMode::Off, |inspector| inspector.mode());
    event.server.addr = connection.local.ip().to_string();
    event.server.port = connection.local.port();
    event.server.host = text(head.host(), limits::REQUEST_TOKEN_BYTES_MAX);
    event.server.tls = connection.tls;
    event.request.method = text(head.method(), limits::REQUEST_TOKEN_BYTES_MAX);
    event.request.target = text(head.target(), limits::REQUEST_TARGET_BYTES_MAX);
    event.request.protocol = text(head.version_bytes(), limits::REQUEST_TOKEN_BYTES_MAX);
    event.request.head_bytes = head.received_len() as u64;
    event.request.body_bytes = outcome.request_body_bytes;
    event.response.status = outcome.status;
    event.duration_us = outcome.duration.as_micros().try_into().unwrap_or(u64::MAX);
    event.verdict.action = action;
    if action != Action::Pass {
        event.verdict.status = outcome.status;
    }
    if let Some(refusal) = transaction.refusal {
        event.refusal = Some(refusal.name().into());
        event.verdict.reason = refusal.explanation().to_string();
    } else if let Some(rejection) = &outcome.rejection {
        event.verdict.reason.clone_from(&rejection.reason);
    }
    event.upstream_error = outcome.upstream_error;
    event.exceptions.clone_from(&outcome.exceptions);
    event.agents.clone_from(&outcome.agents);
    event.coverage = coverage.clone();
    generation.redactor.redact(&mut event);
    event
}

impl Record<'_> {
    /// A control refused the request, or would have.
    fn note(&mut self, decision: ControlDecision) {
        if self.action == Action::Pass {
            self.action = Action::Detect;
        }
        if self.outcome.no_event || !(decision.in_event || self.event.is_some()) {
            return;
        }
        let describe = || describe(self.exchange, &self.outcome, self.action, &self.coverage);
        let event = self.event.get_or_insert_with(describe);
        event.verdict.action = self.action;
        event.verdict.control = Some(decision.control);
        if event.verdict.reason.is_empty() {
            event.verdict.reason = decision.reason;
        }
    }

    /// Bans: what the client did may count against it.
    fn judge(&self) {
        let Exchange { head, route, transaction, .. } = self.exchange;
        let Some(jail) = route.and_then(|route| route.access.as_ref()?.jail.as_ref()) else { return };
        let conduct = Conduct {
            // A rule may have denied what was refused already: the answer was the refusal.
            action: if transaction.refusal.is_some() { Action::Refuse } else { self.verdict },
            is_verdict: transaction.action != Action::Pass && transaction.is_verdict(),
            control: self.control.as_ref().map(|control| control.by),
            anomaly: self.event.as_ref().and_then(|event| event.scores.inbound_blocking).unwrap_or(0),
            sight: self.event.as_ref().and_then(|event| Sight::of(event, head)),
        };
        jail.judge(transaction.client().ip(), &conduct, self.exchange.shared().clock(self.now));
    }

    /// Metrics.
    fn count(&self) {
        let Exchange { head, route, transaction, .. } = self.exchange;
        let shared = self.exchange.shared();
        let protocol = match head.version() {
            Version::Http3 => Protocol::Http3,
            Version::Http2 => Protocol::Http2,
            Version::Http11 => Protocol::Http11,
            _ => Protocol::Http10,
        };
        let metrics = route.map_or(&shared.unrouted, |route| &route.metrics);
        metrics.requests.inc(self.outcome.status.unwrap_or(0), self.action as usize);
        metrics.request_duration.observe(self.outcome.duration);
        if transaction.entry == Entry::Inspected && route.is_some_and(|route| route.inspector.is_some()) {
            metrics.inspection_duration.observe(transaction.inspection.spent());
        }
        for Exception { cause, policy, .. } in &self.outcome.exceptions {
            shared.exceptions[*cause as usize].inc(*policy as usize);
        }
        let counters = &shared.services.metrics;
        counters.protocols.inc(protocol as usize);
        counters.bytes_inspected.add(self.coverage.bytes_inspected);
        for (reason, bytes) in self.coverage.bytes_not_inspected.iter() {
            counters.bytes_not_inspected.add(reason as usize, bytes);
            counters.exchanges_not_inspected.inc(reason as usize);
        }
        if let Some(refusal) = transaction.refusal {
            counters.refused_requests.inc(refusal as usize);
        }
        counters.request_trailers.add(transaction.trailers_dropped.into());
        if transaction.client_aborted {
            counters.client_aborts.inc();
        }
        if let Some(error) = self.outcome.upstream_error {
            counters.upstream_errors.inc(error as usize);
        }
    }

    /// Traces.
    fn summary(&self, phases: Vec<Phase>) -> RequestSummary<'_> {
        let Exchange { connection, head, route, transaction, .. } = self.exchange;
        RequestSummary {
            head,
            route: *route,
            request_id: &transaction.request_id,
            client: transaction.client().ip(),
            tls: connection.tls,
            status: self.outcome.status,
            action: self.action,
            phases,
            duration: self.outcome.duration,
        }
    }

    /// The access log, and what else takes a record of each request.
    fn log(&self) {
        let Exchange { generation, head, route, transaction, .. } = self.exchange;
        let (shared, outcome) = (self.exchange.shared(), &self.outcome);
        let on_request = shared.services.on_request.as_ref();
        if transaction.access_log.is_none() && on_request.is_none() {
            return;
        }
        let names = route.map_or(&shared.unrouted_names, |route| &route.names);
        let plain_bytes = outcome.response_body_bytes + outcome.own_body_bytes;
        let record = AccessRecord {
            time: Timestamp::from_epoch_millis(transaction.began.epoch_millis()),
            request_id: &transaction.request_id,
            client: transaction.client().ip(),
            country: transaction.place().country.as_ref().map(Code::as_str),
            asn: transaction.place().asn,
            site: &names.site,
            route: &names.route,
            method: head.method(),
            host: head.host(),
            target: head.target(),
            protocol: head.version_bytes(),
            status: outcome.status,
            request_body_bytes: outcome.request_body_bytes,
            body_bytes: transaction.coded_body_bytes.unwrap_or(plain_bytes),
            duration_us: outcome.duration.as_micros().try_into().unwrap_or(u64::MAX),
            upstream: transaction.endpoint(),
            trace_id: self.trace_id.as_deref(),
            verdict: self.action,
            control: self.control.as_ref(),
            referer: head.header("referer").next(),
            user_agent: head.header("user-agent").next(),
        };
        if let Some(on_request) = on_request {
            on_request(&record, &self.coverage);
        }
        if let Some(log) = transaction.access_log {
            log.write(&record, &generation.redactor, &shared.services);
        }
    }

    /// Events, and the sample of requests that passed.
    fn tell(mut self) {
        let Exchange { connection, transaction, .. } = self.exchange;
        let services = &connection.worker.shared.services;
        match (self.event.take(), self.captured.take()) {
            (Some(event), _) => {
                if let Some(on_event) = &services.on_event
                    && agents::is_kept(transaction.failed_agent.as_deref(), &event)
                {
                    on_event(self.completed(event));
                }
            }
            (None, Some(captured)) => {
                if let Some(capture) = &services.capture {
                    (capture.take)(self.completed(captured));
                }
            }
            (None, None) => {}
        }
    }

    /// An event with what only the proxy knows.
    fn completed(&self, mut event: Box<Event>) -> Event {
        let Exchange { connection, generation, head, transaction, .. } = self.exchange;
        event.request.trailers_dropped = transaction.trailers_dropped;
        if let Some(refusal) = transaction.refusal {
            // Of which the inspection, if there was one, does not know if it came after it.
            event.refusal = Some(refusal.name().into());
        }
        event.response.body_bytes = self.outcome.response_body_bytes + self.outcome.own_body_bytes;
        let visitor = (transaction.client(), *transaction.place());
        event.client = client::describe(&generation.client_address, visitor, connection.peer, head);
        event.upstream = transaction.endpoint().map(str::to_string);
        if event.upstream_error == Some(UpstreamError::Tls) {
            event.upstream_reason = transaction.upstream_reason();
        }
        event.trace_id.clone_from(&self.trace_id);
        *event
    }
}
