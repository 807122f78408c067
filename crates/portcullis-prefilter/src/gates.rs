//! Request time: what a text must have for a candidate to match in it.

use portcullis_match::{Gate, LiteralSet, LiteralSets};

use crate::readers::bits_of;
use crate::state::Classified;
use crate::{Prefilter, byte_classes};

/// So many words of a bitset that fit into registers.
pub(crate) type Block = [u64; 4];

/// Candidates in one block.
pub(crate) const BLOCK_BITS: usize = 64 * 4;

/// The conditions that the texts of candidates must meet.
#[derive(Debug, Default)]
pub(crate) struct GateTable {
    /// By block of candidates: those that can match in such texts at all.
    pub(crate) possible: Vec<Block>,
    /// By block of candidates.
    pub(crate) without: Vec<Without>,
    /// By candidate: what is not so simple.
    pub(crate) conditions: Vec<Conditions>,
    /// By [`Side`].
    pub(crate) literals: [LiteralSets; 2],
}

/// Candidates of a block that may match in texts without a byte class.
#[derive(Clone, Debug)]
pub(crate) struct Without {
    pub(crate) classes: [Block; 64],
    /// In texts without any of the classes of one of [`GROUPS`].
    pub(crate) groups: [Block; 4],
}

/// Byte classes that most values have none of (`byte_classes.rs`): upper case, control and high bytes; `!` to
/// `*`; `;` to `@`; brackets and the like.
pub(crate) const GROUPS: [u64; 4] = [0xf << 27 | 1 << 63, 0x3ff << 32, 0x3f << 48, 0xf << 54 | 0x1f << 59];

impl Default for Without {
    fn default() -> Self {
        Without { classes: [[u64::MAX; 4]; 64], groups: [[u64::MAX; 4]; 4] }
    }
}

/// More that a candidate's texts must have.
#[derive(Debug, Default)]
pub(crate) struct Conditions {
    pub(crate) length_min: u32,
    /// Byte classes; a text must have all of them.
    pub(crate) needed: u64,
    /// Byte classes; a text must have one of each set: the smallest set, if there is one,
    pub(crate) first: u64,
    /// and the others.
    pub(crate) classes: Box<[u64]>,
    /// Word lists; a text must have a word of each.
    pub(crate) lists: Box<[List]>,
    /// Of a link that matches texts with none of certain words: the list of these.
    pub(crate) none_of: Option<u16>,
}

/// Words of which a text must have one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    /// In [`GateTable::literals`].
    pub(crate) number: u16,
    /// Byte classes that the words of a single byte have: these are not looked for.
    pub(crate) classes: u64,
}

impl Conditions {
    /// False if no text of at most this length, with these byte classes at most, is let through. Of what
    /// [`GateTable::left`] leaves.
    #[inline]
    pub(crate) fn may_admit(&self, length_max: usize, classes: u64) -> bool {
        length_max >= self.length_min as usize && self.has_one_of_each(classes)
    }

    /// True if these byte classes have one of each set.
    #[inline]
    fn has_one_of_each(&self, classes: u64) -> bool {
        (self.first == 0 || self.first & classes != 0) && self.classes.iter().all(|set| set & classes != 0)
    }

    /// True if words have to be looked for in texts that all have these byte classes.
    #[inline]
    pub(crate) fn needs_words(&self, common: u64) -> bool {
        self.lists.iter().any(|list| list.classes & common == 0)
    }

    /// Returns the word sets that quickly show that texts with these byte classes lack required words.
    pub(crate) fn alone<'a>(
        &'a self,
        literals: &'a LiteralSets,
        classes: u64,
    ) -> impl Iterator<Item = &'a LiteralSet> {
        self.lists
            .iter()
            .filter(move |list| list.classes & classes == 0)
            .filter_map(|list| literals.alone(list.number))
    }

    /// True if this text, with words of these lists, is not held back.
    #[inline]
    pub(crate) fn admits(&self, text: &Classified, lists: &[u64]) -> bool {
        text.span.len() >= self.length_min as usize
            && self.needed & !text.classes == 0
            && self.has_one_of_each(text.classes)
            && self.has_words(text.classes, lists)
    }

    /// True if a text with these byte classes and words of these lists has a word of each list.
    #[inline]
    pub(crate) fn has_words(&self, classes: u64, lists: &[u64]) -> bool {
        let has_word = |list: &List| {
            list.classes & classes != 0 || lists[usize::from(list.number) / 64] >> (list.number % 64) & 1 == 1
        };
        self.lists.iter().all(has_word)
    }

    /// Returns true if the operator of a negated link on words finds none in a text with words of these
    /// lists; `None`: the operator has to be asked.
    #[inline]
    pub(crate) fn has_none(&self, lists: &[u64]) -> Option<bool> {
        let list = usize::from(self.none_of?);
        Some(lists[list / 64] >> (list % 64) & 1 == 0)
    }
}

impl GateTable {
    /// Of no candidate yet, with room for so many blocks of them.
    pub(crate) fn new(blocks: usize) -> GateTable {
        let (possible, without) = (vec![Block::default(); blocks], vec![Without::default(); blocks]);
        GateTable { possible, without, ..GateTable::default() }
    }

    /// The next candidate matches in none of these texts.
    pub(crate) fn add_impossible(&mut self) {
        self.conditions.push(Conditions::default());
    }

