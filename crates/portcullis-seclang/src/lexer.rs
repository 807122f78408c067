//! Lines and words, as Apache's configuration reader cuts them.
//!
//! A backslash at the very end of a line joins the next line to it, in comments, too. A line whose first byte
//! is `#` is a comment. Words are separated by blanks; a word in `"` or `'` may hold blanks, and inside it a
//! backslash before the quote or before another backslash is dropped. Every byte keeps the place it came
//! from, so that a mistake inside a quoted, continued word is shown where it stands.

use crate::source::{FileId, SourceSpan};

/// Bytes after unquoting and joining, each with its offset in the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Text {
    bytes: Vec<u8>,
    at: Vec<u32>,
}

impl Text {
    /// Adds `bytes`, which stand together from `at` on.
    fn extend(&mut self, bytes: &[u8], at: usize) {
        let start = u32::try_from(at).unwrap_or(u32::MAX);
        self.bytes.extend_from_slice(bytes);
        self.at.extend((0..bytes.len() as u32).map(|offset| start.saturating_add(offset)));
    }

    /// All of it; if it is empty, it stands at the start of the file.
    pub(crate) fn view(&self, file: FileId) -> View<'_> {
        self.view_at(file, 0)
    }

    /// All of it; if it is empty, it stands at `place`.
    pub(crate) fn view_at(&self, file: FileId, place: u32) -> View<'_> {
        let end = self.at.last().map_or(place, |&at| at + 1);
        View { bytes: &self.bytes, at: &self.at, end, file }
    }
}

/// A part of a [`Text`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    /// The bytes.
    pub(crate) bytes: &'a [u8],
    at: &'a [u32],
    /// Offset in the file of what comes after.
    end: u32,
    file: FileId,
}

impl<'a> View<'a> {
    /// No byte, at `place`.
    pub(crate) fn empty(file: FileId, place: u32) -> View<'static> {
        View { bytes: &[], at: &[], end: place, file }
    }

    /// The bytes `start..end` of it, both clamped to its length.
    pub(crate) fn slice(self, start: usize, end: usize) -> View<'a> {
        let end = end.min(self.bytes.len());
        let start = start.min(end);
        let after = self.at.get(end).copied();
        let after = match end.checked_sub(1).and_then(|last| self.at.get(last)) {
            Some(&last) if start < end => last + 1,
            _ => after.unwrap_or(self.end),
        };
        View { bytes: &self.bytes[start..end], at: &self.at[start..end], end: after, file: self.file }
    }

    /// From `start` on.
    pub(crate) fn from(self, start: usize) -> View<'a> {
        self.slice(start, self.bytes.len())
    }

    /// Without blanks at the start.
    pub(crate) fn trim_start(self) -> View<'a> {
        self.from(self.bytes.iter().position(|&b| !is_blank(b)).unwrap_or(self.bytes.len()))
    }

    /// Without blanks at either end.
    pub(crate) fn trim(self) -> View<'a> {
        let rest = self.trim_start();
        rest.slice(0, rest.bytes.iter().rposition(|&b| !is_blank(b)).map_or(0, |last| last + 1))
    }

    /// Split at the first `byte`, which is in neither part.
    pub(crate) fn split_once(self, byte: u8) -> Option<(View<'a>, View<'a>)> {
        let at = self.bytes.iter().position(|&b| b == byte)?;
        Some((self.slice(0, at), self.from(at + 1)))
    }

    /// Returns its place.
    pub(crate) fn span(self) -> SourceSpan {
        let start = self.at.first().copied().unwrap_or(self.end);
        SourceSpan::new(self.file, start as usize, self.end as usize)
    }

    /// A copy in which a backslash before `quote` or another backslash is dropped.
    pub(crate) fn unescape(self, quote: u8) -> Text {
        let capacity = self.bytes.len();
        let mut out = Text { bytes: Vec::with_capacity(capacity), at: Vec::with_capacity(capacity) };
        let mut take = |start: usize, end: usize| {
            out.bytes.extend_from_slice(&self.bytes[start..end]);
            out.at.extend_from_slice(&self.at[start..end]);
        };
        let (mut start, mut at) = (0, 0);
        while let Some(offset) = memchr::memchr(b'\\', &self.bytes[at..]) {
            let backslash = at + offset;
            at = backslash + 1;
            if self.bytes.get(at).is_some_and(|&b| b == quote || b == b'\\') {
                take(start, backslash);
                start = at;
                at += 1;
            }
        }
        take(start, capacity);
        out
    }

    /// A copy as it is.
    pub(crate) fn copy(self) -> Text {
        Text { bytes: self.bytes.to_vec(), at: self.at.to_vec() }
    }

    /// As text, for names and numbers; `None` if it is not UTF-8.
    pub(crate) fn str(self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes).ok()
    }

    /// For a message: what is not UTF-8 or not printable is replaced, and long texts are cut.
    pub(crate) fn show(self) -> String {
        const SHOWN_CHARS_MAX: usize = 60;
        let text = String::from_utf8_lossy(self.bytes);
        let mut shown: String =
            text.chars().take(SHOWN_CHARS_MAX).map(|c| if c.is_control() { '·' } else { c }).collect();
        if text.chars().nth(SHOWN_CHARS_MAX).is_some() {
            shown.push_str("...");
        }
        shown
    }
}

