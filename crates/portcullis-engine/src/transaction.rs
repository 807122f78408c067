//! One request with its response, phase by phase.

use std::net::SocketAddr;
use std::sync::Arc;

use portcullis_types::{Phase, Span, Variable};
use portcullis_values::Values;

use crate::audit::AuditState;
use crate::body::RequestBody;
use crate::charges::Pending;
use crate::collect::Item;
use crate::collections::Collections;
use crate::execute::Matched;
use crate::open::OpenCollection;
use crate::outside::{Outside, Progress};
use crate::patterns::Patterns;
use crate::plan::{AllowScope, Plan, RuleIndex};
use crate::prefilter::{Memo, PrefilterState};
use crate::record::{Match, ScoreChange};
use crate::rewrite::Rewrites;
use crate::settings::{BodyLimitAction, RuleEngine};
use crate::trace::Trace;
use crate::tx_store::{TxStore, TxValue};
use crate::{Class, RuleSet};

/// What a disruptive action asks for. The caller carries it out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interruption {
    /// Answer with this HTTP status.
    Deny {
        /// 400 to 599.
        status: u16,
    },
    /// Answer with a redirect.
    Redirect {
        /// 301, 302, 303 or 307.
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

/// Whether a body must be shown to the transaction, and how much of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyPlan {
    /// No rule looks at it.
    Skip,
    /// Hold it until the phase has run.
    Hold {
        /// Bytes to show at most.
        limit_bytes: u64,
        /// What to do with a longer one.
        over_limit: BodyLimitAction,
    },
}

/// What is known of the connection when a transaction begins.
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
    memo: Option<Memo>,
    /// Made when a transaction begins, if it is not there: buffers without content stand in for those that are in use.
    store: Option<Box<Values>>,
    tx: TxStore,
    prefilter_state: Option<Box<PrefilterState>>,
    matches: Vec<Match>,
    changes: Vec<ScoreChange>,
    items: Vec<Item>,
    argument: Vec<u8>,
    expansion: Vec<u8>,
}

impl Scratch {
    /// New buffers of a thread whose transactions remember values together.
    pub fn sharing(memo: &Memo) -> Scratch {
        Scratch { memo: Some(memo.clone()), ..Scratch::default() }
    }
}

/// A transaction. Call the phases in order; a phase may be left out where the message has no such part.
#[derive(Debug)]
pub struct Transaction {
    pub(crate) plan: Arc<Plan>,
    /// The same, to be taken out while rules run: to count up and down for each phase would have workers wait for each other.
    at_hand: Option<Arc<Plan>>,
    pub(crate) collections: Arc<dyn Collections>,
    pub(crate) store: Box<Values>,
    pub(crate) tx: TxStore,
    pub(crate) prefilter_state: Option<Box<PrefilterState>>,
    pub(crate) memo: Option<Memo>,
    pub(crate) body: RequestBody,
    pub(crate) patterns: Patterns,
    pub(crate) phase: Phase,
    pub(crate) client_port: u16,
    pub(crate) server: SocketAddr,
    pub(crate) epoch_seconds: i64,
    pub(crate) utc_offset_seconds: i32,
    /// `ENV`: what `setenv` set.
    pub(crate) env: Vec<(Span, Span)>,
    /// `USERID` and `SESSIONID`: the keys of `setuid` and `setsid`.
    pub(crate) user_id: Option<Span>,
    pub(crate) session_id: Option<Span>,
    pub(crate) elapsed_us: u64,
    pub(crate) rule_engine: RuleEngine,
    pub(crate) request_body_access: bool,
    pub(crate) request_body_limit: u64,
    pub(crate) response_body_access: bool,
    pub(crate) response_body_limit: u64,
    pub(crate) response_inspectable: bool,
    pub(crate) response_body: Vec<u8>,
    pub(crate) audit: AuditState,
    pub(crate) allow: Option<(AllowScope, Phase)>,
    pub(crate) interruption: Option<Interruption>,
    pub(crate) interrupted_by: Option<(RuleIndex, Phase)>,
    pub(crate) rewrites: Rewrites,
    pub(crate) charges: Vec<Pending>,
    pub(crate) pause_ms: u64,
    pub(crate) paused_by: Option<RuleIndex>,
    pub(crate) matched: Matched,
    pub(crate) path_unescaped: bool,
    pub(crate) current_rule: Option<RuleIndex>,
    /// The rule that runs has interrupted or allowed: its other values are not looked at.
    pub(crate) rule_ended: bool,
    pub(crate) highest_severity: u8,
    pub(crate) removed_rules: RuleSet,
    pub(crate) removed_targets: Vec<u32>,
    pub(crate) open_collections: Vec<OpenCollection>,
    pub(crate) matches: Vec<Match>,
    /// Matches that nobody logs are remembered, too.
    pub(crate) keeps_quiet: bool,
    pub(crate) matches_dropped: u64,
    /// Asked before a rule interrupts.
    pub(crate) judge: Option<Arc<dyn crate::Judge>>,
    pub(crate) withheld: Option<crate::RuleIndex>,
    pub(crate) changes: Vec<ScoreChange>,
    pub(crate) rule_changes: u32,
    pub(crate) outside: Outside,
    /// Phase 5 has begun.
    pub(crate) logged: bool,
    pub(crate) items: Vec<Item>,
    pub(crate) argument: Vec<u8>,
    pub(crate) expansion: Vec<u8>,
    /// Kept for explanations only.
    pub(crate) trace: Option<Box<Trace>>,
}

