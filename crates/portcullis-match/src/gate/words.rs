//! Lists of words of which every match has one.

use portcullis_types::ByteSet;
use regex_syntax::hir::{Class, Hir, HirKind};

use super::frequency;
use crate::LiteralTable;

/// Texts that a part of a pattern is spelled out to, at most.
const SPELLED_MAX: usize = 64;
/// Alternatives that are still spelled out.
const ALTERNATIVES_MAX: usize = 256;
/// Bytes of such a text.
const TEXT_BYTES_MAX: usize = 24;
/// Members of a class that is spelled out.
const CLASS_MAX: usize = 10;
/// Words in one list.
const LIST_MAX: usize = 3_000;
/// Lists kept of one pattern.
const LISTS_MAX: usize = 3;
/// A list whose words begin at more places of a text than this is not worth looking for.
const WEIGHT_MAX: f64 = 0.008;
/// The same for its words of one byte. These are not looked for, so that only what they let through counts.
const BYTES_WEIGHT_MAX: f64 = 0.05;

/// Lists shorter than this are compared word by word.
const FEW: usize = 16;

type Words = Vec<Vec<u8>>;

/// The lists, rarest first.
pub(super) fn required(hir: &Hir) -> Vec<Words> {
    let Spelled { exact, mut lists } = walk(hir);
    lists.extend(exact);
    lists.retain(are_words);
    let lists: Vec<Words> = lists.into_iter().map(without_redundant).filter(is_useful).collect();
    let mut weighed: Vec<(f64, Words)> = lists.into_iter().map(|list| (weight(&list), list)).collect();
    weighed.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    weighed.dedup();
    weighed.truncate(LISTS_MAX);
    weighed.into_iter().map(|(_, list)| list).collect()
}

/// Words that hold another one of the list say nothing beyond it. All are in lower case.
pub(super) fn without_redundant(mut words: Words) -> Words {
    words.sort_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
    words.dedup();
    let redundant: Vec<bool> = if words.len() < FEW {
        let holds_one_of = |word: &Vec<u8>, shorter: &[Vec<u8>]| {
            shorter.iter().any(|inner| word.windows(inner.len()).any(|window| window == inner.as_slice()))
        };
        words.iter().enumerate().map(|(at, word)| holds_one_of(word, &words[..at])).collect()
    } else {
        let finder = LiteralTable::new(&words.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let bytes = words.iter().filter(|word| word.len() == 1).flatten();
        let bytes = bytes.fold(ByteSet::EMPTY, |set, &byte| set.with(byte));
        let holds_other = |(own, word): (u32, &Vec<u8>)| {
            let mut other = word.len() > 1 && word.iter().any(|&byte| bytes.contains(byte));
            finder.find(word, |found, _| other |= found != own);
            other
        };
        (0..).zip(&words).map(holds_other).collect()
    };
    let mut redundant = redundant.into_iter();
    words.retain(|_| redundant.next() == Some(false));
    words
}

/// No text has the empty word not.
fn are_words(words: &Words) -> bool {
    !words.is_empty() && words.iter().all(|word| !word.is_empty())
}

/// Bytes alone are a condition of another kind.
fn is_useful(words: &Words) -> bool {
    let of = |is_byte: bool| words.iter().filter(move |word| (word.len() == 1) == is_byte);
    (1..=LIST_MAX).contains(&of(false).count())
        && of(false).map(|word| word_weight(word)).sum::<f64>() <= WEIGHT_MAX
        && of(true).map(|word| word_weight(word)).sum::<f64>() <= BYTES_WEIGHT_MAX
}

/// The share of positions in ordinary text at which a word of the list begins.
fn weight(words: &Words) -> f64 {
    words.iter().map(|word| word_weight(word)).sum()
}

/// The same for one word.
fn word_weight(word: &[u8]) -> f64 {
    word.iter().map(|&byte| frequency(byte)).product()
}

/// The texts and required words of a part of a pattern.
struct Spelled {
    /// All texts that it matches, in lower case, if they are few.
    exact: Option<Words>,
    /// Lists of which every match has a word.
    lists: Vec<Words>,
}

impl Spelled {
    fn unknown() -> Spelled {
        Spelled { exact: None, lists: Vec::new() }
    }

    fn exact(words: Words) -> Spelled {
        Spelled { exact: Some(words), lists: Vec::new() }
    }

    /// The rarest list, the texts themselves included.
    fn best(self) -> Option<Words> {
        let all = self.lists.into_iter().chain(self.exact).filter(are_words);
        let weighed = all.map(|words| (weight(&words), words));
        weighed.min_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, words)| words)
    }
}

