use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use portcullis_types::{Class, Phase, Place, RuleId, Severity, Span};
use serde::{Deserialize, Serialize};

use crate::condense::Bounds;
use crate::coverage::Coverage;
use crate::kept::KeptRequest;
use crate::wire;
use crate::{
    Action, AgentOutcome, BlindSpot, ControlKind, DetectionMode, EngineMode, ExceptionCause, ExceptionPolicy,
    FindingOutcome, IntegrationKind, Timestamp, UpstreamError,
};

/// Version of the JSON form, the `schema` member of every event.
pub const SCHEMA_VERSION: u32 = 1;

/// One transaction worth keeping: who asked for what, what was found, and what was decided.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Event {
    /// Always [`SCHEMA_VERSION`]; set by [`Event::new`].
    schema: u32,
    /// The id that the response header, the block page and the log also carry.
    pub request_id: String,
    /// The arrival of the request's first byte.
    pub time: Timestamp,
    /// The number of requests that it stands for: more than one where a flood of events that are alike became
    /// one.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub count: u64,
    /// The site's configured name.
    pub site: Arc<str>,
    /// The route's configured name.
    pub route: Arc<str>,
    /// Number of the loaded policy.
    pub policy_generation: u64,
    /// The detectors that ran.
    pub mode: DetectionMode,
    /// The engine mode: whether verdicts were enforced.
    pub engine: EngineMode,
    /// The client.
    pub client: Client,
    /// The local address and the host of the request.
    pub server: Server,
    /// The request.
    pub request: Request,
    /// The response.
    pub response: Response,
    /// From first byte to last, in microseconds.
    pub duration_us: u64,
    /// The decision.
    pub verdict: Verdict,
    /// Anomaly scores at the end.
    #[serde(default, skip_serializing_if = "Scores::is_empty")]
    pub scores: Scores,
    /// Rules that matched and asked to be logged, in the order in which they matched.
    pub matches: Vec<RuleMatch>,
    /// Rules that matched, too, in the written form: further matches are named there, not told. Empty in
    /// memory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also_matched: Vec<AlsoMatched>,
    /// Matches beyond [`limits::MATCHES_MAX`](crate::limits::MATCHES_MAX); in the written form all that are
    /// in neither list.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub matches_omitted: u32,
    /// The findings of the semantic detector, in the order of the request: those in values whose score passed
    /// a threshold, and the first few of the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// Findings beyond [`limits::FINDINGS_MAX`](crate::limits::FINDINGS_MAX).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub findings_omitted: u32,
    /// Findings in values whose score passed no threshold, beyond the first
    /// [`limits::FINDINGS_BELOW_MAX`](crate::limits::FINDINGS_BELOW_MAX).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub findings_below: u32,
    /// Findings that an exception suppresses or lowers, and that are not in `findings`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub findings_suppressed: u32,
    /// The verdicts of inspection agents, apart from those that let the exchange pass without a word.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentWord>,
    /// Name of the HTTP-level refusal, when the request was not acceptable HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<Cow<'static, str>>,
    /// The ambiguities: points where applications could read the request body differently.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ambiguities: Vec<Cow<'static, str>>,
    /// Ids of exclusions on trial with which the request would have passed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trials: Vec<String>,
    /// The endpoint of the upstream that was asked last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<String>,
    /// The trace that the request belongs to, where requests are traced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    /// The error of the upstream, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream_error: Option<UpstreamError>,
    /// The same in words, where there is more to say: why a certificate was not accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream_reason: Option<String>,
    /// The exceptions: causes for which inspection could not do its full work, and the policy that decided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exceptions: Vec<Exception>,
    /// The coverage.
    pub coverage: Coverage,
    /// The server that asked for the verdict, where the exchange did not go through the proxy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub integration: Option<Integration>,
    /// The request, without secrets, until it goes its own way to a store; never part of the event's text.
    #[serde(skip)]
    pub kept: Option<Box<KeptRequest>>,
}

