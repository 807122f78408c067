//! Quotes that could end the literal into which a text was pasted.

use memchr::{Memchr, memchr, memchr_iter};
use portcullis_lex::sql::{Lexer, TokenKind};

/// A quote, and whether it looks like one of a pair in the text itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub at: usize,
    /// It closes what an earlier quote opened, or opens what a later one closes: `the 'best' or "none"`.
    pub is_literal: bool,
    /// It looks like the first one of a pair.
    pub opens: bool,
    /// It is the first of its sort.
    pub is_first: bool,
}

/// The quotes of a text, in order.
#[derive(Debug)]
pub(super) struct Quotes<'t> {
    text: &'t [u8],
    quote: u8,
    places: Memchr<'t>,
    is_open: bool,
    /// The quote before.
    last: usize,
    /// The quote before, if it closed what an earlier one opened.
    closed: Option<usize>,
    /// A letter stands before the first quote: there is text that it could be quoted in.
    has_words: bool,
    /// Three quotes in a row stand in it, more than once.
    has_runs: bool,
    /// Two in a row begin a word and end one: `''a b''`.
    has_pairs: bool,
    /// After three that began something.
    in_run: bool,
    /// See [`is_encoded`].
    is_encoded: bool,
}

/// Letters before a string of Python.
const PREFIX_BYTES_MAX: usize = 2;

impl<'t> Quotes<'t> {
    pub fn new(text: &'t [u8], quote: u8) -> Quotes<'t> {
        let first = memchr(quote, text).unwrap_or(0);
        let has_words = text[..first].iter().any(|b| b.is_ascii_alphabetic() || !b.is_ascii());
        let has_runs = memchr::memmem::find_iter(text, &[quote; 3]).take(2).count() == 2;
        let pair = [quote; 2];
        let mut pairs = memchr::memmem::find_iter(text, &pair);
        let is_word = |at: usize| text.get(at).is_some_and(|b| b.is_ascii_alphanumeric() || !b.is_ascii());
        let has_pairs = pairs.next().is_some_and(|at| is_word(at + 2) && (at == 0 || !is_word(at - 1)))
            && pairs.next().is_some_and(|at| is_word(at - 1) && !is_word(at + 2));
        Quotes {
            text,
            quote,
            places: memchr_iter(quote, text),
            is_open: false,
            last: 0,
            closed: None,
            has_words,
            has_runs,
            has_pairs,
            in_run: false,
            is_encoded: false,
        }
    }
}

impl Quotes<'_> {
    /// The same, with the escapes beside quotes read as what they stand for.
    pub fn of_encoded(self, is_encoded: bool) -> Self {
        Quotes { is_encoded, ..self }
    }

    /// The bytes before and behind the quote at `at`.
    fn beside(&self, at: usize) -> (Option<u8>, Option<u8>) {
        let (before, after) = (self.text[..at].last().copied(), self.text.get(at + 1).copied());
        if !self.is_encoded {
            return (before, after);
        }
        let escaped = |percent: usize| match self.text.get(percent..percent + 3) {
            Some([b'%', high, low]) => hex_byte(*high, *low),
            _ => None,
        };
        (at.checked_sub(3).and_then(escaped).or(before), escaped(at + 1).or(after))
    }

    /// The byte before the letters that say of what sort a string of a program is: `(f"select`, `= rb'`.
    fn before_prefix(&self, at: usize) -> Option<u8> {
        let before = &self.text[..at];
        let is_letter = |b: &&u8| b"fFrRbBuU".contains(*b);
        let letters = before.iter().rev().take(PREFIX_BYTES_MAX + 1).take_while(is_letter).count();
        let before = before[..at - letters].last().copied();
        let begins = |b: &u8| b.is_ascii_whitespace() || b"([{=,+".contains(b);
        before.filter(|b| (1..=PREFIX_BYTES_MAX).contains(&letters) && begins(b))
    }

    /// What stands between the quotes at `at` and `end` is a name without signs that join, and nothing of a
    /// word follows.
    fn is_name(&self, at: usize, end: usize) -> bool {
        let is_part = |b: &u8| b.is_ascii_alphanumeric() || !b.is_ascii() || b"%/._<>- ".contains(b);
        let follows = |b: &u8| !b.is_ascii() || b.is_ascii_whitespace() || b"),.:;".contains(b);
        self.text[at + 1..end].iter().all(is_part) && self.text.get(end + 1).is_none_or(follows)
    }

