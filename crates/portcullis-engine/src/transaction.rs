//! One request with its response, phase by phase.

use std::net::SocketAddr;
use std::sync::Arc;

use portcullis_prefilter::Memo;
use portcullis_types::{Phase, Span, Variable};

use crate::body::RequestBody;
use crate::collections::{Collections, NoCollections};
use crate::execution::{Execution, Run};
use crate::journal::Journal;
use crate::message::Message;
use crate::plan::{AllowScope, HeadParts, Plan, RuleIndex};
use crate::questions::Progress;
use crate::record::{Match, ScoreChange};
use crate::settings::{BodyLimitAction, BodyProcessor, RuleEngine};
use crate::tx::{TxStore, TxValue};
use crate::vars::Vars;
use portcullis_values::Values;

/// The request of a disruptive action. The caller carries it out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interruption {
    /// Answer with this HTTP status.
    Deny {
        /// 400 to 599.
        status: u16,
    },
    /// Answer with a redirect.
    Redirect {
        /// 301 to 307.
        status: u16,
        /// The `Location`.
        location: Vec<u8>,
    },
    /// Forward the request, in phases 1 and 2 only, to another server. Nothing more of it is inspected.
    Proxy {
        /// The server.
        origin: Arc<crate::Origin>,
        /// The request target there.
        target: Vec<u8>,
    },
    /// Close the connection without an answer.
    Drop,
}

impl Interruption {
    /// The status of the answer; `drop` counts as 403, as in Apache. `None`: another server answers.
    pub fn status(&self) -> Option<u16> {
        match self {
            Interruption::Deny { status } | Interruption::Redirect { status, .. } => Some(*status),
            Interruption::Drop => Some(403),
            Interruption::Proxy { .. } => None,
        }
    }
}

/// The caller's duty to show a body to the transaction, and the limit on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyPlan {
    /// No rule looks at it.
    Skip,
    /// Hold it until the phase has run.
    Hold {
        /// Bytes to show at most.
        limit_bytes: u64,
        /// The action for a longer body.
        over_limit: BodyLimitAction,
    },
}

/// The facts about the connection when a transaction begins.
#[derive(Clone, Debug)]
pub struct Connection {
    /// The client, as the operator's trust rules see it.
    pub client: SocketAddr,
    /// The address that the client reached.
    pub server: SocketAddr,
    /// `UNIQUE_ID`.
    pub unique_id: String,
    /// Seconds since 1970, for `TIME_*`.
    pub epoch_seconds: i64,
    /// Seconds by which local time is ahead of UTC, for `TIME_*`.
    pub utc_offset_seconds: i32,
}

/// The request line as it came.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestLine<'a> {
    /// The whole line without its line end.
    pub line: &'a [u8],
    /// The method.
    pub method: &'a [u8],
    /// The request target.
    pub target: &'a [u8],
    /// `HTTP/1.1`.
    pub protocol: &'a [u8],
}

/// Buffers of a finished transaction, for the next one.
#[derive(Debug, Default)]
pub struct Scratch {
    /// Made when a transaction begins, if it is not there: buffers without content stand in for those that
    /// are in use.
    store: Option<Box<Values>>,
    tx: TxStore,
    matches: Vec<Match>,
    changes: Vec<ScoreChange>,
    /// The same; boxed, so that it goes from transaction to transaction without being copied.
    run: Option<Box<Run>>,
}

impl Scratch {
    /// New buffers of a thread whose transactions remember values together.
    pub fn sharing(memo: &Memo) -> Scratch {
        Scratch { run: Some(Box::new(Run::sharing(memo))), ..Scratch::default() }
    }
}

/// A transaction. Call the phases in order; a phase may be left out where the message has no such part.
///
/// It holds what there is (the message, what rules set, what they did) and shows it; rules are run by an
/// `Execution`, which borrows all of it for as long as a phase runs.
#[derive(Debug)]
pub struct Transaction {
    pub(crate) plan: Arc<Plan>,
    pub(crate) message: Message,
    pub(crate) vars: Vars,
    pub(crate) journal: Journal,
    pub(crate) run: Box<Run>,
}

impl Transaction {
    /// Matches remembered of one transaction; further ones still act and score, and are counted.
    pub const MATCHES_MAX: usize = 1_000;
    /// `TX` keys made at run time; further ones are not set.
    pub const TX_DYNAMIC_MAX: usize = 4_096;

