//! Learned fields of sites, as the running program supplies them.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::live::Keyed;

/// The fields that sites have learned.
pub trait LearnedFields: Send + Sync {
    /// The sites that learn.
    fn sites(&self) -> Vec<LearningSite>;
    /// The fields of a site, or of all.
    fn fields(&self, site: Option<&str>) -> Vec<LearnedField>;
    /// The field that a request means, as its values are judged; its path may be a template, too.
    fn find(&self, at: &FieldPlace) -> Option<LearnedField>;
    /// The kinds of findings that fields carry, of a site or of all.
    fn proposals(&self, site: Option<&str>) -> Vec<FieldProposal>;
    /// Decides about the proposal of this id; none: there is none.
    fn decide(&self, site: &str, id: &str, decision: ProposalDecision) -> Option<DecidedProposal>;
    /// Carries out what an operator decides about the field of exactly this method, template, place and name.
    fn order(&self, at: &FieldPlace, order: FieldOrder) -> Result<OrderedField, FieldOrderError>;
    /// The sessions in which sites are taught by hand, those that wait for a decision, too.
    fn sessions(&self) -> Vec<TeachingSession>;
    /// Begins a session of a site for so many seconds; `by` is who asked for it.
    fn start_session(
        &self,
        site: &str,
        teacher: Teacher,
        seconds: u64,
        by: &str,
    ) -> Result<TeachingSession, SessionError>;
    /// Ends the session of a site, or decides about what it has learned: that of so many requests, as it was
    /// shown.
    fn order_session(
        &self,
        site: &str,
        order: SessionOrder,
        requests: Option<u64>,
    ) -> Result<DecidedSession, SessionError>;
}

/// Clients whose requests teach in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Teacher {
    /// Those of clients in this network: an address and the bits of its prefix.
    Network(IpAddr, u8),
    /// Those of the site's trusted sources.
    Trusted,
}

/// A session in which a site is taught by hand: what some clients do in its time is benign.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct TeachingSession {
    /// The site.
    pub site: String,
    /// User who has begun it.
    pub by: String,
    /// The network of the clients that teach; null: the site's trusted sources do.
    pub network: Option<String>,
    /// It runs; else it waits for a decision.
    pub is_running: bool,
    /// When it began (RFC 3339).
    pub started: String,
    /// When it ends or has ended.
    pub until: String,
    /// When what it has learned is dropped, if nobody decides.
    pub dropped: String,
    /// Requests that were let through and answered well, and have taught something.
    pub requests: u64,
    /// Requests that were refused. They have taught nothing.
    pub refused: u64,
    /// Values of fields beyond the limits, which were not learned.
    pub beyond_limit: u64,
    /// Effects of accepting it, field by field.
    pub fields: Vec<TaughtField>,
}

/// Observations of a field in a session, and the effect of accepting it there.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct TaughtField {
    /// The method.
    pub method: String,
    /// The path, with placeholders for segments that are values.
    pub path: String,
    /// `query`, `form` or `json`.
    pub place: &'static str,
    /// The name, in lower case.
    pub name: String,
    /// Values.
    pub values: u64,
    /// The types of its values.
    pub types: Vec<&'static str>,
    /// Effect on the field.
    pub effect: TaughtEffect,
    /// The kinds of findings in it.
    pub kinds: Vec<TaughtKind>,
}

/// Effect of accepting a session on a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaughtEffect {
    /// The field becomes known.
    New,
    /// Nothing of consequence: it stays open, or closed as it is.
    Known,
    /// It is closed.
    Closes,
    /// It was closed, and is open from then on.
    Opens,
    /// It stays closed, and takes what it did not take before.
    Widens,
    /// The site has no place for one more field.
    NoRoom,
}

/// A kind of finding that a session has shown in a field.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct TaughtKind {
    /// The kind: `sqli.statement`.
    pub kind: String,
    /// Effect on it.
    pub effect: KindEffect,
}

/// Effect of accepting a session on a kind of finding in a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum KindEffect {
    /// It counts for nothing there from then on.
    Opens,
    /// It counts for nothing there already.
    Open,
    /// A person has said that it counts: so it stays.
    Dismissed,
    /// The field has no place for one more kind.
    NoRoom,
}

/// Decision of an operator about a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionOrder {
    /// It ends now, and waits for a decision.
    Stop,
    /// What it has learned counts.
    Accept,
    /// What it has learned is dropped.
    Dismiss,
}

