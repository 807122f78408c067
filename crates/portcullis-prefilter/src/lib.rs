//! Finds, from the values of a message, the rules that could match: before any rule runs, and for all rules
//! at once.
//!
//! ```text
//!   load time:     candidates: what each reads, what a match needs ──> Prefilter
//!   message:       value ──> its distinct forms ──> byte classes ──> candidates ──> words ──> candidates
//!                                                                     ──> Verifier ──> a bit set of candidates that match
//! ```
//!
//! A [`Candidate`] is one condition of a rule, whatever that is to the caller: it reads some values, each
//! after some transformation chains, and has [gates](portcullis_match::Gates) that say what a matching text
//! needs. [`Prefilter::new`] puts all of them into tables. A [`Scan`] looks at the values that are new in a
//! transaction, leaves out candidates whose gates hold a text back, asks the caller's [`Verifier`] about the
//! others, and notes those that match in its [`State`].
//!
//! Each stage may say "maybe" where nothing matches, never "no" where something does: what the bit set lacks
//! matches nowhere in the values that were scanned. Texts that are repeated in many messages are answered
//! from a [`Memo`].
//!
//! Not in this crate: rules, actions, `TX`, the executor, and the consequences of a candidate's match.

#![warn(clippy::wildcard_enum_match_arm)]

mod build;
mod byte_classes;
mod forms;
mod gates;
mod head_memo;
mod memo;
mod readers;
mod residue;
mod scan;
mod stages;
mod state;

pub use build::{Candidate, Origin, Read};
pub use byte_classes::plain_bytes;
pub use memo::{Memo, repeats};
pub use readers::Side;
pub use scan::{Answer, Scan, Text, Verifier};
pub use stages::Stages;
pub use state::State;

use std::ops::Range;
use std::sync::OnceLock;

use portcullis_match::LiteralSet;
use portcullis_types::Variable;

use gates::GateTable;
use readers::Readers;

/// The facts about the candidates that are known at load time.
#[derive(Debug, Default)]
pub struct Prefilter {
    /// Words of a bit set of candidates: whole [`Block`](gates::Block)s.
    width: usize,
    /// By candidate.
    entries: Vec<Entry>,
    readers: Readers,
    /// The conditions for a match in any text, and in texts of [`plain_bytes`] only.
    gates: [GateTable; 2],
    /// Byte classes that no text of the second kind has.
    not_plain: u64,
}

/// The facts about one candidate.
#[derive(Debug, Default)]
struct Entry {
    /// The candidates of its rule.
    rule: Range<u32>,
    /// The set that finds the residue of a word that it needs (`residue.rs`), built on first use.
    residual: OnceLock<Option<LiteralSet>>,
}

impl Prefilter {
    /// True if a candidate reads this variable, which has one value.
    pub fn reads(&self, variable: Variable) -> bool {
        self.readers.scalar(variable as usize).is_some()
    }

    /// All variables of which that is true.
    pub fn scalars(&self) -> impl Iterator<Item = Variable> {
        self.readers.scalars.iter().map(|(variable, _)| *variable)
    }
}
