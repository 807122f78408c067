//! Asks operators for the prefilter.

use portcullis_prefilter::{Answer, Text, Verifier, plain_bytes};

use crate::operator::{Captures, Operator, Pattern};
use crate::patterns::Patterns;
use crate::plan::Link;

use super::{Ask, Candidate};

/// The operators of candidates, with the transaction's allowance of work.
pub(super) struct Operators<'a> {
    pub(super) candidates: &'a [Candidate],
    pub(super) links: &'a [Link],
    pub(super) patterns: &'a mut Patterns,
    pub(super) captures: Captures,
    /// A buffer.
    pub(super) folded: &'a mut Vec<u8>,
}

impl Verifier for Operators<'_> {
    fn verify(&mut self, candidate: usize, text: Text<'_>) -> Answer {
        let candidate = &self.candidates[candidate];
        let link = &self.links[candidate.link as usize];
        let matches = match &candidate.ask {
            Ask::Operator => match self.decided_at_start(link, text) {
                Some(decided) => decided,
                None => self.test(link, text.bytes) != link.negated,
            },
            Ask::Nothing => true,
            Ask::CapturesMisses => match self.test(link, text.bytes) {
                true => return Answer::RuleRuns,
                false => true,
            },
            Ask::TxCopies(copies) => {
                copies.passes(self.links, link, text.bytes, &mut self.captures, self.patterns)
            }
        };
        if matches { Answer::Match } else { Answer::NoMatch }
    }

    fn charge(&mut self, units: u64) -> bool {
        self.patterns.charge(units)
    }

    fn is_spent(&self) -> bool {
        self.patterns.is_spent()
    }
}

impl Operators<'_> {
    fn test(&mut self, link: &Link, text: &[u8]) -> bool {
        let argument = link.operator.argument().and_then(|argument| argument.as_literal());
        link.operator.test(text, argument.unwrap_or_default(), false, &mut self.captures, self.patterns)
    }

    /// The answer of a pattern for a text of plain bytes, if the beginning of the text alone decides it.
    fn decided_at_start(&mut self, link: &Link, text: Text<'_>) -> Option<bool> {
        let Operator::Rx(Pattern::Fixed(regex)) = &link.operator else { return None };
        if !text.is_plain || link.negated {
            return None;
        }
        regex.decided_at_start(&plain_bytes(), text.bytes, self.folded)
    }
}
