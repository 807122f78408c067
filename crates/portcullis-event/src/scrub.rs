//! Finds the values that follow secret names in a text of unknown kind: a query, a cookie line, JSON, XML, a
//! head.
//!
//! One pass over the text, looking backwards at most [`NAME_BYTES_MAX`] bytes from each separator. It errs on
//! the side of striking out too much: a value without a clear end goes to the end of the text.

use std::borrow::Cow;
use std::ops::Range;

use portcullis_types::percent_decode;

use crate::redact::{REDACTED, Redactor};
use crate::secret_names::looks_secret;
use crate::user_info::user_infos;

/// Longest name looked at before a separator.
const NAME_BYTES_MAX: usize = 128;

/// The separators that end a `name=value` pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pairs {
    /// `&`, as in a query; names are those of arguments.
    Form,
    /// `;`, as in a Cookie line; names are those of cookies.
    Cookie,
}

/// `text` without the values that follow secret names; `None` if there are none.
pub(crate) fn scrub(text: &str, redactor: &Redactor, pairs: Pairs) -> Option<String> {
    let spans = secret_spans(text.as_bytes(), redactor, pairs);
    if spans.is_empty() {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for span in spans {
        // Spans begin and end beside ASCII bytes or at the end of the text, so these are character
        // boundaries.
        out.push_str(text.get(from..span.start).unwrap_or_default());
        out.push_str(REDACTED);
        from = span.end;
    }
    out.push_str(text.get(from..).unwrap_or_default());
    Some(out)
}

/// Returns the spans of values of secret names, in order, none empty, none overlapping.
pub(crate) fn secret_spans(text: &[u8], redactor: &Redactor, pairs: Pairs) -> Vec<Range<usize>> {
    if redactor.shows_all() {
        return Vec::new();
    }
    let mut spans = named_spans(text, redactor, pairs);
    for tokens in [tokens(text), user_infos(text)].into_iter().filter(|tokens| !tokens.is_empty()) {
        // Spans do not overlap: of those that begin before the token's end, only the last can reach into it.
        let is_new = |token: &Range<usize>| {
            let before = spans.partition_point(|span| span.start < token.end);
            before.checked_sub(1).is_none_or(|last| spans[last].end <= token.start)
        };
        let new: Vec<Range<usize>> = tokens.into_iter().filter(is_new).collect();
        spans.extend(new);
        spans.sort_by_key(|span| span.start);
    }
    spans
}

/// The shortest part of a token that is taken for one.
const TOKEN_PART_BYTES_MIN: usize = 10;

/// Signed tokens (RFC 7515, compact form), whatever they are called: three parts of base64url, the first of
/// which is a JSON object.
fn tokens(text: &[u8]) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let is_sign = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let mut at = 0;
    // Base64 of `{"` is `eyJ`, of which the last letter is rare.
    while let Some(n) = memchr::memchr(b'J', &text[at..]) {
        let start = (at + n).saturating_sub(2);
        if start < at || !text[start..].starts_with(b"eyJ") {
            at += n + 1;
            continue;
        }
        let mut end = start;
        let mut parts = 0;
        while parts < 3 {
            let length = text[end..].iter().take_while(|byte| is_sign(byte)).count();
            if length < TOKEN_PART_BYTES_MIN {
                break;
            }
            (end, parts) = (end + length, parts + 1);
            if parts < 3 && text.get(end) == Some(&b'.') {
                end += 1;
            } else {
                break;
            }
        }
        at = end.max(start + 3);
        if parts == 3 {
            found.push(start..end);
        }
    }
    found
}

/// Values of secret names alone.
fn named_spans(text: &[u8], redactor: &Redactor, pairs: Pairs) -> Vec<Range<usize>> {
    let mut spans: Vec<Range<usize>> = Vec::new();
    let (mut i, mut from) = (0, 0);
    // The beginning of the line and the last `<`, so that nobody looks for them again at each separator.
    let (mut line, mut open) = (Some(0), None);
    while let Some(n) = memchr::memchr3(b'=', b':', b'>', &text[i..]) {
        i += n;
        if let Some(end) = memchr::memrchr(b'\n', &text[from..i]) {
            line = Some(from + end + 1);
        }
        open = memchr::memrchr(b'<', &text[from..i]).map(|at| from + at).or(open);
        from = i;
        let span = match text[i] {
            b'=' => pair(text, i, redactor, pairs),
            // The first colon of a line ends the name of a field.
            b':' => json_member(text, i, redactor).or_else(|| header_line(text, line.take()?, i, redactor)),
            _ => open.and_then(|open| element(text, open, i, redactor)),
        };
        match span {
            Some(span) if !span.is_empty() => {
                i = span.end;
                spans.push(span);
            }
            _ => i += 1,
        }
    }
    spans
}

/// `name=value`, and the part of a multipart body whose head says `name="password"`.
fn pair(text: &[u8], equals: usize, redactor: &Redactor, pairs: Pairs) -> Option<Range<usize>> {
    let start = equals + 1;
    let raw = name_before(text, equals, |b| matches!(b, b'&' | b'?' | b';' | b',' | b'=' | b'"' | b'\''));
    let name: Cow<[u8]> = match memchr::memchr2(b'%', b'+', raw) {
        Some(_) => percent_decode(raw, true).into(),
        None => raw.into(),
    };
    if *name == *b"name" && text.get(start) == Some(&b'"') {
        let quoted = &text[start + 1..];
        let quoted = &quoted[..quoted.len().min(NAME_BYTES_MAX)];
        let end = quoted.iter().position(|&b| b == b'"')?;
        let body = start + 1 + end + 1;
        return match redactor.is_secret_arg(&quoted[..end]) {
            true => Some(body..until(text, body, b"\n--")),
            false if redactor.is_weak(&quoted[..end]) => part_value(text, body),
            false => None,
        };
    }
    if pairs == Pairs::Cookie {
        return match redactor.is_secret_cookie(&name) {
            true => Some(start..until(text, start, b";")),
            false if redactor.is_weak(&name) => weak_value(text, start),
            false => None,
        };
    }
    match redactor.is_secret_arg(&name) {
        true => Some(start..form_value_end(text, start)),
        false if redactor.is_weak(&name) => weak_value(text, start),
        false => None,
    }
}

