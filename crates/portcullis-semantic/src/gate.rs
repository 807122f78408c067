//! One scan for the hint words of all detectors.

use aho_corasick::automaton::Automaton;
use aho_corasick::automaton::StateID;
use aho_corasick::dfa::DFA;
use aho_corasick::{Anchored, MatchKind, StartKind};

use crate::detector::{Detector, Hint};
use crate::{ByteGroups, Place};

/// A set of detectors, by their number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Candidates(pub u64);

/// Tells which detectors a text may concern.
#[derive(Debug)]
pub struct Gate {
    words: DFA,
    start: StateID,
    /// Signs of which each is a hint by itself, with the detectors it stands for: whether they are there is known beforehand.
    signs: Vec<(ByteGroups, u64)>,
    /// For each pattern the detectors it stands for, anywhere and as a word.
    anywhere: Vec<u64>,
    as_word: Vec<u64>,
    needs: Vec<ByteGroups>,
    needs_any: ByteGroups,
    without_hints: u64,
    reads: [u64; 64],
}

impl Gate {
    /// A gate for `detectors`, of which there are at most 64.
    pub fn new(detectors: &[Box<dyn Detector>]) -> Gate {
        assert!(detectors.len() <= 64, "the candidate set has 64 places");
        let mut patterns: Vec<&'static str> = Vec::new();
        let (mut anywhere, mut as_word) = (Vec::new(), Vec::new());
        let mut without_hints = 0;
        let mut reads = [0; 64];
        let mut signs: Vec<(ByteGroups, u64)> = Vec::new();
        for (number, detector) in detectors.iter().enumerate() {
            let bit = 1u64 << number;
            for Hint { text, is_word } in detector.hints() {
                debug_assert!(!text.bytes().any(|b| b.is_ascii_uppercase()), "hints are lower case: {text}");
                if let (&[sign], false) = (text.as_bytes(), *is_word)
                    && sign.is_ascii_punctuation()
                {
                    signs.push((ByteGroups::of(&[sign]), bit));
                    continue;
                }
                let at = patterns.iter().position(|known| known == text).unwrap_or_else(|| {
                    patterns.push(text);
                    anywhere.push(0);
                    as_word.push(0);
                    patterns.len() - 1
                });
                let list = if *is_word { &mut as_word } else { &mut anywhere };
                list[at] |= bit;
            }
            if detector.hints().is_empty() {
                without_hints |= bit;
            }
            for &place in Place::ALL.iter().filter(|&&place| detector.reads(place)) {
                reads[place as usize] |= bit;
            }
        }
        let words = DFA::builder()
            .match_kind(MatchKind::Standard)
            .start_kind(StartKind::Unanchored)
            .ascii_case_insensitive(true)
            .prefilter(false)
            .build(&patterns)
            .expect("hint words are few");
        let start = words.start_state(Anchored::No).expect("it is built for that");
        let needs: Vec<ByteGroups> = detectors.iter().map(|detector| detector.profile().needs).collect();
        let needs_any = needs.iter().fold(ByteGroups::NONE, |all, &one| all.union(one));
        Gate { words, start, signs, anywhere, as_word, needs, needs_any, without_hints, reads }
    }

    /// The detectors that must look at `text`.
    pub fn candidates(
        &self,
        detectors: &[Box<dyn Detector>],
        text: &[u8],
        groups: ByteGroups,
        place: Place,
    ) -> Candidates {
        let mut reads = self.reads[place as usize];
        if place == Place::RawBody {
            for number in Candidates(reads).filter(|number| !detectors[*number].reads_body(text, groups)) {
                reads &= !(1 << number);
            }
        }
        if reads == 0 || !groups.intersects(self.needs_any) {
            return Candidates(0);
        }
        let mut wanted = 0;
        for (number, needs) in self.needs.iter().enumerate() {
            wanted |= u64::from(groups.intersects(*needs)) << number;
        }
        wanted &= reads;
        let mut hit = wanted & self.without_hints;
        if wanted & !hit == 0 {
            return Candidates(hit);
        }
        for (sign, detectors) in &self.signs {
            if groups.intersects(*sign) {
                hit |= detectors & wanted;
            }
        }
        if hit == wanted {
            return Candidates(hit);
        }
        let mut state = self.start;
        for (at, &b) in text.iter().enumerate() {
            state = self.words.next_state(Anchored::No, state, b);
            if self.words.is_special(state) && self.words.is_match(state) {
                hit |= self.matched(state, text, at + 1, wanted & !hit);
                if hit == wanted {
                    break;
                }
            }
        }
        Candidates(hit)
    }

    /// Which of the detectors that are `open` the words stand for that end at `end`.
    fn matched(&self, state: StateID, text: &[u8], end: usize, open: u64) -> u64 {
        let mut hit = 0;
        for index in 0..self.words.match_len(state) {
            let pattern = self.words.match_pattern(state, index);
            hit |= self.anywhere[pattern.as_usize()] & open;
            let as_word = self.as_word[pattern.as_usize()] & open & !hit;
            if as_word != 0 && is_word(text, end - self.words.pattern_len(pattern), end) {
                hit |= as_word;
            }
        }
        hit
    }
}

impl Candidates {
    /// True if there are none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

fn is_word(text: &[u8], start: usize, end: usize) -> bool {
    let letter = |b: &u8| b.is_ascii_alphabetic() || *b == b'_';
    let touches = text[..start].last().is_some_and(letter) || text.get(end).is_some_and(letter);
    !touches
}

impl Iterator for Candidates {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let number = self.0.trailing_zeros() as usize;
        self.0 &= self.0 - 1;
        Some(number)
    }
}
