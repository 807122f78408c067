//! Request time: what `base64Decode` makes of a value that is not encoded is noise. In most noise one of
//! white space, `%` and `\` stands, so that each transformation behind makes a further form of it. One pass
//! over what they all have in common (`residue`) shows that nothing can match in any of these. Most noise is
//! ruled out before that: it has no run of bytes that is long enough for a word ([`Runs`]).

use portcullis_decode::{is_escaped, is_removed, residue};
use portcullis_match::{Folded, LiteralSet};

use crate::Prefilter;
use crate::readers::{Reader, bits, bits_of};
use crate::state::State;

/// Buffers.
#[derive(Debug, Default)]
pub(crate) struct ResidueBuffers {
    residue: Vec<u8>,
    folded: Vec<u8>,
}

/// The bytes that words consist of.
#[derive(Clone, Debug)]
pub(crate) struct Runs {
    /// By byte: true if one of the words has it, or no residue does.
    has: [bool; 256],
    /// The length of the shortest word.
    length_min: usize,
}

impl Runs {
    /// Of the residues of words.
    fn of<'a>(words: impl Iterator<Item = &'a [u8]>) -> Runs {
        let mut runs =
            Runs { has: std::array::from_fn(|byte| is_removed(byte as u8)), length_min: usize::MAX };
        for word in words {
            runs.length_min = runs.length_min.min(word.len());
            for byte in word {
                runs.has[usize::from(byte.to_ascii_lowercase())] = true;
                runs.has[usize::from(byte.to_ascii_uppercase())] = true;
            }
        }
        runs
    }

    /// False if the residue of `text` has none of the words: no run of their bytes is as long as one.
    fn may_be_in(&self, text: &[u8]) -> bool {
        let mut rest = text;
        // From the end of each place where a run could be, most of which have another byte near it.
        while let Some(place) = rest.get(..self.length_min) {
            match place.iter().rposition(|&byte| !self.has[usize::from(byte)]) {
                Some(at) => rest = &rest[at + 1..],
                None => return true,
            }
        }
        false
    }
}

impl State {
    /// True if no candidate can match in `made`, the form of these nodes, nor in what is made of it, since no
    /// word that one of them needs stands in the residue.
    pub(crate) fn residue_rules_out(
        &mut self,
        prefilter: &Prefilter,
        reader: &Reader,
        nodes: &[u16],
        made: &[u8],
    ) -> bool {
        let nodes = || nodes.iter().map(|&node| &reader.nodes[usize::from(node)]);
        if !nodes().all(|node| node.keeps_residue) || is_escaped(made) {
            return false;
        }
        if prefilter.residual_runs(reader).is_some_and(|runs| !runs.may_be_in(made)) {
            return true;
        }
        let ResidueBuffers { residue: left, folded } = &mut self.buffers.residue;
        residue(made, left);
        let left = Folded::of(left, folded);
        nodes().all(|node| {
            node.below.iter().zip(&self.matched).enumerate().all(|(word, (below, matched))| {
                bits_of(below & !matched).all(|bit| {
                    let words = prefilter.residual_words(word * 64 + bit, reader);
                    words.is_some_and(|words| !words.may_be_in(left))
                })
            })
        })
    }
}

impl Prefilter {
    /// The runs of all words that candidates of this reader need in forms of any value; `None` if one of them
    /// has no words.
    fn residual_runs<'r>(&self, reader: &'r Reader) -> Option<&'r Runs> {
        let runs = reader.residual_runs.get_or_init(|| {
            let nodes = reader.nodes.iter().filter(|node| node.acts_always() && node.keeps_residue);
            let candidates = nodes.flat_map(|node| bits(&node.below));
            let sets: Option<Vec<_>> = candidates.map(|at| self.residual_words(at, reader)).collect();
            Some(Box::new(Runs::of(sets?.into_iter().flat_map(LiteralSet::words))))
        });
        runs.as_deref()
    }

    /// Returns the set that finds the residue of a word that this candidate needs in any text, if there is
    /// one.
    fn residual_words(&self, at: usize, reader: &Reader) -> Option<&LiteralSet> {
        let words = self.entries[at].residual.get_or_init(|| {
            let gates = &self.gates[0];
            let literals = &gates.literals[reader.side as usize];
            let lists = gates.conditions[at].lists.iter().filter(|list| list.classes == 0);
            lists.map(|list| literals.words_of(list.number)).find_map(|words| {
                let residue_of = |word| {
                    let mut left = Vec::new();
                    residue(word, &mut left);
                    left
                };
                let left: Vec<Vec<u8>> = words.map(residue_of).collect();
                LiteralSet::new(&left.iter().map(Vec::as_slice).collect::<Vec<_>>())
            })
        });
        words.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run is found in each text whose residue has a word.
    #[test]
    fn no_word_is_missed() {
        let words: [&[u8]; 3] = [b"eval(", b"_$$nd", b"process.env"];
        let runs = Runs::of(words.into_iter());
        let mut left = Vec::new();
        let (mut state, mut found) = (7u64, [0; 2]);
        let mut next = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        for _ in 0..20_000 {
            let parts: &[&[u8]] = &[
                b"eval(", b"EVA", b"l", b"(", b"_$$", b"nD", b"process", b".env", b" ", b"\0%", b"\xe9", b"!",
            ];
            let text: Vec<u8> = (0..next(9)).flat_map(|_| parts[next(parts.len())]).copied().collect();
            residue(&text, &mut left);
            let is_in = |word: &&[u8]| left.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word));
            let is_there = words.iter().any(is_in);
            assert!(!is_there || runs.may_be_in(&text), "{}", text.escape_ascii());
            found[usize::from(is_there)] += 1;
        }
        assert!(found.iter().all(|&count| count > 1_000), "{found:?}");
        assert!(!runs.may_be_in(b"") && !runs.may_be_in(b"eval"));
        assert!(!runs.may_be_in(&b"\xe9val!".repeat(20)));
    }
}
