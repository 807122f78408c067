//! Request time: what a text must have for a candidate to match in it.

use portcullis_match::FewWords;

use super::readers::bits_of;
use super::scan::Text;
use super::{BLOCK_BITS, Block, Conditions, Finder, GROUPS, Gates, List, Prefilter, Without, byte_classes};

impl Conditions {
    /// False if no text of at most this length, with these byte classes at most, is let through. Of what [`Gates::left`] leaves.
    #[inline]
    pub(super) fn may_admit(&self, length_max: usize, classes: u64) -> bool {
        length_max >= self.length_min as usize && self.has_one_of_each(classes)
    }

    /// True if these byte classes have one of each set.
    #[inline]
    fn has_one_of_each(&self, classes: u64) -> bool {
        (self.first == 0 || self.first & classes != 0) && self.classes.iter().all(|set| set & classes != 0)
    }

    /// True if words have to be looked for in texts that all have these byte classes.
    #[inline]
    pub(super) fn needs_words(&self, common: u64) -> bool {
        self.lists.iter().any(|list| list.classes & common == 0)
    }

    /// What says quickly that texts with these byte classes lack words which are needed.
    pub(super) fn few<'a>(&'a self, finder: &'a Finder, classes: u64) -> impl Iterator<Item = &'a FewWords> {
        self.lists
            .iter()
            .filter(move |list| list.classes & classes == 0)
            .filter_map(|list| finder.few(list.number))
    }

    /// True if this text, with words of these lists, is not held back.
    #[inline]
    pub(super) fn admits(&self, text: &Text, lists: &[u64]) -> bool {
        text.span.len() >= self.length_min as usize
            && self.needed & !text.classes == 0
            && self.has_one_of_each(text.classes)
            && self.has_words(text.classes, lists)
    }

    /// True if a text with these byte classes and words of these lists has a word of each list.
    #[inline]
    pub(super) fn has_words(&self, classes: u64, lists: &[u64]) -> bool {
        let has_word = |list: &List| {
            list.classes & classes != 0 || lists[usize::from(list.number) / 64] >> (list.number % 64) & 1 == 1
        };
        self.lists.iter().all(has_word)
    }

    /// Whether the operator of a negated link on words finds none in a text with words of these lists; `None`: it has to be asked.
    #[inline]
    pub(super) fn has_none(&self, lists: &[u64]) -> Option<bool> {
        let list = usize::from(self.none_of?);
        Some(lists[list / 64] >> (list % 64) & 1 == 0)
    }
}

impl Prefilter {
    /// What holds for texts with these byte classes.
    pub(super) fn gates(&self, classes: u64) -> &Gates {
        &self.gates[usize::from(classes & self.not_plain == 0)]
    }
}

impl Gates {
    /// True if one of `candidates` has not matched and may match in a text of this length with these byte classes only.
    pub(super) fn any_left(&self, candidates: &[u64], matched: &[u64], length: usize, classes: u64) -> bool {
        let possible = self.possible.iter().flatten();
        candidates.iter().zip(matched).zip(possible).enumerate().any(|(at, ((all, matched), may))| {
            bits_of(all & !matched & may)
                .map(|bit| &self.conditions[at * 64 + bit])
                .any(|gate| gate.needed & !classes == 0 && gate.may_admit(length, classes))
        })
    }

    /// True if all of these have matched or cannot match in a text with these byte classes only.
    pub(super) fn rule_out(&self, candidates: &[u16], matched: &[u64], classes: u64) -> bool {
        candidates.iter().all(|&at| {
            let (at, bit) = (usize::from(at), 1 << (at % 64));
            let may = self.possible[at / BLOCK_BITS][at % BLOCK_BITS / 64] & !matched[at / 64] & bit != 0;
            !may || self.conditions[at].needed & !classes != 0
        })
    }

    /// Writes to `left` those of `candidates` that have not matched and may match in a text with these byte classes only.
    pub(super) fn left(&self, candidates: &[u64], matched: &[u64], classes: u64, left: &mut Vec<u64>) {
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

impl Gates {
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

impl Gates {
    /// How many digits this candidate matches at least; `None`: it matches no text of digits only. `lists` are the word lists with words of
    /// digits.
    pub(super) fn digits_min(&self, candidate: usize, lists: &[bool]) -> Option<usize> {
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
pub(super) const FEW: usize = 8;

/// [`Gates::left`] for one block.
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
