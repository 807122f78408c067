//! Request time: what `base64Decode` makes of a value that is not encoded is noise. In most noise one of
//! white space, `%` and `\` stands, so that each transformation behind makes a further form of it. That
//! nothing can match in any of these is told by one look at what they all have in common (`residue`).

use portcullis_decode::residue;
use portcullis_match::{Folded, LiteralSet};

use crate::Prefilter;
use crate::readers::{Reader, bits_of};
use crate::state::State;

/// Buffers.
#[derive(Debug, Default)]
pub(crate) struct ResidueBuffers {
    residue: Vec<u8>,
    folded: Vec<u8>,
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
        if !nodes().all(|node| node.keeps_residue) {
            return false;
        }
        let ResidueBuffers { residue: left, folded } = &mut self.buffers.residue;
        if !residue(made, left) {
            return false;
        }
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
