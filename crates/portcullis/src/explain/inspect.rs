//! From a plan and a request to an [`Explanation`].

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use portcullis_engine::{BodyPlan, Plan, RuleIndex, Scratch};
use portcullis_event::{EngineMode, Redactor, RedactorNames, Scores, Verdict, limits, text};
use portcullis_http::h1::{BodyDecoder, Compat, Limits, Parsed, RequestHead, RequestParser};
use portcullis_http::message::Refusal;
use portcullis_inspect::{Answer, Connection, Inspection, Inspector, Outcome, PolicyNames, Question, Step};
use portcullis_store::Store;

use portcullis_proxy::LocalTime;

use super::{Explanation, Match, Points, Refused, not_run};
use crate::request_file::RequestFile;

/// Runs the request phases and the logging phase.
pub fn explain(
    plan: Arc<Plan>,
    file: RequestFile,
    client: SocketAddr,
    watched: Option<RuleIndex>,
    dns: &[(String, Ipv4Addr)],
) -> Explanation {
    // Whoever has the request may see what is in it.
    let redactor = Redactor::new(&RedactorNames { headers: vec![], args: vec![], cookies: vec![] });
    let inspector = Inspector::new(plan, Arc::new(redactor), Arc::new(Store::default()));
    let inspector = Arc::new(inspector);
    let names = PolicyNames { site: "explain".into(), route: "/".into(), generation: 0 };
    let now = portcullis_event::Timestamp::from(std::time::SystemTime::now()).epoch_millis();
    let connection = Connection {
        client,
        client_info: client.into(),
        server: SocketAddr::from((Ipv4Addr::LOCALHOST, 80)),
        request_id: "explain".to_owned(),
        epoch_millis: now,
        utc_offset_seconds: LocalTime::of_process().utc_offset_seconds((now / 1000) as i64),
        tls: false,
    };
    let mut run = Run {
        inspection: inspector.begin(&names, connection, Scratch::default()),
        notes: file.notes,
        dns,
        body_bytes: 0,
        body_bytes_inspected: 0,
    };
    run.inspection.keep_trace(watched);
    let limits = Limits::default();
    let mut parser = RequestParser::new(limits, Compat::Strict);
    let parsed = match parser.parse(&file.bytes) {
        Parsed::NeedMore => parser.end(&file.bytes),
        parsed => Some(parsed),
    };
    let (head, refusal) = match parsed {
        Some(Parsed::Head(head)) => (head, None),
        Some(Parsed::Refused { partial, refusal }) => (partial, Some(refusal)),
        Some(Parsed::NeedMore) | None => (RequestHead::default(), Some(Refusal::Incomplete)),
    };
    let body = file.bytes.get(head.received_len()..).unwrap_or_default();
    run.phases(&head, refusal, body, &limits);
    run.finish(&inspector, &head, refusal, watched)
}

struct Run<'a> {
    inspection: Inspection,
    notes: Vec<String>,
    /// Answers to lookups.
    dns: &'a [(String, Ipv4Addr)],
    body_bytes: u64,
    body_bytes_inspected: u64,
}