impl SessionOrder {
    /// All of them.
    pub const ALL: [SessionOrder; 3] = [SessionOrder::Stop, SessionOrder::Accept, SessionOrder::Dismiss];

    /// Its name in paths and in the audit trail.
    pub fn name(self) -> &'static str {
        match self {
            SessionOrder::Stop => "stop",
            SessionOrder::Accept => "accept",
            SessionOrder::Dismiss => "dismiss",
        }
    }
}

/// A session that was decided about.
#[derive(Clone, Debug)]
pub struct DecidedSession {
    /// As it was; stopped, as it is.
    pub session: TeachingSession,
    /// Why what was accepted is not on disk, if it is not: it ends with the process.
    pub not_kept: Option<String>,
}

/// Why a session was not begun or decided about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionError {
    /// The site does not learn.
    NoSite,
    /// The site has no session.
    NoSession,
    /// The site has one already.
    Exists,
    /// The site has no trusted sources.
    NoTrusted,
    /// It has learned from other requests than those that were shown.
    Changed,
}

/// A site that learns.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct LearningSite {
    /// Its name.
    pub site: String,
    /// What happens to unusual values: `off`, `detect` or `block`.
    pub unusual: &'static str,
    /// Fields that are known.
    pub fields: usize,
    /// Fields that are closed.
    pub closed: usize,
    /// Fields that are kept open by an operator.
    pub kept_open: usize,
    /// Fields that were closed and have opened again.
    pub reopened: usize,
    /// Fields that are learned, at most.
    pub fields_max: usize,
    /// Values of fields beyond the limits, which were not learned.
    pub beyond_limit: u64,
    /// Conditions for closing a field.
    pub closes_after: Sighted,
}

/// Observed, or missing, amount of a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct Sighted {
    /// Values.
    pub values: u64,
    /// Networks of clients.
    pub networks: u64,
    /// Sessions, of a field most of whose values come with one.
    pub sessions: u64,
    /// Days.
    pub days: u32,
}

/// The state of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FieldState {
    /// It keeps to a plain type: other values are unusual.
    Closed,
    /// It is learned; nothing is unusual in it.
    Open,
    /// It was closed, and has opened again by what it carried.
    Reopened,
    /// An operator keeps it open.
    KeptOpen,
}

/// Values of one type that a field has carried.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CarriedType {
    /// The type, as `portcullis learned --json` names it.
    pub r#type: &'static str,
    /// Values.
    pub values: u64,
    /// Networks of clients.
    pub networks: u64,
    /// Days.
    pub days: u32,
}

/// Type as which a field was closed before it opened again.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ClosedBefore {
    /// The type, or `enumeration`.
    pub closed_as: &'static str,
    /// The day on which it opened (UTC).
    pub until: String,
}

/// A field of a site, with what it has carried. Values are never kept.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct LearnedField {
    /// The site.
    pub site: String,
    /// The method; `GET` stands for `HEAD`, too.
    pub method: String,
    /// The path, with placeholders for segments that are values: `/users/{number}`.
    pub path: String,
    /// `query`, `form` or `json`.
    pub place: &'static str,
    /// The name, in lower case.
    pub name: String,
    /// The state.
    pub state: FieldState,
    /// The type that it is closed as, or `enumeration`; null: it is open.
    pub closed_as: Option<&'static str>,
    /// The type that all of its values have had so far, or `enumeration`: what it would be closed as; null:
    /// none that is plain.
    pub closes_as: Option<&'static str>,
    /// Different values, while it has had few: those of an enumeration.
    pub options: usize,
    /// Type as which it was closed, if it has opened again.
    pub closed_before: Option<ClosedBefore>,
    /// Summary in a sentence: `whole numbers only: 48,210 values of 1,204 networks in 12 days`.
    pub evidence: String,
    /// Share of the conditions for closing that are met, from 0 to 1.
    pub confidence: f64,
    /// Missing conditions for closing, apart from a plain type.
    pub missing: Sighted,
    /// Values.
    pub values: u64,
    /// Networks of clients.
    pub networks: u64,
    /// Sessions.
    pub sessions: u64,
    /// Days among the last 64.
    pub days: u32,
    /// The last day on which it was sent (UTC).
    pub last_day: String,
    /// Bytes of its shortest value.
    pub bytes_min: u32,
    /// Bytes of its longest value.
    pub bytes_max: u32,
    /// Values that it has carried, by type.
    pub types: Vec<CarriedType>,
}

