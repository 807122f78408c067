mod cost;
mod finish;

use std::sync::Arc;
use std::time::Duration;

use portcullis_engine::{
    Answer, BodyPlan, Charge, HeadParts, Interruption, Judge, KeepFiles, Progress, Question, QuestionId,
    RequestLine, ResponseEdits, RuleEngine, RuleIndex, Transaction,
};
use portcullis_event::Timestamp;
use portcullis_http::coding::CodingError;
use portcullis_http::message::{Refusal, RequestHead};
use portcullis_types::{Phase, RuleId};

use crate::coded::CodedBody;
use crate::exchange::{Connection, Step};
use crate::inspector::{Inspector, PolicyNames, Scratch};
use crate::issued::{ForeignCookie, IssuedCookies, IssuedTo};
use crate::kept::KeptBody;
use crate::request_summary::RequestSummary;
use crate::response::Response;
use crate::semantic::{Buffers, ScoredValue, SemanticRun};
use crate::streamed::Streamed;
use crate::trial::Shown;
use crate::weighing::{Vote, Weighed, WeighingHere};

/// The inspection of one exchange.
#[derive(Debug)]
pub struct Inspection {
    pub(crate) inspector: Arc<Inspector>,
    pub(crate) names: PolicyNames,
    pub(crate) connection: Connection,
    pub(crate) transaction: Box<Transaction>,
    pub(crate) semantic: Option<Box<SemanticRun>>,
    /// Buffers of the semantic detector while it does not run.
    spare: Option<Box<Buffers>>,
    pub(crate) phase: Phase,
    pub(crate) seen: RequestSummary,
    pub(crate) refusal: Option<Refusal>,
    pub(crate) interruption: Option<Interruption>,
    /// Points of inspection agents.
    pub(crate) agent_score: u32,
    pub(crate) request_body_seen: u64,
    /// The same with content codings undone.
    request_body_shown: u64,
    /// Bytes of the body were dropped before the rules saw them.
    pub(crate) request_body_forgotten: bool,
    pub(crate) head_bytes: u64,
    pub(crate) request_coded: CodedBody,
    pub(crate) streamed: Streamed,
    pub(crate) kept_body: KeptBody,
    pub(crate) response: Response,
    /// The request as it was shown, for exclusions on trial.
    pub(crate) shown: Option<Box<Shown>>,
    /// The cookies that the site has issued, if they are kept.
    pub(crate) issued: Option<Arc<IssuedCookies>>,
    /// The same for this request, if they may have come back.
    issued_to: Option<Arc<IssuedTo>>,
    /// Cookies that were removed from the request, for the event.
    foreign_cookies: Vec<ForeignCookie>,
}

impl Inspection {
    pub(crate) fn new(
        inspector: Arc<Inspector>,
        names: PolicyNames,
        mut connection: Connection,
        scratch: Scratch,
    ) -> Box<Inspection> {
        let about = portcullis_engine::Connection {
            client: connection.client,
            server: connection.server,
            unique_id: std::mem::take(&mut connection.request_id),
            epoch_seconds: (connection.epoch_millis / 1000) as i64,
            utc_offset_seconds: connection.utc_offset_seconds,
        };
        let (plan, collections) = (Arc::clone(&inspector.plan), Arc::clone(&inspector.collections));
        let Scratch { engine, semantic: buffers, seen, kept } = scratch;
        let kept_body = KeptBody::in_buffer(kept, connection.keep_request_bytes);
        let mut transaction = Transaction::new(plan, collections, engine, &about);
        connection.request_id = about.unique_id;
        transaction.limit_work();
        // Audit records, debug lines, weights, exclusions on trial and discovery look at what no rule reads,
        // too.
        let reads_all = inspector.audit.is_some()
            || inspector.weighing.is_some()
            || inspector.second.is_some()
            || inspector.discovery.is_some();
        if !reads_all {
            transaction.keep_what_is_read(match connection.keep_request_bytes {
                0 => HeadParts::NONE,
                _ => KeptBody::HEAD_PARTS,
            });
        }
        for (name, value) in &connection.environment {
            transaction.add_environment(name, value.as_bytes());
        }
        let (semantic, spare) = match &inspector.semantic {
            Some(semantic) if transaction.rule_engine() != RuleEngine::Off => (
                Some(Box::new(SemanticRun::new(
                    semantic,
                    buffers,
                    inspector.fields.as_ref(),
                    inspector.api.as_ref(),
                ))),
                None,
            ),
            _ => (None, Some(buffers)),
        };
        if semantic.is_some() {
            transaction.lend_request_body();
        }
        if let Some(weighing) = &inspector.weighing {
            transaction.set_judge(Arc::clone(weighing) as Arc<dyn Judge>);
        }
        Box::new(Inspection {
            transaction,
            semantic,
            spare,
            phase: Phase::RequestHeaders,
            inspector,
            names,
            connection,
            seen: RequestSummary::in_buffer(seen),
            refusal: None,
            interruption: None,
            agent_score: 0,
            request_body_seen: 0,
            request_body_shown: 0,
            request_body_forgotten: false,
            head_bytes: 0,
            request_coded: CodedBody::default(),
            streamed: Streamed::default(),
            kept_body,
            response: Response::default(),
            shown: None,
            issued: None,
            issued_to: None,
            foreign_cookies: Vec::new(),
        })
    }