impl Event {
    /// An event that says nothing yet: mode `crs`, engine `blocking`, verdict `pass`, all else empty.
    pub fn new(request_id: impl Into<String>, time: Timestamp) -> Event {
        Event {
            schema: SCHEMA_VERSION,
            request_id: request_id.into(),
            time,
            count: 1,
            site: Arc::from(""),
            route: Arc::from(""),
            policy_generation: 0,
            mode: DetectionMode::Crs,
            engine: EngineMode::Blocking,
            client: Client::default(),
            server: Server::default(),
            request: Request::default(),
            response: Response::default(),
            duration_us: 0,
            verdict: Verdict::default(),
            scores: Scores::default(),
            matches: Vec::new(),
            also_matched: Vec::new(),
            matches_omitted: 0,
            findings: Vec::new(),
            findings_omitted: 0,
            findings_below: 0,
            findings_suppressed: 0,
            agents: Vec::new(),
            refusal: None,
            ambiguities: Vec::new(),
            trials: Vec::new(),
            upstream: None,
            trace_id: None,
            upstream_error: None,
            upstream_reason: None,
            exceptions: Vec::new(),
            coverage: Coverage::default(),
            integration: None,
            kept: None,
        }
    }

    /// Version of its form.
    pub(crate) fn schema(&self) -> u32 {
        self.schema
    }

    /// A copy without matches, findings and scores of the semantic detector.
    pub(crate) fn without_details(&self) -> Event {
        Event {
            schema: self.schema,
            request_id: self.request_id.clone(),
            time: self.time,
            count: self.count,
            site: Arc::clone(&self.site),
            route: Arc::clone(&self.route),
            policy_generation: self.policy_generation,
            mode: self.mode,
            engine: self.engine,
            client: self.client.clone(),
            server: self.server.clone(),
            request: self.request.clone(),
            response: self.response.clone(),
            duration_us: self.duration_us,
            verdict: self.verdict.clone(),
            scores: Scores { by_class: self.scores.by_class.clone(), semantic: Vec::new(), ..self.scores },
            matches: Vec::new(),
            also_matched: self.also_matched.clone(),
            matches_omitted: self.matches_omitted,
            findings: Vec::new(),
            findings_omitted: self.findings_omitted,
            findings_below: self.findings_below,
            findings_suppressed: self.findings_suppressed,
            agents: self.agents.clone(),
            refusal: self.refusal.clone(),
            ambiguities: self.ambiguities.clone(),
            trials: self.trials.clone(),
            upstream: self.upstream.clone(),
            trace_id: self.trace_id.clone(),
            upstream_error: self.upstream_error,
            upstream_reason: self.upstream_reason.clone(),
            exceptions: self.exceptions.clone(),
            coverage: self.coverage.clone(),
            integration: self.integration.clone(),
            kept: None,
        }
    }

    /// Adds a finding, or counts it when there are [`limits::FINDINGS_MAX`](crate::limits::FINDINGS_MAX)
    /// already.
    pub fn push_finding(&mut self, finding: Finding) {
        if self.findings.len() < crate::limits::FINDINGS_MAX {
            self.findings.push(finding);
        } else {
            self.findings_omitted = self.findings_omitted.saturating_add(1);
        }
    }

    /// Adds a match, or counts it when there are [`limits::MATCHES_MAX`](crate::limits::MATCHES_MAX) already.
    pub fn push_match(&mut self, rule_match: RuleMatch) {
        if self.matches.len() < crate::limits::MATCHES_MAX {
            self.matches.push(rule_match);
        } else {
            self.matches_omitted = self.matches_omitted.saturating_add(1);
        }
    }

    /// Bytes that the event holds in memory, roughly: what a buffer bounded by bytes counts for it. Data
    /// shared with the plan is not in it.
    pub fn size_estimate(&self) -> usize {
        let matches: usize = self
            .matches
            .iter()
            .map(|m| size_of::<RuleMatch>() + m.message.len() + m.data.len() + m.target.len() + m.value.len())
            .sum();
        let headers: usize =
            self.request.headers.iter().map(|h| size_of::<Header>() + h.name.len() + h.value.len()).sum();
        let forwarded: usize = self.client.forwarded_for.iter().map(|a| size_of::<String>() + a.len()).sum();
        let findings: usize =
            self.findings.iter().map(|f| size_of::<Finding>() + f.name.len() + f.evidence.len()).sum();
        let words = |a: &AgentWord| {
            size_of::<AgentWord>() + a.reason.len() + a.tags.iter().map(|t| 24 + t.len()).sum::<usize>()
        };
        let agents: usize = self.agents.iter().map(words).sum();
        size_of::<Event>()
            + agents
            + matches
            + findings
            + self.scores.semantic.len() * size_of::<SemanticScore>()
            + headers
            + forwarded
            + self.request.target.len()
            + self.verdict.reason.len()
    }

