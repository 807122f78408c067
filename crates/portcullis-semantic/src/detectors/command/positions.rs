//! Where a shell would begin a command.

use super::{AMPERSAND, LOGICAL, NEWLINE, PIPE, SEMICOLON, SUBSTITUTION, WHOLE};
use crate::detectors::scan::find_in;
use crate::{ByteGroups, KindId};

/// What stands before a command.
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
    /// The sign follows a quote that nothing in the text opened: `x';id`.
    pub fn breaks_quote(&self, text: &[u8]) -> bool {
        let before = text[..self.start].trim_ascii_end();
        match before.last() {
            Some(&quote @ (b'\'' | b'"')) => {
                // Not the apostrophe of `it's`.
                let is_letter = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphabetic);
                let is_mark =
                    |at: &usize| !(is_letter(before[..*at].last()) && is_letter(before.get(at + 1)));
                memchr::memchr_iter(quote, before).filter(is_mark).count() % 2 == 1
            }
            _ => false,
        }
    }

    /// Where the back-ticks end that stand in a sentence, as people write `code`; the beginning of the text if they do not.
    pub fn said_until(&self, text: &[u8]) -> usize {
        match self.sign == Sign::Backtick && self.is_behind_word(text) {
            true => memchr::memchr(b'`', &text[self.at..]).map_or(text.len(), |len| self.at + len),
            false => 0,
        }
    }

    /// A word and a space stand before `code` in prose, a value or a sign before a substitution.
    fn is_behind_word(&self, text: &[u8]) -> bool {
        matches!(&text[..self.start], [.., last, b' '] if last.is_ascii_alphanumeric() || matches!(last, b',' | b':'))
    }

    /// What follows the command is no prose: `code` in back-ticks and lines of a listing stand in texts.
    pub fn ends_well(&self, text: &[u8], end: usize) -> bool {
        if self.sign == Sign::Backtick && self.is_behind_word(text) {
            return false;
        }
        let may_be_listing = matches!(self.sign, Sign::Begin | Sign::Backtick | Sign::Newline);
        !may_be_listing || super::is_short(&text[end.min(text.len())..])
    }

    /// `test|id`, `x;id`: one word, the sign or a line end, and the name that ends at `end`, with nothing behind it.
    pub fn follows_word(&self, text: &[u8], end: usize) -> bool {
        let before = text[..self.start].trim_ascii_end();
        matches!(self.sign, Sign::Pipe | Sign::Semicolon | Sign::Newline)
            && !before.is_empty()
            && before.iter().all(u8::is_ascii_alphanumeric)
            && text[end..].trim_ascii().is_empty()
    }

    /// A name without arguments that ends at `end` is a command and not one of a list of words (`name|id|type`): what stands
    /// before it is no word, or nothing does.
    pub fn is_sure(&self, text: &[u8], end: usize) -> bool {
        if matches!(self.sign, Sign::Substitution | Sign::Backtick | Sign::Logical) {
            return true;
        }
        let is_item =
            |b: &u8| b.is_ascii_alphabetic() || matches!(b, b'_' | b'-' | b' ' | b';' | b'|' | b',' | b'&');
        let before = text[..self.start].trim_ascii_end();
        let is_list = before.iter().all(is_item) && before.iter().any(u8::is_ascii_alphabetic);
        // A list that goes on behind it with words, and letters before it.
        let after = text[end..].trim_ascii();
        let goes_on =
            after.len() > 1 && after[1..].trim_ascii_start().first().is_some_and(u8::is_ascii_alphanumeric);
        !(is_list || goes_on)
    }
}

/// The positions of a text, in order.
#[derive(Debug)]
pub(super) struct Positions<'t> {
    text: &'t [u8],
    at: usize,
    begun: bool,
    has_signs: bool,
    has_amp: bool,
    in_backticks: bool,
    /// `&` joins pairs in it (`a=1&id`), and `;` ends what `&` begins.
    is_pairs: bool,
}

impl<'t> Positions<'t> {
    pub fn new(text: &'t [u8], groups: ByteGroups) -> Positions<'t> {
        const SIGNS: ByteGroups = ByteGroups::of(b";|&\n`$<>\\");
        let pair = || {
            let amp = memchr::memchr(b'&', text)?;
            let equals = memchr::memchr2(b'=', b'?', &text[..amp])?;
            Some(!text[..equals].iter().any(|b| b.is_ascii_whitespace()))
        };
        let is_pairs = groups.has(b'&') && pair().unwrap_or(false);
        Positions {
            text,
            at: 0,
            begun: false,
            has_signs: groups.intersects(SIGNS),
            has_amp: groups.has(b'&'),
            in_backticks: false,
            is_pairs,
        }
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

    /// `&amp;`, `&#39;`: the semicolon at `at` ends a character reference.
    fn ends_entity(&self, at: usize) -> bool {
        let from = at.saturating_sub(10);
        let name =
            self.text[from..at].iter().rev().take_while(|b| b.is_ascii_alphanumeric() || **b == b'#').count();
        name > 1 && at > name && self.text[at - name - 1] == b'&'
    }
}

/// The length of the five fields with which a line of cron begins, and of a user's name behind them.
fn schedule(text: &[u8]) -> usize {
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

/// A line ends, or the text does, behind nothing or the name of a language; shells run nothing there.
fn is_fence(after: &[u8]) -> bool {
    const LANGUAGES: &[&[u8]] = &[
        b"",
        b"bash",
        b"sh",
        b"zsh",
        b"shell",
        b"console",
        b"powershell",
        b"cmd",
        b"bat",
        b"python",
        b"perl",
        b"ruby",
        b"php",
        b"node",
        b"lua",
        b"java",
        b"js",
        b"json",
        b"yaml",
        b"sql",
        b"html",
        b"css",
        b"text",
    ];
    let len = after.iter().take(12).take_while(|b| b.is_ascii_alphanumeric()).count();
    LANGUAGES.contains(&&after[..len]) && matches!(after.get(len), None | Some(b'\n' | b'\r'))
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
                b';' if !(self.has_amp && self.ends_entity(start)) => Some((Sign::Semicolon, 1)),
                b'|' if next == b'|' => Some((Sign::Logical, 2)),
                b'|' => Some((Sign::Pipe, 1 + usize::from(next == b'&'))),
                b'&' if next == b'&' => Some((Sign::Logical, 2)),
                b'&' if next == b'>' || start > 0 && matches!(text[start - 1], b'>' | b'<') => None,
                b'&' if !self.is_pairs || next == b' ' => Some((Sign::Ampersand, 1)),
                b'\n' | b'\r' if !matches!(next, b'\n' | b'\r') => Some((Sign::Newline, 1)),
                // A line end that was written as an escape and not decoded.
                b'\\' if matches!(next, b'n' | b'r') && text.get(start + 2) == Some(&b'/') => {
                    Some((Sign::Newline, 2))
                }
                b'$' if next == b'(' && text.get(start + 2) != Some(&b'(') => Some((Sign::Substitution, 2)),
                b'<' | b'>' if next == b'(' => Some((Sign::Substitution, 2)),
                // A fence of Markdown, and the name of the language behind it.
                b'`' if text[start..].starts_with(b"```") && is_fence(&text[start + 3..]) => {
                    self.at = start
                        + 3
                        + text[start + 3..].iter().take_while(|b| b.is_ascii_alphanumeric()).count();
                    None
                }
                b'`' => {
                    self.in_backticks = !self.in_backticks;
                    self.in_backticks.then_some((Sign::Backtick, 1))
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