    /// The cookies that the site has issued: what is found in one that comes back unchanged does not count,
    /// and those that the answer sets are noted. To be called before the request's head is shown.
    pub fn know_cookies(&mut self, issued: &Arc<IssuedCookies>) {
        self.issued = self.semantic.is_some().then(|| Arc::clone(issued));
    }

    /// Cookies that were removed from the request because they are not the site's own: each is a finding. To
    /// be called before the request's head is shown.
    pub fn note_foreign_cookies(&mut self, cookies: Vec<ForeignCookie>) {
        self.foreign_cookies = cookies;
    }

    /// Phase 1. With a `refusal`, `head` is what could be parsed of a request that will be refused: the rules
    /// run over it, and the event names the refusal.
    pub fn request_head(&mut self, head: &RequestHead, refusal: Option<Refusal>) -> Step {
        self.refusal = refusal;
        self.head_bytes += head.received_len() as u64;
        self.seen.fill(head);
        if !head.oddities().is_empty() {
            let names: Vec<&str> = self.seen.oddities().collect();
            self.transaction.add_environment("REQUEST_ODDITIES", names.join(" ").as_bytes());
        }
        self.request_coded = CodedBody::request(head, &self.inspector.codings);
        self.streamed = Streamed::of_type(head.header("content-type").next().unwrap_or_default());
        if self.inspector.second.is_some() && refusal.is_none() {
            self.shown = Some(Shown::new(head));
        }
        let line = RequestLine {
            line: head.line(),
            method: head.method(),
            target: head.target(),
            protocol: head.version_bytes(),
        };
        self.transaction.take_request_head(line, head.fields());
        self.expect_issued(head);
        if let Some(semantic) = &mut self.semantic {
            let client = (self.connection.client.ip(), self.connection.epoch_millis);
            let issued = self.issued_to.as_ref();
            match self.transaction.query_arguments() {
                Some(mut found) => semantic.request_head(head, client, issued, Some(&mut found)),
                None => semantic.request_head(head, client, issued, None),
            }
            semantic.note_foreign_cookies(&self.foreign_cookies);
        }
        let length = head.received_len() as u64;
        self.transaction.allow_work(length, length);
        if let Some(exclusions) = &self.inspector.rule_exclusions
            && let Some(here) = exclusions.here(head.path(), self.connection.epoch_millis)
        {
            self.transaction.set_exempt(here);
        }
        let progress = self.transaction.run_request_head();
        self.step(progress)
    }

    /// The cookies that the site has issued, where they may have come back: in one field, for it is not known
    /// which of several an application reads.
    fn expect_issued(&mut self, head: &RequestHead) {
        let Some(issued) = self.issued.as_ref().filter(|issued| !issued.is_empty()) else { return };
        let mut fields = head.header("cookie");
        if fields.next().is_none() || fields.next().is_some() {
            return;
        }
        let (client, now) = (self.connection.client.ip(), self.connection.epoch_millis);
        let issued = Arc::new(IssuedTo { cookies: Arc::clone(issued), client, now });
        if let Some(weighing) = &self.inspector.weighing {
            let weighing = Arc::clone(weighing);
            let judge = WeighingHere { weighing, issued: Arc::clone(&issued) };
            self.transaction.set_judge(Arc::new(judge));
        }
        self.issued_to = Some(issued);
    }

    /// Decides whether the request body must be shown, and held back until phase 2 has run.
    pub fn request_body_plan(&self) -> BodyPlan {
        match self.interruption {
            Some(_) => BodyPlan::Skip,
            None => self.transaction.request_body_plan(),
        }
    }

