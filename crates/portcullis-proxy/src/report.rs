//! The end of a request: its account is closed in one record, which bans, metrics, traces, the access log and
//! events each read.

use std::sync::Arc;
use std::time::Instant;

use portcullis_access::Code;
use portcullis_event::{AccessRecord, Action, Control, Coverage, Event, NotInspected, UpstreamError};
use portcullis_exchange::{Counters, Facts, Kind, Lifecycle, Phase, Turn};

use crate::access::{Conduct, ControlDecision, Entry, Sight};
use crate::exchange::Exchange;
use crate::trace::RequestSummary;
use crate::{agents, client};

/// The record of a request that is over.
struct Record<'a> {
    exchange: &'a Exchange<'a>,
    facts: Facts<'a>,
    life: Lifecycle,
    /// The time of its end.
    now: Instant,
    /// The verdict of inspection and proxy.
    verdict: Action,
    /// The same as it is reported: what a control would have refused is reported as detected.
    action: Action,
    control: Option<Control>,
    coverage: Coverage,
    trace_id: Option<String>,
    /// The inbound anomaly score, if there is something to report.
    anomaly: i64,
    /// What becomes of the event.
    turn: Turn,
    /// The event, if there is one.
    event: Option<Box<Event>>,
    /// The request, if it is one of the sample of those that passed.
    captured: Option<Box<Event>>,
}

/// Closes the account of a request: phase 5, then everybody who observes requests sees the record.
pub(crate) async fn close(exchange: &mut Exchange<'_>) {
    let now = Instant::now();
    log_phase(exchange, now).await;
    let transaction = &mut exchange.transaction;
    let phases = transaction.life.take_phases();
    let (decision, trace) = (transaction.decision.take(), transaction.trace.take());
    let mut life = std::mem::take(&mut transaction.life);
    let facts = facts(exchange);
    let turn = match kind(exchange, &mut life, decision.as_ref()) {
        Some(kind) => exchange.connection.worker.repeats(now).turn(kind),
        None => Turn::Own,
    };
    life.outcome.no_event |= turn == Turn::Counted;
    let finished = life.finish(&facts);
    let anomaly = finished.report.as_ref().and_then(|report| report.anomaly).unwrap_or(0);
    if let Some(report) = finished.report {
        exchange.counters().count_report(&report);
        if let Some(cookies) = exchange.route.and_then(|route| route.cookies.as_deref()) {
            cookies.count(report.cookies);
        }
        report.kept_files.into_iter().for_each(|file| (exchange.shared().services.on_file)(file));
        exchange.connection.worker.keep_scratch(report.scratch);
    }
    let mut record = Record {
        exchange,
        facts,
        life,
        now,
        verdict: finished.action,
        action: finished.action,
        control: decision.as_ref().map(|decision| decision.control.clone()),
        coverage: finished.coverage,
        trace_id: trace.as_ref().map(|trace| trace.id()),
        anomaly,
        turn,
        event: finished.event,
        captured: finished.captured,
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

/// Phase 5, which is the last that costs the client's network something.
async fn log_phase(exchange: &mut Exchange<'_>, now: Instant) {
    let shared = &exchange.connection.worker.shared;
    let transaction = &mut exchange.transaction;
    shared.overload.charge_request(transaction.account, transaction.uncharged_time(), shared.clock(now));
    let duration = now.saturating_duration_since(transaction.began.instant);
    let step = transaction.life.logging(now, duration);
    exchange.settle(step).await;
}

/// The kind of an exchange that another event may count: what decided is an attack, and nothing else is to be
/// reported of it. A request with a Referer has an event of its own, since bans tell by it what only repeats
/// the address of an attack.
fn kind(exchange: &Exchange<'_>, life: &mut Lifecycle, decision: Option<&ControlDecision>) -> Option<Kind> {
    let Exchange { head, route, transaction, .. } = exchange;
    let names = &route.as_ref()?.names;
    let reports_more = decision.is_some() || transaction.failed_agent.is_some() || life.refusal.is_some();
    let decision = life.decision().filter(|_| !reports_more)?;
    head.header("referer").next().is_none().then(|| Kind {
        client: transaction.client().ip(),
        site: Arc::clone(&names.site),
        route: Arc::clone(&names.route),
        decision,
    })
}

fn facts<'a>(exchange: &'a Exchange<'_>) -> Facts<'a> {
    let Exchange { connection, generation, head, route, transaction } = exchange;
    Facts {
        head,
        names: route.map_or(&connection.worker.shared.unrouted_names, |route| &route.names),
        generation: generation.number,
        inspector: route.and_then(|route| route.inspector.as_deref()),
        exclusions: route.and_then(|route| route.exclusions.as_ref()),
        redactor: &generation.redactor,
        request_id: &transaction.request_id,
        epoch_millis: transaction.began.epoch_millis(),
        client: transaction.client(),
        server: connection.local,
        tls: connection.tls,
        uninspected: match transaction.entry {
            Entry::Refused => NotInspected::AfterVerdict,
            Entry::Bypassed => NotInspected::Bypassed,
            Entry::Inspected => NotInspected::EngineOff,
        },
    }
}

impl Exchange<'_> {
    /// The counters of its route.
    fn counters(&self) -> Counters<'_> {
        let shared = self.shared();
        Counters {
            data_plane: &shared.services.metrics,
            exceptions: &shared.exceptions,
            route: self.route.map_or(&shared.unrouted, |route| &route.metrics),
            rules: &self.generation.rule_matches,
        }
    }
}