    /// The event as one JSON object and a newline.
    pub fn json_line(&self) -> String {
        let mut line = Vec::with_capacity(1024);
        self.write_json_line(&mut line);
        // serde_json writes UTF-8 only.
        String::from_utf8(line).unwrap_or_default()
    }

    /// Appends what [`Event::json_line`] returns to `out`: at most
    /// [`limits::WRITTEN_BYTES_MAX`](crate::limits::WRITTEN_BYTES_MAX), with what decided in full, the worst
    /// few of the rest, and counts.
    pub fn write_json_line(&self, out: &mut Vec<u8>) {
        let before = out.len();
        for bounds in Bounds::LEVELS {
            out.truncate(before);
            // Writing to memory cannot fail, and every map key here is a string; were it to fail, no torn
            // line stays.
            if serde_json::to_writer(&mut *out, &*self.condensed(bounds)).is_err() {
                debug_assert!(false, "an event is always serialisable");
                out.truncate(before);
                return;
            }
            if out.len() - before < crate::limits::WRITTEN_BYTES_MAX {
                break;
            }
        }
        out.push(b'\n');
    }
}

/// The peer that sent the request.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Client {
    /// Its address: from the socket, or from a forwarding header when the peer is trusted.
    pub addr: String,
    /// Its port; 0 when a forwarding header did not say.
    pub port: u16,
    /// Its country, two letters of ISO 3166-1, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub country: Option<String>,
    /// The number of its autonomous system, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asn: Option<u32>,
    /// The socket's address, where it is not `addr`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// The forwarding chain as received, first hop first, at most
    /// [`limits::FORWARDED_FOR_MAX`](crate::limits::FORWARDED_FOR_MAX) entries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forwarded_for: Vec<String>,
}

impl From<SocketAddr> for Client {
    fn from(addr: SocketAddr) -> Client {
        Client { addr: addr.ip().to_string(), port: addr.port(), ..Client::default() }
    }
}

/// The local address at which the request arrived, and the host that it named.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Server {
    /// Local address.
    pub addr: String,
    /// Local port.
    pub port: u16,
    /// The host that the client named.
    pub host: String,
    /// True if the connection was TLS.
    pub tls: bool,
}

/// The request as it was sent.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Request {
    /// Method.
    pub method: String,
    /// Request target, as received (then redacted).
    pub target: String,
    /// `HTTP/1.1` and the like.
    pub protocol: String,
    /// Selected headers, in the order received.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<Header>,
    /// Size of the head in bytes.
    pub head_bytes: u64,
    /// Size of the body in bytes, without chunk framing.
    pub body_bytes: u64,
    /// Fields that came behind the body and were dropped.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub trailers_dropped: u32,
    /// The oddities of its head, which was accepted all the same, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub oddities: Vec<Cow<'static, str>>,
    /// The error of the body's parser, for rules: the text of `REQBODY_ERROR_MSG`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_error: Option<String>,
}

/// A header line that an event shows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Header {
    /// Name as received.
    pub name: String,
    /// Value.
    pub value: String,
}

/// The response as it was sent.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Response {
    /// Status sent to the client; absent if the connection ended without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Size of the body in bytes.
    pub body_bytes: u64,
}

/// The decision and its reason.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Verdict {
    /// The action that was taken.
    pub action: Action,
    /// Status of our own answer, if we answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The rule that decided.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "wire::rule_id_opt")]
    pub rule_id: Option<RuleId>,
    /// The class of the semantic detector's findings that decided, or would have.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "wire::class_opt")]
    pub class: Option<Class>,
    /// The phase of the rule or the findings.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "wire::phase_opt")]
    pub phase: Option<Phase>,
    /// The control that decided beside rules and the semantic detector, or would have if it did not only log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<Control>,
    /// One sentence for a person.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// Something that decides on clients.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Control {
    /// The kind of control.
    pub by: ControlKind,
    /// Its configured name.
    pub name: Arc<str>,
}

