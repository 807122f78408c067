//! `@pm`, `@pmFromFile`: is one of many words in the value?

use std::borrow::Cow;
use std::fmt;
use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use portcullis_types::{ByteSet, Span};

use crate::gate::GatesCell;
use crate::{Facts, Gate, Gates};

/// Word lists with at most this many bytes become a DFA (about 5 ns a byte here, memory up to a megabyte or
/// two); longer ones a contiguous NFA (half the speed; for the CRS's 5,000 words 1.6 MB instead of 78 MB).
const DFA_WORD_BYTES_MAX: usize = 8 << 10;
/// Lists with at most this many bytes always have an automaton: even at eight words for each byte its state
/// ids fit.
const SURE_WORD_BYTES_MAX: usize = 64 << 20;

/// A set of words, found in one pass over the value whatever their number. ASCII letters match both cases.
///
/// A search ends at the first byte that completes any word; of several that end there the longest is
/// reported. ModSecurity does the same, except that it also folds the letters of Latin-1 above 127: here such
/// bytes match only themselves.
///
/// ```
/// use portcullis_match::{WordSet, parse_pm_words};
///
/// let words = WordSet::new(parse_pm_words(b"sleep benchmark |27 20|or")).unwrap();
/// assert_eq!(words.find(b"id=BENCHMARK(1)").unwrap().range(), 3..12);
/// assert_eq!(words.find(b"idle"), None);
/// ```
pub struct WordSet {
    words: Vec<Vec<u8>>,
    /// Built when it is first asked.
    automaton: OnceLock<AhoCorasick>,
    gates: GatesCell,
}

/// The words of a set are too many for an automaton (its state ids are 31 bits).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordSetError {
    message: String,
}

impl fmt::Display for WordSetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "too many words: {}", self.message)
    }
}

impl std::error::Error for WordSetError {}

impl WordSet {
    /// The set of `words`; empty ones are left out. Its automaton is built when it is first asked, or by
    /// [`WordSet::prepare`].
    pub fn new(words: impl IntoIterator<Item = Vec<u8>>) -> Result<WordSet, WordSetError> {
        let words: Vec<Vec<u8>> = words.into_iter().filter(|word| !word.is_empty()).collect();
        let automaton = OnceLock::new();
        if byte_count(&words) > SURE_WORD_BYTES_MAX {
            let built = build(&words).map_err(|error| WordSetError { message: error.to_string() })?;
            let _ = automaton.set(built);
        }
        Ok(WordSet { words, automaton, gates: GatesCell::default() })
    }

    /// As [`WordSet::new`], with the [`WordSet::facts`] of an equal one.
    pub fn with_facts(
        words: impl IntoIterator<Item = Vec<u8>>,
        facts: Facts,
    ) -> Result<WordSet, WordSetError> {
        Ok(WordSet { gates: GatesCell::new(facts.gates), ..WordSet::new(words)? })
    }

    pub(crate) fn gates_cell(&self) -> &GatesCell {
        &self.gates
    }

    /// Builds the automaton now.
    pub fn prepare(&self) {
        self.automaton();
    }

    /// Returns the conditions on a text for a word to be found in it.
    pub fn gates(&self, alphabet: &ByteSet) -> Cow<'_, Gates> {
        self.gates.get_or_derive(alphabet, || Gates::of_gate(Gate::of_texts(&self.words), alphabet))
    }

    /// # Panics
    ///
    /// Never, unless [`SURE_WORD_BYTES_MAX`] is wrong.
    fn automaton(&self) -> &AhoCorasick {
        self.automaton.get_or_init(|| match build(&self.words) {
            Ok(automaton) => automaton,
            Err(error) => unreachable!("{} bytes of words: {error}", byte_count(&self.words)),
        })
    }

    /// Returns the place of the first word found.
    pub fn find(&self, hay: &[u8]) -> Option<Span> {
        self.automaton().find(hay).map(|found| Span::new(found.start(), found.end()))
    }

    /// As [`WordSet::find`], with the word as the rule spells it: what ModSecurity puts into `TX:0`.
    pub fn find_word(&self, hay: &[u8]) -> Option<(Span, &[u8])> {
        let found = self.automaton().find(hay)?;
        let word = self.words.get(found.pattern().as_usize())?;
        Some((Span::new(found.start(), found.end()), word))
    }

    /// True if any word is found.
    pub fn is_match(&self, hay: &[u8]) -> bool {
        self.automaton().is_match(hay)
    }

    /// The words, as given and in that order.
    pub fn words(&self) -> &[Vec<u8>] {
        &self.words
    }

    /// Heap bytes of the automaton; 0 before it is built.
    pub fn memory_bytes(&self) -> usize {
        self.automaton.get().map_or(0, AhoCorasick::memory_usage)
    }
}

fn byte_count(words: &[Vec<u8>]) -> usize {
    words.iter().map(Vec::len).sum()
}

fn build(words: &[Vec<u8>]) -> Result<AhoCorasick, aho_corasick::BuildError> {
    let kind = match byte_count(words) {
        ..=DFA_WORD_BYTES_MAX => AhoCorasickKind::DFA,
        _ => AhoCorasickKind::ContiguousNFA,
    };
    AhoCorasick::builder().ascii_case_insensitive(true).kind(Some(kind)).build(words)
}

impl fmt::Debug for WordSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WordSet({} words)", self.words.len())
    }
}

