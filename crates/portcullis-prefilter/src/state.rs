//! The state of a transaction's candidates.

use portcullis_types::Span;
use portcullis_values::{CLASS_COUNT, Class};

use crate::Prefilter;
use crate::forms::Forms;
use crate::residue::ResidueBuffers;

/// The candidates of a transaction that match one of the values scanned so far.
#[derive(Debug, Default)]
pub struct State {
    /// They are not looked for any more.
    pub(crate) matched: Vec<u64>,
    /// Values of each class that have been scanned.
    classes_seen: [u32; CLASS_COUNT],
    pub(crate) buffers: Buffers,
}

/// Buffers.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    pub(crate) left: Vec<u64>,
    pub(crate) open: Vec<u32>,
    /// By text: the word lists of which it has a word.
    pub(crate) lists: Vec<u64>,
    /// The word lists of which one of the texts has a word.
    pub(crate) any_list: Vec<u64>,
    /// Texts, one after the other.
    pub(crate) joined: Vec<u8>,
    /// The same for a [`LiteralSet`](portcullis_match::LiteralSet).
    pub(crate) folded: Vec<u8>,
    /// The end of each of them there.
    pub(crate) ends: Vec<u32>,
    pub(crate) group: Vec<Classified>,
    /// A head as it is remembered.
    pub(crate) head: Vec<u8>,
    pub(crate) forms: Forms,
    pub(crate) residue: ResidueBuffers,
}

/// A text with the classes of its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Classified {
    pub(crate) span: Span,
    pub(crate) classes: u64,
}

impl State {
    /// Begins a transaction in which the candidates of `matched` are taken for matched already; others are
    /// none.
    pub fn reset(&mut self, prefilter: &Prefilter, matched: &[u64]) {
        self.matched.clear();
        self.matched.extend_from_slice(matched);
        self.matched.resize(prefilter.width, 0);
        self.classes_seen = [0; CLASS_COUNT];
    }

    /// The candidates that match, a bit for each.
    pub fn matched(&self) -> &[u64] {
        &self.matched
    }

    /// True if this candidate matches.
    pub fn has_matched(&self, candidate: usize) -> bool {
        self.matched.get(candidate / 64).is_some_and(|word| word >> (candidate % 64) & 1 == 1)
    }

    pub(crate) fn set_matched(&mut self, candidate: usize) {
        self.matched[candidate / 64] |= 1 << (candidate % 64);
    }

    /// Begins with no candidate matched; returns those that were.
    pub(crate) fn take_matched(&mut self) -> Vec<u64> {
        let none = vec![0; self.matched.len()];
        std::mem::replace(&mut self.matched, none)
    }

    /// Goes back to the candidates that matched `before`, with those found since.
    pub(crate) fn add_matched(&mut self, before: Vec<u64>) {
        let found = std::mem::replace(&mut self.matched, before);
        self.matched.iter_mut().zip(found).for_each(|(all, found)| *all |= found);
    }

    /// Returns the number of values of this class that have been scanned.
    pub(crate) fn seen(&self, class: Class) -> usize {
        self.classes_seen[class as usize] as usize
    }

    /// So many values of this class have been scanned from now on; returns how many were before.
    pub(crate) fn see(&mut self, class: Class, count: usize) -> usize {
        std::mem::replace(&mut self.classes_seen[class as usize], count as u32) as usize
    }
}
