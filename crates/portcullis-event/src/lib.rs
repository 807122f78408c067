//! The event schema: one typed [`Event`] per verdict worth keeping, redacted before it leaves the
//! transaction.
//!
//! ```text
//!  verdict + matches ──> Event ──> Redactor ──┬──> Event::json_line        one JSON object a line, schema v1
//!  (portcullis-inspect)                       ├──> modsecurity_line        error-log lines as ModSecurity 2 writes them
//!                                             ├──> Event::write_cef_line   ArcSight CEF
//!                                             └──> Event::write_ocsf_line  OCSF 1.4, Detection Finding
//! ```
//!
//! The JSON form is a public interface: `schema/event-v1.json` describes it, [`SCHEMA_VERSION`] is in every
//! line, and tests fail when the two or the snapshot drift apart. A field may be added within a version;
//! removing one, renaming one or changing what it means takes a new version.
//!
//! Events own their data, so they outlive the request; what belongs to a rule and never changes is shared
//! behind an `Arc` ([`RuleInfo`]). Bytes of the request enter as text through [`text()`], which escapes what
//! is not UTF-8 and cuts at a named limit ([`limits`]). Secrets are replaced by a [`Redactor`] before an
//! event is queued.
//!
//! This crate does not know where events are stored, and it never reads a clock.
//!
//! ```
//! use portcullis_event::{Event, Redactor, Timestamp, text, limits};
//!
//! let mut event = Event::new("01J9ZB", Timestamp::from_epoch_millis(1_790_000_000_123));
//! event.request.target = text(b"/login?user=bob&password=hunter2", limits::REQUEST_TARGET_BYTES_MAX);
//! Redactor::default().redact(&mut event);
//!
//! let line = event.json_line();
//! assert!(line.starts_with(r#"{"schema":1,"request_id":"01J9ZB","time":"2026-09-21T14:13:20.123Z""#));
//! assert!(line.contains("/login?user=bob&password=[redacted]"));
//! assert!(line.ends_with("}\n"));
//! ```

#![warn(clippy::wildcard_enum_match_arm)]

mod access;
mod brief;
mod cef;
mod condense;
mod coverage;
mod echo;
mod event;
mod kept;
mod lead;
pub mod limits;
mod mask;
mod modsecurity;
mod modsecurity3;
mod names;
mod ocsf;
mod redact;
mod scrub;
mod secret_names;
mod text;
mod time;
mod user_info;
mod wire;

pub use access::AccessRecord;
pub use coverage::{ByReason, Coverage};
pub use event::{
    AgentWord, AlsoMatched, Client, Control, Event, Exception, Finding, Header, Integration, Request,
    Response, RuleEffect, RuleInfo, RuleMatch, SCHEMA_VERSION, Scores, SemanticScore, Server, SuppressedBy,
    Verdict,
};
pub use kept::{KeptRequest, RawRequest};
pub use lead::{Gravity, Lead};
pub use modsecurity::{
    SEMANTIC_ID, modsecurity_finding, modsecurity_line, modsecurity_lines, modsecurity_message,
    semantic_match,
};
pub use modsecurity3::{LineEnd, modsecurity3_line, modsecurity3_remark};
pub use names::{
    Action, AgentOutcome, BlindSpot, ControlKind, DetectionMode, EngineMode, ExceptionCause, ExceptionPolicy,
    FindingOutcome, IntegrationKind, NotInspected, UpstreamError,
};
pub use redact::{REDACTED, Redactor, RedactorNames};
pub use text::text;
pub use time::Timestamp;
pub use wire::ReadError;