/// The next `&`, or the end of a request line: a decoded value may hold blanks, so that no other one is taken
/// for its end. Looks no further than that.
fn form_value_end(text: &[u8], start: usize) -> usize {
    let mut at = start;
    while let Some(n) = memchr::memchr2(b'&', b' ', &text[at..]) {
        at += n;
        if text[at] == b'&' || text[at..].starts_with(b" HTTP/") {
            return at;
        }
        at += 1;
    }
    text.len()
}

/// `"name": "value"`, `"name": 17`.
fn json_member(text: &[u8], colon: usize, redactor: &Redactor) -> Option<Range<usize>> {
    let before = text[..colon].trim_ascii_end().strip_suffix(b"\"")?;
    let name = name_before(before, before.len(), |b| b == b'"');
    let is_secret = redactor.is_secret_arg(name);
    if !is_secret && !redactor.is_weak(name) {
        return None;
    }
    let start = colon + 1 + text[colon + 1..].iter().take_while(|b| b.is_ascii_whitespace()).count();
    if !is_secret {
        return weak_value(text, start + usize::from(text.get(start) == Some(&b'"')));
    }
    let end = match text.get(start)? {
        b'"' => {
            let mut escaped = false;
            let rest = &text[start + 1..];
            let close = rest.iter().position(|&b| {
                let closes = b == b'"' && !escaped;
                escaped = b == b'\\' && !escaped;
                closes
            });
            // The quotes stay, so that the text still reads as JSON.
            return Some(start + 1..close.map_or(text.len(), |n| start + 1 + n));
        }
        b'{' | b'[' => text.len(),
        _ => text[start..]
            .iter()
            .position(|b| matches!(b, b',' | b'}' | b']'))
            .map_or(text.len(), |n| start + n),
    };
    Some(start..end)
}

/// `Name: value` at the beginning of a line.
fn header_line(text: &[u8], line: usize, colon: usize, redactor: &Redactor) -> Option<Range<usize>> {
    let name = &text[line..colon];
    let is_name = name.len() <= NAME_BYTES_MAX && name.iter().all(|byte| *byte > b' ');
    if !is_name || !redactor.is_secret_header(name) {
        return None;
    }
    let start = colon + 1 + text[colon + 1..].iter().take_while(|&&b| b == b' ').count();
    Some(start..until(text, start, b"\n"))
}

/// `<name attributes>value<`.
fn element(text: &[u8], open: usize, close: usize, redactor: &Redactor) -> Option<Range<usize>> {
    let inside = text.get(open + 1..close).filter(|inside| inside.len() < NAME_BYTES_MAX)?;
    let name = inside.split(|b| b.is_ascii_whitespace()).next()?;
    let name = name.rsplit(|&b| b == b':').next()?;
    match redactor.is_secret_arg(name) {
        true => Some(close + 1..until(text, close + 1, b"<")),
        false if redactor.is_weak(name) => weak_value(text, close + 1),
        false => None,
    }
}

/// The value that begins here, if it looks like a secret and ends where a value does.
fn weak_value(text: &[u8], start: usize) -> Option<Range<usize>> {
    let rest = text.get(start..)?;
    let is_sign = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.~+/%".contains(byte);
    let length = rest.iter().take_while(|byte| is_sign(byte)).count();
    let padding = rest[length..].iter().take_while(|byte| **byte == b'=').count();
    let length = length + padding;
    // A cut text goes on.
    let ends = rest.get(length).is_none_or(|byte| b"&;,\"<>#)}] \r\n\t".contains(byte) || !byte.is_ascii());
    (ends && looks_secret(&rest[..length])).then_some(start..start + length)
}

/// The value of a part of a multipart body, behind the rest of its head, if it looks like a secret.
fn part_value(text: &[u8], head: usize) -> Option<Range<usize>> {
    let near = &text[head..text.len().min(head + 4 * NAME_BYTES_MAX)];
    let blank =
        |line_end: &[u8]| Some(near.windows(line_end.len()).position(|w| w == line_end)? + line_end.len());
    let length = blank(b"\r\n\r\n").or_else(|| blank(b"\n\n"))?;
    weak_value(text, head + length)
}

/// The bytes before `end`, back to a blank, a control character or a byte that `stops`.
fn name_before(text: &[u8], end: usize, stops: impl Fn(u8) -> bool) -> &[u8] {
    let from = end.saturating_sub(NAME_BYTES_MAX);
    let window = &text[from..end];
    let start = window.iter().rposition(|&b| b <= b' ' || stops(b)).map_or(0, |n| n + 1);
    &window[start..]
}

/// Offset of the next `needle` from `start`, or the end of the text.
fn until(text: &[u8], start: usize, needle: &[u8]) -> usize {
    let rest = text.get(start..).unwrap_or_default();
    rest.windows(needle.len()).position(|w| w == needle).map_or(text.len(), |n| start + n)
}
