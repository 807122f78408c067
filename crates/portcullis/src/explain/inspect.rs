//! From a plan and a request to an [`Explanation`].

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use portcullis_config::Policy;
use portcullis_engine::{Plan, RuleIndex};
use portcullis_event::{Action, EngineMode, Redactor, RedactorNames, Scores, Verdict, limits, text};
use portcullis_http::h1::{RequestHead, ResponseHead};
use portcullis_http::message::Refusal;
use portcullis_inspect::{
    Inspection, Inspector, Interruption, Outcome, PolicyNames, Rejection, Step, Weighed,
};
use portcullis_store::Store;

use portcullis_proxy::LocalTime;

use super::{Explanation, Match, Points, Refused, not_run, semantic};
use crate::in_process::{self, Run};
use crate::message_file::MessageFile;
use crate::semantic::SharedDetectors;

/// What is explained.
pub struct Exchange<'a> {
    /// The request.
    pub request: MessageFile,
    /// The response, if there is one.
    pub response: Option<(ResponseHead, MessageFile)>,
    /// Who sent the request.
    pub client: SocketAddr,
    /// Answers to lookups.
    pub dns: &'a [(String, Ipv4Addr)],
}

/// Runs the request phases, those of the response if there is one, and the logging phase.
pub fn explain(
    policy: &Policy,
    plan: Arc<Plan>,
    exchange: Exchange<'_>,
    watched: Option<RuleIndex>,
) -> Explanation {
    let Exchange { request: file, response, client, dns } = exchange;
    // Whoever has the request may see what is in it.
    let redactor = Redactor::new(&RedactorNames { headers: vec![], args: vec![], cookies: vec![] });
    let inspector = Inspector::new(plan, Arc::new(redactor), Arc::new(Store::default()));
    let inspector = Arc::new(SharedDetectors::default().attach(inspector, policy));
    let names = PolicyNames { site: "explain".into(), route: "/".into(), generation: 0 };
    let now = portcullis_event::Timestamp::from(std::time::SystemTime::now()).epoch_millis();
    let offset = LocalTime::of_process().utc_offset_seconds((now / 1000) as i64);
    let connection = in_process::connection(client, now, offset);
    let mut run = Run::new(inspector.begin(&names, connection, Box::default()), dns);
    run.notes = file.notes;
    run.inspection.keep_trace(watched);
    let (head, refusal) = in_process::parse(&file.bytes);
    let body = file.bytes.get(head.received_len()..).unwrap_or_default();
    let step = run.phases(&head, refusal, body);
    let rejection = rejection(&run, &step);
    let passes = step == Step::Continue && refusal.is_none() && rejection.is_none();
    let response = match response {
        Some((answer, file)) if passes => {
            run.notes.extend(file.notes.iter().map(|note| format!("response: {note}")));
            let body = file.bytes.get(answer.received_len()..).unwrap_or_default();
            run.response_phases(head.method(), &answer, body);
            Some(answer)
        }
        Some(_) => {
            run.notes.push("the request does not get as far as its response".to_owned());
            None
        }
        None => None,
    };
    let ends = Ends { head: &head, refusal, rejection, response: response.as_ref() };
    finish(run, &inspector, policy, ends, watched)
}

/// What the proxy answers by itself, if it does.
fn rejection(run: &Run<'_>, step: &Step) -> Option<Rejection> {
    let is_dropped = matches!(step, Step::Interrupt(Interruption::Drop));
    (run.refuses_body && !is_dropped).then(|| Rejection {
        action: Action::Deny,
        status: BODY_OVER_LIMIT.0,
        reason: BODY_OVER_LIMIT.1.into(),
    })
}

/// As the proxy has it.
const BODY_OVER_LIMIT: (u16, &str) = (413, "The request body is larger than this site accepts.");

/// What the messages came to.
struct Ends<'a> {
    head: &'a RequestHead,
    refusal: Option<Refusal>,
    rejection: Option<Rejection>,
    response: Option<&'a ResponseHead>,
}

fn finish(
    mut run: Run<'_>,
    inspector: &Inspector,
    policy: &Policy,
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
        status: BODY_OVER_LIMIT.0,
        explanation: BODY_OVER_LIMIT.1,
    });
    let refusal = refusal.map(by_http).or(by_limit);
    let step = run.inspection.logging(Duration::ZERO);
    run.settle(step);
    let matches = matches(inspector, &run.inspection);
    let (plan, transaction) = (inspector.plan(), run.inspection.transaction());
    let not_run = not_run::groups(plan, transaction);
    let left_out = not_run::left_out(plan, transaction);
    let values = run.inspection.semantic_values();
    let semantic = values.map(|values| semantic::Semantic::new(policy.level, values));
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
