//! Word lists: rows of `data/words/DETECTOR.tsv`, which are read when the program is built.
//!
//! ```text
//! list <tab> source <tab> words, with a space between them
//! ```
//!
//! A list may have several rows, each with its own source. Of escapes there are `\s` (space), `\n`, `\r`,
//! `\t`, `\0`, `\\`, `\xHH`, `\e` for a word of no bytes, and `\b` before a [`Hint`](crate::Hint) that is a
//! word.

/// The words of a list as bytes: `words!("purpose", "lists")`.
macro_rules! words {
    ($detector:literal, $list:literal) => {{
        const TABLE: &[u8] =
            include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/data/words/", $detector, ".tsv"));
        const SIZE: (usize, usize) = $crate::detectors::words::size(TABLE, $list.as_bytes());
        const LIST: $crate::detectors::words::List<{ SIZE.0 }, { SIZE.1 }> =
            $crate::detectors::words::List::read(TABLE, $list.as_bytes());
        const WORDS: [&[u8]; SIZE.1] = LIST.words();
        &WORDS
    }};
}

/// The words of a list as text.
macro_rules! names {
    ($detector:literal, $list:literal) => {{
        const WORDS: &[&[u8]] = words!($detector, $list);
        const NAMES: [&str; WORDS.len()] = $crate::detectors::words::names(WORDS);
        &NAMES
    }};
}

/// The words of a list as those of a gate.
macro_rules! hints {
    ($detector:literal, $list:literal) => {{
        const WORDS: &[&[u8]] = words!($detector, $list);
        const HINTS: [$crate::Hint; WORDS.len()] = $crate::detectors::words::hints(WORDS);
        &HINTS
    }};
}

use crate::Hint;

/// The words of a list: their bytes without escapes, and the end of each.
pub(super) struct List<const BYTES: usize, const WORDS: usize> {
    bytes: [u8; BYTES],
    ends: [usize; WORDS],
    len: usize,
    count: usize,
}

/// The bytes of a list's words, and their number. A list that is not there is a mistake.
pub(super) const fn size(table: &[u8], list: &[u8]) -> (usize, usize) {
    let found = List::<0, 0>::read(table, list);
    assert!(found.count > 0, "no such list");
    (found.len, found.count)
}

impl<const BYTES: usize, const WORDS: usize> List<BYTES, WORDS> {
    /// The list of this name; what has no room is only counted.
    pub const fn read(table: &[u8], list: &[u8]) -> List<BYTES, WORDS> {
        let mut found = List { bytes: [0; BYTES], ends: [0; WORDS], len: 0, count: 0 };
        let mut line = 0;
        while line < table.len() {
            let end = to(table, line, b'\n');
            if is_list(table, line, list) {
                let source = line + list.len() + 1;
                let words = to(table, source, b'\t');
                assert!(words > source && words < end, "a row has a list, a source and words");
                found.row(table, words + 1, end);
            }
            line = end + 1;
        }
        found
    }

    const fn row(&mut self, table: &[u8], mut at: usize, end: usize) {
        loop {
            let stop = to(table, at, b' ');
            let stop = if stop < end { stop } else { end };
            assert!(at < stop, "a word of no bytes is `\\e`");
            while at < stop {
                let (byte, len) = unescape(table, at);
                at += len;
                if let Some(byte) = byte {
                    if self.len < BYTES {
                        self.bytes[self.len] = byte;
                    }
                    self.len += 1;
                }
            }
            if self.count < WORDS {
                self.ends[self.count] = self.len;
            }
            self.count += 1;
            if stop == end {
                return;
            }
            at = stop + 1;
        }
    }

    pub const fn words(&'static self) -> [&'static [u8]; WORDS] {
        let mut words: [&[u8]; WORDS] = [b""; WORDS];
        let (mut at, mut number) = (0, 0);
        while number < WORDS {
            let end = self.ends[number];
            words[number] = self.bytes.split_at(end).0.split_at(at).1;
            (at, number) = (end, number + 1);
        }
        words
    }
}

pub(super) const fn names<const N: usize>(words: &'static [&'static [u8]]) -> [&'static str; N] {
    let mut names = [""; N];
    let mut number = 0;
    while number < N {
        names[number] = text(words[number]);
        number += 1;
    }
    names
}

pub(super) const fn hints<const N: usize>(words: &'static [&'static [u8]]) -> [Hint; N] {
    let mut hints = [Hint::text(""); N];
    let mut number = 0;
    while number < N {
        hints[number] = match words[number] {
            [WORD, word @ ..] => Hint::word(text(word)),
            word => Hint::text(text(word)),
        };
        number += 1;
    }
    hints
}

/// The byte of `\b`.
const WORD: u8 = 0x08;

const fn text(word: &[u8]) -> &str {
    match std::str::from_utf8(word) {
        Ok(text) => text,
        Err(_) => panic!("a word that is no text"),
    }
}

/// The place of the first `byte` from `at` on, or the end.
const fn to(table: &[u8], mut at: usize, byte: u8) -> usize {
    while at < table.len() && table[at] != byte {
        at += 1;
    }
    at
}

/// The row that begins at `at` is one of `list`.
const fn is_list(table: &[u8], at: usize, list: &[u8]) -> bool {
    let end = at + list.len();
    if end >= table.len() || table[end] != b'\t' {
        return false;
    }
    let mut number = 0;
    while number < list.len() {
        if table[at + number] != list[number] {
            return false;
        }
        number += 1;
    }
    true
}

/// The byte that stands at `at`, and how many bytes it is written with; `\e` is none.
const fn unescape(table: &[u8], at: usize) -> (Option<u8>, usize) {
    if table[at] != b'\\' {
        return (Some(table[at]), 1);
    }
    let byte = match table[at + 1] {
        b's' => b' ',
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'0' => 0,
        b'\\' => b'\\',
        b'b' => WORD,
        b'e' => return (None, 2),
        b'x' => return (Some(digit(table[at + 2]) << 4 | digit(table[at + 3])), 4),
        _ => panic!("no such escape"),
    };
    (Some(byte), 2)
}

const fn digit(byte: u8) -> u8 {
    match byte {
        b'0'..=b'9' => byte - b'0',
        b'a'..=b'f' => byte - b'a' + 10,
        b'A'..=b'F' => byte - b'A' + 10,
        _ => panic!("no hexadecimal digit"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_table() {
        const TABLE: &[u8] = b"# a comment\na\tx\tone two\nab\tx\tthree\na\ty\tfour \\e a\\sb\\x41\\0\\\\\n";
        const SIZE: (usize, usize) = size(TABLE, b"a");
        const LIST: List<{ SIZE.0 }, { SIZE.1 }> = List::read(TABLE, b"a");
        const WORDS: [&[u8]; SIZE.1] = LIST.words();
        assert_eq!(WORDS, [&b"one"[..], b"two", b"four", b"", b"a bA\0\\"]);
        assert_eq!(size(TABLE, b"ab"), (5, 1));
    }

    #[test]
    fn hints_of_a_table() {
        assert_eq!(hints::<2>(&[b"\x08or", b"'or"]), [Hint::word("or"), Hint::text("'or")]);
    }
}