impl Transaction {
    /// Matches remembered of one transaction; further ones still act and score, and are counted.
    pub const MATCHES_MAX: usize = 1_000;
    /// `TX` keys made at run time; further ones are not set.
    pub const TX_DYNAMIC_MAX: usize = 4_096;
    /// Memory above this is given back between transactions.
    const KEPT_ITEMS_MAX: usize = 4_096;
    const KEPT_TEXT_BYTES_MAX: usize = 64 << 10;
    /// `HIGHEST_SEVERITY` when nothing matched.
    const NO_SEVERITY: u8 = 255;

    /// Begins a transaction under `plan`.
    pub fn new(
        plan: Arc<Plan>,
        collections: Arc<dyn Collections>,
        mut scratch: Scratch,
        connection: &Connection,
    ) -> Box<Transaction> {
        let mut store = scratch.store.unwrap_or_default();
        store.reset(plan.prelude.bytes());
        scratch.tx.reset(plan.tx_names.len());
        let keeps_quiet = plan.settings.audit.reachable.quiet_matches;
        scratch.prefilter_state.get_or_insert_default().reset(&plan.prefilter, keeps_quiet);
        let settings = &plan.settings;
        let mut transaction = Box::new(Transaction {
            collections,
            store,
            tx: scratch.tx,
            prefilter_state: scratch.prefilter_state,
            memo: scratch.memo,
            body: RequestBody::new(settings.audit.reachable.request_body),
            patterns: Patterns::new(settings),
            phase: Phase::RequestHeaders,
            client_port: connection.client.port(),
            server: connection.server,
            epoch_seconds: connection.epoch_seconds,
            utc_offset_seconds: connection.utc_offset_seconds,
            env: Vec::new(),
            user_id: None,
            session_id: None,
            elapsed_us: 0,
            rule_engine: settings.rule_engine,
            request_body_access: settings.request_body_access,
            request_body_limit: settings.request_body_limit,
            response_body_access: settings.response_body_access,
            response_body_limit: settings.response_body_limit,
            response_inspectable: false,
            response_body: Vec::new(),
            audit: AuditState::new(&settings.audit),
            allow: None,
            interruption: None,
            interrupted_by: None,
            rewrites: Rewrites::default(),
            charges: Vec::new(),
            pause_ms: 0,
            paused_by: None,
            matched: Matched::default(),
            path_unescaped: false,
            current_rule: None,
            rule_ended: false,
            highest_severity: Self::NO_SEVERITY,
            removed_rules: RuleSet::new(),
            removed_targets: Vec::new(),
            open_collections: Vec::new(),
            matches: scratch.matches,
            keeps_quiet,
            matches_dropped: 0,
            changes: scratch.changes,
            rule_changes: 0,
            outside: Outside::default(),
            logged: false,
            items: scratch.items,
            argument: scratch.argument,
            expansion: scratch.expansion,
            trace: None,
            judge: None,
            withheld: None,
            at_hand: None,
            plan,
        });
        if transaction.plan.searches_xml {
            transaction.body.make_tree();
        }
        transaction.ingest_connection(connection);
        transaction
    }

    /// Remembers matches of rules that neither log nor ask for an audit record, too, which otherwise only a transaction does
    /// whose records or debug lines can show them. To be called before phase 1.
    pub fn keep_quiet_matches(&mut self) {
        self.keeps_quiet = true;
        self.prefilter_state.get_or_insert_default().reset(&self.plan.prefilter, true);
    }

