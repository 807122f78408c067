//! The end of an exchange: its account is closed, and metrics, the record of requests and the event are made.

use std::time::Duration;

use portcullis_config::OpenOrClosed;
use portcullis_event::{
    AccessRecord, Action, Coverage, Event, ExceptionCause, ExceptionPolicy, Integration, NotInspected,
    Timestamp, limits, text,
};
use portcullis_http::message::Version;
use portcullis_inspect::{Outcome, Report, Step};
use portcullis_metrics::Protocol;

use crate::conversation::Conversation;

/// Closes the account of an exchange.
pub(crate) fn finish(conversation: &mut Conversation) {
    let outcome = end(conversation);
    let mut report = conversation.inspected.finish(&outcome);
    let captured = report.as_mut().and_then(|report| report.captured.take());
    let (action, mut event, mut coverage) = match report {
        Some(report) => count_report(conversation, report),
        None => uninspected(conversation, &outcome),
    };
    coverage.not_inspected(NotInspected::NotSent, conversation.missing_bytes);
    if let Some(event) = &mut event {
        event.coverage = coverage.clone();
    }
    count(conversation, &outcome, action, &coverage);
    record(conversation, &outcome, action, &coverage);
    let outputs = &conversation.service.outputs;
    match (event, captured) {
        (Some(event), _) => {
            if let Some(on_event) = &outputs.on_event {
                on_event(completed(conversation, event));
            }
        }
        (None, Some(captured)) => {
            if let Some(capture) = &outputs.capture {
                (capture.take)(completed(conversation, captured));
            }
        }
        (None, None) => {}
    }
}

/// Phase 5, and what the exchange came to.
fn end(conversation: &mut Conversation) -> Outcome {
    let duration = conversation.began.elapsed();
    let answered = conversation.rejection.as_ref().map(|rejection| rejection.status);
    let mut step = conversation.inspected.step(|inspection| {
        if let Some(status) = answered {
            inspection.answered(status);
        }
        inspection.logging(duration)
    });
    while step == Step::Ask {
        // Nothing can be refused any more.
        step = conversation.inspected.step(|inspection| inspection.resume());
    }
    if conversation.inspected.is_broken() {
        let policy = match conversation.settings.failure.engine_error {
            OpenOrClosed::Open => ExceptionPolicy::Open,
            OpenOrClosed::Closed => ExceptionPolicy::Closed,
        };
        conversation.exception(ExceptionCause::EngineError, policy, None);
    }
    let own = conversation.block.as_ref().filter(|block| block.action != Action::Drop);
    Outcome {
        status: match &conversation.block {
            Some(_) => own.map(|block| block.status),
            None => conversation.response_status,
        },
        request_body_bytes: conversation.request_bytes,
        response_body_bytes: conversation.response_bytes,
        own_body_bytes: own.map_or(0, |block| block.page.body.len() as u64),
        duration,
        rejection: conversation.rejection.clone(),
        exceptions: conversation.exceptions.clone(),
        no_event: conversation.service.outputs.on_event.is_none(),
        ..Outcome::default()
    }
}

/// Takes over what the inspection reports, and counts what only it knows.
fn count_report(conversation: &Conversation, mut report: Report) -> (Action, Option<Box<Event>>, Coverage) {
    let Conversation { service, settings, .. } = conversation;
    settings.exclusions.note(&mut report, conversation.epoch_millis / 1000);
    for file in report.kept_files {
        (service.outputs.on_file)(file);
    }
    service.keep_scratch(report.scratch);
    let counters = &service.metrics.data_plane;
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
        settings.rule_matches().inc(rule.0);
    }
    (report.action, report.event, report.coverage)
}

