//! Values within values.

use memchr::memchr;
use portcullis_http::body::{Arg, BodySink, Json, Limits, parse_query};

use crate::odd_name::is_odd_name;

struct Values<'e>(&'e mut dyn FnMut(&[u8]));

impl BodySink for Values<'_> {
    fn arg(&mut self, arg: Arg<'_>) {
        if !arg.value.is_empty() {
            (self.0)(arg.value);
        }
    }
}

/// The scalars of a document, and its keys that are more than words: the document as a whole is not read as
/// text.
struct Members<'e> {
    /// Takes the path of names of a scalar, which is empty for a key, and what is there.
    emit: &'e mut dyn FnMut(&[u8], &[u8]),
    /// The path of names before: what it shares with the next one was emitted.
    before: Vec<u8>,
}

impl BodySink for Members<'_> {
    fn arg(&mut self, arg: Arg<'_>) {
        let shared = arg.name.iter().zip(&self.before).take_while(|(a, b)| a == b).count();
        if shared < arg.name.len() {
            let start = memchr::memrchr(b'.', &arg.name[..shared]).map_or(0, |dot| dot + 1);
            let name = &arg.name[start..];
            if is_odd_name(name) {
                (self.emit)(b"", name);
            }
            self.before.clear();
            self.before.extend_from_slice(arg.name);
        }
        if !arg.value.is_empty() {
            (self.emit)(arg.name, arg.value);
        }
    }
}

/// As many as there are: each byte of them is charged.
fn limits() -> Limits {
    Limits { arguments_max: usize::MAX, ..Limits::default() }
}

/// The scalars and odd keys of an object or array that is the whole value, scalars with their path of names.
/// True if it was one to the end.
pub(super) fn json(text: &[u8], emit: &mut dyn FnMut(&[u8], &[u8])) -> bool {
    let trimmed = text.trim_ascii();
    if !matches!((trimmed.first(), trimmed.last()), (Some(b'{'), Some(b'}')) | (Some(b'['), Some(b']'))) {
        return false;
    }
    let mut parser = Json::new(limits());
    let mut sink = Members { emit, before: Vec::new() };
    parser.feed(trimmed, &mut sink);
    let is_whole = parser.finish(&mut sink).error.is_none();
    if is_whole {
        keys_of_nothing(trimmed, &mut |key| (sink.emit)(b"", key));
    }
    is_whole
}

/// The keys of `document` that are more than words and whose value is an object or array without anything in
/// it, as they stand there: no value names them.
pub(crate) fn keys_of_nothing(document: &[u8], emit: &mut dyn FnMut(&[u8])) {
    for close in memchr::memchr2_iter(b'}', b']', document) {
        let open = if document[close] == b'}' { b'{' } else { b'[' };
        let Some(head) = document[..close].trim_ascii_end().strip_suffix(&[open]) else { continue };
        let Some(head) = head.trim_ascii_end().strip_suffix(b":") else { continue };
        let Some(head) = head.trim_ascii_end().strip_suffix(b"\"") else { continue };
        let is_escaped = |at: usize| {
            let slashes = head[..at].iter().rev().take_while(|b| **b == b'\\').count();
            slashes % 2 == 1
        };
        // The key of a document in a string, which is looked at by itself.
        if is_escaped(head.len()) {
            continue;
        }
        let mut quotes = memchr::memrchr_iter(b'"', head);
        let Some(start) = quotes.find(|at| !is_escaped(*at)) else { continue };
        let key = &head[start + 1..];
        if is_odd_name(key) {
            emit(key);
        }
    }
}

/// The strings in a value that PHP has serialised, of which each tells its length:
/// `a:1:{s:1:"x";s:4:"O2lk";}`. The first of them is the name of a class or key like the others.
pub(super) fn php_strings(text: &[u8], emit: &mut dyn FnMut(&[u8])) {
    if !is_php(text) {
        return;
    }
    let mut at = 0;
    while let Some(found) = memchr::memmem::find(&text[at..], b"s:") {
        let digits = at + found + 2;
        at = digits;
        let count = text[digits..].iter().take(LENGTH_DIGITS_MAX).take_while(|b| b.is_ascii_digit()).count();
        let is_begun = digits == 2 || matches!(text[digits - 3], b'{' | b';' | b':' | b'|' | b'}');
        let len =
            str::from_utf8(&text[digits..digits + count]).ok().and_then(|len| len.parse::<usize>().ok());
        let Some(len) = len.filter(|_| is_begun) else { continue };
        let Some(rest) = text[digits + count..].strip_prefix(b":\"") else { continue };
        if len > 0 && rest.get(len) == Some(&b'"') {
            emit(&rest[..len]);
            at = text.len() - rest.len() + len;
        }
    }
}

/// No string that is looked at is longer than such a number says.
const LENGTH_DIGITS_MAX: usize = 9;

/// An array, object or string begins as PHP serialises one, perhaps after the name that a session keeps it
/// by.
fn is_php(text: &[u8]) -> bool {
    let text = text.trim_ascii_start();
    let name =
        text.iter().take(SESSION_NAME_MAX).take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
    let value = if text.get(name) == Some(&b'|') { &text[name + 1..] } else { text };
    matches!(value, [b'a' | b'O' | b'C' | b's', b':', b'0'..=b'9' | b'+', ..])
}

/// A longer word is no variable of a session.
const SESSION_NAME_MAX: usize = 64;

/// The parameters of a URL's query, or of a string that is pairs joined by `&`.
pub(super) fn parameters(text: &[u8], emit: &mut dyn FnMut(&[u8])) {
    let query = match memchr(b'?', text) {
        Some(at) if is_url(&text[..at]) => &text[at + 1..],
        _ if is_pairs(text) => text,
        _ => return,
    };
    let query = &query[..memchr(b'#', query).unwrap_or(query.len())];
    if memchr(b'=', query).is_none() && query.len() < text.len() {
        if !query.is_empty() {
            emit(query);
        }
        return;
    }
    parse_query(query, b'&', &limits(), &mut Values(emit));
}

/// The part of a URL before its query, if `text` is a URL with parameters, which are looked at by themselves.
pub(super) fn url_before_query(text: &[u8]) -> Option<&[u8]> {
    let before = &text[..memchr(b'?', text)?];
    (is_url(before) && memchr(b'=', &text[before.len()..]).is_some()).then_some(before)
}

/// What stands before the question mark is a path or a URL: no spaces, no quotes, and a slash.
fn is_url(before: &[u8]) -> bool {
    memchr(b'/', before).is_some()
        && !before.iter().any(|b| b.is_ascii_whitespace() || matches!(b, b'\'' | b'"' | b'<'))
}

/// `name=...&name=...` with at least two pairs, each beginning with a name.
fn is_pairs(text: &[u8]) -> bool {
    let is_pair = |pair: &[u8]| {
        let name = &pair[..memchr(b'=', pair).unwrap_or(0)];
        !name.is_empty()
            && name
                .iter()
                .all(|&b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'[' | b']' | b'%'))
    };
    let mut pairs = text.split(|&b| b == b'&');
    pairs.next().is_some_and(is_pair) && pairs.next().is_some_and(is_pair)
}