    /// Nothing but words, with a space between two, stand between the quotes at `at` and `end`, and no word
    /// follows.
    fn is_quoted_words(&self, at: usize, end: usize) -> bool {
        let is_word = |word: &[u8]| {
            !word.strip_prefix(b"%").unwrap_or(word).is_empty()
                && word.iter().all(|b| b.is_ascii_alphabetic() || *b == b'%')
        };
        let follows = self.text.get(end + 1).is_some_and(|b| b.is_ascii_alphanumeric() || !b.is_ascii());
        self.text[at + 1..end].split(|&b| b == b' ').all(is_word) && !follows
    }

    /// A string of JSON that is pasted into a text: a key with its colon, or a value after one.
    fn is_of_json(&self, before: Option<u8>, end: usize) -> bool {
        let after = self.text[end + 1..].trim_ascii_start().first();
        match before {
            Some(b'{' | b',') => after == Some(&b':'),
            Some(b':') => matches!(after, Some(b',' | b'}' | b']')),
            _ => false,
        }
    }
}

impl Quotes<'_> {
    /// One of exactly three quotes in a row that end what three before them began: `'''bold'''` in a wiki, a
    /// text of several lines in Python. Those that begin it end a string of the statement's: ''' or 1=1 --
    /// '''.
    fn ends_run(&mut self, at: usize) -> bool {
        let same = |b: &&u8| **b == self.quote;
        let before = self.text[..at].iter().rev().take(3).take_while(same).count();
        let after = self.text[at + 1..].iter().take(3).take_while(same).count();
        let is_of_run = self.has_runs && before + after == 2;
        if is_of_run && before == 0 {
            self.in_run = !self.in_run;
        }
        // A fence of Markdown both begins and ends a listing; no name in a statement ends so.
        is_of_run && (!self.in_run || self.quote == b'`')
    }
}

impl Quotes<'_> {
    /// One of exactly two in a row that stand at a word, as others do in the same text: ''italics'' in a
    /// wiki. In a string they stand for one quote, which ends nothing.
    fn is_of_pair(&self, at: usize) -> bool {
        let two = [self.quote; 2];
        let start = if self.text.get(at + 1) == Some(&self.quote) { at } else { at.wrapping_sub(1) };
        let is_letter = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_alphanumeric() || !b.is_ascii());
        let (before, after) = (self.text[..at.min(start)].last(), self.text.get(start.wrapping_add(2)));
        self.has_pairs
            && self.text.get(start..).is_some_and(|rest| rest.starts_with(&two))
            && before != Some(&self.quote)
            && after != Some(&self.quote)
            && before != Some(&b'\\')
            && is_letter(before) != is_letter(after)
    }
}

impl Iterator for Quotes<'_> {
    type Item = Place;

    fn next(&mut self) -> Option<Place> {
        let at = self.places.next()?;
        // A string ends with its line, in most languages, and apostrophes that close nothing do not open one
        // for the rest of a text.
        if self.is_open && memchr(b'\n', &self.text[self.last..at]).is_some() {
            self.is_open = false;
        }
        self.last = at;
        let (before, after) = self.beside(at);
        let before = self.before_prefix(at).or(before);
        let touches_word = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_alphanumeric() || !b.is_ascii());
        // A sign of other scripts may end what is open: `'/usr'）`.
        let ends = self.is_open && after.is_some_and(|b| !b.is_ascii());
        if touches_word(before) && touches_word(after) && !ends {
            // An apostrophe, or `x'or'`.
            return Some(Place { at, is_literal: false, opens: false, is_first: false });
        }
        if self.ends_run(at) || self.is_of_pair(at) {
            return Some(Place { at, is_literal: true, opens: false, is_first: false });
        }
        // Two in a word stand for one: 'O''Brien', 'O''%'.
        let is_double = |at: usize| {
            at > 0
                && touches_word(self.text.get(at - 1).copied())
                && self.text[at..].starts_with(&[self.quote; 2])
                && (touches_word(self.text.get(at + 2).copied())
                    || self.text[at + 2..].starts_with(&[b'%', self.quote]))
        };
        if self.is_open {
            self.is_open = is_double(at) || at > 0 && is_double(at - 1);
            self.closed = (!self.is_open).then_some(at);
            return Some(Place { at, is_literal: true, opens: false, is_first: false });
        }
        let closes = self.places.clone().next();
        if closes.is_some_and(|end| self.is_of_json(before, end)) {
            self.is_open = true;
            return Some(Place { at, is_literal: true, opens: true, is_first: false });
        }
        // Chinese and Japanese put no space before a quote, and go on after it with a letter.
        let is_dense =
            before.is_some_and(|b| !b.is_ascii()) && closes.is_some_and(|end| self.is_name(at, end));
        // `"users"."id"`
        let follows = self.closed.is_some_and(|closed| closed + 2 == at);
        let is_member = follows
            && match before {
                Some(b'.') => self.quote != b'\'',
                // `"and"/"or"`
                Some(b'/') => closes.is_some_and(|end| self.is_quoted_words(at, end)),
                _ => false,
            };
        let opens = (is_dense
            || is_member
            || before.is_none_or(|b| b.is_ascii_whitespace() || b"([{=,:>+".contains(&b)))
            && after.is_some_and(|b| !b.is_ascii_whitespace() && b != self.quote);
        if !opens {
            return Some(Place { at, is_literal: false, opens: false, is_first: false });
        }
        self.is_open = true;
        let is_literal = closes.is_some_and(|end| match &self.text[..at] {
            // `"like" stamps`, `"union select" meaning`, `'%s' not found`: words in quotes, also as an item
            // of a list.
            [] | [b'*' | b'-' | b'+' | b'#' | b'%' | b'>', b' '] => self.is_quoted_words(at, end),
            _ => self.has_words,
        });
        // Words before what follows.
        self.has_words |= is_literal;
        Some(Place { at, is_literal, opens: closes.is_some(), is_first: false })
    }
}