/// State of a kind of finding in a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProposalState {
    /// It has been seen, too little to propose anything.
    Seen,
    /// The field carries it for many: a person should look.
    Proposed,
    /// It counts, and stopped requests tell what would have become of them.
    Trial,
    /// It counts for nothing in this field.
    Live,
    /// A person has said that it counts.
    Dismissed,
}

/// A kind of finding that a field carries for many, so that it may count for nothing there.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct FieldProposal {
    /// Its id within the site.
    pub id: String,
    /// The site.
    pub site: String,
    /// The method.
    pub method: String,
    /// The path, with placeholders for segments that are values.
    pub path: String,
    /// `query`, `form` or `json`.
    pub place: &'static str,
    /// The name of the field.
    pub name: String,
    /// The kind of finding: `sqli.statement`.
    pub kind: String,
    /// Its state.
    pub state: ProposalState,
    /// Since which day (UTC).
    pub since: String,
    /// Clients that have shown it: `120 requests of 40 networks and 38 sessions in 9 days`.
    pub evidence: String,
    /// Requests that had it and were let through.
    pub requests: u64,
    /// Networks of their clients.
    pub networks: u64,
    /// Their sessions.
    pub sessions: u64,
    /// Their days.
    pub days: u32,
    /// On trial: stopped requests that would have passed, with nothing else found in them.
    pub passes: u64,
    /// On trial: stopped requests that would have passed, although something else was found in them.
    pub lost: u64,
    /// On trial: stopped requests that would have been stopped all the same.
    pub stopped: u64,
}

/// Decision of an operator about a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProposalDecision {
    /// The kind counts for nothing in the field.
    Accept,
    /// It counts, and requests tell what would have become of them.
    Trial,
    /// It counts, and is proposed no more.
    Dismiss,
}

impl ProposalDecision {
    /// All of them.
    pub const ALL: [ProposalDecision; 3] =
        [ProposalDecision::Accept, ProposalDecision::Trial, ProposalDecision::Dismiss];

    /// Its name in paths and in the audit trail.
    pub fn name(self) -> &'static str {
        match self {
            ProposalDecision::Accept => "accept",
            ProposalDecision::Trial => "trial",
            ProposalDecision::Dismiss => "dismiss",
        }
    }
}

/// A proposal that was decided about.
#[derive(Clone, Debug)]
pub struct DecidedProposal {
    /// As it is now.
    pub proposal: FieldProposal,
    /// Why the decision is not on disk, if it is not: it ends with the process.
    pub not_kept: Option<String>,
}

/// State of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldPlace {
    /// The site.
    pub site: String,
    /// The method.
    pub method: String,
    /// The path.
    pub path: String,
    /// `query`, `form` or `json`.
    pub place: String,
    /// The name.
    pub name: String,
}

/// Decision of an operator about a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldOrder {
    /// It is learned, and never closed.
    KeepOpen,
    /// It is learned as others are.
    Learn,
    /// It is closed now, whatever is missing.
    Close,
    /// It is learned anew.
    Forget,
}

impl FieldOrder {
    /// All of them.
    pub const ALL: [FieldOrder; 4] =
        [FieldOrder::KeepOpen, FieldOrder::Learn, FieldOrder::Close, FieldOrder::Forget];

    /// Its name in paths and in the audit trail.
    pub fn name(self) -> &'static str {
        match self {
            FieldOrder::KeepOpen => "keep-open",
            FieldOrder::Learn => "learn",
            FieldOrder::Close => "close",
            FieldOrder::Forget => "forget",
        }
    }
}

/// An order that was carried out.
#[derive(Clone, Debug)]
pub struct OrderedField {
    /// The field; none: it is forgotten.
    pub field: Option<LearnedField>,
    /// Why the decision is not on disk, if it is not: it ends with the process.
    pub not_kept: Option<String>,
}

/// Why an order was not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldOrderError {
    /// There is no such field.
    NoField,
    /// It has carried values of no plain type.
    NotPlain,
}

impl Keyed for FieldProposal {
    /// Those that wait for a person stand first.
    fn key(&self) -> String {
        let rank = match self.state {
            ProposalState::Proposed => "0",
            ProposalState::Trial => "1",
            ProposalState::Live => "2",
            ProposalState::Seen => "3",
            ProposalState::Dismissed => "4",
        };
        [rank, &self.site, &self.path, &self.method, &self.name, self.place, &self.kind].join("\0")
    }
}

impl Keyed for LearnedField {
    /// No name of a field and no path has a zero byte.
    fn key(&self) -> String {
        [&self.site, &self.path, &self.method, &self.name, self.place].join("\0")
    }
}