/// A blank as C's `isspace` has it.
pub(crate) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r')
}

/// A line with its continuations.
#[derive(Debug)]
pub(crate) struct Line {
    /// Its bytes without line ends and continuation backslashes.
    pub(crate) text: Text,
    /// Offset of the byte after it.
    pub(crate) end: usize,
    /// It ends in a backslash and then blanks: the author may have meant a continuation.
    pub(crate) blanks_after_backslash: Option<(usize, usize)>,
    /// Offset of the first continuation line that does not look like part of a comment.
    pub(crate) odd_continuation: Option<usize>,
}

/// Reads the line that starts at `start`; `None` at the end of the text.
pub(crate) fn line(source: &[u8], start: usize) -> Option<Line> {
    let mut line =
        Line { text: Text::default(), end: start, blanks_after_backslash: None, odd_continuation: None };
    if start >= source.len() {
        return None;
    }
    let is_comment = source[start..].iter().find(|&&b| !is_blank(b) || b == b'\n') == Some(&b'#');
    let mut at = start;
    loop {
        let rest = source.get(at..).unwrap_or_default();
        let length = memchr::memchr(b'\n', rest);
        let next = length.map_or(source.len(), |length| at + length + 1);
        let mut body = &rest[..length.unwrap_or(rest.len())];
        body = body.strip_suffix(b"\r").unwrap_or(body);
        if at > start && line.odd_continuation.is_none() && looks_like_a_line_of_its_own(body) {
            line.odd_continuation = Some(at);
        }
        let continued = body.last() == Some(&b'\\');
        let mut taken = if continued { &body[..body.len() - 1] } else { body };
        let mut goes_on = continued;
        if !continued {
            let trimmed = body.iter().rposition(|&b| !is_blank(b)).map_or(&body[..0], |last| &body[..=last]);
            if trimmed.len() < body.len() && trimmed.last() == Some(&b'\\') && next < source.len() {
                // Surely meant as a continuation: continue as if it were one, so that one mistake makes one
                // message.
                line.blanks_after_backslash.get_or_insert((at + trimmed.len() - 1, at + body.len()));
                taken = &trimmed[..trimmed.len() - 1];
                goes_on = true;
            }
        }
        if is_comment {
            // The rest of a comment is not read.
            let shown =
                if at == start { taken.iter().position(|&b| b == b'#').map_or(0, |at| at + 1) } else { 0 };
            taken = &taken[..shown];
        }
        line.text.extend(taken, at);
        at = next;
        if !goes_on || at >= source.len() {
            line.end = at;
            return Some(line);
        }
    }
}

/// True for a line that would mean something if it stood alone, after a comment that went on by accident.
fn looks_like_a_line_of_its_own(body: &[u8]) -> bool {
    let start = body.iter().position(|&b| !is_blank(b)).unwrap_or(body.len());
    let first = &body[start..];
    first.len() >= 3 && (first[..3].eq_ignore_ascii_case(b"Sec") || first[..3].eq_ignore_ascii_case(b"Inc"))
}

