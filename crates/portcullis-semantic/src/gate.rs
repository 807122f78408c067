//! One scan for the hint words of all detectors.

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use crate::detector::{Detector, Hint};
use crate::{ByteGroups, Place};

/// A set of detectors, by their number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Candidates(pub u64);

/// Tells which detectors a text may concern.
#[derive(Debug)]
pub struct Gate {
    words: AhoCorasick,
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
        for (number, detector) in detectors.iter().enumerate() {
            let bit = 1u64 << number;
            for Hint { text, is_word } in detector.hints() {
                debug_assert!(!text.bytes().any(|b| b.is_ascii_uppercase()), "hints are lower case: {text}");
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
        let words = AhoCorasick::builder()
            .kind(Some(AhoCorasickKind::DFA))
            .match_kind(MatchKind::Standard)
            .ascii_case_insensitive(true)
            .build(&patterns)
            .expect("hint words are few");
        let needs: Vec<ByteGroups> = detectors.iter().map(|detector| detector.profile().needs).collect();
        let needs_any = needs.iter().fold(ByteGroups::NONE, |all, &one| all.union(one));
        Gate { words, anywhere, as_word, needs, needs_any, without_hints, reads }
    }

    /// The detectors that must look at `text`.
    pub fn candidates(&self, text: &[u8], groups: ByteGroups, place: Place) -> Candidates {
        let reads = self.reads[place as usize];
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
        for found in self.words.find_overlapping_iter(text) {
            let pattern = found.pattern().as_usize();
            hit |= self.anywhere[pattern] & wanted;
            let as_word = self.as_word[pattern] & wanted & !hit;
            if as_word != 0 && is_word(text, found.start(), found.end()) {
                hit |= as_word;
            }
            if hit == wanted {
                break;
            }
        }
        Candidates(hit)
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
