//! The search for hint words: one look at each byte, in an automaton that is laid out for it.
//!
//! It is the automaton of Aho and Corasick with one more sign: a word begins after a *boundary*, which any
//! byte matches that is neither a letter nor an underscore, and so does the beginning of the text. Therefore
//! the middle of a word of prose leads nowhere, and a word counts only when the byte after it is a boundary,
//! too. The transition says that something ends there; in prose hardly any does.

use crate::detector::Hint;
use crate::gate::Candidates;

/// Finds hints of any case.
#[derive(Debug)]
pub(crate) struct HintScan {
    /// Bytes that lead to the same states have the same class.
    classes: [u8; 256],
    /// The number of classes, which is the length of a state's row. Those of letters come first: a text that
    /// has hardly any other bytes is searched within few cache lines.
    row: usize,
    /// The next state, by state and class; a state is where its row begins. With [`ENDS`] where a hint ends.
    next: Vec<u32>,
    /// What ends in each state.
    ends: Vec<Ends>,
    /// For each detector the bytes of its longest hint with a boundary before it.
    longest: [usize; 64],
}

/// In a transition: a hint ends with the byte that was read or before it.
const ENDS: u32 = 1 << 31;

/// Texts of this length are searched in pieces at the same time: each step waits for the one before it, but
/// not for those of the other pieces.
const PIECED_BYTES_MIN: usize = 32;
const PIECES: usize = 4;

/// The detectors of the hints that end in one state.
#[derive(Clone, Copy, Debug, Default)]
struct Ends {
    /// Of those that are found anywhere.
    anywhere: u64,
    /// Of those that must be words, if the next byte is a boundary.
    words: u64,
}

impl HintScan {
    /// A search for `hints`, each with the set of detectors that it stands for.
    pub fn new(hints: &[(Hint, u64)]) -> HintScan {
        let Alphabet { classes, count, boundaries } = Alphabet::of(hints);
        let mut trie = Trie::new(count);
        for (hint, detectors) in hints {
            let signs = hint.as_str().bytes().map(|b| classes[usize::from(b)]);
            trie.add(hint.is_word, signs, *detectors);
        }
        trie.link(boundaries);
        let mut next = trie.next;
        for (row, Ends { words, .. }) in next.chunks_exact_mut(count).zip(&trie.ends) {
            for (class, to) in row.iter_mut().enumerate() {
                let is_boundary = boundaries >> class & 1 == 1;
                let is_end = trie.ends[*to as usize].anywhere != 0 || is_boundary && *words != 0;
                *to = (*to * count as u32) | if is_end { ENDS } else { 0 };
            }
        }
        debug_assert!(next.len() < ENDS as usize, "hint words are few");
        let longest = std::array::from_fn(|number| {
            let of_detector = hints.iter().filter(|(_, detectors)| detectors >> number & 1 == 1);
            of_detector.map(|(hint, _)| hint.text.len() + 1).max().unwrap_or(0)
        });
        HintScan { classes, row: count, next, ends: trie.ends, longest }
    }

    /// Those of the detectors that are `wanted` of which a hint stands in `text`.
    pub fn find(&self, text: &[u8], wanted: u64) -> u64 {
        let lead = match text.len() < PIECED_BYTES_MIN {
            true => text.len(),
            false => Candidates(wanted).map(|number| self.longest[number]).max().unwrap_or(0),
        };
        let open = match text.len() < 2 * lead {
            true => self.find_from(text, self.boundary(), wanted),
            false => self.find_in_pieces(text, lead, wanted),
        };
        wanted & !open
    }

    /// Those of the detectors that are `open` still, once all of `text` has been read from `state` on.
    fn find_from(&self, text: &[u8], mut state: usize, mut open: u64) -> u64 {
        for &b in text {
            let to = self.step(state, b);
            if to & ENDS != 0 {
                open &= !self.ends_at(state, b, to);
                if open == 0 {
                    return 0;
                }
            }
            state = (to & !ENDS) as usize;
        }
        // The end of the text is a boundary.
        open & !self.ends[state / self.row].words
    }