/// Takes the argument of `@pm` apart: words between blanks.
///
/// As in ModSecurity 2, quotation marks around the whole argument are dropped, `|41 42|` stands for the bytes
/// in hex, and a backslash protects `:`, `;`, `\` and `"`. These are resolved first, so `|20|` separates
/// words like a blank. An argument with any other backslash is taken literally as a whole.
pub fn parse_pm_words(argument: &[u8]) -> Vec<Vec<u8>> {
    let text = unescape(argument).unwrap_or_else(|| argument.to_vec());
    text.split(is_blank).filter(|word| !word.is_empty()).map(<[u8]>::to_vec).collect()
}

/// The text that `@strmatch` looks for: its argument with quotes, escapes and hex resolved as for
/// [`parse_pm_words`].
pub fn parse_text(argument: &[u8]) -> Vec<u8> {
    unescape(argument).unwrap_or_else(|| argument.to_vec())
}

/// Takes the text of a `@pmFromFile` file apart: a word (it may hold blanks) per line.
///
/// Blanks around it are dropped; empty lines and lines that begin with `#` are none. Escapes and hex are
/// those of [`parse_pm_words`], for each line on its own. ModSecurity 2 overlooks words of a single byte;
/// they count here.
pub fn parse_word_file(text: &[u8]) -> Vec<Vec<u8>> {
    text.split(|&b| b == b'\n')
        .filter_map(|line| {
            let unescaped = unescape(line);
            let word = unescaped.as_deref().unwrap_or(line).trim_ascii();
            let word = word.trim_ascii_start();
            (!word.is_empty() && word[0] != b'#').then(|| word.to_vec())
        })
        .collect()
}

/// Resolves quotes, escapes and hex; none if nothing is to be resolved or an escape is not one of the known.
fn unescape(text: &[u8]) -> Option<Vec<u8>> {
    let text = &text[text.iter().position(|b| !is_blank(b)).unwrap_or(text.len())..];
    let inner = text.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\""));
    if inner.is_none() && memchr::memchr2(b'|', b'\\', text).is_none() {
        return None;
    }
    let mut converted = inner.is_some();
    let text = inner.unwrap_or(text);

    let mut out = Vec::with_capacity(text.len());
    let mut in_hex = false;
    let mut escaped = false;
    let mut high = None;
    for &byte in text {
        match byte {
            b'|' => in_hex = !in_hex,
            b'\\' if !escaped => escaped = true,
            _ if in_hex => {
                // Bytes that are no hex digits, such as the blank between two bytes, are passed over.
                let Some(digit) = char::from(byte).to_digit(16) else { continue };
                match high.take() {
                    None => high = Some(digit),
                    Some(high) => {
                        out.push((high << 4 | digit) as u8);
                        converted = true;
                    }
                }
            }
            b':' | b';' | b'\\' | b'"' if escaped => {
                out.push(byte);
                escaped = false;
                converted = true;
            }
            _ if escaped => return None,
            byte => out.push(byte),
        }
    }
    converted.then_some(out)
}

fn is_blank(byte: &u8) -> bool {
    matches!(byte, b'\t'..=b'\r' | b' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(list: &[&str]) -> Vec<Vec<u8>> {
        list.iter().map(|w| w.as_bytes().to_vec()).collect()
    }

    #[test]
    fn arguments_of_pm() {
        let check =
            |argument: &[u8], expected: &[&str]| assert_eq!(parse_pm_words(argument), words(expected));
        check(b"one  two\tthree ", &["one", "two", "three"]);
        check(b"", &[]);
        check(b"\"quoted words\"", &["quoted", "words"]);
        check(b"a|41 42|b", &["aABb"]);
        check(b"a|4142|b|2e|", &["aABb."]);
        check(b"a|20|b", &["a", "b"]);
        check(br"C\:\\dir x\;", &[r"C:\dir", "x;"]);
        // An unknown escape: the whole argument as it is.
        check(br"a\n |41|", &[r"a\n", "|41|"]);
        // Bars without a complete byte between them are literal.
        check(b"a|b", &["a|b"]);
        check(b"||", &["||"]);
        check(b"( )", &["(", ")"]);
    }

    #[test]
    fn word_files() {
        let text = b"# comment\r\n\n  two words \r\n\t#also a comment\nNS\\\\Name\nends in \\n\nx\nlast";
        assert_eq!(parse_word_file(text), words(&["two words", r"NS\Name", r"ends in \n", "x", "last"]));
        assert!(parse_word_file(b"").is_empty());
    }

    #[test]
    fn finds_the_word_that_ends_first() {
        let set = WordSet::new(words(&["abcd", "bc", "", "c"])).unwrap();
        assert_eq!(set.words().len(), 3);
        assert_eq!(set.find(b"xABCD"), Some(Span::new(2, 4)));
        assert_eq!(set.find_word(b"xABCD"), Some((Span::new(2, 4), &b"bc"[..])));
        assert_eq!(set.find(b"ab"), None);
        assert_eq!(set.find(b""), None);
        assert!(set.is_match(b"..c"));
    }

    #[test]
    fn the_empty_set_matches_nothing() {
        let set = WordSet::new(Vec::new()).unwrap();
        assert_eq!(set.find(b""), None);
        assert_eq!(set.find(b"a"), None);
    }

    #[test]
    fn both_kinds_of_automaton_agree() {
        let many: Vec<Vec<u8>> = (0..3000).map(|n| format!("word{n:04}x").into_bytes()).collect();
        let large = WordSet::new(many).unwrap();
        assert_eq!(large.find_word(b"a WORD2999X"), Some((Span::new(2, 11), &b"word2999x"[..])));
        assert_eq!(large.find(b"word3000x"), None);
        // High bytes are not letters.
        let set = WordSet::new(vec![vec![0xe9]]).unwrap();
        assert_eq!(set.find(&[0xc9]), None);
        assert_eq!(set.find(&[0xe9]), Some(Span::new(0, 1)));
    }
}
