//! PCRE patterns that automata cannot run: lookaround, back references, atomic groups, conditions, `\K`.
//!
//! ```text
//! tree ──> program ──> machine: position, groups, a stack of choices      every step is counted
//!   └────> superset ──> automaton: "no match anywhere" without the machine
//! ```
//!
//! A machine that tries and takes back needs time without bound in the worst case, so each search has a
//! [`Budget`]. When it is spent, the search ends with [`Exhausted`], which is neither a match nor none; the
//! caller says so where operators look. Values that no form of the pattern can match never get to the
//! machine: the automaton of a superset of the pattern refuses them in linear time.

mod machine;
mod program;

use regex_automata::meta;

use super::node::Node;
use super::parser::Parsed;
use super::{Captures, LAZY_DFA_BYTES_MAX, NFA_BYTES_MAX, RegexError, SMALL_NFA_BYTES_MAX};
use machine::Machine;
use portcullis_types::Span;
use program::Program;

/// The budget of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Choices that may be taken back from one starting position: `SecPcreMatchLimit`.
    pub choices_max: u32,
    /// Choices that may be open at once: `SecPcreMatchLimitRecursion`. Bounds the memory, 24 bytes each.
    pub depth_max: u32,
    /// Steps left, over all starting positions and all searches that share the budget.
    pub steps: u64,
}

impl Budget {
    /// Choices from one starting position where the rules say nothing.
    pub const CHOICES_MAX: u32 = 50_000;
    /// Open choices where the rules say nothing, and at most.
    pub const DEPTH_MAX: u32 = 100_000;
    /// Steps of one search.
    pub const SEARCH_STEPS_MAX: u64 = 2_000_000;
}

impl Default for Budget {
    fn default() -> Self {
        Budget { choices_max: Self::CHOICES_MAX, depth_max: Self::DEPTH_MAX, steps: u64::MAX }
    }
}

/// A search was given up: its budget is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exhausted;

impl std::fmt::Display for Exhausted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the pattern took more steps than it may")
    }
}

impl std::error::Error for Exhausted {}

/// A compiled pattern for the machine.
pub(super) struct Backtracker {
    program: Program,
    /// Finds nothing where the pattern has no match; `None` if it would be too large.
    superset: Option<meta::Regex>,
}

impl Backtracker {
    pub(super) fn new(parsed: &Parsed) -> Result<Backtracker, RegexError> {
        let program = Program::new(parsed)?;
        Ok(Backtracker { program, superset: automaton(&parsed.node, NFA_BYTES_MAX) })
    }

    /// With less memory for the automaton.
    pub(super) fn small(parsed: &Parsed) -> Result<Backtracker, RegexError> {
        let program = Program::new(parsed)?;
        Ok(Backtracker { program, superset: automaton(&parsed.node, SMALL_NFA_BYTES_MAX) })
    }

    pub(super) fn group_count(&self) -> usize {
        (self.program.groups as usize).min(9)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.program.memory_bytes() + self.superset.as_ref().map_or(0, meta::Regex::memory_usage)
    }

    /// Searches from `from` on. True, and `out` filled, at the leftmost match; false and `out` cleared
    /// without one.
    pub(super) fn search(
        &self,
        hay: &[u8],
        from: usize,
        budget: &mut Budget,
        out: &mut Captures,
    ) -> Result<bool, Exhausted> {
        *out = Captures::default();
        if let Some(superset) = &self.superset {
            let input = regex_automata::Input::new(hay).span(from..hay.len()).earliest(true);
            if !superset.is_match(input) {
                return Ok(false);
            }
        }
        let mut machine = Machine::new(&self.program, hay, budget);
        let result = machine.search(from);
        if let Ok(true) = result {
            for (index, span) in out.iter_mut().enumerate() {
                *span = machine.group(index).map(|(start, end)| Span::new(start.min(end), end));
            }
        }
        result
    }
}

fn automaton(node: &Node, nfa_bytes_max: usize) -> Option<meta::Regex> {
    let config = meta::Config::new()
        .utf8_empty(false)
        .nfa_size_limit(Some(nfa_bytes_max))
        .hybrid_cache_capacity(LAZY_DFA_BYTES_MAX);
    meta::Builder::new().configure(config).build_from_hir(&node.superset()).ok()
}