    /// The same for all of a text, in pieces side by side. What ends in a piece may begin before it: each is
    /// read from `lead` bytes before it, so that no hint is cut, nor the boundary before it. The text must be
    /// twice as long as that.
    fn find_in_pieces(&self, text: &[u8], lead: usize, mut open: u64) -> u64 {
        let piece = text.len() / PIECES;
        let starts: [usize; PIECES] = std::array::from_fn(|number| (number * piece).saturating_sub(lead));
        let [a, b, c, d] = starts.map(|start| &text[start..start + piece + lead]);
        let mut states = [WITHIN as usize; PIECES];
        states[0] = self.boundary();
        for (((&a, &b), &c), &d) in a.iter().zip(b).zip(c).zip(d) {
            let [first, second, third, fourth] = states;
            let to = [self.step(first, a), self.step(second, b), self.step(third, c), self.step(fourth, d)];
            if (to[0] | to[1] | to[2] | to[3]) & ENDS != 0 {
                open &= !self.ends_beside(states, [a, b, c, d], to);
                if open == 0 {
                    return 0;
                }
                states = to.map(|to| (to & !ENDS) as usize);
            } else {
                states = to.map(|to| to as usize);
            }
        }
        // The last piece has what is left over of the division.
        self.find_from(&text[PIECES * piece..], states[PIECES - 1], open)
    }

    /// The state after a boundary, in which no hint has begun.
    fn boundary(&self) -> usize {
        BOUNDARY as usize * self.row
    }

    #[inline(always)]
    fn step(&self, state: usize, byte: u8) -> u32 {
        self.next[state + usize::from(self.classes[usize::from(byte)])]
    }

    /// The detectors of the hints that end where `byte` leads from `state` by the transition `to`.
    fn ends_at(&self, state: usize, byte: u8, to: u32) -> u64 {
        let words = if is_letter(byte) { 0 } else { self.ends[state / self.row].words };
        words | self.ends[(to & !ENDS) as usize / self.row].anywhere
    }

    /// The same for all pieces; it keeps no register busy where nothing ends.
    #[cold]
    #[inline(never)]
    fn ends_beside(&self, states: [usize; PIECES], bytes: [u8; PIECES], to: [u32; PIECES]) -> u64 {
        let steps = states.into_iter().zip(bytes).zip(to).filter(|(_, to)| to & ENDS != 0);
        steps.fold(0, |ends, ((state, byte), to)| ends | self.ends_at(state, byte, to))
    }
}

/// The classes of bytes that hints tell apart; capitals are of their letter's class.
struct Alphabet {
    classes: [u8; 256],
    count: usize,
    /// By bits.
    boundaries: u128,
}

impl Alphabet {
    fn of(hints: &[(Hint, u64)]) -> Alphabet {
        let is_sign = |sign: &u8| hints.iter().any(|(hint, _)| hint.as_str().as_bytes().contains(sign));
        let letters = b'a'..=b'z';
        let others = (0..=u8::MAX).filter(|b| !b.is_ascii_alphabetic()).filter(is_sign);
        // Of bytes that no hint has, boundaries and underscores are a class each.
        let mut classes = [0; 256];
        let mut boundaries = 1;
        let mut count = 1;
        for b in letters.chain([b'_']).chain(others.filter(|b| *b != b'_')) {
            assert!(count < 128, "hints have few signs");
            boundaries |= u128::from(!is_letter(b)) << count;
            classes[usize::from(b)] = count as u8;
            classes[usize::from(b.to_ascii_uppercase())] = count as u8;
            count += 1;
        }
        Alphabet { classes, count, boundaries }
    }
}

/// A letter or an underscore: it is part of a word.
fn is_letter(b: u8) -> bool {
    b.is_ascii_alphabetic() || b == b'_'
}

/// The states before they are laid out, each the beginning of some hint.
struct Trie {
    /// How many classes there are.
    row: usize,
    /// The next state, by state and class.
    next: Vec<u32>,
    ends: Vec<Ends>,
}

/// The state in which nothing has begun, and no boundary was read.
const WITHIN: u32 = 0;
/// The one after a boundary.
const BOUNDARY: u32 = 1;
/// No state yet.
const NONE: u32 = u32::MAX;

impl Trie {
    fn new(row: usize) -> Trie {
        Trie { row, next: vec![NONE; 2 * row], ends: vec![Ends::default(); 2] }
    }

