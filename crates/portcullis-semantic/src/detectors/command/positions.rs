//! Positions at which a shell would begin a command.

use super::call::Call;
use super::{AMPERSAND, BARE_WORD, LOGICAL, NEWLINE, PIPE, SEMICOLON, SUBSTITUTION, WHOLE};
use crate::detectors::scan::find_in;
use crate::{ByteGroups, KindId};

/// The sign before a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    Begin,
    Semicolon,
    Pipe,
    Ampersand,
    Logical,
    Newline,
    /// `$(`, `<(`, `>(`
    Substitution,
    Backtick,
}

impl Sign {
    pub fn kind(self) -> KindId {
        match self {
            Sign::Begin => WHOLE,
            Sign::Semicolon => SEMICOLON,
            Sign::Pipe => PIPE,
            Sign::Ampersand => AMPERSAND,
            Sign::Logical => LOGICAL,
            Sign::Newline => NEWLINE,
            Sign::Substitution | Sign::Backtick => SUBSTITUTION,
        }
    }
}

/// A place where a command may begin.
#[derive(Clone, Copy, Debug)]
pub(super) struct Position {
    pub sign: Sign,
    /// Where the sign stands.
    pub start: usize,
    /// Where the command is read from.
    pub at: usize,
}

impl Position {
    /// A quote stands before the sign: `x';id`.
    pub fn may_break_quote(&self, text: &[u8]) -> bool {
        matches!(text[..self.start].trim_ascii_end().last(), Some(b'\'' | b'"'))
    }

    /// Nothing in the text opened that quote. Reads all that stands before.
    pub fn breaks_quote(&self, text: &[u8]) -> bool {
        let before = text[..self.start].trim_ascii_end();
        let Some(quote) = before.last() else { return false };
        // Not the apostrophe of `it's`.
        let is_letter = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphabetic);
        let is_mark = |at: &usize| !(is_letter(before[..*at].last()) && is_letter(before.get(at + 1)));
        memchr::memchr_iter(*quote, before).filter(is_mark).count() % 2 == 1
    }

    /// What stands between the sign and the one before it, and false if that is longer than the items of
    /// lists are.
    fn item_before<'t>(&self, text: &'t [u8]) -> (&'t [u8], bool) {
        let window = &text[self.start.saturating_sub(ITEM_BYTES_MAX)..self.start];
        let parted = window.iter().rposition(|b| matches!(b, b';' | b'|' | b'&' | b'\n' | b'\r'));
        let item = &window[parted.map_or(0, |at| at + 1)..];
        (item.trim_ascii(), parted.is_some() || window.len() == self.start)
    }

    /// `a.`id``, `(`id`, `date`)`, `the `id` of`: a name of SQL, or of what a sentence speaks of.
    fn is_identifier(&self, text: &[u8], end: usize) -> bool {
        let parts = |b: &u8| b" ,(.)".contains(b);
        let is_parted = text[..self.start].last().is_some_and(parts) && self.start > 1;
        let goes_on = text.get(end + 1).is_none_or(parts);
        text.get(end) == Some(&b'`') && (is_parted && goes_on || text.get(end + 1) == Some(&b'.'))
    }

    /// `test|id`, `x;id`: one word, the sign or a line end, and the name that ends at `end`, with nothing
    /// after it.
    pub fn follows_word(&self, text: &[u8], end: usize) -> bool {
        let (item, is_whole) = self.item_before(text);
        matches!(self.sign, Sign::Pipe | Sign::Semicolon | Sign::Newline)
            && is_whole
            && !item.is_empty()
            && item.iter().all(u8::is_ascii_alphanumeric)
            && text[end..].trim_ascii().is_empty()
    }

    /// A name without arguments is a command and not one of a list of words (`name|id|type`): no item of a
    /// list stands before it, and none after it.
    pub fn is_sure(&self, text: &[u8], call: &Call) -> bool {
        // `|born={{birth date|..`
        if call.has(BARE_WORD) && text[self.at..call.start()].contains(&b'=') {
            return false;
        }
        // `{{ x | date }}`, `{% .. | sort %}`
        let end = text[call.end..].trim_ascii_start();
        if self.sign == Sign::Pipe && (end.starts_with(b"}}") || end.starts_with(b"%}")) {
            return false;
        }
        if self.sign == Sign::Backtick && self.is_identifier(text, call.end) {
            return false;
        }
        if matches!(self.sign, Sign::Substitution | Sign::Backtick | Sign::Logical) {
            return true;
        }
        let (item, is_whole) = self.item_before(text);
        let is_word_byte = |b: &u8| b.is_ascii_alphabetic() || b"_-', ".contains(b);
        let is_words = item.iter().all(is_word_byte) && item.iter().any(u8::is_ascii_alphabetic);
        let mut words = item.split(|b| *b == b' ').filter(|word| !word.is_empty());
        let is_parted = self.at < call.start();
        let is_item = is_whole
            && match words.by_ref().take(2).count() {
                0 => false,
                // `a=1&id`
                1 => is_words || self.sign == Sign::Ampersand && memchr::memchr2(b'=', b'?', item).is_some(),
                // Words that no space parts from the sign are no sentence's.
                _ => is_words && (self.sign == Sign::Newline || is_parted),
            };
        // A list that goes on after it with words.
        let after = text[call.end..].trim_ascii_start();
        let after = &after[..after.len().min(ITEM_BYTES_MAX)];
        let goes_on = (is_words || is_parted && !item.is_empty())
            && after.len() > 1
            && after[1..].trim_ascii_start().first().is_some_and(u8::is_ascii_alphanumeric);
        !(is_item || goes_on)
    }
}

/// No item of a list of words is longer.
const ITEM_BYTES_MAX: usize = 40;