    /// A piece of the request body, within the plan's limit, transfer coding removed. Rules see it with its
    /// content codings undone; the plan's limit holds for what comes out, too.
    pub fn request_body(&mut self, chunk: &[u8]) {
        let BodyPlan::Hold { limit_bytes, .. } = self.request_body_plan() else { return };
        self.request_body_seen += chunk.len() as u64;
        if let Some(shown) = &mut self.shown {
            shown.body(chunk);
        }
        let Inspection { request_coded, transaction, semantic, kept_body, request_body_shown, .. } = self;
        if request_coded.is_framed() {
            transaction.request_body_as_sent(chunk);
            if let Some(semantic) = semantic {
                semantic.body_as_sent(chunk);
            }
        }
        let take = &mut |data: &[u8]| {
            *request_body_shown += data.len() as u64;
            kept_body.take(data);
            transaction.request_body(data);
        };
        request_coded.feed(chunk, limit_bytes, take);
    }

    /// Returns the coding error for which rules do not see the content of the request body: its content
    /// coding is not supported here, or its bytes do not follow it. `complete`: the whole body has been
    /// shown; if not, nothing more of it will be.
    pub fn request_coding_error(&mut self, complete: bool) -> Option<CodingError> {
        let Inspection { request_coded, transaction, kept_body, .. } = self;
        let take = &mut |data: &[u8]| {
            kept_body.take(data);
            transaction.request_body(data);
        };
        match complete {
            true => request_coded.finish(take),
            false => request_coded.cut(take),
        }
        request_coded.error()
    }

    /// The settings let the request body pass without inspection in the coding that it is in.
    pub fn passes_coding(&self) -> bool {
        self.request_coded.passes()
    }

    /// Disruptive actions are carried out.
    pub fn is_blocking(&self) -> bool {
        self.transaction.rule_engine() == RuleEngine::On
    }

    /// Has disruptive actions carried out, if the policy only reports them: to know what it would stop. To be
    /// called before the request's head is shown.
    pub fn enforce(&mut self) {
        self.transaction.enforce();
    }