/// The same for an exchange whose inspection ended by a bug.
fn uninspected(conversation: &Conversation, outcome: &Outcome) -> (Action, Option<Box<Event>>, Coverage) {
    let Conversation { settings, head, .. } = conversation;
    let mut coverage = Coverage::default();
    let bodies = outcome.request_body_bytes + outcome.response_body_bytes;
    coverage.not_inspected(NotInspected::EngineError, bodies + head.received_len() as u64);
    let action = conversation.block.as_ref().map_or(Action::Pass, |block| block.action);
    if outcome.no_event {
        return (action, None, coverage);
    }
    let time = Timestamp::from_epoch_millis(conversation.epoch_millis);
    let mut event = Box::new(Event::new(conversation.request_id.clone(), time));
    event.site = settings.names.site.clone();
    event.route = settings.names.route.clone();
    event.policy_generation = settings.names.generation;
    event.engine = settings.inspector.engine_mode();
    event.mode = settings.inspector.mode();
    event.client = conversation.arrival.client.into();
    event.server.addr = conversation.arrival.server.ip().to_string();
    event.server.port = conversation.arrival.server.port();
    event.server.host = text(head.host(), limits::REQUEST_TOKEN_BYTES_MAX);
    event.server.tls = conversation.arrival.tls;
    event.request.method = text(head.method(), limits::REQUEST_TOKEN_BYTES_MAX);
    event.request.target = text(head.target(), limits::REQUEST_TARGET_BYTES_MAX);
    event.request.protocol = text(head.version_bytes(), limits::REQUEST_TOKEN_BYTES_MAX);
    event.request.head_bytes = head.received_len() as u64;
    event.request.body_bytes = outcome.request_body_bytes;
    event.response.status = outcome.status;
    event.duration_us = micros(outcome.duration);
    event.verdict.action = action;
    event.verdict.status = outcome.status;
    event.exceptions.clone_from(&outcome.exceptions);
    settings.redactor.redact(&mut event);
    (action, Some(event), coverage)
}

fn count(conversation: &Conversation, outcome: &Outcome, action: Action, coverage: &Coverage) {
    let Conversation { service, settings, head, .. } = conversation;
    let (metrics, route) = (&service.metrics, settings.route());
    metrics.verdicts.inc(action as usize);
    for spot in &conversation.blind_spots {
        metrics.blind_spots.inc(*spot as usize);
    }
    for exception in &outcome.exceptions {
        metrics.exception(exception.cause, exception.policy);
    }
    route.requests.inc(outcome.status.unwrap_or(0), action as usize);
    route.request_duration.observe(outcome.duration);
    route.inspection_duration.observe(conversation.inspected.spent());
    let counters = &metrics.data_plane;
    let protocol = match head.version() {
        Version::Http3 => Protocol::Http3,
        Version::Http2 => Protocol::Http2,
        Version::Http11 => Protocol::Http11,
        _ => Protocol::Http10,
    };
    counters.protocols.inc(protocol as usize);
    counters.bytes_inspected.add(coverage.bytes_inspected);
    for (reason, bytes) in coverage.bytes_not_inspected.iter() {
        counters.bytes_not_inspected.add(reason as usize, bytes);
        counters.exchanges_not_inspected.inc(reason as usize);
    }
    if let Some(refusal) = conversation.refusal {
        counters.refused_requests.inc(refusal as usize);
    }
}

/// The record for the roll-ups of the event store.
fn record(conversation: &Conversation, outcome: &Outcome, action: Action, coverage: &Coverage) {
    let Conversation { service, settings, head, .. } = conversation;
    let Some(on_request) = &service.outputs.on_request else { return };
    let record = AccessRecord {
        time: Timestamp::from_epoch_millis(conversation.epoch_millis),
        request_id: &conversation.request_id,
        client: conversation.arrival.client.ip(),
        country: None,
        asn: None,
        site: &settings.names.site,
        route: &settings.names.route,
        method: head.method(),
        host: head.host(),
        target: head.target(),
        protocol: head.version_bytes(),
        status: outcome.status,
        request_body_bytes: outcome.request_body_bytes,
        body_bytes: outcome.response_body_bytes + outcome.own_body_bytes,
        duration_us: micros(outcome.duration),
        upstream: None,
        trace_id: None,
        verdict: action,
        control: None,
        referer: head.header("referer").next(),
        user_agent: head.header("user-agent").next(),
    };
    on_request(&record, coverage);
}

/// An event, with what only the asking server's protocol tells.
fn completed(conversation: &Conversation, mut event: Box<Event>) -> Event {
    let Conversation { service, arrival, .. } = conversation;
    if arrival.client.ip() != arrival.peer.ip() {
        event.client.peer = Some(arrival.peer.ip().to_string());
    }
    let mut blind_spots = conversation.blind_spots.clone();
    blind_spots.sort_unstable();
    event.integration = Some(Integration { kind: service.kind, blind_spots });
    *event
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
