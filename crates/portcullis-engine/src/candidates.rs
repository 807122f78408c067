//! Selection of the rules that have to run, from the values, before the executor looks at any rule.
//!
//! ```text
//!   load time:    links ──> Candidates, with a Prefilter over them
//!   each phase:   new values ──> Prefilter ──> candidates that match ──> Selection: the steps to run
//! ```
//!
//! A rule runs only if the operator of its first link says yes to a form of a value that the link names, or
//! if that cannot be known beforehand. Of a chain the other links are asked, too, where that is cheap and
//! those before them change nothing. The rules that are left then run exactly as if all did: running the
//! others would have changed nothing. Only values that rules cannot change are looked at: the message, not
//! `TX` or `MATCHED_VAR`.
//!
//! [`portcullis_prefilter`] finds the candidates that match, and knows nothing of rules. Here is what a
//! candidate is to the engine: the link that it stands for, how its operator is asked, and what the answer
//! means for the steps of a phase.

mod build;
mod origin;
mod selection;
mod tx_copies;
mod unset;
mod verify;

use std::ops::Range;
use std::sync::Arc;

use portcullis_prefilter::Prefilter;
use portcullis_types::Variable;

pub(crate) use build::is_pure;
pub(crate) use selection::Selection;
use tx_copies::TxCopies;

/// Links whose answers can be known before their rules run, and the steps that depend on them.
#[derive(Debug, Default)]
pub struct Candidates {
    /// Finds those that match.
    prefilter: Arc<Prefilter>,
    /// By number in the prefilter.
    list: Vec<Candidate>,
    /// Steps that run whatever the values are, by phase.
    always: [Vec<u64>; 5],
    /// Candidates that match what stands for a scalar without a value (`unset.rs`).
    unset: Vec<u64>,
    /// Of those that always run, the ones that do nothing but match.
    idle: [Vec<u64>; 5],
    /// Candidates with [`Ask::TxCopies`].
    copying: Vec<u32>,
    /// Number of the last phase with a candidate.
    last_phase: u8,
}

/// A link whose answer can be known before its rule runs.
#[derive(Debug)]
struct Candidate {
    /// In [`Plan::links`](crate::Plan::links).
    link: u32,
    /// The place of its rule in the plan: phase number - 1, and step.
    phase: u8,
    step: u32,
    /// The candidates of the rule, which runs if all of them match.
    of_rule: Range<u32>,
    ask: Ask,
}

/// The way to find a candidate's answer.
#[derive(Debug)]
enum Ask {
    /// The operator is asked.
    Operator,
    /// The operator cannot be asked without its rule: the answer is taken for yes.
    Nothing,
    /// The operator is asked. A match sets captures, and the rule has to run for that; if it finds
    /// nothing, the link matches and changes nothing.
    CapturesMisses,
    /// The operator is asked, and that of the second link about what the first copies into `TX`.
    TxCopies(TxCopies),
}

impl Candidates {
    /// By phase, the steps that run whatever the message is and do more than match.
    pub(crate) fn always_run(&self) -> [Vec<u64>; 5] {
        std::array::from_fn(|phase| {
            let steps = self.always[phase].iter().zip(&self.idle[phase]);
            steps.map(|(always, idle)| always & !idle).collect()
        })
    }

    /// True for a step (phase number - 1, position) that runs whatever the message is.
    pub(crate) fn always_runs(&self, phase: usize, step: usize) -> bool {
        self.always[phase].get(step / 64).is_some_and(|word| word >> (step % 64) & 1 == 1)
    }

    /// The candidate of a step of which the first link leaves only captures, unless the candidate matches.
    pub(crate) fn captures_only(&self, phase: usize, step: usize) -> Option<u32> {
        let is_it = |at: &&u32| {
            let candidate = &self.list[**at as usize];
            (usize::from(candidate.phase), candidate.step as usize) == (phase, step)
        };
        self.copying.iter().find(is_it).copied()
    }

    /// True if a candidate reads this variable.
    pub(crate) fn reads(&self, variable: Variable) -> bool {
        self.prefilter.reads(variable)
    }

    /// The prefixes of `TX` keys that are left unwritten where no rule, and no caller that wants all matches,
    /// could read them.
    pub fn unwritten(&self) -> impl Iterator<Item = &[u8]> {
        self.copying.iter().filter_map(|&at| {
            if let Ask::TxCopies(copies) = &self.list[at as usize].ask { Some(copies.prefix()) } else { None }
        })
    }
}
