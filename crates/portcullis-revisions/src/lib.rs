//! Revisions of the configuration document.
//!
//! ```text
//! Change ──> edit of the text (comments and order stay) ──> checked by portcullis-config
//!                                                              └──> Live: loaded by the running program,
//!                                                                   written to the file, or refused whole
//! every text that served, and every one found in the file ──> History (one SQLite file)
//! ```
//!
//! The document stays the one truth: there is no second copy of a setting. A text that another program wrote
//! into the file becomes a revision from outside, and a change that was made for another text is refused. The
//! files that a document names (rules, lists, certificates) are not part of its revisions.

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod diff;
mod document;
mod edit;
mod error;
mod exclusions;
mod history;
mod revisions;

pub use diff::diff;
pub use document::{DOCUMENT_BYTES_MAX, Document, Text};
pub use edit::{
    Change, ClientList, Edit, Exclusion, RuleExclusion, Scope, SemanticExclusion, SiteSettings, ValueEdit,
    edited,
};
pub use error::RevisionError;
pub use exclusions::{Listed, added_exclusions, exclusions};
pub use history::{Origin, Revision, RevisionHead};
pub use revisions::{Applied, Author, Current, Live, LiveResult, Proposal, Revisions};
