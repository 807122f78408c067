//! Sets of bytes of which every match has one.

use portcullis_types::ByteSet;
use regex_syntax::hir::{Class, Hir, HirKind};

use super::FREQUENCIES;

/// Sets kept of one pattern, the rarest.
const SETS_MAX: usize = 12;
/// Conditions made of an alternation.
const OF_ALTERNATIVES_MAX: usize = 4;

/// The sets, rarest first. Either letter case counts as both: the texts are looked at without regard to it.
pub(super) fn required(hir: &Hir) -> Vec<ByteSet> {
    let mut sets = walk(hir);
    sets.truncate(SETS_MAX);
    sets
}

/// Recursion follows the nesting of the pattern, which its parser bounds.
fn walk(hir: &Hir) -> Vec<ByteSet> {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => Vec::new(),
        HirKind::Literal(text) => {
            let bytes = ByteSet::of(&text.0.to_ascii_lowercase());
            tidy(bytes.iter().map(|byte| ByteSet::EMPTY.with(byte).in_both_cases()).collect())
        }
        HirKind::Class(Class::Bytes(class)) => {
            let set = class
                .ranges()
                .iter()
                .fold(ByteSet::EMPTY, |set, range| set.union(ByteSet::range(range.start(), range.end())));
            vec![set.in_both_cases()]
        }
        HirKind::Class(Class::Unicode(_)) => Vec::new(),
        HirKind::Repetition(repetition) if repetition.min > 0 => walk(&repetition.sub),
        HirKind::Repetition(_) => Vec::new(),
        HirKind::Capture(capture) => walk(&capture.sub),
        HirKind::Concat(parts) => tidy(parts.iter().flat_map(walk).collect()),
        HirKind::Alternation(branches) => of_alternatives(branches),
    }
}

/// The frequency of the bytes of `set` in ordinary text, in millionths.
fn weight(set: &ByteSet) -> u32 {
    const WEIGHTS: [u32; 256] = {
        let mut weights = [0; 256];
        let mut byte = 0;
        while byte < 256 {
            if !(byte as u8).is_ascii_uppercase() {
                weights[byte] = (FREQUENCIES[byte] * 1e6) as u32;
            }
            byte += 1;
        }
        weights
    };
    set.iter().map(|byte| WEIGHTS[usize::from(byte)]).sum()
}

/// Rarest first, and without what follows from another.
fn tidy(mut sets: Vec<ByteSet>) -> Vec<ByteSet> {
    if sets.len() < 2 {
        return sets;
    }
    sets.sort_by_cached_key(weight);
    let mut kept: Vec<ByteSet> = Vec::new();
    for set in sets {
        // A set that holds one which is demanded anyway says nothing new.
        if kept.iter().all(|known| known.union(set) != set) {
            kept.push(set);
        }
    }
    kept
}

/// A union of one set of each branch. The pairing is a guess: the rarest with the rarest, and so
/// on; and where all branches demand the same, that.
fn of_alternatives(branches: &[Hir]) -> Vec<ByteSet> {
    let of_branches: Vec<Vec<ByteSet>> = branches.iter().map(walk).collect();
    if of_branches.iter().any(Vec::is_empty) {
        return Vec::new();
    }
    let common =
        of_branches[0].iter().filter(|set| of_branches.iter().all(|sets| sets.contains(set))).copied();
    let mut sets: Vec<ByteSet> = common.collect();
    for rank in 0..OF_ALTERNATIVES_MAX {
        let at_rank = |sets: &Vec<ByteSet>| sets[rank.min(sets.len() - 1)];
        sets.push(of_branches.iter().map(at_rank).fold(ByteSet::EMPTY, ByteSet::union));
    }
    tidy(sets)
}