/// The text has no white space, and each percent sign has two hex digits behind it: it is encoded for an
/// address, and its decoded form is judged by itself. Encoders leave apostrophes, parentheses and stars.
pub(super) fn is_encoded(text: &[u8]) -> bool {
    let mut signs = memchr_iter(b'%', text).peekable();
    let is_escape = |at: usize| matches!(text.get(at + 1..at + 3), Some(digits) if digits.iter().all(u8::is_ascii_hexdigit));
    signs.peek().is_some() && signs.all(is_escape) && !text.iter().any(u8::is_ascii_whitespace)
}

/// The byte that two hex digits stand for.
fn hex_byte(high: u8, low: u8) -> Option<u8> {
    let digit = |b: u8| char::from(b).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    Some(digit(high)? << 4 | digit(low)?)
}

/// The end of what the percent sign at `at` of an encoded text begins, if that is nothing that SQL would
/// divide by, no number and no name: a space, a sign whose digits are no number (`%2C`), a letter of other
/// scripts (`%C3%A9`).
pub(super) fn escape_end(text: &[u8], at: usize) -> Option<usize> {
    let is_high = |at: usize| {
        let digit = text.get(at + 1).filter(|_| text.get(at) == Some(&b'%'));
        digit.is_some_and(|b| matches!(b, b'8' | b'9' | b'a'..=b'f' | b'A'..=b'F'))
    };
    match text.get(at..at + 3)? {
        b"%20" | [b'%', b'0'..=b'7', b'A'..=b'C' | b'a'..=b'c'] => Some(at + 3),
        [b'%', b'c'..=b'f' | b'C'..=b'F', _] if is_high(at + 3) => {
            let len = (at + 3..text.len()).step_by(3).take_while(|at| is_high(*at)).count();
            Some(text.len().min(at + 3 + 3 * len))
        }
        _ => None,
    }
}

