//! Gates: necessary conditions on a text for a pattern to match, as a fast rejection test.
//!
//! A gate is derived at load time. It may let a text through in which nothing matches; it never holds one
//! back in which something does.

mod bytes;
mod restrict;
mod words;

use std::borrow::Cow;
use std::sync::OnceLock;

use portcullis_types::ByteSet;
use regex_syntax::hir::Hir;

/// Necessary conditions for a match.
///
/// ```
/// use portcullis_match::{Gate, Regex, RegexFlags};
///
/// let gate = Gate::of_hir(&Regex::syntax(br"(?i)union\s+select", RegexFlags::default()).unwrap());
/// assert!(gate.admits(b"1 UNION  SELECT 2"));
/// assert!(!gate.admits(b"the union of workers"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gate {
    /// The text has at least so many bytes.
    pub length_min: usize,
    /// The text has a byte of each of these sets.
    pub bytes: Vec<ByteSet>,
    /// The text has, in any ASCII case, a word of each of these lists. The words are in lower case; some may
    /// be a single byte.
    pub words: Vec<Vec<Vec<u8>>>,
}

impl Gate {
    /// The gate that holds nothing back.
    pub fn open() -> Gate {
        Gate::default()
    }

    /// For a pattern.
    pub fn of_hir(hir: &Hir) -> Gate {
        let length_min = hir.properties().minimum_len().unwrap_or(0);
        Gate { length_min, bytes: bytes::required(hir), words: words::required(hir) }
    }

    /// For a text that must be there, in any ASCII case.
    pub fn of_text(text: &[u8]) -> Gate {
        Gate { length_min: text.len(), ..Gate::of_hir(&Hir::literal(text)) }
    }

    /// For one text of several, each in any ASCII case.
    pub fn of_texts(texts: &[Vec<u8>]) -> Gate {
        let lower: Vec<Vec<u8>> = texts.iter().map(|text| text.to_ascii_lowercase()).collect();
        let length_min = texts.iter().map(Vec::len).min().unwrap_or(0);
        let words = if length_min > 1 { vec![words::without_redundant(lower)] } else { Vec::new() };
        Gate { length_min, bytes: Vec::new(), words }
    }

    /// For a byte of `set`.
    pub fn of_byte(set: ByteSet) -> Gate {
        Gate { length_min: 1, bytes: vec![set], words: Vec::new() }
    }

    /// For a pattern, in texts of the bytes of `alphabet` only; `None` if it matches in none of them. Much of
    /// what patterns allow between the letters of a word is not in ordinary text, and without it the word is
    /// one to look for.
    pub fn of_hir_within(hir: &Hir, alphabet: &ByteSet) -> Option<Gate> {
        restrict::restrict(hir, alphabet).map(|hir| Gate::of_hir(&hir))
    }

    /// The same for matches that begin behind the text's first byte.
    pub fn of_hir_behind_start(hir: &Hir, alphabet: &ByteSet) -> Option<Gate> {
        restrict::restrict_behind_start(hir, alphabet).map(|hir| Gate::of_hir(&hir))
    }

    /// The same conditions for texts of the bytes of `alphabet` only, which has both cases of each letter;
    /// `None` if such texts cannot meet them.
    pub fn within(&self, alphabet: &ByteSet) -> Option<Gate> {
        let bytes: Vec<ByteSet> = self.bytes.iter().map(|set| set.intersection(*alphabet)).collect();
        let lists = self.words.iter().map(|list| {
            let words = list.iter().filter(|word| word.iter().all(|&byte| alphabet.contains(byte)));
            words.cloned().collect::<Vec<_>>()
        });
        let words: Vec<Vec<Vec<u8>>> = lists.collect();
        let is_possible =
            bytes.iter().all(|set| !set.is_empty()) && words.iter().all(|list| !list.is_empty());
        is_possible.then_some(Gate { length_min: self.length_min, bytes, words })
    }

    /// False if nothing can match in `text`. Slow: for tests, and to say what a gate means.
    pub fn admits(&self, text: &[u8]) -> bool {
        let lower = text.to_ascii_lowercase();
        let bytes = ByteSet::of(text);
        text.len() >= self.length_min
            && self.bytes.iter().all(|set| bytes.intersects(set))
            && self.words.iter().all(|list| {
                list.iter().any(|word| lower.windows(word.len()).any(|window| window == word.as_slice()))
            })
    }
}

/// The gates of a pattern or a word list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gates {
    /// For any text.
    pub any: Gate,
    /// For texts of the bytes of an alphabet only; `None` if nothing matches in those.
    pub within: Option<Gate>,
}

impl Gates {
    /// Gates that hold nothing back.
    pub fn open() -> Gates {
        Gates { any: Gate::open(), within: Some(Gate::open()) }
    }

    /// For a pattern.
    pub fn of_hir(hir: &Hir, alphabet: &ByteSet) -> Gates {
        Gates { any: Gate::of_hir(hir), within: Gate::of_hir_within(hir, alphabet) }
    }

    /// For whatever has the gate `any`; `alphabet` has both cases of each letter.
    pub fn of_gate(any: Gate, alphabet: &ByteSet) -> Gates {
        Gates { within: any.within(alphabet), any }
    }
}

/// Gates, kept once they are derived.
#[derive(Debug, Default)]
pub(crate) struct GatesCell(OnceLock<Box<(ByteSet, Gates)>>);

impl GatesCell {
    pub(crate) fn new(known: Option<(ByteSet, Gates)>) -> GatesCell {
        GatesCell(known.map_or_else(OnceLock::new, |known| OnceLock::from(Box::new(known))))
    }

    pub(crate) fn known(&self) -> Option<&(ByteSet, Gates)> {
        self.0.get().map(|known| &**known)
    }

    /// Kept for the first alphabet that is asked for, which in practice is the only one.
    pub(crate) fn get_or_derive(&self, alphabet: &ByteSet, derive: impl Fn() -> Gates) -> Cow<'_, Gates> {
        let known = self.0.get_or_init(|| Box::new((*alphabet, derive())));
        if known.0 == *alphabet { Cow::Borrowed(&known.1) } else { Cow::Owned(derive()) }
    }
}

/// The frequency of a byte in ordinary text (letters: either case). Only relations matter: what is taken for
/// rare is preferred as a condition.
pub(crate) fn frequency(byte: u8) -> f64 {
    FREQUENCIES[usize::from(byte)]
}

static FREQUENCIES: [f64; 256] = {
    const LETTERS: [f64; 26] = [
        0.065, 0.012, 0.022, 0.034, 0.10, 0.018, 0.016, 0.049, 0.056, 0.003, 0.008, 0.032, 0.019, 0.054,
        0.060, 0.015, 0.002, 0.048, 0.051, 0.073, 0.022, 0.008, 0.019, 0.003, 0.016, 0.002,
    ];
    let mut frequencies = [0.0; 256];
    let mut byte = 0;
    while byte < 256 {
        frequencies[byte] = match (byte as u8).to_ascii_lowercase() {
            letter @ b'a'..=b'z' => LETTERS[(letter - b'a') as usize],
            b'0'..=b'9' => 0.02,
            b' ' => 0.14,
            b'/' | b'-' | b'.' | b',' => 0.012,
            b'_' | b'=' | b'&' | b'"' | b':' | b'+' => 0.008,
            b'\t'..=b'\r' => 0.004,
            0x80..=0xff => 0.001,
            _ => 0.002,
        };
        byte += 1;
    }
    frequencies
};