impl Record<'_> {
    /// A control refused the request, or would have.
    fn note(&mut self, decision: ControlDecision) {
        if self.action == Action::Pass {
            self.action = Action::Detect;
        }
        if self.life.outcome.no_event || !(decision.in_event || self.event.is_some()) {
            return;
        }
        let describe = || self.life.describe(&self.facts, self.action, &self.coverage);
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
        let jail = route.map(|route| &route.access.jail).filter(|jail| jail.counts());
        let Some(jail) = jail else { return };
        let conduct = Conduct {
            // A rule may have denied what was refused already: the answer was the refusal.
            action: if self.life.refusal.is_some() { Action::Refuse } else { self.verdict },
            is_verdict: self.life.action != Action::Pass && self.life.is_verdict(),
            control: self.control.as_ref().map(|control| control.by),
            anomaly: self.anomaly,
            sight: match &self.event {
                Some(event) => Sight::of(event, head),
                None if self.turn == Turn::Counted => Sight::asked(head),
                None => None,
            },
        };
        jail.judge(transaction.client().ip(), &conduct, self.exchange.shared().clock(self.now));
    }

    /// Metrics.
    fn count(&self) {
        let Exchange { transaction, .. } = self.exchange;
        let counters = self.exchange.counters();
        counters.count(&self.life, self.facts.head, (self.action, &self.coverage), self.is_inspected());
        let counters = counters.data_plane;
        counters.request_trailers.add(transaction.trailers_dropped.into());
        if transaction.client_aborted {
            counters.client_aborts.inc();
        }
        if let Some(error) = self.life.outcome.upstream_error {
            counters.upstream_errors.inc(error as usize);
        }
    }

    /// True if the time of its inspection counts.
    fn is_inspected(&self) -> bool {
        let Exchange { route, transaction, .. } = self.exchange;
        transaction.entry == Entry::Inspected && route.is_some_and(|route| route.inspector.is_some())
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
            status: self.life.outcome.status,
            action: self.action,
            phases,
            duration: self.life.outcome.duration,
        }
    }

    /// The access log, and what else takes a record of each request.
    fn log(&self) {
        let Exchange { generation, transaction, .. } = self.exchange;
        let shared = self.exchange.shared();
        let on_request = shared.services.on_request.as_ref();
        if transaction.access_log.is_none() && on_request.is_none() {
            return;
        }
        let plain = self.life.record(&self.facts, self.action);
        let record = AccessRecord {
            country: transaction.place().country.as_ref().map(Code::as_str),
            asn: transaction.place().asn,
            body_bytes: transaction.coded_body_bytes.unwrap_or(plain.body_bytes),
            upstream: transaction.endpoint(),
            trace_id: self.trace_id.as_deref(),
            control: self.control.as_ref(),
            ..plain
        };
        if let Some(on_request) = on_request {
            on_request(&record, &self.coverage, self.is_inspected().then(|| self.life.spent()));
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
                    let event = self.completed(event);
                    match std::mem::replace(&mut self.turn, Turn::Own) {
                        Turn::Held(kind) => connection.worker.repeats(self.now).hold(kind, event),
                        Turn::Own | Turn::Counted => on_event(*event),
                    }
                }
            }
            (None, Some(captured)) => {
                if let Some(capture) = &services.capture {
                    (capture.take)(*self.completed(captured));
                }
            }
            (None, None) => {}
        }
    }

    /// An event with what only the proxy knows.
    fn completed(&self, mut event: Box<Event>) -> Box<Event> {
        let Exchange { connection, generation, head, transaction, .. } = self.exchange;
        event.request.trailers_dropped = transaction.trailers_dropped;
        if let Some(refusal) = self.life.refusal {
            // Of which the inspection, if there was one, does not know if it came after it.
            event.refusal = Some(refusal.name().into());
        }
        event.response.body_bytes = self.life.outcome.response_body_bytes + self.life.outcome.own_body_bytes;
        let visitor = (transaction.client(), *transaction.place());
        event.client = client::describe(&generation.client_address, visitor, connection.peer, head);
        event.upstream = transaction.endpoint().map(str::to_string);
        if event.upstream_error == Some(UpstreamError::Tls) {
            event.upstream_reason = transaction.upstream_reason();
        }
        event.trace_id.clone_from(&self.trace_id);
        event
    }
}
