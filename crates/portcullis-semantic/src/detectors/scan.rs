//! Small steps over bytes that several detectors take.

/// True if `text` has `word`, which is lower case, at `at`, in any case.
pub(super) fn has_at(text: &[u8], at: usize, word: &[u8]) -> bool {
    text.get(at..at + word.len()).is_some_and(|part| part.eq_ignore_ascii_case(word))
}

/// The offset of the first byte from `at` on that is no white space.
pub(super) fn skip_space(text: &[u8], at: usize) -> usize {
    at + text.get(at..).unwrap_or_default().iter().take_while(|b| b.is_ascii_whitespace()).count()
}

/// The offset of the first byte that `table` has.
pub(super) fn find_in(text: &[u8], table: &[bool; 256]) -> Option<usize> {
    let has = |b: u8| table[usize::from(b)];
    let (fours, rest) = text.as_chunks::<4>();
    let block = fours.iter().position(|&[a, b, c, d]| has(a) | has(b) | has(c) | has(d));
    let from = block.map_or(text.len() - rest.len(), |block| 4 * block);
    text[from..].iter().position(|&b| has(b)).map(|at| from + at)
}

/// The end of the run of bytes from `at` on for which `is_part` holds, at most `most` bytes.
pub(super) fn run(text: &[u8], at: usize, most: usize, is_part: fn(u8) -> bool) -> usize {
    at + text.get(at..).unwrap_or_default().iter().take(most).take_while(|b| is_part(**b)).count()
}

/// Letters, digits and the underscore.
pub(super) fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_'
}

/// True if `name` is one of `list`, which is lower case, in any case.
pub(super) fn is_one_of(name: &[u8], list: &[&[u8]]) -> bool {
    list.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// The offset after a string that opens with the quote at `at`, and whether it was closed. Backslashes
/// escape.
pub(super) fn string_end(text: &[u8], at: usize) -> (usize, bool) {
    let quote = text[at];
    let mut next = at + 1;
    while let Some(&b) = text.get(next) {
        match b {
            b'\\' => next += 2,
            _ if b == quote => return (next + 1, true),
            _ => next += 1,
        }
    }
    (text.len(), false)
}

/// What is open at a place of a text, for a scan that goes on from place to place.
#[derive(Debug)]
pub(super) struct Nesting<'t> {
    text: &'t [u8],
    at: usize,
    /// An odd number of these quotes stands before: [`NESTING_QUOTES`].
    is_open: [bool; 2],
    /// Braces and brackets that are open; below zero are those that the text did not open.
    depth: i64,
}

const NESTING_QUOTES: [u8; 2] = [b'\'', b'"'];

impl<'t> Nesting<'t> {
    pub(super) fn new(text: &'t [u8]) -> Nesting<'t> {
        Nesting { text, at: 0, is_open: [false; 2], depth: 0 }
    }

    /// Goes on to `to`; what was passed stays passed. An apostrophe within a word is no quote.
    fn go_on(&mut self, to: usize) {
        let is_letter = |at: usize| self.text.get(at).is_some_and(u8::is_ascii_alphabetic);
        for at in self.at..to.min(self.text.len()) {
            match self.text[at] {
                b'\'' if at > 0 && is_letter(at - 1) && is_letter(at + 1) => {}
                b'\'' => self.is_open[0] ^= true,
                b'"' => self.is_open[1] ^= true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth -= 1,
                _ => {}
            }
        }
        self.at = self.at.max(to.min(self.text.len()));
    }

    /// The sign at `at`, which is no earlier than the one asked before, closes what the text did not open: a
    /// quote without one before it, a brace or a bracket.
    pub(super) fn closes_foreign(&mut self, at: usize) -> bool {
        let Some(sign) = self.text.get(at) else { return false };
        match NESTING_QUOTES.iter().position(|quote| quote == sign) {
            Some(number) => {
                self.go_on(at);
                !self.is_open[number]
            }
            None if matches!(sign, b'}' | b']') => {
                self.go_on(at + 1);
                self.depth < 0
            }
            None => false,
        }
    }
}

/// `class ${constructor(a){..}}`: the brace at `at` opens the body of a class that a program made small calls
/// `$`.
pub(super) fn is_body_of_class(text: &[u8], at: usize) -> bool {
    text[..at].ends_with(b"class $") && text[at..].starts_with(b"{constructor(")
}
