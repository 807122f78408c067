//! JSON (RFC 8259), flattened to names and values.
//!
//! ```text
//! {"user": {"name": "x", "tags": [1, true]}}        user.name = x   user.tags.tags = 1   user.tags.tags = true
//! ```
//!
//! Names follow ModSecurity 2.9.7: keys joined with dots; an element of an array has the array's name and its
//! last component once more; a top-level array is called `array`. [`JsonNames::ModSecurity3`] names as
//! libmodsecurity does. Repeated keys are all reported, since applications differ in which one they take.
//! Strings are unescaped, numbers and `true` and `false` are given as written, `null` as the empty value.
//!
//! A further object or array may follow the value (`{"a":1}{"b":2}`, JSON Lines): log collectors and bulk
//! interfaces take such streams, and their values are named as if each stood alone.
//!
//! The grammar is strict: no comments, single quotes, trailing commas, byte order marks or bytes that are not
//! UTF-8. A body that needs a lenient reader is an error. Nothing recurses: open containers are a stack of a
//! few words each.

mod names;
mod scalar;
mod string;
#[cfg(test)]
mod tests;

pub use names::JsonNames;
use names::Names;
use portcullis_types::Span;
use scalar::{is_number, is_scalar_byte};

use super::{Ambiguity, Arg, BodyError, BodyErrorKind, BodySink, Byte, JsonError as Error, Limits, Report};

/// Parses a JSON body.
#[derive(Debug)]
pub struct Json {
    limits: Limits,
    names: Names,
    expect: Expect,
    token: Option<Token>,
    /// The bytes of the current token that came with earlier chunks.
    pending: Vec<u8>,
    scratch: Vec<u8>,
    failed: bool,
    report: Report,
}

/// The token that may come next; a string may come before `Colon`, as a key from `Key` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Expect {
    Value,
    /// After `[`.
    ValueOrEnd,
    /// After `,` in an object.
    Key,
    /// After `{`.
    KeyOrEnd,
    Colon,
    /// After a value inside a container.
    CommaOrEnd,
    /// After the top-level value: white space, or a further object or array.
    Nothing,
}

/// A token that may continue in the next chunk.
#[derive(Clone, Copy, Debug)]
enum Token {
    String(StringToken),
    /// A number or a word: started at this offset.
    Scalar {
        start: u64,
    },
}

#[derive(Clone, Copy, Debug)]
struct StringToken {
    /// Offset of the first byte behind the quote.
    start: u64,
    is_key: bool,
    /// The last byte seen was a backslash that escapes the next one.
    in_escape: bool,
    has_escape: bool,
    has_high: bool,
}

impl StringToken {
    fn new(start: u64, is_key: bool) -> Self {
        StringToken { start, is_key, in_escape: false, has_escape: false, has_high: false }
    }
}

/// An error and its offset. Boxed, so that results of what succeeds nearly always fit into registers.
type Failure = Box<(BodyErrorKind, u64)>;

impl Json {
    /// Bytes of memory that it holds of what it has taken.
    pub(super) fn held_bytes(&self) -> usize {
        self.pending.capacity() + self.scratch.capacity()
    }

    /// A parser that names values as ModSecurity 2 does.
    pub fn new(limits: Limits) -> Self {
        Json::with_names(limits, JsonNames::ModSecurity2)
    }

    /// A parser that names values in the given way.
    pub fn with_names(limits: Limits, names: JsonNames) -> Self {
        Json {
            limits,
            names: Names::new(names),
            expect: Expect::Value,
            token: None,
            pending: Vec::new(),
            scratch: Vec::new(),
            failed: false,
            report: Report::default(),
        }
    }

    /// Takes the next bytes.
    pub fn feed(&mut self, chunk: &[u8], sink: &mut dyn BodySink) {
        let base = self.report.bytes;
        self.report.bytes += chunk.len() as u64;
        if !self.failed
            && let Err(failure) = self.chunk(chunk, base, sink)
        {
            self.fail(*failure);
        }
    }

    /// The input is complete. An empty body is no error.
    pub fn finish(mut self, sink: &mut dyn BodySink) -> Report {
        let end = self.report.bytes;
        if !self.failed
            && let Err(failure) = self.end(end, sink)
        {
            self.fail(*failure);
        }
        self.report.no_files_bytes = end;
        self.report
    }

    fn fail(&mut self, (kind, position): (BodyErrorKind, u64)) {
        self.failed = true;
        self.report.error = Some(BodyError { kind, position });
    }

    fn end(&mut self, end: u64, sink: &mut dyn BodySink) -> Result<(), Failure> {
        if let Some(Token::Scalar { start }) = self.token {
            let pending = std::mem::take(&mut self.pending);
            self.token = None;
            self.scalar(&pending, start, sink)?;
        }
        let complete = self.token.is_none() && self.expect == Expect::Nothing;
        if complete || end == 0 { Ok(()) } else { fail(Error::Truncated, end) }
    }