    fn add(&mut self, is_word: bool, signs: impl Iterator<Item = u8>, detectors: u64) {
        let mut state = if is_word { BOUNDARY } else { WITHIN };
        for class in signs {
            let place = state as usize * self.row + usize::from(class);
            if self.next[place] == NONE {
                self.next[place] = self.ends.len() as u32;
                self.next.extend(std::iter::repeat_n(NONE, self.row));
                self.ends.push(Ends::default());
            }
            state = self.next[place];
        }
        let ends = &mut self.ends[state as usize];
        match is_word {
            true => ends.words |= detectors,
            false => ends.anywhere |= detectors,
        }
    }

    /// Gives each state its transitions for all classes, and what ends in it by the way: where no hint goes
    /// on, the next longest beginning of another one does that ends the same.
    ///
    /// States are met by their length, a boundary counted as a sign; of the same length, those with the
    /// boundary come first, for they are the more general ones: `/etc` is a boundary and `etc`, too.
    fn link(&mut self, boundaries: u128) {
        // The state that goes on in place of each; that of a state is met before it.
        let mut instead = vec![WITHIN; self.ends.len()];
        let children = self.link_one(WITHIN, boundaries, &mut instead);
        let mut of_length = [vec![BOUNDARY], children];
        while of_length.iter().any(|states| !states.is_empty()) {
            for states in &mut of_length {
                for state in std::mem::take(states) {
                    states.extend(self.link_one(state, boundaries, &mut instead));
                }
            }
        }
    }

    /// The same for one state. Those that go on from it by one byte.
    fn link_one(&mut self, state: u32, boundaries: u128, instead: &mut [u32]) -> Vec<u32> {
        let shorter = instead[state as usize] as usize;
        let Ends { anywhere, words } = self.ends[shorter];
        let ends = &mut self.ends[state as usize];
        ends.anywhere |= anywhere;
        ends.words |= words;
        let mut children = Vec::new();
        for class in 0..self.row {
            let otherwise = match state == WITHIN {
                true => (boundaries >> class & 1) as u32 * BOUNDARY,
                false => self.next[shorter * self.row + class],
            };
            let next = &mut self.next[state as usize * self.row + class];
            match *next {
                NONE => *next = otherwise,
                child => {
                    instead[child as usize] = otherwise;
                    children.push(child);
                }
            }
        }
        children
    }
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

    /// The same by the plainest search.
    fn find_plainly(hints: &[(Hint, u64)], text: &[u8], wanted: u64) -> u64 {
        let found = |hint: &Hint| {
            let (text, word) = (text.to_ascii_lowercase(), hint.text.as_bytes());
            let is_at = |start: usize| {
                let (before, after) = (text[..start].last(), text.get(start + word.len()));
                let touches = before.into_iter().chain(after).any(|b| is_letter(*b));
                text[start..].starts_with(word) && !(hint.is_word && touches)
            };
            (0..text.len()).any(is_at)
        };
        wanted & hints.iter().filter(|(hint, _)| found(hint)).fold(0, |all, (_, detectors)| all | detectors)
    }

    const WORDS: &[&str] =
        &["or", "order by", " ", "x", "ORDER", "er b", "_or", "\x1b[", "b\0", "/et", "c", "-", "abcdefghijk"];

    proptest::proptest! {
        /// Neither the automaton nor where a text is cut into pieces changes what is found.
        #[test]
        fn it_finds_what_the_plainest_search_finds(
            words in proptest::collection::vec(proptest::sample::select(WORDS), 0..120),
            wanted in 0u64..512,
        ) {
            let text = words.concat();
            let text = text.as_bytes();
            let hints = [
                (Hint::word("or"), 1),
                (Hint::text("or"), 2),
                (Hint::word("order by"), 4),
                (Hint::text("r b"), 8),
                (Hint::text("\x1b["), 16),
                (Hint::text("xxorder byxx"), 32),
                (Hint::word("etc"), 64),
                (Hint::text("/etc-"), 128),
                (Hint::word("-x"), 256),
            ];
            let scan = HintScan::new(&hints);
            let plainly = find_plainly(&hints, text, wanted);
            proptest::prop_assert_eq!(scan.find(text, wanted), plainly);
            proptest::prop_assert_eq!(wanted & !scan.find_from(text, scan.boundary(), wanted), plainly);
            for lead in [13, 20, 40].into_iter().filter(|lead| text.len() >= 2 * lead) {
                proptest::prop_assert_eq!(wanted & !scan.find_in_pieces(text, lead, wanted), plainly);
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
