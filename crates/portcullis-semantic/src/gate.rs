//! One scan for the hint words of all detectors.

use crate::detector::{Detector, Hint};
use crate::hint_scan::HintScan;
use crate::{ByteGroups, Place};

/// A set of detectors, by their number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Candidates(pub u64);

/// Detectors at most: after their bits come those of their telling hints.
const DETECTORS_MAX: usize = 32;

/// Tells which detectors a text may concern.
#[derive(Debug)]
pub struct Gate {
    words: HintScan,
    /// For each group of bytes the detectors that need one of its bytes or of another group.
    needs: [u64; 64],
    /// For each group of bytes the detectors to which it is a hint by itself.
    signs: [u64; 64],
    without_hints: u64,
    /// The detectors that look at short texts only, each with the bytes of the longest one.
    of_short: Vec<(u64, usize)>,
    /// The detectors with telling hints.
    with_telling: u64,
    reads: [u64; 64],
}

impl Gate {
    /// A gate for `detectors`.
    pub fn new(detectors: &[Box<dyn Detector>]) -> Gate {
        assert!(detectors.len() <= DETECTORS_MAX, "the set of detectors has no more places");
        let mut hints = Vec::new();
        let (mut without_hints, mut with_telling) = (0, 0);
        let mut of_short = Vec::new();
        let (mut reads, mut needs, mut signs) = ([0; 64], [0; 64], [0; 64]);
        for (number, detector) in detectors.iter().enumerate() {
            let bit = 1u64 << number;
            detector.profile().needs.iter().for_each(|group| needs[group] |= bit);
            let bytes_max = detector.profile().bytes_max;
            if bytes_max != usize::MAX {
                of_short.push((bit, bytes_max));
            }
            for &hint in detector.hints() {
                let Hint { text, is_word } = hint;
                debug_assert!(!text.bytes().any(|b| b.is_ascii_uppercase()), "hints are lower case: {text}");
                match text.as_bytes() {
                    &[sign] if !is_word && sign.is_ascii_punctuation() => {
                        ByteGroups::of(&[sign]).iter().for_each(|group| signs[group] |= bit);
                    }
                    _ => hints.push((hint, bit)),
                }
            }
            hints.extend(detector.telling_hints().iter().map(|&hint| (hint, bit << DETECTORS_MAX)));
            if !detector.telling_hints().is_empty() {
                with_telling |= bit;
            }
            if detector.hints().is_empty() {
                without_hints |= bit;
            }
            for &place in Place::ALL.iter().filter(|&&place| detector.reads(place)) {
                reads[place as usize] |= bit;
            }
        }
        Gate { words: HintScan::new(&hints), needs, signs, without_hints, of_short, with_telling, reads }
    }

    /// The detectors that must look at `text`, and those of them of which a telling hint is in it.
    pub fn candidates(
        &self,
        detectors: &[Box<dyn Detector>],
        text: &[u8],
        groups: ByteGroups,
        place: Place,
    ) -> (Candidates, Candidates) {
        let mut reads = self.reads[place as usize];
        if place == Place::RawBody {
            for number in Candidates(reads).filter(|number| !detectors[*number].reads_body(text, groups)) {
                reads &= !(1 << number);
            }
        }
        for &(bit, bytes_max) in &self.of_short {
            if text.len() > bytes_max && text.trim_ascii().len() > bytes_max {
                reads &= !bit;
            }
        }
        let (mut wanted, mut hit) = (0, self.without_hints);
        for group in groups.iter() {
            wanted |= self.needs[group];
            hit |= self.signs[group];
        }
        wanted &= reads;
        hit &= wanted;
        let telling = (wanted & self.with_telling) << DETECTORS_MAX;
        let open = wanted & !hit | telling;
        if open != 0 {
            hit |= self.words.find(text, open);
        }
        (Candidates(hit & ((1 << DETECTORS_MAX) - 1)), Candidates(hit >> DETECTORS_MAX))
    }
}

impl Candidates {
    /// True if detector `number` is one of them.
    pub fn has(self, number: usize) -> bool {
        self.0 >> number & 1 == 1
    }

    /// True if there are none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
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