    /// Fields behind the request body, which has been shown: they are header fields to phase 2 and to the
    /// semantic detector.
    pub fn request_trailers<'h>(&mut self, fields: impl Iterator<Item = (&'h [u8], &'h [u8])> + Clone) {
        if let Some(semantic) = self.semantic.as_mut().filter(|_| is_shown(&self.transaction)) {
            semantic.request_trailers(fields.clone());
        }
        if let Some(shown) = &mut self.shown {
            shown.more();
        }
        let length = fields.clone().map(|(name, value)| name.len() + value.len()).sum::<usize>() as u64;
        self.transaction.allow_work(length, length);
        self.transaction.request_trailers(fields);
    }

    /// Drops what has been shown of the request body, before its end: the request is refused, and there is no
    /// memory to inspect it. What was dropped counts as not inspected.
    pub fn forget_request_body(&mut self) {
        self.transaction.forget_request_body();
        if let Some(semantic) = &mut self.semantic {
            semantic.forget_request_body();
        }
        self.request_coded = CodedBody::default();
        if let Some(shown) = &mut self.shown {
            shown.forget();
        }
        (self.request_body_seen, self.request_body_shown) = (0, 0);
        self.request_body_forgotten = true;
    }

    /// Phase 2. `truncated`: there is more body than was shown.
    pub fn request_end(&mut self, truncated: bool) -> Step {
        if self.interruption.is_some() {
            return Step::Continue;
        }
        self.request_coding_error(!truncated);
        if let Some(shown) = &mut self.shown {
            shown.end(truncated);
        }
        self.phase = Phase::RequestBody;
        self.transaction.allow_work(self.request_body_seen, self.request_body_shown);
        self.transaction.request_body_end(truncated);
        if let Some(semantic) = self.semantic.as_mut().filter(|_| is_shown(&self.transaction)) {
            let (body, wire) = (self.transaction.shown_request_body(), self.request_body_seen);
            semantic.request_end(body, truncated, wire, self.transaction.body_arguments());
        }
        self.compare_body(truncated);
        self.transaction.release_request_body();
        let progress = self.transaction.request_end(truncated);
        self.step(progress)
    }

    /// Compares the body with what the API declares: all of it, as far as it is here.
    fn compare_body(&mut self, truncated: bool) {
        let Some(semantic) = &mut self.semantic else { return };
        let is_whole = !truncated
            && !self.request_body_forgotten
            && self.request_coded.error().is_none()
            && is_shown(&self.transaction)
            && !semantic.is_upload();
        semantic.declared_body(is_whole.then(|| self.transaction.shown_request_body()));
    }

    /// Rules have switched the engine off for this exchange, or let it pass as it is.
    pub fn is_left_alone(&self) -> bool {
        self.transaction.rule_engine() == RuleEngine::Off || self.transaction.is_allowed(self.phase)
    }

    /// Adds points that an inspection agent gives to a request, before phase 2, or to a response, before
    /// phase 4.
    pub fn add_agent_score(&mut self, points: u32) {
        let is_response = self.phase > Phase::RequestBody;
        self.agent_score = self.agent_score.saturating_add(points);
        self.transaction.add_agent_score(points, self.agent_score, is_response);
    }

    /// Returns the delay that the rules which have run since the last call ask for (`pause`). The caller
    /// decides how long it does.
    pub fn take_pause(&mut self) -> Duration {
        Duration::from_millis(self.transaction.take_pause_ms())
    }

    /// Returns the rate limit charges of the rules that have run since the last call (`ctl:rateLimit`).
    pub fn take_charges(&mut self) -> Vec<Charge> {
        self.transaction.take_charges()
    }

    /// The questions of rules to external services, after [`Step::Ask`].
    pub fn questions(&self) -> impl Iterator<Item = (QuestionId, Question<'_>)> {
        self.transaction.questions()
    }

    /// Answers a question.
    pub fn answer(&mut self, question: QuestionId, answer: Answer) {
        self.transaction.answer(question, answer);
    }

    /// Questions that were too many to be asked.
    pub fn questions_not_asked(&self) -> u64 {
        self.transaction.questions_not_asked()
    }

    /// Resumes the phase that asked. Questions without an answer count as [`Answer::Unknown`].
    pub fn resume(&mut self) -> Step {
        let progress = self.transaction.resume();
        self.step(progress)
    }

    /// Tells how long the exchange has taken so far: before a phase that had to wait for the client or the
    /// application, since what rules count and let expire then counts from that moment.
    pub fn set_elapsed(&mut self, elapsed: Duration) {
        self.transaction.set_elapsed_us(elapsed.as_micros().try_into().unwrap_or(u64::MAX));
    }

    /// Phase 5. If no rule of it asks, [`finish`](Inspection::finish) alone does the same.
    pub fn logging(&mut self, duration: Duration) -> Step {
        self.set_elapsed(duration);
        self.tell_answer();
        match self.transaction.logging() {
            Progress::Ask => Step::Ask,
            Progress::Done(_) => Step::Continue,
        }
    }

    /// The status of an answer of the caller's own, in place of the upstream's: rules of phase 5 see it. To
    /// be called before phase 5; what rules or the detector interrupted is known.
    pub fn answered(&mut self, status: u16) {
        self.transaction.answered(status);
    }

    fn tell_answer(&mut self) {
        if let Some(status) = self.interruption.as_ref().and_then(Interruption::status) {
            self.transaction.answered(status);
        }
    }

    /// Gives uploaded files that are kept names with a secret in them.
    pub fn name_files(&mut self, secret: impl FnOnce() -> [u8; 16]) {
        if self.inspector.plan.settings.keep_files != KeepFiles::Off {
            self.transaction.name_files(secret());
        }
    }

    /// The request body that is to go upstream in place of the one that came, if rules changed it (`@rsub`).
    pub fn rewritten_request_body(&self) -> Option<Vec<u8>> {
        self.transaction.rewritten_request_body().map(<[u8]>::to_vec)
    }

    /// The changes to the response body, after phase 4: `append`, `prepend`, `@rsub`.
    pub fn response_edits(&self) -> ResponseEdits {
        match self.interruption {
            Some(_) => ResponseEdits::default(),
            None => self.transaction.response_edits(),
        }
    }

    /// True if a limit cut a substitution short.
    pub fn is_rewriting_incomplete(&self) -> bool {
        self.transaction.substitutions_incomplete() > 0
    }

    /// True if the request body is in a content coding, so that its bytes cannot be changed.
    pub fn is_request_coded(&self) -> bool {
        self.request_coded.is_coded()
    }

    /// `SecDisableBackendCompression`.
    pub fn disables_compression(&self) -> bool {
        self.inspector.plan.settings.disable_backend_compression
    }

    /// True if the request is to be refused with 413, whatever the rules say. Known after phase 2.
    pub fn refuses_request_body(&self) -> bool {
        self.transaction.refuses_request_body()
    }

    /// The error of the request body's parser, if there was one.
    pub fn request_body_error(&self) -> Option<&str> {
        self.transaction.body_error()
    }

    /// Keeps a trace for an explanation from now on; `watched` is the rule whose tests it tells.
    pub fn keep_trace(&mut self, watched: Option<RuleIndex>) {
        self.transaction.keep_heads();
        self.transaction.keep_trace(watched);
    }

    /// The values in which the semantic detector found something, the worst first; nothing where it does not
    /// run.
    pub fn semantic_values(&self) -> Option<Vec<ScoredValue>> {
        self.semantic.as_ref().map(|semantic| semantic.explain())
    }

    /// The matches that add to the anomaly score, where it is weighted.
    pub fn votes(&self) -> Vec<Vote> {
        let weighing = self.inspector.weighing.as_ref();
        weighing.map(|weighing| weighing.votes(self.transaction.as_view())).unwrap_or_default()
    }

    /// The weighed score at the gate of the anomaly score, where the score is weighted and the gate's action
    /// was withheld.
    pub fn withheld(&self) -> Option<Weighed> {
        let rule = self.transaction.withheld()?;
        let weighing = self.inspector.weighing.as_ref()?;
        weighing.weigh(self.transaction.as_view(), rule, self.issued_to.as_deref())
    }

    /// The cookies that alone had the semantic detector block the request, by the names of what was found in
    /// them, such as `prefs` or `prefs.next`.
    pub fn blocked_cookies(&self) -> Vec<&[u8]> {
        self.semantic.as_ref().map(|semantic| semantic.blocked_cookies()).unwrap_or_default()
    }

    /// The answer expires cookies; the event says so.
    pub fn note_expired(&mut self) {
        if let Some(semantic) = &mut self.semantic {
            semantic.note_expired();
        }
    }

    /// The engine's transaction, for explanations.
    pub fn transaction(&self) -> &Transaction {
        &self.transaction
    }

    /// The rule and phase that interrupted, if one did.
    pub(crate) fn interrupted_by(&self) -> Option<(RuleId, Phase)> {
        self.transaction.interrupted_by().map(|(rule, phase)| (self.inspector.plan.rule(rule).id, phase))
    }

    pub(crate) fn time(&self) -> Timestamp {
        Timestamp::from_epoch_millis(self.connection.epoch_millis)
    }

    pub(crate) fn step(&mut self, progress: Progress) -> Step {
        match progress {
            Progress::Ask => Step::Ask,
            Progress::Done(None) => match self.semantic_decision() {
                Some(interruption) => self.interrupt(interruption),
                None => Step::Continue,
            },
            Progress::Done(Some(interruption)) => self.interrupt(interruption),
        }
    }

    pub(crate) fn interrupt(&mut self, interruption: Interruption) -> Step {
        self.interruption = Some(interruption.clone());
        Step::Interrupt(interruption)
    }

    /// The semantic detector's decision, once the rules of a phase have let the exchange pass.
    fn semantic_decision(&mut self) -> Option<Interruption> {
        let engine = self.transaction.rule_engine();
        let is_off = engine == RuleEngine::Off || self.transaction.is_allowed(self.phase);
        // A refused request has its answer already.
        if self.phase > Phase::ResponseBody || is_off || self.refusal.is_some() {
            return None;
        }
        let Inspection { semantic, transaction, inspector, agent_score, phase, issued_to, .. } = self;
        let semantic = semantic.as_mut()?;
        if *phase == Phase::RequestBody {
            semantic.judge_fields(|| match &inspector.weighing {
                Some(weighing) => weighing.evidence(transaction.as_view(), issued_to.as_deref()),
                None => Vec::new(),
            });
        }
        if semantic.has_findings() && (inspector.weighing.is_some() || *agent_score > 0) {
            let weighing = inspector.weighing.as_ref();
            let rules =
                weighing.map(|weighing| weighing.evidence(transaction.as_view(), issued_to.as_deref()));
            semantic.weigh_others(&rules.unwrap_or_default(), *agent_score);
        }
        semantic.decide(self.phase, engine == RuleEngine::On)
    }
}

/// True if the rules see the request body, and so the semantic detector does.
fn is_shown(transaction: &Transaction) -> bool {
    transaction.request_body_plan() != BodyPlan::Skip
}
