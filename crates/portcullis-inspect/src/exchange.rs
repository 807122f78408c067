//! Input and output types of an inspection.

use std::net::SocketAddr;
use std::time::Duration;

use portcullis_engine::{Interruption, KeptFile};
use portcullis_event::{Action, AgentWord, Coverage, Event, Exception, FindingOutcome, UpstreamError};
use portcullis_http::body::Ambiguities;
use portcullis_semantic::CookieCounts;
use portcullis_types::{Class, Place, RuleId};

use crate::excluded::Excluded;
use crate::inspector::Scratch;
use crate::trial::Trial;

/// The caller's next step after a phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Proceed.
    Continue,
    /// Answer the [`questions`](crate::Inspection::questions) and call [`resume`](crate::Inspection::resume),
    /// which gives the step that follows.
    Ask,
    /// Carry this out; no further phase but [`finish`](crate::Inspection::finish) runs, whatever is called.
    Interrupt(Interruption),
}

/// The connection an exchange came by.
#[derive(Clone, Debug)]
pub struct Connection {
    /// The client as the trust rules see it.
    pub client: SocketAddr,
    /// The address the client reached.
    pub server: SocketAddr,
    /// The id of the exchange, in response header, event and log.
    pub request_id: String,
    /// Start of the exchange, milliseconds since 1970.
    pub epoch_millis: u64,
    /// Seconds by which local time was ahead of UTC then.
    pub utc_offset_seconds: i32,
    /// The client came by TLS.
    pub tls: bool,
    /// The variables that rules find in `ENV`, beside those that `setenv` sets.
    pub environment: Vec<(&'static str, String)>,
    /// The request is kept with its event, and of its body so many bytes; 0: it is not.
    pub keep_request_bytes: usize,
    /// The share of requests that are captured if they pass without an event, 0 to 1. The id decides, so it
    /// must end in random hex digits. Only what is kept with events is captured.
    pub capture_share: f64,
}

/// An answer that the caller gave on its own account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Its status.
    pub status: u16,
    /// The reason, for the event.
    pub reason: String,
    /// The kind of answer.
    pub action: Action,
}

/// The end of an exchange, as the caller saw it.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Status sent to the client; `None` if none was.
    pub status: Option<u16>,
    /// Request body bytes read, transfer coding removed.
    pub request_body_bytes: u64,
    /// Response body bytes sent, transfer coding removed.
    pub response_body_bytes: u64,
    /// Bytes of the body of an answer that the caller gave itself.
    pub own_body_bytes: u64,
    /// The headers of such an answer, if there was one.
    pub own_headers: Option<Vec<(Vec<u8>, Vec<u8>)>>,
    /// Bytes of an upgraded connection, both ways.
    pub upgraded_bytes: u64,
    /// From the first byte to the last.
    pub duration: Duration,
    /// The error of the upstream, if there was one.
    pub upstream_error: Option<UpstreamError>,
    /// The caller answered by itself: body over limit, inspection failed.
    pub rejection: Option<Rejection>,
    /// The verdicts of inspection agents.
    pub agents: Vec<AgentWord>,
    /// Conditions under which inspection was incomplete, and what policy said.
    pub exceptions: Vec<Exception>,
    /// There is no event sink, so no event is made.
    pub no_event: bool,
}

/// The decision on an exchange, and the evidence for it, without the texts of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Decision {
    /// The action.
    pub action: Action,
    /// The rule that decided.
    pub rule: Option<RuleId>,
    /// The class of the findings that decided, and the place of the value in which they are.
    pub class: Option<(Class, Place)>,
    /// A digest of all logged matches: their rules, and the collections in which they matched.
    pub matches: u64,
}

/// The result of an inspection.
#[derive(Debug)]
pub struct Report {
    /// The action that was taken.
    pub action: Action,
    /// The event, redacted; `None` if there is nothing to report.
    pub event: Option<Box<Event>>,
    /// The request, redacted, with an event that says where it went: it passed, makes no event, and is one of
    /// the sample.
    pub captured: Option<Box<Event>>,
    /// The inbound anomaly score, if there is something to report.
    pub anomaly: Option<i64>,
    /// Rules with a logged match, each as often as it matched.
    pub matched_rules: Vec<RuleId>,
    /// Classes of which the semantic detector found something, each once, with the result.
    pub findings: Vec<(Class, FindingOutcome)>,
    /// Cookies with findings, by whether the site has issued them.
    pub cookies: CookieCounts,
    /// The exclusions that took something away from the verdict.
    pub excluded: Excluded,
    /// Its results for the exclusions on trial; none: there are none.
    pub trial: Option<Trial>,
    /// The coverage: what was inspected and what was not.
    pub coverage: Coverage,
    /// The ambiguities of the request body: points where applications could read it differently.
    pub ambiguities: Ambiguities,
    /// Searches of patterns that took more steps than they may.
    pub patterns_exhausted: u64,
    /// Patterns that were none once their macros were replaced.
    pub patterns_unusable: u64,
    /// Texts that a limit on expanded macros cut short.
    pub expansions_cut: u64,
    /// The anomaly score passed its threshold, but not without the points of rules that benign traffic
    /// triggers.
    pub score_withheld: bool,
    /// Uploaded files to be written.
    pub kept_files: Vec<KeptFile>,
    /// Buffers for the next exchange.
    pub scratch: Scratch,
}