    /// Phase 1: the request line and headers, as sent, in order.
    pub fn request_head<'a>(
        &mut self,
        line: RequestLine<'_>,
        headers: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
    ) -> Progress {
        self.ingest_request_head(line, headers);
        self.run_phase(Phase::RequestHeaders)
    }

    /// Whether the request body must be shown, decided after phase 1.
    pub fn request_body_plan(&self) -> BodyPlan {
        if self.rule_engine == RuleEngine::Off || !self.request_body_access {
            return BodyPlan::Skip;
        }
        BodyPlan::Hold {
            limit_bytes: self.request_body_limit,
            over_limit: self.over_limit(self.plan.settings.request_body_limit_action),
        }
    }

    /// Detection refuses nothing.
    fn over_limit(&self, action: BodyLimitAction) -> BodyLimitAction {
        match self.rule_engine {
            RuleEngine::On => action,
            RuleEngine::Off | RuleEngine::DetectionOnly => BodyLimitAction::ProcessPartial,
        }
    }

    /// True if the request is to be refused with 413, whatever the rules say: its body without files is longer than
    /// `SecRequestBodyNoFilesLimit`. Known after phase 2.
    pub fn refuses_request_body(&self) -> bool {
        self.body.is_over_no_files_limit()
            && self.over_limit(self.plan.settings.request_body_limit_action) == BodyLimitAction::Reject
    }

    /// A piece of the request body, transfer coding removed.
    pub fn request_body(&mut self, chunk: &[u8]) {
        if self.request_body_plan() != BodyPlan::Skip {
            self.stream_request(chunk);
            self.body.feed(chunk, &self.plan.settings, &mut self.store, self.plan.reads_file_content);
        }
    }

    /// Fields behind the request body, before phase 2: `REQUEST_HEADERS` has them from then on.
    pub fn request_trailers<'a>(&mut self, fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) {
        for (name, value) in fields {
            self.store.add_pair(Class::RequestHeaders, Class::RequestHeadersNames, name, value);
        }
    }

    /// The request body has been shown; what is in it is known from then on. `truncated`: it went on beyond the limit and the rest is
    /// not inspected. Where nobody asks before phase 2, [`request_end`](Transaction::request_end) alone does the same.
    pub fn request_body_end(&mut self, truncated: bool) {
        if self.body.has_ended() {
            return;
        }
        self.unescape_path();
        let access = self.request_body_plan() != BodyPlan::Skip;
        let plan = &self.plan;
        self.body.finish(access, truncated, &plan.settings, &mut self.store, plan.reads_file_content);
        self.begin_request_stream();
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
        self.ingest_response_head(protocol, status, headers);
        self.run_phase(Phase::ResponseHeaders)
    }

    /// Whether the response body must be shown, decided after phase 3.
    pub fn response_body_plan(&self) -> BodyPlan {
        let wanted = self.rule_engine != RuleEngine::Off
            && self.response_body_access
            && self.response_inspectable
            && (self.plan.reads_response_body || self.plan.settings.audit.reachable.response_body)
            && self.allow.is_none_or(|(scope, _)| scope != AllowScope::Transaction);
        if !wanted {
            return BodyPlan::Skip;
        }
        BodyPlan::Hold {
            limit_bytes: self.response_body_limit,
            over_limit: self.over_limit(self.plan.settings.response_body_limit_action),
        }
    }

    /// A piece of the response body, transfer coding removed.
    pub fn response_body(&mut self, chunk: &[u8]) {
        self.response_body.extend_from_slice(chunk);
    }

    /// Phase 4. `truncated`: the body went on beyond the limit and the rest is not inspected.
    pub fn response_end(&mut self, truncated: bool) -> Progress {
        self.store.set_scalar(Variable::OutboundDataError, if truncated { b"1" } else { b"0" });
        if self.response_body_plan() == BodyPlan::Skip {
            // One that is not looked at is empty, not absent (flatten_response_body).
            self.store.set_scalar(Variable::ResponseBody, b"");
        } else {
            let body = std::mem::take(&mut self.response_body);
            self.begin_response_stream(&body);
            self.store.set_scalar(Variable::ResponseBody, &body);
        }
        self.run_phase(Phase::ResponseBody)
    }

    /// Phase 5.
    pub fn logging(&mut self) -> Progress {
        self.unescape_path();
        self.logged = true;
        self.run_phase(Phase::Logging)
    }

    /// The end: phase 5, unless [`logging`](Transaction::logging) has run it, and the persistent collections are written
    /// back. Questions of phase 5 remain unanswered here.
    pub fn finish(&mut self) {
        let last = if self.logged { self.resume() } else { self.logging() };
        self.unanswered(last);
        self.save_collections();
    }

    /// Bytes of memory for values, forms and bodies, about.
    pub fn held_bytes(&self) -> usize {
        self.store.held_bytes() + self.body.held_bytes() + self.response_body.capacity()
    }

    /// The buffers, for the next transaction of this thread.
    pub fn into_scratch(self: Box<Self>) -> Scratch {
        let Transaction {
            store,
            tx,
            prefilter_state,
            memo,
            mut matches,
            mut changes,
            mut items,
            mut argument,
            mut expansion,
            ..
        } = *self;
        matches.clear();
        changes.clear();
        items.clear();
        items.shrink_to(Self::KEPT_ITEMS_MAX);
        for text in [&mut argument, &mut expansion] {
            text.clear();
            text.shrink_to(Self::KEPT_TEXT_BYTES_MAX);
        }
        Scratch {
            memo,
            store: Some(store),
            tx,
            prefilter_state,
            matches,
            changes,
            items,
            argument,
            expansion,
        }
    }

    /// The plan, for as long as rules run; to be [given back](Self::put_back) then.
    pub(crate) fn take_plan(&mut self) -> Arc<Plan> {
        self.at_hand.take().unwrap_or_else(|| Arc::clone(&self.plan))
    }

    pub(crate) fn put_back(&mut self, plan: Arc<Plan>) {
        self.at_hand = Some(plan);
    }

    /// Tells the transaction its age, for `DURATION`: microseconds since its beginning.
    pub fn set_elapsed_us(&mut self, elapsed_us: u64) {
        self.elapsed_us = elapsed_us;
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Matches so far, in order: those worth an event or a record, and [all](Self::keep_quiet_matches) if these are kept.
    pub fn matches(&self) -> &[Match] {
        &self.matches
    }

    /// Matches beyond [`Transaction::MATCHES_MAX`], not remembered.
    pub fn matches_dropped(&self) -> u64 {
        self.matches_dropped
    }

    /// Searches of patterns that were given up because they took too many steps.
    pub fn patterns_exhausted(&self) -> u64 {
        self.patterns.exhausted
    }

    /// Limits the work of the rules to what any message may cost, and [more](Self::allow_work) for its bytes.
    pub fn limit_work(&mut self) {
        let links = self.plan.links.len();
        self.patterns.work().limit(links);
    }

    /// Allows the work that so many bytes on the wire bring with them; rules are shown `shown` bytes of them.
    pub fn allow_work(&mut self, wire: u64, shown: u64) {
        self.patterns.work().allow(wire, shown);
    }

    /// Begins an allowance for the response, if there is a limit: what the request took is not missing there.
    pub fn renew_work(&mut self) {
        self.patterns.work().renew();
    }

    /// The work that rules did, and how much is allowed, in units of about a nanosecond.
    pub fn work_done(&mut self) -> (u64, u64) {
        self.patterns.work().done()
    }

    /// Patterns with macros that were no patterns, too long or too many.
    pub fn patterns_unusable(&self) -> u64 {
        self.patterns.unusable
    }

    /// The rule that interrupted the transaction, and its phase.
    pub fn interrupted_by(&self) -> Option<(RuleIndex, Phase)> {
        self.interrupted_by
    }

    /// The engine mode now in force.
    pub fn rule_engine(&self) -> RuleEngine {
        self.rule_engine
    }

    /// Why the request body could not be understood, if so.
    pub fn body_error(&self) -> Option<&str> {
        self.body.error()
    }

    /// Where other applications could read the request body differently.
    pub fn body_ambiguities(&self) -> portcullis_http::body::Ambiguities {
        self.body.ambiguities()
    }

    /// Adds `points` that an inspection agent gives to the anomaly score of the CRS, if it runs, for requests or (`outbound`)
    /// responses. `TX:agent_score` is `total` from then on.
    pub fn add_agent_score(&mut self, points: u32, total: u32, outbound: bool) {
        use crate::tx_store::{AGENT_SCORE, INBOUND_SCORE, OUTBOUND_SCORE, TxValue};
        self.set_tx(AGENT_SCORE, TxValue::Int(total.into()));
        let of_crs = if outbound { OUTBOUND_SCORE } else { INBOUND_SCORE };
        if let Some(before) = self.tx_number(of_crs) {
            self.set_tx(of_crs, TxValue::Int(before.saturating_add(points.into())));
        }
    }

    /// The numeric value of a `TX` key, if it is set.
    pub fn tx_number(&self, key: &[u8]) -> Option<i64> {
        self.tx_int(self.plan.tx_slot(key)?)
    }

    /// All `TX` keys that are set, lower case, with their values as text: for differential tests and explanations.
    pub fn tx_values(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let text = |value: TxValue| match value {
            TxValue::Unset => None,
            TxValue::Int(number) => Some(number.to_string().into_bytes()),
            TxValue::Text(span) => Some(self.store.text(span).to_vec()),
        };
        let slots = (0..).zip(&self.plan.tx_names);
        let literal =
            slots.filter_map(|(slot, name)| Some((name.to_vec(), text(self.tx.slot(crate::TxSlot(slot)))?)));
        let dynamic = self.tx.dynamic().iter();
        literal
            .chain(dynamic.filter_map(|(name, value, _)| {
                Some((self.store.text(*name).to_ascii_lowercase(), text(*value)?))
            }))
            .collect()
    }

    pub(crate) fn changes(&self) -> &[ScoreChange] {
        &self.changes
    }

    pub(crate) fn text(&self, span: Span) -> &[u8] {
        self.store.text(span)
    }
}
