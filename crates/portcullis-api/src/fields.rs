//! What sites have learned of their fields, as the running program supplies it.

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
    /// What a field must have shown before it is closed.
    pub closes_after: Sighted,
}

/// How much of a field was seen, or is missing.
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

/// What a field has carried of one type.
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

/// What a field was closed as before it opened again.
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
    /// What it was closed as, if it has opened again.
    pub closed_before: Option<ClosedBefore>,
    /// What is known, in a sentence: `whole numbers only: 48,210 values of 1,204 networks in 12 days`.
    pub evidence: String,
    /// How much of what closing takes has been seen, from 0 to 1.
    pub confidence: f64,
    /// What is missing before it is closed, beside a plain type.
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
    /// What it has carried, by type.
    pub types: Vec<CarriedType>,
}

/// How far a kind of finding in a field has come.
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
    /// How far it has come.
    pub state: ProposalState,
    /// Since which day (UTC).
    pub since: String,
    /// Who has shown it: `120 requests of 40 networks and 38 sessions in 9 days`.
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

/// What an operator decides about a proposal.
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

/// Where a field stands.
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

/// What an operator decides about a field.
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