/// Recursion follows the nesting of the pattern, which its parser bounds.
fn walk(hir: &Hir) -> Spelled {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => Spelled::exact(vec![Vec::new()]),
        HirKind::Literal(text) => Spelled::exact(vec![text.0.to_ascii_lowercase()]),
        HirKind::Class(Class::Bytes(class)) => {
            let size: usize = class.ranges().iter().map(|range| range.len()).sum();
            if size > 2 * CLASS_MAX {
                return Spelled::unknown();
            }
            let members = class.ranges().iter().flat_map(|range| range.start()..=range.end());
            let mut words: Words = members.map(|byte| vec![byte.to_ascii_lowercase()]).collect();
            words.sort_unstable();
            words.dedup();
            if words.is_empty() || words.len() > CLASS_MAX {
                Spelled::unknown()
            } else {
                Spelled::exact(words)
            }
        }
        HirKind::Class(Class::Unicode(_)) => Spelled::unknown(),
        HirKind::Repetition(repetition) => {
            let inner = walk(&repetition.sub);
            match (repetition.min, repetition.max, inner) {
                (0, Some(1), Spelled { exact: Some(mut words), .. }) if words.len() < SPELLED_MAX / 4 => {
                    words.push(Vec::new());
                    Spelled::exact(words)
                }
                (0, ..) => Spelled::unknown(),
                (1, Some(1), inner) => inner,
                (min, max, Spelled { exact: Some(words), lists }) => {
                    let mut all = words.clone();
                    for _ in 1..min.min(8) {
                        match crossed(&all, &words) {
                            Some(longer) => all = longer,
                            None => return Spelled { exact: None, lists: with(lists, all) },
                        }
                    }
                    match max == Some(min) && min <= 8 {
                        true => Spelled { exact: Some(all), lists },
                        false => Spelled { exact: None, lists: with(lists, all) },
                    }
                }
                (.., Spelled { exact: None, lists }) => Spelled { exact: None, lists },
            }
        }
        HirKind::Capture(capture) => walk(&capture.sub),
        HirKind::Concat(parts) => of_sequence(parts),
        HirKind::Alternation(branches) => of_alternatives(branches),
    }
}

fn with(mut lists: Vec<Words>, words: Words) -> Vec<Words> {
    if are_words(&words) {
        lists.push(words);
    }
    lists
}

/// Every text of `left` followed by every text of `right`; `None` if these are too many or too long.
fn crossed(left: &Words, right: &Words) -> Option<Words> {
    let longest = |words: &Words| words.iter().map(Vec::len).max().unwrap_or(0);
    if left.len() * right.len() > SPELLED_MAX || longest(left) + longest(right) > TEXT_BYTES_MAX {
        return None;
    }
    Some(left.iter().flat_map(|a| right.iter().map(move |b| [a.as_slice(), b].concat())).collect())
}

/// Neighbours that can be spelled out are, as far as that goes; the rarest stretch of such a run is its list.
fn of_sequence(parts: &[Hir]) -> Spelled {
    let mut lists: Vec<Words> = Vec::new();
    let mut run: Words = vec![Vec::new()];
    let mut best: Option<(f64, Words)> = None;
    let mut is_whole = true;
    for part in parts {
        let Spelled { exact, lists: inner } = walk(part);
        lists.extend(inner);
        let joined = exact.as_ref().and_then(|words| crossed(&run, words));
        run = match (joined, exact) {
            (Some(longer), _) => longer,
            (None, rest) => {
                is_whole = false;
                lists.extend(best.take().map(|(_, words)| words));
                rest.unwrap_or_else(|| vec![Vec::new()])
            }
        };
        if are_words(&run) {
            let weight = weight(&run);
            if best.as_ref().is_none_or(|(best, _)| weight < *best) {
                best = Some((weight, run.clone()));
            }
        }
    }
    if is_whole {
        return Spelled { exact: Some(run), lists };
    }
    lists.extend(best.map(|(_, words)| words));
    Spelled { exact: None, lists }
}

fn of_alternatives(branches: &[Hir]) -> Spelled {
    let spelled: Vec<Spelled> = branches.iter().map(walk).collect();
    let count: usize = spelled.iter().map(|branch| branch.exact.as_ref().map_or(0, Vec::len)).sum();
    if count <= ALTERNATIVES_MAX && spelled.iter().all(|branch| branch.exact.is_some()) {
        return Spelled::exact(spelled.into_iter().filter_map(|branch| branch.exact).flatten().collect());
    }
    let lists: Option<Vec<Words>> = spelled.into_iter().map(Spelled::best).collect();
    Spelled { exact: None, lists: lists.map(|lists| vec![lists.concat()]).unwrap_or_default() }
}