/// The positions of a text, in order.
#[derive(Debug)]
pub(super) struct Positions<'t> {
    text: &'t [u8],
    at: usize,
    begun: bool,
    has_signs: bool,
    in_backticks: bool,
}

impl<'t> Positions<'t> {
    pub fn new(text: &'t [u8], groups: ByteGroups) -> Positions<'t> {
        const SIGNS: ByteGroups = ByteGroups::of(b";|&\n`$<>\\");
        Positions { text, at: 0, begun: false, has_signs: groups.intersects(SIGNS), in_backticks: false }
    }

    /// Where the value begins, less a quote that closes the literal it is pasted into.
    fn begin(&self) -> Position {
        let lead = self.text.iter().take_while(|b| b.is_ascii_whitespace() || **b == b'+').count();
        // A line end at the beginning ends what stands before the value.
        let sign = match memchr::memchr2(b'\n', b'\r', &self.text[..lead]) {
            Some(_) => Sign::Newline,
            None => Sign::Begin,
        };
        let lead = match self.text[lead..].strip_prefix(b"```") {
            Some(after) if is_fence(after) => {
                lead + 3 + after.iter().take_while(|b| b.is_ascii_alphanumeric()).count()
            }
            _ => lead + schedule(&self.text[lead..]),
        };
        let rest = &self.text[lead..];
        let quote = match rest {
            [quote @ (b'\'' | b'"'), tail @ ..] => usize::from(memchr::memchr(*quote, tail).is_none()),
            _ => 0,
        };
        Position { sign, start: 0, at: lead + quote }
    }
}

/// The length of the five fields with which a line of cron begins, and of a user's name after them.
pub(super) fn schedule(text: &[u8]) -> usize {
    let is_time =
        |word: &[u8]| word.iter().all(|b| b.is_ascii_digit() || matches!(b, b'*' | b'/' | b',' | b'-'));
    let mut fields = 0;
    let mut at = 0;
    for word in text[..text.len().min(80)].split(|b| matches!(b, b' ' | b'\t')) {
        if fields < 5 {
            if word.is_empty() || !is_time(word) {
                return 0;
            }
            fields += 1;
        } else {
            // `root /usr/bin/perl ...`
            let is_user = !word.is_empty() && word.iter().all(u8::is_ascii_lowercase);
            return at
                + if is_user && text.get(at + word.len() + 1) == Some(&b'/') { word.len() + 1 } else { 0 };
        }
        at += word.len() + 1;
    }
    0
}

/// A line ends, or the text does, after nothing or the name of a language, with attributes or without; shells
/// run nothing there.
fn is_fence(after: &[u8]) -> bool {
    const LANGUAGES: &[&[u8]] = words!("command", "fence-languages");
    let len = after.iter().take(12).take_while(|b| b.is_ascii_alphanumeric()).count();
    let rest = &after[len..];
    // What pages are made with takes attributes there: `python {title="a.py"}`.
    let line = &rest[..memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len())];
    let is_attributes =
        |line: &[u8]| line.starts_with(b"{") && line.iter().position(|b| *b == b'}') == Some(line.len() - 1);
    LANGUAGES.contains(&&after[..len]) && (line.is_empty() || is_attributes(line.trim_ascii()))
}

/// Bytes at which a command may begin.
static SIGN: [bool; 256] = {
    let mut table = [false; 256];
    let signs = b";|&\n\r\\$<>`";
    let mut i = 0;
    while i < signs.len() {
        table[signs[i] as usize] = true;
        i += 1;
    }
    table
};

impl Iterator for Positions<'_> {
    type Item = Position;

    fn next(&mut self) -> Option<Position> {
        if !self.begun {
            self.begun = true;
            return Some(self.begin());
        }
        if !self.has_signs {
            return None;
        }
        let text = self.text;
        while let Some(skipped) = find_in(&text[self.at.min(text.len())..], &SIGN) {
            let start = self.at + skipped;
            let next = text.get(start + 1).copied().unwrap_or(0);
            self.at = start + 1;
            let found = match text[start] {
                b';' => Some((Sign::Semicolon, 1)),
                b'|' if next == b'|' => Some((Sign::Logical, 2)),
                b'|' => Some((Sign::Pipe, 1 + usize::from(next == b'&'))),
                b'&' if next == b'&' => Some((Sign::Logical, 2)),
                b'&' if next == b'>' || start > 0 && matches!(text[start - 1], b'>' | b'<') => None,
                b'&' => Some((Sign::Ampersand, 1)),
                b'\n' | b'\r' if !matches!(next, b'\n' | b'\r') => Some((Sign::Newline, 1)),
                // A line end that was written as an escape and not decoded.
                b'\\' if matches!(next, b'n' | b'r') && text.get(start + 2) == Some(&b'/') => {
                    Some((Sign::Newline, 2))
                }
                b'$' if next == b'(' && text.get(start + 2) != Some(&b'(') => Some((Sign::Substitution, 2)),
                b'<' | b'>' if next == b'(' => Some((Sign::Substitution, 2)),
                // A fence of Markdown, and the name of the language after it.
                b'`' if text[start..].starts_with(b"```") && is_fence(&text[start + 3..]) => {
                    self.at = start
                        + 3
                        + text[start + 3..].iter().take_while(|b| b.is_ascii_alphanumeric()).count();
                    None
                }
                b'`' => {
                    self.in_backticks = !self.in_backticks;
                    // One before it may be the end of none: what follows at once may be a command, too.
                    (self.in_backticks || next > b' ').then_some((Sign::Backtick, 1))
                }
                _ => None,
            };
            if let Some((sign, len)) = found {
                self.at = start + len;
                return Some(Position { sign, start, at: start + len });
            }
        }
        None
    }
}