    /// The next candidate needs what `gate` says, words by these lists.
    pub(crate) fn add(&mut self, gate: &Gate, lists: Box<[List]>, none_of: Option<u16>) {
        let at = self.conditions.len();
        let (block, word, bit) = (at / BLOCK_BITS, at % BLOCK_BITS / 64, 1 << (at % 64));
        self.possible[block][word] |= bit;
        let (single, mut several): (Vec<u64>, Vec<u64>) =
            gate.bytes.iter().map(byte_classes::touching).partition(|touching| touching.count_ones() == 1);
        for touching in &single {
            let without = &mut self.without[block];
            without.classes[touching.trailing_zeros() as usize][word] &= !bit;
            for (group, without) in GROUPS.iter().zip(&mut without.groups) {
                if group & touching != 0 {
                    without[word] &= !bit;
                }
            }
        }
        several.sort_by_key(|set: &u64| std::cmp::Reverse(set.count_ones()));
        self.conditions.push(Conditions {
            length_min: gate.length_min.try_into().unwrap_or(u32::MAX),
            needed: single.iter().fold(0, |all, touching| all | touching),
            first: several.pop().unwrap_or(0),
            classes: several.into(),
            lists,
            none_of,
        });
    }
}

impl Prefilter {
    /// Returns the gate table for texts with these byte classes.
    pub(crate) fn gates(&self, classes: u64) -> &GateTable {
        &self.gates[usize::from(classes & self.not_plain == 0)]
    }
}

impl GateTable {
    /// True if one of `candidates` has not matched and may match in a text of this length with these byte
    /// classes only.
    pub(crate) fn any_left(&self, candidates: &[u64], matched: &[u64], length: usize, classes: u64) -> bool {
        let possible = self.possible.iter().flatten();
        candidates.iter().zip(matched).zip(possible).enumerate().any(|(at, ((all, matched), may))| {
            bits_of(all & !matched & may)
                .map(|bit| &self.conditions[at * 64 + bit])
                .any(|gate| gate.needed & !classes == 0 && gate.may_admit(length, classes))
        })
    }

    /// True if all of these have matched or cannot match in a text with these byte classes only.
    pub(crate) fn rule_out(&self, candidates: &[u16], matched: &[u64], classes: u64) -> bool {
        candidates.iter().all(|&at| {
            let (at, bit) = (usize::from(at), 1 << (at % 64));
            let may = self.possible[at / BLOCK_BITS][at % BLOCK_BITS / 64] & !matched[at / 64] & bit != 0;
            !may || self.conditions[at].needed & !classes != 0
        })
    }

    /// Writes to `left` those of `candidates` that have not matched and may match in a text with these byte
    /// classes only.
    pub(crate) fn left(&self, candidates: &[u64], matched: &[u64], classes: u64, left: &mut Vec<u64>) {
        left.clear();
        left.resize(candidates.len(), 0);
        if self.left_of_few(candidates, matched, classes, left) {
            return;
        }
        left.clear();
        let blocks = candidates.as_chunks().0.iter().zip(matched.as_chunks().0);
        let tables = self.possible.iter().zip(&self.without);
        for ((candidates, matched), (possible, without)) in blocks.zip(tables) {
            left.extend(without_absent(candidates, matched, possible, without, classes));
        }
    }
}

impl GateTable {
    /// The same, one candidate after the other; false if they are too many for that.
    fn left_of_few(&self, candidates: &[u64], matched: &[u64], classes: u64, left: &mut [u64]) -> bool {
        let (mut few, mut count) = ([0; FEW], 0);
        let blocks = candidates.as_chunks::<4>().0.iter().zip(matched.as_chunks::<4>().0).zip(&self.possible);
        for (block, ((all, matched), possible)) in blocks.enumerate() {
            if *all == Block::default() {
                continue;
            }
            for at in 0..all.len() {
                for bit in bits_of(all[at] & !matched[at] & possible[at]) {
                    let Some(place) = few.get_mut(count) else { return false };
                    (*place, count) = (block * BLOCK_BITS + at * 64 + bit, count + 1);
                }
            }
        }
        for &at in &few[..count] {
            if self.conditions[at].needed & !classes == 0 {
                left[at / 64] |= 1 << (at % 64);
            }
        }
        true
    }
}

impl GateTable {
    /// Returns the smallest number of digits that this candidate matches; `None`: it matches no text of
    /// digits only. `lists` are the word lists with words of digits.
    pub(crate) fn digits_min(&self, candidate: usize, lists: &[bool]) -> Option<usize> {
        let gate = &self.conditions[candidate];
        let has_number =
            |list: &List| list.classes & byte_classes::DIGIT != 0 || lists[usize::from(list.number)];
        let is_possible =
            self.possible[candidate / BLOCK_BITS][candidate % BLOCK_BITS / 64] >> (candidate % 64) & 1 == 1;
        let may_match = is_possible
            && gate.needed & !byte_classes::DIGIT == 0
            && gate.has_one_of_each(byte_classes::DIGIT)
            && gate.lists.iter().all(has_number);
        may_match.then_some(gate.length_min as usize)
    }
}

/// So many candidates are asked one by one.
pub(crate) const FEW: usize = 8;

/// [`GateTable::left`] for one block.
fn without_absent(
    candidates: &Block,
    matched: &Block,
    possible: &Block,
    without: &Without,
    classes: u64,
) -> Block {
    let mut left: Block = std::array::from_fn(|at| candidates[at] & !matched[at] & possible[at]);
    if left == Block::default() {
        return left;
    }
    let mut keep = |other: &Block| left.iter_mut().zip(other).for_each(|(left, other)| *left &= other);
    let mut absent = !classes;
    for (group, without) in GROUPS.iter().zip(&without.groups) {
        if absent & group == *group {
            absent &= !group;
            keep(without);
        }
    }
    while absent != 0 {
        let class = absent.trailing_zeros() as usize;
        absent &= absent - 1;
        keep(&without.classes[class]);
    }
    left
}
