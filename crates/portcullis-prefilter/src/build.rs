//! Load time: from candidates to tables.

use std::borrow::Cow;

use portcullis_match::{Gate, Gates, LiteralSets, LiteralSetsBuilder};
use portcullis_types::{ByteSet, Variable};
use portcullis_values::{ChainId, Chains, Class};

use crate::gates::{BLOCK_BITS, Block, GateTable, List};
use crate::readers::{Reader, Readers, Side};
use crate::{Entry, Prefilter, Stages, byte_classes};

/// A condition that a rule needs to match, and which may match in values that are known before the rule runs.
#[derive(Clone, Debug)]
pub struct Candidate<'a> {
    /// The values that it reads.
    pub reads: Vec<Read>,
    /// The conditions that a text must meet for a match; [`Gates::within`] is for texts of
    /// [`plain_bytes`](crate::plain_bytes).
    pub gates: Cow<'a, Gates>,
    /// For a candidate that matches where none of some words is, whatever else there is: the gates of these
    /// words.
    pub absent_words: Option<Cow<'a, Gates>>,
    /// Candidates of one rule have the same number here, and stand side by side.
    pub rule: u32,
}

/// Values that a candidate reads.
#[derive(Clone, Debug)]
pub struct Read {
    /// The message that they are in.
    pub side: Side,
    /// The origin of the values.
    pub origin: Origin,
    /// The candidate looks at their forms after each of these.
    pub chains: Vec<ChainId>,
}

/// The origin of values that a candidate reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// All of a class.
    Class(Class),
    /// Those of a class under one key, in lower case.
    Key(Class, Box<[u8]>),
    /// The one value of a variable.
    Scalar(Variable),
}

impl Prefilter {
    /// For these candidates, which are known by their places from then on.
    pub fn new(chains: &Chains, candidates: &[Candidate<'_>], stages: Stages) -> Prefilter {
        let blocks = candidates.len().div_ceil(BLOCK_BITS);
        let width = blocks * Block::default().len();
        let gates: Vec<Cow<'_, Gates>> =
            candidates.iter().map(|candidate| stages.gates(&candidate.gates)).collect();
        let mut readers = Readers::default();
        let mut tables = [GateTableBuilder::new(blocks), GateTableBuilder::new(blocks)];
        for (number, (candidate, gates)) in candidates.iter().zip(&gates).enumerate() {
            let absent = candidate.absent_words.as_deref().filter(|_| stages.has(Stages::WORDS));
            tables[0].enter(Some(&gates.any), absent, candidate.side());
            tables[1].enter(gates.within.as_ref(), absent, candidate.side());
            for read in &candidate.reads {
                let reader = readers.of(&read.origin, || Reader::new(read.side, width));
                read.chains.iter().for_each(|&chain| reader.add(chains, chain, number, stages));
            }
        }
        let gates = tables.map(|table| table.finish(stages));
        let digits = gates[1].literals.each_ref().map(sets_of_digits);
        readers.finish(
            chains,
            stages,
            |candidate| gates[0].conditions[candidate].length_min as usize,
            |side, candidate| gates[1].digits_min(candidate, &digits[side as usize]),
        );
        // Without conditions of their own, no text but the empty one is of the second kind.
        let not_plain = if stages.has(Stages::PLAIN) { byte_classes::not_plain() } else { u64::MAX };
        Prefilter { width, entries: entries(candidates), readers, gates, not_plain }
    }
}

impl Candidate<'_> {
    /// The message that it reads; `None` if it reads both: no literal sets are for both then.
    fn side(&self) -> Option<Side> {
        let first = self.reads.first()?.side;
        self.reads.iter().all(|read| read.side == first).then_some(first)
    }
}

fn entries(candidates: &[Candidate<'_>]) -> Vec<Entry> {
    let same_rule = candidates.chunk_by(|a, b| a.rule == b.rule);
    let mut from = 0;
    let ranges = same_rule.flat_map(|rule| {
        let range = from..from + rule.len() as u32;
        from = range.end;
        std::iter::repeat_n(range, rule.len())
    });
    ranges.map(|rule| Entry { rule, ..Entry::default() }).collect()
}

/// A [`GateTable`] in the making.
struct GateTableBuilder<'a> {
    table: GateTable,
    /// By [`Side`].
    literals: [LiteralSetsBuilder<'a>; 2],
}

impl<'a> GateTableBuilder<'a> {
    fn new(blocks: usize) -> GateTableBuilder<'a> {
        GateTableBuilder { table: GateTable::new(blocks), literals: Default::default() }
    }

    /// The next candidate, with what it needs in these texts; `None`: it matches in none of them. `absent`:
    /// see [`Candidate::absent_words`].
    fn enter(&mut self, gate: Option<&'a Gate>, absent: Option<&'a Gates>, side: Option<Side>) {
        let Some(gate) = gate else { return self.table.add_impossible() };
        let mut numbered = |words: &'a [Vec<Vec<u8>>]| -> Box<[List]> {
            let Some(side) = side else { return Box::default() };
            words.iter().filter_map(|list| self.numbered(list, side)).collect()
        };
        let none_of = absent.and_then(|gates| numbered(&gates.any.words).first().map(|list| list.number));
        let lists = numbered(&gate.words);
        self.table.add(gate, lists, none_of);
    }

    /// `None` if there are too many lists.
    fn numbered(&mut self, list: &'a [Vec<u8>], side: Side) -> Option<List> {
        let longer: Vec<&[u8]> = list.iter().map(Vec::as_slice).filter(|word| word.len() > 1).collect();
        let number = self.literals[side as usize].add(&longer)?;
        let bytes = list.iter().filter(|word| word.len() == 1).flatten();
        let bytes = bytes.fold(ByteSet::EMPTY, |set, &byte| set.with(byte)).in_both_cases();
        Some(List { number, classes: byte_classes::touching(&bytes) })
    }

    fn finish(self, stages: Stages) -> GateTable {
        let literals = self.literals.map(LiteralSetsBuilder::finish);
        let literals = match stages.has(Stages::FEW_WORDS) {
            true => literals,
            false => literals.map(LiteralSets::only_together),
        };
        GateTable { literals, ..self.table }
    }
}

/// By set: whether it has a word of digits.
fn sets_of_digits(literals: &LiteralSets) -> Vec<bool> {
    let mut sets = vec![false; literals.len()];
    let numbers = literals.words().filter(|(word, _)| word.iter().all(u8::is_ascii_digit));
    numbers.flat_map(|(_, of)| of).for_each(|&set| sets[usize::from(set)] = true);
    sets
}