impl Default for Verdict {
    fn default() -> Verdict {
        let (action, reason) = (Action::Pass, String::new());
        Verdict { action, status: None, rule_id: None, class: None, phase: None, control: None, reason }
    }
}

/// Anomaly scores in the sense of the CRS, absent where the rules kept none; and those of the semantic
/// detector.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Scores {
    /// The score that is compared with the inbound threshold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inbound_blocking: Option<i64>,
    /// The same up to the detection paranoia level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inbound_detection: Option<i64>,
    /// The score that is compared with the outbound threshold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outbound_blocking: Option<i64>,
    /// The same up to the detection paranoia level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outbound_detection: Option<i64>,
    /// Non-zero scores by attack class: `sql_injection`, `xss`, ...
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by_class: BTreeMap<Cow<'static, str>, i64>,
    /// Scores of the semantic detector, one for each value and class with findings, highest over the
    /// threshold first; at most [`limits::SEMANTIC_SCORES_MAX`](crate::limits::SEMANTIC_SCORES_MAX).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub semantic: Vec<SemanticScore>,
    /// Scores that the written form leaves out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub semantic_omitted: u32,
}

/// The semantic detector's score of one class in one value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SemanticScore {
    /// The class.
    #[serde(with = "wire::class")]
    pub class: Class,
    /// The place of the value.
    #[serde(with = "wire::place")]
    pub place: Place,
    /// The value's name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Logarithm of the odds that it is an attack.
    #[serde(with = "wire::hundredths")]
    pub points: f32,
    /// The score from which the level blocks.
    #[serde(with = "wire::hundredths")]
    pub threshold: f32,
    /// The outcome.
    pub outcome: FindingOutcome,
}

impl Scores {
    /// True if there is no score to show.
    pub fn is_empty(&self) -> bool {
        *self == Scores::default()
    }
}

/// The fields of a rule that are the same in every event: the plan keeps one per rule.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RuleInfo {
    /// The rule's id.
    #[serde(with = "wire::rule_id")]
    pub rule_id: RuleId,
    /// The phase it runs in.
    #[serde(with = "wire::phase")]
    pub phase: Phase,
    /// Its severity.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "wire::severity_opt")]
    pub severity: Option<Severity>,
    /// Operator name without `@`, with `!` when negated: `rx`, `!pm`. Empty for `SecAction`.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub operator: Box<str>,
    /// The operator's argument as written. Left out of JSON: patterns are long, and the rule file has them.
    #[serde(skip)]
    pub argument: Box<str>,
    /// Transformation names in order, `none` left out.
    #[serde(default, skip_serializing_if = "is_empty_list")]
    pub transformations: Box<[Box<str>]>,
    /// Its tags.
    #[serde(default, skip_serializing_if = "is_empty_list")]
    pub tags: Box<[Box<str>]>,
    /// Rule set version (`ver:`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ver: Option<Box<str>>,
    /// Revision (`rev:`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rev: Option<Box<str>>,
    /// `maturity:`; for log lines only.
    #[serde(skip)]
    pub maturity: Option<u8>,
    /// `accuracy:`; for log lines only.
    #[serde(skip)]
    pub accuracy: Option<u8>,
    /// File it stands in.
    pub file: Arc<str>,
    /// Line it begins on, from 1.
    pub line: u32,
}

/// One match of one rule.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RuleMatch {
    /// The rule.
    #[serde(flatten)]
    pub rule: Arc<RuleInfo>,
    /// `msg:` with its macros expanded.
    pub message: String,
    /// `logdata:` with its macros expanded.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub data: String,
    /// The target that matched: `ARGS:q`, `REQUEST_HEADERS:User-Agent`, `REQUEST_LINE`.
    pub target: String,
    /// The value that the operator saw, after transformations; see [`text`](crate::text()).
    pub value: String,
    /// The bytes of the value that matched, before escaping and cutting.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "wire::span_opt")]
    pub span: Option<Span>,
    /// Points it added to an anomaly score.
    pub points: i64,
    /// The effect of its disruptive action, as far as the verdict does not say it; for log lines only.
    #[serde(skip)]
    pub effect: RuleEffect,
}

