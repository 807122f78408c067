//! The facade: phases in, verdict and event out.
//!
//! ```text
//! Inspector (a policy: plan, detectors, names, redaction) --begin--> Inspection
//!   request_head > request_body* > request_end > response_head > response_body* > response_end   each may say Interrupt,
//!     or Ask: questions > answer* > resume, which returns the next step
//!   finish --> Report { verdict, event, rule ids, coverage, buffers for the next one }
//! ```
//!
//! An [`Inspector`] is immutable and shared; an [`Inspection`] belongs to one exchange. Nothing here knows
//! sockets, a runtime or the clock: times are given, and what must be done (deny, redirect, drop) is said,
//! not done.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests have threads"))]
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod audit;
mod audit_semantic;
mod coded;
mod coverage;
mod debug;
mod declared;
mod discovery;
mod event;
mod evidence;
mod exchange;
mod excluded;
mod fields;
mod hidden;
mod inspection;
mod inspector;
mod issued;
mod kept;
mod logged;
mod own_fields;
mod pattern;
mod request_summary;
mod response;
mod rule_exclusions;
mod semantic;
mod semantic_policy;
mod severe;
mod streamed;
mod trial;
mod weighing;

pub use audit::AuditSink;
pub use declared::{DeviationActions, SiteApi};
pub use exchange::{Connection, Decision, Outcome, Rejection, Report, Step};
pub use excluded::Excluded;
pub use fields::{SiteFields, TrustedSources, UnusualAction};
pub use inspection::Inspection;
pub use inspector::{DECODED_RATIO_MAX, Inspector, Memo, PolicyNames, Scratch};
pub use issued::{
    COOKIE_BYTES_MAX, COOKIE_KEY_MILLIS, COOKIE_KEYS_KEPT, CheckedCookies, CookieCheck, CookieSigner,
    ForeignCookie, Fresh, ISSUED_COOKIE_BYTES_MAX, ISSUED_COOKIE_MILLIS, ISSUED_COOKIE_SHARES, IssuedCookies,
    IssuedKey, IssuedSites, IssuedStateError, IssuedStatistics, SIGNED_COOKIES_MAX, SignedCookie,
};
pub use logged::Logged;
pub use portcullis_engine::{
    Answer, BodyLimitAction, BodyPlan, Charge, Collections, Interruption, KeptFile, Origin, Question,
    QuestionId, ResponseEdits, Scanner,
};
pub use portcullis_http::coding::CodingError;
pub use portcullis_semantic::CookieCounts;
pub use portcullis_semantic::detectors::field::Opens;
pub use rule_exclusions::RuleExclusion;
pub use semantic::{ScoredValue, Semantic};
pub use semantic_policy::{ClassAction, Exclusion, SemanticPolicy};
pub use trial::{Trial, TrialResult};
pub use weighing::{Field, Spot, Vote, Weighed, Weight, Weights, WeightsError, fingerprint};
