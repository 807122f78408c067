//! The search for hint words: one look at each byte, in an automaton that is laid out for it.

use std::collections::{HashMap, HashSet};

use aho_corasick::automaton::{Automaton, StateID};
use aho_corasick::nfa::noncontiguous::NFA;
use aho_corasick::{Anchored, MatchKind};

use crate::detector::Hint;

/// Finds hints of any case.
#[derive(Debug)]
pub(crate) struct HintScan {
    /// Bytes that no hint has are all of class 0.
    classes: [u8; 256],
    /// The number of classes, which is the length of a state's row.
    row: usize,
    /// The next state, by state and class; a state is where its row begins. States in which no hint ends come
    /// first.
    next: Vec<u32>,
    /// What ends in the other states.
    ends: Vec<Ends>,
    first_end: usize,
    /// Bytes of the longest hint.
    longest: usize,
}

/// Texts of this length are searched in pieces at the same time: each step waits for the one before it, but
/// not for those of the other pieces.
const PIECED_BYTES_MIN: usize = 512;
const PIECES: usize = 4;

/// The hints that end where one state is reached.
#[derive(Debug, Default)]
struct Ends {
    /// The detectors of all of them.
    all: u64,
    /// Of those that are found anywhere.
    anywhere: u64,
    /// Lengths of those that must be words, each with its detectors.
    words: Vec<(usize, u64)>,
}

impl HintScan {
    /// A search for `hints`, each with the set of detectors that it stands for.
    pub fn new(hints: &[(Hint, u64)]) -> HintScan {
        let automaton = NFA::builder()
            .match_kind(MatchKind::Standard)
            .ascii_case_insensitive(true)
            .prefilter(false)
            .build(hints.iter().map(|(hint, _)| hint.as_str()))
            .expect("hint words are few");
        let (classes, bytes) = classes(hints);
        let go = |state: StateID, byte: u8| automaton.next_state(Anchored::No, state, byte);
        let start = automaton.start_state(Anchored::No).expect("it is built for that");
        // All states that can be reached, in the order in which they are met; those in which something ends
        // go last.
        let mut states = vec![start];
        let mut known = HashSet::from([start]);
        let mut at = 0;
        while let Some(&state) = states.get(at) {
            at += 1;
            for &byte in &bytes {
                let next = go(state, byte);
                if known.insert(next) {
                    states.push(next);
                }
            }
        }
        states.sort_by_key(|state| automaton.is_match(*state));
        let first_end = states.partition_point(|state| !automaton.is_match(*state));
        let row = bytes.len();
        let rows: HashMap<StateID, u32> = states
            .iter()
            .enumerate()
            .map(|(number, state)| (*state, u32::try_from(number * row).expect("hint words are few")))
            .collect();
        let mut next = Vec::with_capacity(states.len() * row);
        for &state in &states {
            next.extend(bytes.iter().map(|&byte| rows[&go(state, byte)]));
        }
        let ends = states[first_end..].iter().map(|&state| {
            let mut ends = Ends::default();
            for index in 0..automaton.match_len(state) {
                let (hint, detectors) = hints[automaton.match_pattern(state, index).as_usize()];
                ends.all |= detectors;
                match hint.is_word {
                    true => ends.words.push((hint.text.len(), detectors)),
                    false => ends.anywhere |= detectors,
                }
            }
            ends
        });
        let ends = ends.collect();
        let longest = hints.iter().map(|(hint, _)| hint.text.len()).max().unwrap_or(0);
        HintScan { classes, row, next, ends, first_end: first_end * row, longest }
    }

    /// Those of the detectors that are `wanted` of which a hint stands in `text`.
    pub fn find(&self, text: &[u8], wanted: u64) -> u64 {
        let open = match text.len() < PIECED_BYTES_MIN.max(PIECES * self.longest) {
            true => self.find_from(text, 0, 0, wanted),
            false => self.find_in_pieces(text, wanted),
        };
        wanted & !open
    }

    /// Those of the detectors that are `open` still, once `text` has been read from `from` on in `state`.
    fn find_from(&self, text: &[u8], from: usize, mut state: usize, mut open: u64) -> u64 {
        for (at, &b) in text.iter().enumerate().skip(from) {
            state = self.step(state, b);
            if state >= self.first_end {
                open = self.without_ends(text, at + 1, state, open);
                if open == 0 {
                    break;
                }
            }
        }
        open
    }

