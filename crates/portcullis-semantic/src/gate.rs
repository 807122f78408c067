//! One scan for the hint words of all detectors.

use crate::detector::{Detector, Hint};
use crate::hint_scan::HintScan;
use crate::{ByteGroups, Location, Place};

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
    /// The detectors that look at what certain names have, with these names.
    keys: Vec<(u64, Box<[&'static [u8]]>)>,
    /// By [`end_of`] a key: the detectors that name one that ends so.
    key_ends: Box<[u64; 256]>,
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
        let (mut of_short, mut keys) = (Vec::new(), Vec::new());
        let mut key_ends = Box::new([0; 256]);
        let (mut reads, mut needs, mut signs) = ([0; 64], [0; 64], [0; 64]);
        for (number, detector) in detectors.iter().enumerate() {
            let bit = 1u64 << number;
            detector.profile().needs.iter().for_each(|group| needs[group] |= bit);
            let bytes_max = detector.profile().bytes_max;
            if bytes_max != usize::MAX {
                of_short.push((bit, bytes_max));
            }
            if !detector.keys().is_empty() {
                let own: Box<[&[u8]]> = detector.keys().iter().map(|key| key.as_bytes()).collect();
                own.iter().for_each(|key| key_ends[end_of(key)] |= bit);
                keys.push((bit, own));
            }
            for &hint in detector.hints() {
                let Hint { text, is_word } = hint;
                debug_assert!(!text.bytes().any(|b| b.is_ascii_uppercase()), "hints are lower case: {text}");
                match text.as_bytes() {
                    // A control byte stands for all of them.
                    &[sign] if !is_word && (sign.is_ascii_punctuation() || sign < b'\t') => {
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
        let words = HintScan::new(&hints);
        Gate { words, needs, signs, without_hints, of_short, keys, key_ends, with_telling, reads }
    }

    /// The detectors to which `body` as a whole may tell something.
    pub fn readers_of_body(&self, detectors: &[Box<dyn Detector>], body: &[u8]) -> Candidates {
        let readers = Candidates(self.reads[Place::RawBody as usize]);
        let readers = readers.filter(|number| detectors[*number].reads_body(body));
        Candidates(readers.fold(0, |all, number| all | 1 << number))
    }

    /// The detectors that must look at `text`, and those of them of which a telling hint is in it. Of a body
    /// as a whole `readers` are the [readers](Gate::readers_of_body).
    pub fn candidates(
        &self,
        detectors: &[Box<dyn Detector>],
        text: &[u8],
        groups: ByteGroups,
        location: Location<'_>,
        readers: Option<Candidates>,
    ) -> (Candidates, Candidates) {
        let place = location.place;
        let mut reads = match (place, readers) {
            (Place::RawBody, Some(readers)) => readers.0,
            (Place::RawBody, None) => self.readers_of_body(detectors, text).0,
            _ => self.reads[place as usize],
        };
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
        if groups.is_within(ByteGroups::ALPHANUMERIC) {
            for number in Candidates(wanted).filter(|number| !detectors[*number].reads_word(text)) {
                wanted &= !(1 << number);
            }
        }
        if matches!(place, Place::Json | Place::Form | Place::Query) {
            let name = location.name;
            // Most names end in other letters.
            let open = wanted & !hit & self.key_ends[end_of(name)];
            if open != 0 {
                let key = &name[memchr::memrchr(b'.', name).map_or(0, |at| at + 1)..];
                let named = self.keys.iter().filter(|(bit, keys)| open & bit != 0 && keys.contains(&key));
                hit |= named.fold(0, |all, (bit, _)| all | bit);
            }
        }
        hit &= wanted;
        let telling = (wanted & self.with_telling) << DETECTORS_MAX;
        let open = wanted & !hit | telling;
        if open != 0 {
            hit |= self.words.find(text, open);
        }
        (Candidates(hit & ((1 << DETECTORS_MAX) - 1)), Candidates(hit >> DETECTORS_MAX))
    }
}

/// A number for the last two bytes of a name.
#[inline]
fn end_of(name: &[u8]) -> usize {
    match name {
        [.., before, last] => usize::from(before.wrapping_mul(31) ^ *last),
        _ => 0,
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

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use crate::{Analysis, ByteGroups, Detectors, Location, Place};

    static DETECTORS: LazyLock<Detectors> = LazyLock::new(Detectors::new);

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        /// What a detector does not look at because it is a word, or too long, has nothing for it to find.
        #[test]
        fn what_is_left_out_by_its_form_has_no_findings(
            pieces in prop::collection::vec(
                prop_oneof![
                    "[a-zA-Z0-9]{1,12}",
                    Just("rO0ABXNyABdqYXZhLnV0aWwu".to_owned()),
                    Just("aced0005737200116a617661".to_owned()),
                    Just("BAhvOhNHZW06OlJlcXVpcmVtZW50".to_owned()),
                    Just("gASVIAAAAAAAAACMBXBvc2l4".to_owned()),
                    Just("whoami".to_owned()),
                    Just("systeminfo".to_owned()),
                ],
                1..6,
            ),
            lead in prop::sample::select(&["", " ", "@", "                                   "][..]),
        ) {
            let text = format!("{lead}{}", pieces.concat());
            let (text, groups) = (text.as_bytes(), ByteGroups::of(text.as_bytes()));
            let location = Location::new(Place::Query, b"cmd");
            let detectors = DETECTORS.list.iter().enumerate();
            for (number, detector) in detectors.filter(|(_, detector)| detector.reads(Place::Query)) {
                let is_word = groups.is_within(ByteGroups::ALPHANUMERIC);
                let is_left_out = is_word && !detector.reads_word(text)
                    || text.trim_ascii().len() > detector.profile().bytes_max;
                if is_left_out {
                    let found = Analysis::new().found_past_gate(&DETECTORS, number, location, text);
                    prop_assert_eq!(found, 0, "{:?}", detector.profile().class);
                }
            }
        }
    }
}
