//! From a plan and a request to an [`Explanation`].

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use portcullis_engine::RuleIndex;
use portcullis_event::{Action, EngineMode, Redactor, Scores, Verdict, limits, text};
use portcullis_exchange::TOO_LARGE;
use portcullis_http::h1::{RequestHead, ResponseHead};
use portcullis_http::message::Refusal;
use portcullis_inspect::{
    Inspection, Inspector, Interruption, Outcome, PolicyNames, Rejection, Scratch, Step, Weighed,
};
use portcullis_store::Store;

use super::{Explanation, Match, Points, Refused, not_run, semantic};
use crate::message::Message;
use crate::run::{Run, connection, parse};

/// The exchange to explain.
pub struct Exchange<'a> {
    /// The request.
    pub request: Message,
    /// The response, if there is one.
    pub response: Option<(ResponseHead, Message)>,
    /// The address of the client.
    pub client: SocketAddr,
    /// Answers to lookups.
    pub dns: &'a [(String, Ipv4Addr)],
    /// The time, in milliseconds since 1970.
    pub epoch_millis: u64,
    /// Seconds by which local time is ahead of UTC then.
    pub utc_offset_seconds: i32,
}

/// Runs the request phases, those of the response if there is one, and the logging phase: once as a server
/// would, and once with every rule in full, which is what is reported. Traffic is not touched: collections
/// start empty, and there are no audit records.
pub fn explain(policy: &Inspector, exchange: Exchange<'_>, watched: Option<RuleIndex>) -> Explanation {
    // Each with collections of its own: what one run counts is nothing to the other.
    let new_inspector = || Arc::new(policy.aside(Arc::new(Redactor::none()), Arc::new(Store::default())));
    let mut served = begin(&new_inspector(), &exchange);
    show(&mut served, &exchange);
    let step = served.inspection.logging(Duration::ZERO);
    served.settle(step);
    let inspector = new_inspector();
    let mut run = begin(&inspector, &exchange);
    run.notes.extend(exchange.request.notes.iter().cloned());
    run.inspection.keep_trace(watched);
    let ends = show(&mut run, &exchange);
    let mut explanation = finish(run, &inspector, ends, watched);
    let served = rules_with_a_say(&inspector, &served.inspection);
    let told: Vec<u32> =
        explanation.matches.iter().filter(|found| found.logged).map(|found| found.rule_id).collect();
    if served != told {
        explanation.notes.push(format!(
            "a server would have seen other rules match ({served:?}): what is shown here was not cut off by its allowance of \
             work; if the request is small, please report this as a bug"
        ));
    }
    explanation
}

/// The rules whose matches are logged, in order.
fn rules_with_a_say(inspector: &Inspector, inspection: &Inspection) -> Vec<u32> {
    let matches = inspection.transaction().matches().iter().filter(|found| found.log);
    matches.map(|found| inspector.plan().rule(found.rule).id.0).collect()
}

fn begin<'a>(inspector: &Arc<Inspector>, exchange: &Exchange<'a>) -> Run<'a> {
    let names = PolicyNames { site: "explain".into(), route: "/".into(), generation: 0 };
    let connection = connection(exchange.client, exchange.epoch_millis, exchange.utc_offset_seconds);
    Run::new(inspector.begin(&names, connection, Scratch::default()), exchange.dns)
}

/// Shows the messages to the inspection, all phases but the last.
fn show<'e>(run: &mut Run<'_>, exchange: &'e Exchange<'_>) -> Ends<'e> {
    let bytes = &exchange.request.bytes;
    let (head, refusal) = parse(bytes);
    let body = bytes.get(head.received_len()..).unwrap_or_default();
    let step = run.phases(&head, refusal, body);
    let rejection = rejection(run, &step);
    let passes = step == Step::Continue && refusal.is_none() && rejection.is_none();
    let response = match &exchange.response {
        Some((answer, file)) if passes => {
            run.notes.extend(file.notes.iter().map(|note| format!("response: {note}")));
            let body = file.bytes.get(answer.received_len()..).unwrap_or_default();
            run.response_phases(head.method(), answer, body);
            Some(answer)
        }
        Some(_) => {
            run.notes.push("the request does not get as far as its response".to_owned());
            None
        }
        None => None,
    };
    Ends { head, refusal, rejection, response }
}

/// Returns the proxy's own answer, if there is one.
fn rejection(run: &Run<'_>, step: &Step) -> Option<Rejection> {
    let is_dropped = matches!(step, Step::Interrupt(Interruption::Drop));
    (run.refuses_body && !is_dropped).then(|| Rejection {
        action: Action::Deny,
        status: TOO_LARGE.0,
        reason: TOO_LARGE.1.into(),
    })
}

