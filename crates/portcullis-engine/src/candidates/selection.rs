//! The steps of a transaction that have to run.

use portcullis_prefilter::{Memo, Scan, State};
use portcullis_types::Phase;
use portcullis_values::Values;

use crate::Plan;
use crate::operator::Captures;
use crate::patterns::Patterns;

use super::Candidates;
use super::verify::Operators;

/// The steps that have to run: those that always do, and those whose candidates match in the values so far.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    /// By phase, a bit for each step.
    pub(super) steps: [Vec<u64>; 5],
    pub(super) state: State,
    /// Candidates that matched, as far as their rules are in `steps`.
    pub(super) noted: Vec<u64>,
    /// A buffer.
    folded: Vec<u8>,
}

impl Selection {
    /// For a new transaction; `all`: also steps that do nothing but match.
    pub(crate) fn reset(&mut self, candidates: &Candidates, all: bool) {
        for (steps, (always, idle)) in
            self.steps.iter_mut().zip(candidates.always.iter().zip(&candidates.idle))
        {
            steps.clone_from(always);
            if !all {
                steps.iter_mut().zip(idle).for_each(|(steps, idle)| *steps &= !idle);
            }
        }
        self.state.reset(&candidates.prefilter, &candidates.unset);
        self.noted.clear();
        self.noted.extend_from_slice(self.state.matched());
    }

    /// Adds the steps that have to run because of values that are new since the last call, before the rules
    /// of `phase`.
    pub(crate) fn scan(
        &mut self,
        plan: &Plan,
        phase: Phase,
        values: &mut Values,
        patterns: &mut Patterns,
        memo: Option<&Memo>,
    ) {
        let candidates = &plan.candidates;
        if phase.number() <= candidates.last_phase {
            let memo = memo.map(|memo| (memo, &candidates.prefilter));
            self.scan_with(candidates, plan, values, patterns, |scan| scan.run(memo));
        }
    }

    pub(super) fn scan_with(
        &mut self,
        candidates: &Candidates,
        plan: &Plan,
        values: &mut Values,
        patterns: &mut Patterns,
        scan: impl FnOnce(&mut Scan<'_, Operators<'_>>),
    ) {
        let operators = Operators {
            candidates: &candidates.list,
            links: &plan.links,
            patterns,
            captures: Captures::default(),
            folded: &mut self.folded,
        };
        scan(&mut Scan::new(&candidates.prefilter, &plan.chains, values, &mut self.state, operators));
        self.note_matched(candidates);
    }

    /// A rule runs if all of its candidates match.
    fn note_matched(&mut self, candidates: &Candidates) {
        for (at, (&matched, noted)) in self.state.matched().iter().zip(&mut self.noted).enumerate() {
            let mut new = matched & !*noted;
            *noted = matched;
            while new != 0 {
                let candidate = &candidates.list[at * 64 + new.trailing_zeros() as usize];
                new &= new - 1;
                if candidate.of_rule.clone().all(|other| self.state.has_matched(other as usize)) {
                    let step = candidate.step as usize;
                    self.steps[usize::from(candidate.phase)][step / 64] |= 1 << (step % 64);
                }
            }
        }
    }

    /// True if this candidate matches some value.
    pub(crate) fn has_matched(&self, candidate: u32) -> bool {
        self.state.has_matched(candidate as usize)
    }

    /// The steps that have to run, of 64 steps.
    pub(crate) fn runs(&self, phase: Phase, word: usize) -> u64 {
        self.steps[usize::from(phase.number()) - 1].get(word).copied().unwrap_or_default()
    }

    /// The first step of `phase` at `from` or after it that has to run.
    pub(crate) fn next(&self, phase: Phase, from: usize) -> Option<usize> {
        let steps = &self.steps[usize::from(phase.number()) - 1];
        let first = steps.get(from / 64)? & (u64::MAX << (from % 64));
        let mut at = from / 64;
        let mut word = first;
        while word == 0 {
            at += 1;
            word = *steps.get(at)?;
        }
        Some(at * 64 + word.trailing_zeros() as usize)
    }
}
