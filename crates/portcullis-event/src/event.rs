mod exchange;
mod found;

use std::borrow::Cow;
use std::sync::Arc;

use portcullis_types::{Class, Phase, RuleId};
use serde::{Deserialize, Serialize};

use crate::condense::Bounds;
use crate::coverage::Coverage;
use crate::kept::KeptRequest;
use crate::wire;
use crate::{
    Action, ControlKind, DetectionMode, EngineMode, ExceptionCause, ExceptionPolicy, Timestamp, UpstreamError,
};

pub use exchange::{Client, Header, Integration, Request, Response, Server};
pub use found::{
    AgentWord, AlsoMatched, Finding, RuleEffect, RuleInfo, RuleMatch, Scores, SemanticScore, SuppressedBy,
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
    #[serde(default, skip_serializing_if = "wire::is_zero")]
    pub matches_omitted: u32,
    /// The findings of the semantic detector, in the order of the request: those in values whose score passed
    /// a threshold, and the first few of the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// Findings beyond [`limits::FINDINGS_MAX`](crate::limits::FINDINGS_MAX).
    #[serde(default, skip_serializing_if = "wire::is_zero")]
    pub findings_omitted: u32,
    /// Findings in values whose score passed no threshold, beyond the first
    /// [`limits::FINDINGS_BELOW_MAX`](crate::limits::FINDINGS_BELOW_MAX).
    #[serde(default, skip_serializing_if = "wire::is_zero")]
    pub findings_below: u32,
    /// Findings that an exception suppresses or lowers, and that are not in `findings`.
    #[serde(default, skip_serializing_if = "wire::is_zero")]
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

fn one() -> u64 {
    1
}

fn is_one(count: &u64) -> bool {
    *count == 1
}
