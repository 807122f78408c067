//! Tests of the revisions of the document.

mod common;
mod edits;
mod exclusions;
mod history;
mod revisions;
mod values;