    /// Begins a transaction under `plan`.
    pub fn new(
        plan: Arc<Plan>,
        collections: Arc<dyn Collections>,
        mut scratch: Scratch,
        connection: &Connection,
    ) -> Box<Transaction> {
        let mut store = scratch.store.unwrap_or_default();
        store.reset(plan.tx_blocks.texts());
        scratch.tx.reset(plan.tx_names.len());
        let settings = &plan.settings;
        let journal = Journal::new(&settings.audit, scratch.matches, scratch.changes);
        let mut run = scratch.run.unwrap_or_default();
        run.reset(&plan, journal.keeps_quiet);
        Box::new(Transaction {
            message: Message::new(&plan, store, connection),
            vars: Vars::new(settings, collections, scratch.tx),
            journal,
            run,
            plan,
        })
    }

    /// Without a message and without values, to work out what is the same in all transactions.
    pub(crate) fn blank() -> Box<Transaction> {
        let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
        let connection = Connection {
            client: nowhere,
            server: nowhere,
            unique_id: String::new(),
            epoch_seconds: 0,
            utc_offset_seconds: 0,
        };
        let mut blank =
            Transaction::new(Arc::default(), Arc::new(NoCollections), Scratch::default(), &connection);
        blank.message.store.reset(&[]);
        blank
    }