    fn chunk(&mut self, chunk: &[u8], base: u64, sink: &mut dyn BodySink) -> Result<(), Failure> {
        if chunk.is_empty() {
            return Ok(());
        }
        let mut at = match self.token {
            Some(Token::String(token)) => self.go_on(token, chunk, base, sink)?,
            Some(Token::Scalar { start }) => self.scalar_bytes(start, chunk, 0, sink)?,
            None => 0,
        };
        while let Some(&byte) = chunk.get(at) {
            at = match byte {
                b' ' | b'\t' | b'\n' | b'\r' => at + 1,
                b'"' if self.expect < Expect::Colon => self.string_at(chunk, at + 1, base, sink)?,
                _ if self.structure(byte, base + at as u64)? => at + 1,
                _ => self.scalar_bytes(base + at as u64, chunk, at, sink)?,
            };
        }
        Ok(())
    }

    /// A byte outside strings. False if it is the first of a number or word.
    #[inline]
    fn structure(&mut self, byte: u8, position: u64) -> Result<bool, Failure> {
        use Expect::*;
        match byte {
            b':' if self.expect == Colon => self.expect = Value,
            b',' if self.expect == CommaOrEnd => {
                self.expect = if self.names.in_object() { Key } else { Value };
            }
            b'{' if self.expect <= ValueOrEnd => {
                self.open(true, position)?;
                self.expect = KeyOrEnd;
            }
            b'[' if self.expect <= ValueOrEnd => {
                self.open(false, position)?;
                self.expect = ValueOrEnd;
            }
            b'}' if matches!(self.expect, KeyOrEnd | CommaOrEnd) && self.names.in_object() => self.close(),
            b']' if matches!(self.expect, ValueOrEnd | CommaOrEnd) && !self.names.in_object() => self.close(),
            b'{' | b'[' if self.expect == Nothing => {
                self.names.restart();
                self.expect = Value;
                return self.structure(byte, position);
            }
            _ if self.expect <= ValueOrEnd && is_scalar_byte(byte) => return Ok(false),
            _ if self.expect == Nothing => return fail(Error::TrailingData, position),
            _ => return fail(Error::Unexpected(Byte(byte)), position),
        }
        Ok(true)
    }

    fn open(&mut self, object: bool, position: u64) -> Result<(), Failure> {
        self.names.before_value();
        self.names.open(object);
        if self.names.depth() > self.limits.json_depth_max {
            return fail(Error::Depth(self.limits.json_depth_max), position);
        }
        self.check_path(position)
    }

    fn close(&mut self) {
        self.names.close();
        self.after_value();
    }

    fn after_value(&mut self) {
        self.expect = if self.names.at_top() { Expect::Nothing } else { Expect::CommaOrEnd };
    }

    fn check_path(&self, position: u64) -> Result<(), Failure> {
        let max = self.limits.path_bytes_max;
        if self.names.path().len() > max { fail(Error::PathLength(max), position) } else { Ok(()) }
    }

    /// A string whose first byte is at `chunk[at]`. Returns where parsing continues after the string, or the
    /// chunk's end.
    #[inline]
    fn string_at(
        &mut self,
        chunk: &[u8],
        at: usize,
        base: u64,
        sink: &mut dyn BodySink,
    ) -> Result<usize, Failure> {
        let mut token = StringToken::new(base + at as u64, self.expect >= Expect::Key);
        let end = at + string::plain_len(&chunk[at..], &mut token.has_high);
        if chunk.get(end) != Some(&b'"') || token.has_high {
            return self.string_bytes(token, chunk, (at, end), base, sink);
        }
        // As nearly all are: without anything to judge.
        let raw = &chunk[at..end];
        self.text(token, raw, raw.len(), sink)?;
        Ok(end + 1)
    }

    /// The rest of a string that began in an earlier chunk.
    fn go_on(
        &mut self,
        mut token: StringToken,
        chunk: &[u8],
        base: u64,
        sink: &mut dyn BodySink,
    ) -> Result<usize, Failure> {
        let escaped = usize::from(token.in_escape);
        token.has_high |= token.in_escape && chunk[0] >= 0x80;
        token.in_escape = false;
        let next = escaped + string::plain_len(&chunk[escaped..], &mut token.has_high);
        self.string_bytes(token, chunk, (0, next), base, sink)
    }