/// Where the quotes of the strings stand in a list as Python and JavaScript write it, all of the text:
/// strings in either quotes, numbers and names in brackets, nothing between them but commas and colons.
/// `[('state', '=', 'draft'), '|', ('x', 'in', [1, 2])]` has an operator between quotes and no condition.
/// Nothing if the text is no such list.
pub(super) fn list_quotes(text: &[u8]) -> Vec<usize> {
    let mut quotes = Vec::new();
    let end = text.trim_ascii_end().len();
    if !matches!(text[..end], [b'[', .., b']']) {
        return quotes;
    }
    let mut depth = 0u32;
    // A value has ended: a comma, a colon or the end of a list follows.
    let mut is_value = false;
    let mut at = 0;
    while at < end {
        let b = text[at];
        at += 1;
        let is_right = match b {
            b' ' | b'\t' | b'\n' | b'\r' => true,
            b'[' | b'(' | b'{' => {
                depth += 1;
                !is_value && (depth > 1 || at == 1)
            }
            b']' | b')' | b'}' => {
                let is_open = depth > 0;
                depth = depth.saturating_sub(1);
                is_value = true;
                is_open
            }
            b',' | b':' => std::mem::replace(&mut is_value, false),
            b'\'' | b'"' => {
                let len = memchr(b, &text[at..end]).unwrap_or(0);
                quotes.extend([at - 1, at + len]);
                let is_string = text[at + len] == b && !text[at..at + len].contains(&b'\\');
                at += len + 1;
                is_string && !std::mem::replace(&mut is_value, true)
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => {
                let is_part = |b: &&u8| b.is_ascii_alphanumeric() || matches!(**b, b'_' | b'.');
                at += text[at..end].iter().take_while(is_part).count();
                !std::mem::replace(&mut is_value, true)
            }
            _ => false,
        };
        if !is_right {
            return Vec::new();
        }
    }
    quotes
}

/// The quotes in the strings of a script of statements, strings of several lines among them. One that does
/// not end is none.
pub(super) fn statement_quotes(text: &[u8]) -> Vec<usize> {
    let mut quotes = Vec::new();
    for token in Lexer::new(text, 0) {
        if matches!(token.kind, TokenKind::String { closed: true, .. } | TokenKind::QuotedName(true)) {
            let start = token.span.start as usize;
            quotes.extend(memchr::memchr3_iter(b'\'', b'"', b'`', token.span.of(text)).map(|at| start + at));
        }
    }
    quotes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists() {
        assert_eq!(list_quotes(b"['=', \"a'b\"]"), [1, 3, 6, 10]);
        for text in [
            "[('state','=','draft'),'|',('x','in',[1,2])]",
            "[('is_company', '=', True), ('name', 'ilike', \"O'Neil\")]",
            "['a', -1, {'b': None}]",
        ] {
            assert!(!list_quotes(text.as_bytes()).is_empty(), "{text}");
        }
        for text in
            ["['a' or '1'='1']", "['x'] or ['1'='1']", "[1] --", "['a", "[1 or 2]", "('a','b')", "[f('x')]"]
        {
            assert!(list_quotes(text.as_bytes()).is_empty(), "{text}");
        }
    }

    #[track_caller]
    fn check(text: &str, want: &[bool]) {
        let have: Vec<bool> = Quotes::new(text.as_bytes(), b'\'').map(|place| place.is_literal).collect();
        assert_eq!(have, want, "{text}");
    }

    #[test]
    fn pairs_are_literals() {
        check("use 'a' or 'b'", &[true, true, true, true]);
        check("don't use 'a'", &[false, true, true]);
        check("x' or '1'='1", &[false, true, true, false]);
        check("' or '1'='1", &[false, false, true, false]);
        check("'or'1'='1'", &[false, false, true, false, true]);
        check("'like' stamps", &[true, true]);
        check("'union select' meaning", &[true, true]);
        check("' union select '1", &[false, false]);
        // Letters of other scripts are letters.
        check("路径 '%s' 未合并", &[true, true]);
        check("（默认为'/usr'）", &[true, true]);
        check("Файл \u{5d0} '%s' и '%d'", &[true, true, true, true]);
        check("错误'%s'\n", &[true, true]);
        check("'%s' not found, '%d'", &[true, true, true, true]);
        check("* 'git mv' gave errors when 'x' was there", &[true; 4]);
        check("* ' or 'a'='a", &[false, false, true, false]);
        check("name like 'O''%' and x = 'y'", &[true; 6]);
        check("é'and(1)=(1)and'", &[false, false]);
        check("é' or 'a'='a", &[false, true, true, false]);
        check("é'||'1'='1", &[false; 4]);
        check("name like '%O''Brien%' and x = 'y'", &[true; 6]);
        check("x='a''or''1'='1", &[true, true, true, true, true, true, false]);
        check("'''a''' and b", &[false, false, false, true, true, true]);
        check("In ''Hamlet'', Shakespeare's play", &[true, true, true, true, false]);
        check("''a b'' it's ''c''", &[true, true, true, true, false, true, true, true, true]);
        check("'' or ''='", &[false; 5]);
        check("run(f'select 1 from {a}') or b'a'", &[true; 4]);
        check("b'or'1'='1", &[false; 4]);
        check("a rub'or'1'='1", &[false; 4]);
        let fence = b"see ```\nx - interval\n``` and `a`";
        assert!(Quotes::new(fence, b'`').all(|place| place.is_literal));
    }
}