    /// Runs rules on this transaction.
    pub(crate) fn execution(&mut self) -> Execution<'_> {
        let Transaction { plan, message, vars, journal, run } = self;
        Execution { plan, message, vars, journal, run }
    }

    fn run_phase(&mut self, phase: Phase) -> Progress {
        self.execution().run_phase(phase)
    }

    /// Remembers matches of rules that neither log nor ask for an audit record, too, which otherwise only a
    /// transaction does whose records or debug lines can show them. To be called before phase 1.
    pub fn keep_quiet_matches(&mut self) {
        self.journal.keeps_quiet = true;
        self.run.selection.get_or_insert_default().reset(&self.plan.candidates, true);
    }

    /// Keeps of the heads of the message only what rules read, and `others`: the caller asks this transaction
    /// for nothing else of them. To be called before phase 1.
    pub fn keep_what_is_read(&mut self, others: HeadParts) {
        let read = self.plan.head_reads.parts;
        // What a rule shows of a head may have secret arguments in it, which are hidden by their values.
        let read = if read == HeadParts::NONE { read } else { read.with(HeadParts::QUERY) };
        self.message.keeps = read.with(others);
    }

    /// Keeps all of the heads again. To be called before phase 1.
    pub fn keep_heads(&mut self) {
        self.message.keeps = HeadParts::ALL;
    }

    /// Phase 1: the request line and headers, as sent, in order.
    pub fn request_head<'a>(
        &mut self,
        line: RequestLine<'_>,
        headers: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
    ) -> Progress {
        self.take_request_head(line, headers);
        self.run_request_head()
    }

    /// The same without its rules, which [`run_request_head`](Transaction::run_request_head) runs.
    pub fn take_request_head<'a>(
        &mut self,
        line: RequestLine<'_>,
        headers: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
    ) {
        self.message.ingest_request_head(&self.plan, line, headers);
    }

    /// The rules of phase 1.
    pub fn run_request_head(&mut self) -> Progress {
        self.run_phase(Phase::RequestHeaders)
    }

    /// Decides after phase 1 whether the request body must be shown.
    pub fn request_body_plan(&self) -> BodyPlan {
        if self.vars.ctl.rule_engine == RuleEngine::Off || !self.vars.ctl.request_body_access {
            return BodyPlan::Skip;
        }
        BodyPlan::Hold {
            limit_bytes: self.vars.ctl.request_body_limit,
            over_limit: self.over_request_limit(),
        }
    }

    fn over_request_limit(&self) -> BodyLimitAction {
        self.over_limit(self.plan.settings.request_body_limit_action.unwrap_or(BodyLimitAction::Reject))
    }

    /// Detection refuses nothing.
    fn over_limit(&self, action: BodyLimitAction) -> BodyLimitAction {
        match self.vars.ctl.rule_engine {
            RuleEngine::On => action,
            RuleEngine::Off | RuleEngine::DetectionOnly => BodyLimitAction::ProcessPartial,
        }
    }

    /// True if the request is to be refused with 413, whatever the rules say: its body without files is
    /// longer than `SecRequestBodyNoFilesLimit`. Known after phase 2.
    pub fn refuses_request_body(&self) -> bool {
        self.message.body.is_over_no_files_limit() && self.over_request_limit() == BodyLimitAction::Reject
    }

    /// A piece of the request body, transfer coding removed.
    pub fn request_body(&mut self, chunk: &[u8]) {
        if self.request_body_plan() != BodyPlan::Skip {
            self.message.body.feed(chunk, &self.plan.settings, self.plan.streams_request);
        }
    }

    /// A piece of the request body as it came, where [`request_body`](Transaction::request_body) has it
    /// without a frame: the values of a form are second readings, since an application may not know the
    /// frame.
    pub fn request_body_as_sent(&mut self, chunk: &[u8]) {
        if self.request_body_plan() != BodyPlan::Skip {
            self.message.body.feed_as_sent(chunk);
        }
    }

    /// The request body stays until it is [released](Transaction::release_request_body), for someone who
    /// reads it after its end. To be called before any of it is shown.
    pub fn lend_request_body(&mut self) {
        self.message.body.lend();
    }

    /// The request body as it was shown, if it is [lent](Transaction::lend_request_body).
    pub fn shown_request_body(&self) -> &[u8] {
        self.message.body.shown()
    }

    /// Drops the part of the request body that has been shown: the request is refused, and there is no memory
    /// to look at it.
    pub fn forget_request_body(&mut self) {
        self.message.body.forget();
    }

    /// Gives the memory of the request body back: nobody reads it any longer but in its values.
    pub fn release_request_body(&mut self) {
        self.message.body.release();
    }

    /// Fields behind the request body, before phase 2: `REQUEST_HEADERS` has them from then on.
    pub fn request_trailers<'a>(&mut self, fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) {
        for (name, value) in fields {
            self.message.ingest_request_field(&self.plan, name, value);
        }
    }

    /// The request body has been shown; what is in it is known from then on. `truncated`: it went on beyond
    /// the limit and the rest is not inspected. If the caller does not ask before phase 2,
    /// [`request_end`](Transaction::request_end) alone does the same.
    pub fn request_body_end(&mut self, truncated: bool) {
        if self.message.body.has_ended() {
            return;
        }
        self.message.unescape_path();
        let access = self.request_body_plan() != BodyPlan::Skip;
        let plan = &self.plan;
        self.message.body.finish(
            access,
            truncated,
            &plan.settings,
            &mut self.message.store,
            plan.reads_file_content,
        );
        self.begin_request_stream();
        if !self.message.body.is_lent() {
            self.message.body.release();
        }
    }

    /// Phase 2. `truncated`: the body went on beyond the limit and the rest is not inspected.
    pub fn request_end(&mut self, truncated: bool) -> Progress {
        self.request_body_end(truncated);
        self.run_phase(Phase::RequestBody)
    }

    /// Phase 3: the status line and headers of the response.
    pub fn response_head<'a>(
        &mut self,
        protocol: &[u8],
        status: u16,
        headers: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
    ) -> Progress {
        self.message.ingest_response_head(&self.plan.settings, protocol, status, headers);
        self.run_phase(Phase::ResponseHeaders)
    }

    /// Decides after phase 3 whether the response body must be shown.
    pub fn response_body_plan(&self) -> BodyPlan {
        let wanted = self.vars.ctl.rule_engine != RuleEngine::Off
            && self.vars.ctl.response_body_access
            && self.message.response_inspectable
            && (self.plan.reads_response_body || self.plan.settings.audit.reachable.response_body)
            && self.vars.ctl.allow.is_none_or(|(scope, _)| scope != AllowScope::Transaction);
        if !wanted {
            return BodyPlan::Skip;
        }
        BodyPlan::Hold {
            limit_bytes: self.vars.ctl.response_body_limit,
            over_limit: self.over_limit(self.plan.settings.response_body_limit_action),
        }
    }

    /// A piece of the response body, transfer coding removed.
    pub fn response_body(&mut self, chunk: &[u8]) {
        self.message.response_body.extend_from_slice(chunk);
    }

    /// Phase 4. `truncated`: the body went on beyond the limit and the rest is not inspected.
    pub fn response_end(&mut self, truncated: bool) -> Progress {
        self.message.store.set_scalar(Variable::OutboundDataError, if truncated { b"1" } else { b"0" });
        if self.response_body_plan() == BodyPlan::Skip {
            // One that is not looked at is empty, not absent (flatten_response_body).
            self.message.store.set_scalar(Variable::ResponseBody, b"");
        } else {
            let body = std::mem::take(&mut self.message.response_body);
            self.begin_response_stream(&body);
            self.message.store.set_scalar(Variable::ResponseBody, &body);
        }
        self.run_phase(Phase::ResponseBody)
    }

    /// True if an `allow` lets the rest of `phase` through.
    pub fn is_allowed(&self, phase: Phase) -> bool {
        self.vars.ctl.is_allowed(phase)
    }

    /// Phase 5.
    pub fn logging(&mut self) -> Progress {
        if let Some(status) = self.journal.interruption.as_ref().and_then(Interruption::status) {
            self.answered(status);
        }
        self.message.unescape_path();
        self.run.logged = true;
        self.run_phase(Phase::Logging)
    }

    /// The status that the client gets where the answer is not the upstream's: rules of phase 5 see it in
    /// `RESPONSE_STATUS`. For answers that no rule made; to be called before phase 5.
    pub fn answered(&mut self, status: u16) {
        self.message.answer(&self.plan.settings, status);
    }

    /// The end: phase 5, unless [`logging`](Transaction::logging) has run it, and the persistent collections
    /// are written back. Questions of phase 5 remain unanswered here.
    pub fn finish(&mut self) {
        let last = if self.run.logged { self.resume() } else { self.logging() };
        self.unanswered(last);
        self.save_collections();
    }

    /// Bytes of memory for values, forms and bodies, about.
    pub fn held_bytes(&self) -> usize {
        self.message.held_bytes()
    }

    /// Bytes of memory that the values of a request body of `bytes` take at most in ordinary traffic: its
    /// text, names beside it, and an entry for each argument that there may be. Forms with files are mostly
    /// files, which are not stored unless a rule reads them, and bodies without a parser have no values.
    pub fn request_values_bytes(&self, bytes: usize) -> usize {
        let entries = self.body_arguments_max(bytes).saturating_mul(Values::PAIR_BYTES);
        match self.message.body.processor() {
            None => 0,
            Some(BodyProcessor::Multipart) if self.plan.reads_file_content => bytes,
            Some(BodyProcessor::Multipart) => 0,
            Some(BodyProcessor::UrlEncoded) => bytes.saturating_add(entries),
            Some(_) => bytes.saturating_mul(2).saturating_add(entries),
        }
    }

    /// The most bytes of memory that they can take, with second readings of each.
    pub fn request_values_bytes_max(&self, bytes: usize) -> usize {
        let texts = bytes.saturating_mul(RequestBody::TEXTS_FACTOR).saturating_add(RequestBody::TEXTS_SPARE);
        texts.saturating_add(self.body_arguments_max(bytes).saturating_mul(4 * Values::PAIR_BYTES))
    }

    fn body_arguments_max(&self, bytes: usize) -> usize {
        bytes.min(self.plan.settings.arguments_max())
    }

    /// The buffers, for the next transaction of this thread.
    pub fn into_scratch(self: Box<Self>) -> Scratch {
        // Taken apart in place: what is not kept is not moved.
        let Transaction {
            message: Message { mut store, .. },
            vars: Vars { tx, .. },
            journal: Journal { mut matches, mut changes, .. },
            mut run,
            ..
        } = *self;
        matches.clear();
        changes.clear();
        run.clear();
        store.clear();
        Scratch { store: Some(store), tx, matches, changes, run: Some(run) }
    }

    /// Tells the transaction its age in microseconds, for `DURATION` and for what it stores.
    pub fn set_elapsed_us(&mut self, elapsed_us: u64) {
        self.message.elapsed_us = elapsed_us;
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Matches so far, in order: those worth an event or a record, and [all](Self::keep_quiet_matches) if
    /// these are kept.
    pub fn matches(&self) -> &[Match] {
        &self.journal.matches
    }

    /// Matches beyond [`Transaction::MATCHES_MAX`], not remembered.
    pub fn matches_dropped(&self) -> u64 {
        self.journal.matches_dropped
    }

    /// Searches of patterns that were given up because they took too many steps.
    pub fn patterns_exhausted(&self) -> u64 {
        self.run.patterns.exhausted
    }

    /// Texts that a limit on expanded macros cut short, so that rules may not have seen what was in the rest.
    pub fn expansions_cut(&self) -> u64 {
        self.run.expansions.cut
    }

    /// Limits the work of the rules to what any message may cost, and [more](Self::allow_work) for its bytes.
    pub fn limit_work(&mut self) {
        let links = self.plan.work_links;
        self.run.patterns.work().limit(links);
    }

    /// Allows the work that so many bytes on the wire bring with them; rules are shown `shown` bytes of them.
    pub fn allow_work(&mut self, wire: u64, shown: u64) {
        self.run.patterns.work().allow(wire, shown);
    }

    /// Begins an allowance for the response, if there is a limit: what the request took is not missing there.
    pub fn renew_work(&mut self) {
        self.run.patterns.work().renew();
    }

    /// The work that rules did, and how much is allowed, in units of about a nanosecond.
    pub fn work_done(&mut self) -> (u64, u64) {
        self.run.patterns.work().done()
    }

    /// Patterns with macros that were no patterns, too long or too many.
    pub fn patterns_unusable(&self) -> u64 {
        self.run.patterns.unusable
    }

    /// The rule that interrupted the transaction, and its phase.
    pub fn interrupted_by(&self) -> Option<(RuleIndex, Phase)> {
        self.journal.interrupted_by
    }

    /// Has disruptive actions carried out where the settings have them only reported, unless a rule says
    /// otherwise. To be called before phase 1.
    pub fn enforce(&mut self) {
        if self.vars.ctl.rule_engine == RuleEngine::DetectionOnly {
            self.vars.ctl.rule_engine = RuleEngine::On;
        }
    }

    /// The engine mode now in force.
    pub fn rule_engine(&self) -> RuleEngine {
        self.vars.ctl.rule_engine
    }

    /// The error of parsing the request body, if there was one.
    pub fn body_error(&self) -> Option<&str> {
        self.message.body.error()
    }

    /// The ambiguities of the request body: points where other applications could read it differently.
    pub fn body_ambiguities(&self) -> portcullis_http::body::Ambiguities {
        self.message.body.ambiguities()
    }

    /// Adds `points` that an inspection agent gives to the anomaly score of the CRS, if it runs, for requests
    /// or (`outbound`) responses. `TX:agent_score` is `total` from then on.
    pub fn add_agent_score(&mut self, points: u32, total: u32, outbound: bool) {
        use crate::tx::{AGENT_SCORE, INBOUND_SCORE, OUTBOUND_SCORE, TxValue};
        self.execution().set_tx(AGENT_SCORE, TxValue::Int(total.into()));
        let of_crs = if outbound { OUTBOUND_SCORE } else { INBOUND_SCORE };
        if let Some(before) = self.tx_number(of_crs) {
            self.execution().set_tx(of_crs, TxValue::Int(before.saturating_add(points.into())));
        }
    }

    /// The numeric value of a `TX` key, if it is set.
    pub fn tx_number(&self, key: &[u8]) -> Option<i64> {
        self.vars.tx.number(self.plan.tx_slot(key)?, self.message.store.bytes())
    }

    /// All `TX` keys that are set, lower case, with their values as text: for differential tests and
    /// explanations.
    pub fn tx_values(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let text = |value: TxValue| match value {
            TxValue::Unset => None,
            TxValue::Int(number) => Some(number.to_string().into_bytes()),
            TxValue::Text(span) => Some(self.message.store.text(span).to_vec()),
        };
        let slots = (0..).zip(&self.plan.tx_names);
        let literal = slots
            .filter_map(|(slot, name)| Some((name.to_vec(), text(self.vars.tx.slot(crate::TxSlot(slot)))?)));
        let dynamic = self.vars.tx.dynamic().iter();
        literal
            .chain(dynamic.filter_map(|(name, value, _)| {
                Some((self.message.store.text(*name).to_ascii_lowercase(), text(*value)?))
            }))
            .collect()
    }

    pub(crate) fn changes(&self) -> &[ScoreChange] {
        &self.journal.changes
    }

    pub(crate) fn text(&self, span: Span) -> &[u8] {
        self.message.store.text(span)
    }
}