    /// Bytes of a string, from `chunk[at]`; up to `next` there is no quote, no further backslash and no
    /// control character. Returns where parsing continues after the string, or the chunk's end.
    fn string_bytes(
        &mut self,
        mut token: StringToken,
        chunk: &[u8],
        (at, mut next): (usize, usize),
        base: u64,
        sink: &mut dyn BodySink,
    ) -> Result<usize, Failure> {
        loop {
            match chunk.get(next) {
                Some(b'"') => break,
                Some(b'\\') => {
                    token.has_escape = true;
                    token.in_escape = next + 1 == chunk.len();
                    // Whatever follows is skipped here and judged when the string is complete.
                    token.has_high |= chunk.get(next + 1).is_some_and(|b| *b >= 0x80);
                    next = (next + 2).min(chunk.len());
                }
                Some(_) => return fail(Error::Control, base + next as u64),
                None => {
                    self.pending.extend_from_slice(&chunk[at..]);
                    self.token = Some(Token::String(token));
                    return Ok(chunk.len());
                }
            }
            next += string::plain_len(&chunk[next..], &mut token.has_high);
        }
        self.token = None;
        if self.pending.is_empty() {
            self.string(token, &chunk[at..next], sink)?;
        } else {
            let mut raw = std::mem::take(&mut self.pending);
            raw.extend_from_slice(&chunk[at..next]);
            self.string(token, &raw, sink)?;
            raw.clear();
            self.pending = raw;
        }
        Ok(next + 1)
    }

    /// A complete string, without its quotes.
    fn string(&mut self, token: StringToken, raw: &[u8], sink: &mut dyn BodySink) -> Result<(), Failure> {
        if token.has_high && std::str::from_utf8(raw).is_err() {
            return fail(Error::Utf8, token.start);
        }
        if !token.has_escape {
            return self.text(token, raw, raw.len(), sink);
        }
        let mut text = std::mem::take(&mut self.scratch);
        text.clear();
        let unescaped = string::unescape(raw, &mut text, &mut self.report.ambiguities);
        unescaped.or_else(|at| fail(Error::Escape, token.start + at as u64))?;
        if memchr::memchr(0, &text).is_some() {
            self.report.ambiguities.insert(Ambiguity::NulCharacter);
        }
        self.text(token, &text, raw.len(), sink)?;
        self.scratch = text;
        Ok(())
    }

    /// Emits the decoded text of a string that was `raw_len` bytes long in the body.
    #[inline]
    fn text(
        &mut self,
        token: StringToken,
        text: &[u8],
        raw_len: usize,
        sink: &mut dyn BodySink,
    ) -> Result<(), Failure> {
        if !token.is_key {
            return self.value(text, token.start, raw_len, sink);
        }
        self.names.key(text);
        self.check_path(token.start)?;
        self.expect = Expect::Colon;
        Ok(())
    }

    /// Bytes of a number or word that began at offset `start`, from `chunk[at]`.
    fn scalar_bytes(
        &mut self,
        start: u64,
        chunk: &[u8],
        at: usize,
        sink: &mut dyn BodySink,
    ) -> Result<usize, Failure> {
        let rest = &chunk[at..];
        let Some(len) = rest.iter().position(|&b| !is_scalar_byte(b)) else {
            self.pending.extend_from_slice(rest);
            self.token = Some(Token::Scalar { start });
            return Ok(chunk.len());
        };
        self.token = None;
        if self.pending.is_empty() {
            self.scalar(&rest[..len], start, sink)?;
        } else {
            let mut text = std::mem::take(&mut self.pending);
            text.extend_from_slice(&rest[..len]);
            self.scalar(&text, start, sink)?;
            text.clear();
            self.pending = text;
        }
        Ok(at + len)
    }

    fn scalar(&mut self, text: &[u8], start: u64, sink: &mut dyn BodySink) -> Result<(), Failure> {
        let value = match text {
            [b'a'..=b'z' | b'A'..=b'Z', ..] => match text {
                b"true" | b"false" => text,
                b"null" => b"",
                _ => return fail(Error::Word, start),
            },
            _ if is_number(text) => text,
            _ => return fail(Error::Number, start),
        };
        self.value(value, start, text.len(), sink)
    }

    #[inline]
    fn value(
        &mut self,
        value: &[u8],
        start: u64,
        raw_len: usize,
        sink: &mut dyn BodySink,
    ) -> Result<(), Failure> {
        self.names.before_value();
        self.check_path(start)?;
        if self.report.arguments >= self.limits.arguments_max {
            return Err(Box::new((BodyErrorKind::ArgumentsLimit(self.limits.arguments_max), start)));
        }
        self.report.arguments += 1;
        let raw_value = Span::new(start as usize, start as usize + raw_len);
        sink.arg(Arg { name: self.names.path(), value, raw_value });
        self.after_value();
        Ok(())
    }
}

#[cold]
fn fail<T>(error: Error, position: u64) -> Result<T, Failure> {
    Err(Box::new((BodyErrorKind::Json(error), position)))
}