/// A word of a line.
#[derive(Clone, Debug)]
pub(crate) struct Word {
    /// Its bytes, quoting undone.
    pub(crate) text: Text,
    /// Its place, quotes included.
    pub(crate) span: SourceSpan,
    /// It begins with a quote and the line ends before the other one.
    pub(crate) unclosed: bool,
    /// The next word follows without a blank.
    pub(crate) glued: bool,
}

/// The words of a line.
pub(crate) fn words(line: View<'_>) -> Vec<Word> {
    let mut out = Vec::new();
    let mut i = 0;
    loop {
        while line.bytes.get(i).is_some_and(|&b| is_blank(b)) {
            i += 1;
        }
        let Some(&first) = line.bytes.get(i) else { return out };
        let start = i;
        if first == b'"' || first == b'\'' {
            i += 1;
            loop {
                let rest = &line.bytes[i..];
                let Some(offset) = memchr::memchr2(first, b'\\', rest) else {
                    i = line.bytes.len();
                    break;
                };
                i += offset;
                if rest[offset] == first {
                    break;
                }
                let escaped = rest.get(offset + 1).is_some_and(|&b| b == first || b == b'\\');
                i += if escaped { 2 } else { 1 };
            }
            let inner = line.slice(start + 1, i);
            let unclosed = i >= line.bytes.len();
            i = (i + 1).min(line.bytes.len());
            let glued = line.bytes.get(i).is_some_and(|&b| !is_blank(b));
            out.push(Word {
                text: inner.unescape(first),
                span: line.slice(start, i).span(),
                unclosed,
                glued,
            });
        } else {
            while line.bytes.get(i).is_some_and(|&b| !is_blank(b)) {
                i += 1;
            }
            let inner = line.slice(start, i);
            out.push(Word { text: inner.unescape(b'\\'), span: inner.span(), unclosed: false, glued: false });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(source: &str) -> Vec<Vec<String>> {
        let mut out = Vec::new();
        let mut at = 0;
        while let Some(line) = line(source.as_bytes(), at) {
            let words = words(line.text.view(FileId(0)));
            out.push(words.iter().map(|w| String::from_utf8_lossy(&w.text.bytes).into_owned()).collect());
            at = line.end;
        }
        out
    }

    #[test]
    fn continued_lines_are_joined_and_keep_their_indentation() {
        assert_eq!(cut("a \\\n  b\\\r\nc\nd"), [vec!["a", "bc"], vec!["d"]]);
        assert_eq!(cut("a \"x\\\n  y\" \\\n"), [vec!["a", "x  y"]]);
    }

    #[test]
    fn quotes_hold_blanks_and_escapes() {
        assert_eq!(
            cut(r#"a "b \" c" 'd "\' e' f\\g "h\d\\""#),
            [vec!["a", r#"b " c"#, r#"d "' e"#, r"f\g", r"h\d\"]]
        );
        assert_eq!(cut(r#"a "b" "c" "" d"#), [vec!["a", "b", "c", "", "d"]]);
    }

    #[test]
    fn a_blank_after_the_backslash_is_seen_and_the_line_goes_on() {
        let source = b"a \\ \nb\n";
        let line = line(source, 0).unwrap();
        assert_eq!(line.blanks_after_backslash, Some((2, 4)));
        assert_eq!(line.end, source.len());
    }

    #[test]
    fn places_survive_joining_and_unquoting() {
        let source = b"a \"x\\\"\\\ny\"";
        let line = line(source, 0).unwrap();
        let view = line.text.view(FileId(0));
        let words = words(view);
        let inner = words[1].text.view(FileId(0));
        assert_eq!(inner.bytes, b"x\"y");
        assert_eq!(inner.slice(1, 2).span(), SourceSpan::new(FileId(0), 5, 6));
        assert_eq!(inner.slice(2, 3).span(), SourceSpan::new(FileId(0), 8, 9));
        assert_eq!(words[1].span, SourceSpan::new(FileId(0), 2, 10));
    }
}