/// The results of reading the messages.
struct Ends<'a> {
    head: RequestHead,
    refusal: Option<Refusal>,
    rejection: Option<Rejection>,
    response: Option<&'a ResponseHead>,
}

fn finish(
    mut run: Run<'_>,
    inspector: &Inspector,
    Ends { head, refusal, rejection, response }: Ends<'_>,
    watched: Option<RuleIndex>,
) -> Explanation {
    let by_http = |refusal: Refusal| Refused {
        name: refusal.name(),
        status: refusal.status(),
        explanation: refusal.explanation(),
    };
    let by_limit = rejection.as_ref().map(|_| Refused {
        name: "request-body-over-limit",
        status: TOO_LARGE.0,
        explanation: TOO_LARGE.1,
    });
    let refusal = refusal.map(by_http).or(by_limit);
    let step = run.inspection.logging(Duration::ZERO);
    run.settle(step);
    let matches = matches(inspector, &run.inspection);
    let (plan, transaction) = (inspector.plan(), run.inspection.transaction());
    let not_run = not_run::groups(plan, transaction);
    let left_out = not_run::left_out(plan, transaction);
    let values = run.inspection.semantic_values();
    let semantic =
        inspector.level().zip(values).map(|(level, values)| semantic::Semantic::new(level, values));
    let watched = watched.map(|rule| not_run::watched(plan, transaction, rule));
    if let Some(weighed) = run.inspection.withheld() {
        let Weighed { gate, score, threshold, withheld } = weighed;
        run.notes.push(format!(
            "rule {gate} interrupts nothing: of a score of {score} (threshold {threshold}), {withheld} points are of values \
             in which the weights of the rules that matched come to less than 1"
        ));
    }
    let Run { inspection, notes, body_bytes, body_bytes_inspected, .. } = run;
    let (response_body_bytes, response_body_bytes_inspected) =
        (run.response_body_bytes, run.response_body_bytes_inspected);
    let outcome = Outcome {
        status: response.map(ResponseHead::status),
        request_body_bytes: body_bytes,
        response_body_bytes,
        rejection,
        ..Outcome::default()
    };
    let report = inspection.finish(&outcome);
    let (scores, engine, verdict) = match report.event {
        Some(event) => (event.scores, event.engine, event.verdict),
        None => {
            (Scores::default(), EngineMode::Blocking, Verdict { action: report.action, ..Verdict::default() })
        }
    };
    Explanation {
        request: text(head.line(), limits::REQUEST_TARGET_BYTES_MAX),
        response: response.map(|head| text(head.line(), limits::REQUEST_TARGET_BYTES_MAX)),
        response_body_bytes_inspected,
        response_body_bytes_not_inspected: response_body_bytes - response_body_bytes_inspected,
        mode: inspector.mode(),
        body_bytes_inspected,
        body_bytes_not_inspected: body_bytes - body_bytes_inspected,
        notes,
        refusal,
        matches,
        matches_not_shown: 0,
        semantic,
        not_run,
        left_out,
        watched,
        scores,
        engine,
        verdict,
    }
}

fn matches(inspector: &Inspector, inspection: &Inspection) -> Vec<Match> {
    let transaction = inspection.transaction();
    let show = |bytes: &[u8]| text(bytes, limits::VALUE_BYTES_MAX);
    let describe = |record: &portcullis_engine::Match| {
        let view = transaction.view(record);
        let metadata = &view.rule.metadata;
        let tags =
            metadata.tags.iter().filter_map(|tag| Some(String::from_utf8_lossy(tag.as_literal()?).into()));
        Match {
            rule_id: view.rule.id.0,
            phase: record.phase.number(),
            severity: view.severity.map(|severity| severity.name()),
            message: text(view.msg, limits::MESSAGE_BYTES_MAX),
            data: text(view.log_data, limits::DATA_BYTES_MAX),
            target: text(&view.target, limits::TARGET_NAME_BYTES_MAX),
            value: show(view.value),
            value_as_sent: (view.raw != view.value).then(|| show(view.raw)),
            span: record.found.map(|span| [span.start, span.end]),
            transformations: view.transformations,
            operator: view.operator.to_owned(),
            points: view
                .changes
                .iter()
                .map(|(key, added)| Points {
                    score: format!("tx.{}", String::from_utf8_lossy(key)),
                    added: *added,
                })
                .collect(),
            tags: tags.collect(),
            file: inspector.plan().file(metadata.place).to_string(),
            line: metadata.place.line,
            logged: record.log,
            disruptive: record.disruptive,
        }
    };
    transaction.matches().iter().map(describe).collect()
}