    /// The same for all of a text, in pieces side by side. What ends in a piece may begin before it: each is
    /// read from so many bytes before it that no hint is cut.
    fn find_in_pieces(&self, text: &[u8], mut open: u64) -> u64 {
        let (piece, lead) = (text.len() / PIECES, self.longest.saturating_sub(1));
        let starts: [usize; PIECES] = std::array::from_fn(|number| (number * piece).saturating_sub(lead));
        let [a, b, c, d] = starts.map(|start| &text[start..start + piece + lead]);
        // The automaton is at its start before the first byte; that state is the first of the table.
        let mut states = [0; PIECES];
        for (at, (((&a, &b), &c), &d)) in a.iter().zip(b).zip(c).zip(d).enumerate() {
            let [first, second, third, fourth] = states;
            states = [self.step(first, a), self.step(second, b), self.step(third, c), self.step(fourth, d)];
            if states.iter().any(|state| *state >= self.first_end) {
                for (state, start) in states.iter().zip(starts).filter(|(state, _)| **state >= self.first_end)
                {
                    open = self.without_ends(text, start + at + 1, *state, open);
                }
                if open == 0 {
                    return 0;
                }
            }
        }
        // The last piece has what is left over of the division.
        self.find_from(text, PIECES * piece, states[PIECES - 1], open)
    }

    #[inline(always)]
    fn step(&self, state: usize, byte: u8) -> usize {
        self.next[state + usize::from(self.classes[usize::from(byte)])] as usize
    }

    /// `open` without the detectors of the hints that end at `end`, where `state` was reached.
    fn without_ends(&self, text: &[u8], end: usize, state: usize, open: u64) -> u64 {
        let ends = &self.ends[(state - self.first_end) / self.row];
        if ends.all & open == 0 { open } else { open & !ends.at(text, end) }
    }
}

impl Ends {
    /// The detectors of what ends at `end` of `text`.
    fn at(&self, text: &[u8], end: usize) -> u64 {
        let words = self.words.iter().filter(|(length, _)| is_word(text, end - length, end));
        words.fold(self.anywhere, |all, (_, detectors)| all | detectors)
    }
}

/// The class of each byte, and a byte of each class; capitals are of their letter's class.
fn classes(hints: &[(Hint, u64)]) -> ([u8; 256], Vec<u8>) {
    let all = || hints.iter().flat_map(|(hint, _)| hint.as_str().bytes());
    let other = (0..=u8::MAX).find(|byte| all().all(|b| !b.eq_ignore_ascii_case(byte)));
    let mut classes = [0; 256];
    let mut bytes = vec![other.expect("hints have few signs")];
    for b in all().map(|b| b.to_ascii_lowercase()) {
        if classes[usize::from(b)] == 0 {
            classes[usize::from(b)] = bytes.len() as u8;
            classes[usize::from(b.to_ascii_uppercase())] = bytes.len() as u8;
            bytes.push(b);
        }
    }
    (classes, bytes)
}

fn is_word(text: &[u8], start: usize, end: usize) -> bool {
    let letter = |b: &u8| b.is_ascii_alphabetic() || *b == b'_';
    let touches = text[..start].last().is_some_and(letter) || text.get(end).is_some_and(letter);
    !touches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: u64) {
        let hints = [
            (Hint::word("or"), 1),
            (Hint::text("or"), 2),
            (Hint::word("order by"), 4),
            (Hint::text("r b"), 8),
            (Hint::text("\x1b["), 16),
            (Hint::text("b\0"), 32),
        ];
        let scan = HintScan::new(&hints);
        for open in 0..64 {
            assert_eq!(scan.find(text.as_bytes(), open), want & open, "{text}");
        }
    }

    proptest::proptest! {
        /// Where a text is cut into pieces changes nothing.
        #[test]
        fn pieces_find_what_one_reading_finds(
            words in proptest::collection::vec(
                proptest::sample::select(&["or", "order by", " ", "x", "ORDER", "er b", "_or", "\x1b[", "b\0", "abcdefghijk"][..]),
                0..700,
            ),
            wanted in 0u64..64,
        ) {
            let text = words.concat();
            let scan = HintScan::new(&[
                (Hint::word("or"), 1),
                (Hint::text("or"), 2),
                (Hint::word("order by"), 4),
                (Hint::text("r b"), 8),
                (Hint::text("\x1b["), 16),
                (Hint::text("xxorder byxx"), 32),
            ]);
            let once = wanted & !scan.find_from(text.as_bytes(), 0, 0, wanted);
            proptest::prop_assert_eq!(scan.find(text.as_bytes(), wanted), once);
            if text.len() >= PIECES * scan.longest {
                proptest::prop_assert_eq!(wanted & !scan.find_in_pieces(text.as_bytes(), wanted), once);
            }
        }
    }

    #[test]
    fn hints_anywhere_and_as_words() {
        check("", 0);
        check("1OR 2", 3);
        check("for", 2);
        check("oor_ or", 3);
        check("Order By", 2 | 4 | 8);
        check("border bye", 2 | 8);
        check("b\u{1}b\0", 32);
        check("b\u{1}\0", 0);
        check("oorder b\u{e9}\0\x1b[", 2 | 8 | 16);
    }
}