/// A rule that matched and is only named.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AlsoMatched {
    /// The rule.
    #[serde(with = "wire::rule_id")]
    pub rule_id: RuleId,
    /// The target of its match; of several that which added the most points.
    pub target: String,
    /// The points that this match added to an anomaly score.
    pub points: i64,
    /// Its matches that are not in `matches`.
    #[serde(default = "single", skip_serializing_if = "is_single")]
    pub count: u32,
}

/// The effect of a rule's disruptive action.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RuleEffect {
    /// Nothing, or what the verdict says.
    #[default]
    None,
    /// `allow`: no further rules run, in the words of ModSecurity 2: `Access`, `Access to request`,
    /// `Access to phase`.
    Allowed(&'static str),
    /// `redirect`: where to.
    Redirected(String),
}

/// Something that the semantic detector found in a value.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Finding {
    /// The class of attack.
    #[serde(with = "wire::class")]
    pub class: Class,
    /// The kind of finding: `sqli.union`.
    pub kind: Cow<'static, str>,
    /// The place of the value.
    #[serde(with = "wire::place")]
    pub place: Place,
    /// The value's name: of a parameter, field, header, cookie, JSON path.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Decoding steps from the value to the bytes that were looked at, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decoded: Vec<Cow<'static, str>>,
    /// Its bytes in the decoded value, before escaping and cutting.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "wire::span_opt")]
    pub span: Option<Span>,
    /// Those bytes; see [`text`](crate::text()).
    pub evidence: String,
    /// Findings of this kind in the value that it stands for, in the written form: more than one where they
    /// were put together.
    #[serde(default = "single", skip_serializing_if = "is_single")]
    pub count: u32,
    /// The score of its value passes no threshold.
    #[serde(skip)]
    pub below: bool,
    /// It is quoted or named in a field that is for text, and weighs less.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mentioned: bool,
    /// The exception by which it weighs less, if it is `mentioned`, or else nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suppressed_by: Option<SuppressedBy>,
    /// The points that it adds to the score of its class.
    #[serde(with = "wire::hundredths")]
    pub points: f32,
    /// The explanation, in plain language.
    pub reason: Cow<'static, str>,
    /// The reference to read more.
    pub reference: Cow<'static, str>,
}

impl Finding {
    /// True if an exception lowers or takes its weight, and its value was not decided on.
    pub fn is_excused(&self) -> bool {
        self.suppressed_by.is_some() && (self.below || !self.mentioned)
    }
}

/// An exception of the semantic detector's policy, as it stands in the documentation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuppressedBy {
    /// Its id: `own-file`.
    pub exception: Cow<'static, str>,
    /// The reason for it, in plain language.
    pub reason: Cow<'static, str>,
}

/// The verdict of an inspection agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AgentWord {
    /// Its configured name.
    pub name: Arc<str>,
    /// The outcome.
    pub outcome: AgentOutcome,
    /// Points that it added to the score.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub score: u32,
    /// Its words for the exchange.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// One sentence for a person.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

impl AgentWord {
    /// It found something, whatever was done about it.
    pub fn is_finding(&self) -> bool {
        let is_verdict = matches!(self.outcome, AgentOutcome::Block | AgentOutcome::Redirect);
        is_verdict || self.score > 0 || !self.tags.is_empty()
    }
}

/// A condition under which inspection could not do its full work.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Exception {
    /// The cause.
    pub cause: ExceptionCause,
    /// The policy that decided.
    pub policy: ExceptionPolicy,
    /// The limit in bytes, of a body over one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_bytes: Option<u64>,
}

/// The way by which another server asked for a verdict, and what it did not show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Integration {
    /// The protocol.
    pub kind: IntegrationKind,
    /// The parts of the exchange that were not shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blind_spots: Vec<BlindSpot>,
}

fn one() -> u64 {
    1
}

fn is_one(count: &u64) -> bool {
    *count == 1
}

fn single() -> u32 {
    1
}

fn is_single(count: &u32) -> bool {
    *count == 1
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

fn is_empty_list(list: &[Box<str>]) -> bool {
    list.is_empty()
}