impl Run<'_> {
    fn phases(&mut self, head: &RequestHead, refusal: Option<Refusal>, body: &[u8], limits: &Limits) {
        let step = self.inspection.request_head(head, refusal);
        if self.settle(step) != Step::Continue || refusal.is_some() {
            return;
        }
        let body = self.decode(head, body, limits);
        self.body_bytes = body.len() as u64;
        let mut truncated = false;
        if let BodyPlan::Hold { limit_bytes, .. } = self.inspection.request_body_plan() {
            let shown = body.len().min(usize::try_from(limit_bytes).unwrap_or(usize::MAX));
            truncated = shown < body.len();
            if truncated {
                self.notes.push(format!("only {shown} of {} body bytes are within the limit", body.len()));
            }
            self.inspection.request_body(&body[..shown]);
            self.body_bytes_inspected = shown as u64;
        }
        let step = self.inspection.request_end(truncated);
        self.settle(step);
        if let Some(error) = self.inspection.request_body_error() {
            self.notes.push(format!("the body could not be read: {error}"));
        }
    }

    /// Answers what rules ask from what was given, and notes what nobody answers.
    fn settle(&mut self, mut step: Step) -> Step {
        while step == Step::Ask {
            let mut answers = Vec::new();
            for (id, question) in self.inspection.questions() {
                let answer = match question {
                    Question::Address(name) => match self.dns.iter().find(|(known, _)| known == name) {
                        Some((_, address)) => Answer::Address(*address),
                        None => {
                            let note = "a rule looks up NAME in DNS: unanswered here, so it does not match; \
                                        --dns NAME=ADDRESS answers it";
                            self.notes.push(note.replace("NAME", name));
                            Answer::Unknown
                        }
                    },
                    Question::Scan { scanner, content } => {
                        let size = content.len();
                        self.notes.push(format!(
                            "a rule has {scanner} scan an upload of {size} bytes: not done here, so it does not match"
                        ));
                        Answer::Unknown
                    }
                };
                answers.push((id, answer));
            }
            for (id, answer) in answers {
                self.inspection.answer(id, answer);
            }
            step = self.inspection.resume();
        }
        step
    }

    /// The body without its transfer coding.
    fn decode(&mut self, head: &RequestHead, mut rest: &[u8], limits: &Limits) -> Vec<u8> {
        let mut decoder = BodyDecoder::request(head.framing(), limits);
        let mut body = Vec::new();
        while !decoder.is_done() && !rest.is_empty() {
            match decoder.decode(rest) {
                Ok(decoded) => {
                    body.extend_from_slice(decoded.data);
                    if decoded.consumed == 0 {
                        break;
                    }
                    rest = &rest[decoded.consumed..];
                }
                Err(error) => {
                    self.notes.push(format!("the body's framing is broken: {}", error.explanation()));
                    return body;
                }
            }
        }
        if !decoder.is_done() {
            self.notes.push("the body is shorter than its framing says".to_owned());
        } else if !rest.is_empty() {
            self.notes.push(format!("{} bytes after the request were left alone", rest.len()));
        }
        body
    }

    fn finish(
        mut self,
        inspector: &Inspector,
        head: &RequestHead,
        refusal: Option<Refusal>,
        watched: Option<RuleIndex>,
    ) -> Explanation {
        let refusal = refusal.map(|refusal| Refused {
            name: refusal.name(),
            status: refusal.status(),
            explanation: refusal.explanation(),
        });
        // The logging phase may match, too, but ends with the transaction; what is known before it is shown.
        let matches = matches(inspector, &self.inspection);
        let (plan, transaction) = (inspector.plan(), self.inspection.transaction());
        let not_run = not_run::groups(plan, transaction);
        let left_out = not_run::left_out(plan, transaction);
        let watched = watched.map(|rule| not_run::watched(plan, transaction, rule));
        let step = self.inspection.logging(Duration::ZERO);
        self.settle(step);
        let Run { inspection, notes, body_bytes, body_bytes_inspected, .. } = self;
        let report = inspection.finish(&Outcome { request_body_bytes: body_bytes, ..Outcome::default() });
        let (scores, engine, verdict) = match report.event {
            Some(event) => (event.scores, event.engine, event.verdict),
            None => (
                Scores::default(),
                EngineMode::Blocking,
                Verdict { action: report.action, ..Verdict::default() },
            ),
        };
        Explanation {
            request: text(head.line(), limits::REQUEST_TARGET_BYTES_MAX),
            body_bytes_inspected,
            body_bytes_not_inspected: body_bytes - body_bytes_inspected,
            notes,
            refusal,
            matches,
            matches_not_shown: 0,
            not_run,
            left_out,
            watched,
            scores,
            engine,
            verdict,
        }
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
