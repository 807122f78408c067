//! Small things that many directives and actions take: numbers, switches, ids.

use std::fmt::Display;
use std::str::FromStr;

use portcullis_types::RuleId;

use super::Sink;
use crate::ast::IdRange;
use crate::lexer::{View, is_blank};
use crate::suggest;

/// A whole number; `what` begins the message: "SecArgumentsLimit takes".
pub(super) fn number<T: FromStr>(view: View<'_>, what: impl Display, sink: &mut Sink) -> Option<T> {
    let digits = view.str().filter(|text| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()));
    let value = digits.and_then(|digits| digits.parse().ok());
    if value.is_none() {
        let why = if digits.is_some() { " is too large" } else { " is not one" };
        sink.error(view.span(), format!("{what} a whole number; {:?}{why}", view.show()));
    }
    value
}

/// Bytes that may be held of a body: as in ModSecurity 2, a gigabyte at most.
pub(super) fn body_bytes(view: View<'_>, what: &str, sink: &mut Sink) -> Option<u64> {
    const MOST: u64 = 1 << 30;
    let bytes = number(view, what, sink)?;
    if bytes > MOST {
        let message = format!("{what} at most {MOST} bytes, which is 1 GiB; {bytes} counts as that");
        sink.warn_hint(view.span(), message, "write a smaller number");
        return Some(MOST);
    }
    Some(bytes)
}

/// 0 to 9.
pub(super) fn level(view: View<'_>, what: &str, sink: &mut Sink) -> Option<u8> {
    let level = number(view, what, sink)?;
    if level > 9 {
        sink.error(view.span(), format!("{what} 0 to 9, not {level}"));
        return None;
    }
    Some(level)
}

/// `On` or `Off`.
pub(super) fn switch(view: View<'_>, what: &str, sink: &mut Sink) -> Option<bool> {
    match view.bytes.to_ascii_lowercase().as_slice() {
        b"on" | b"true" | b"1" => Some(true),
        b"off" | b"false" | b"0" => Some(false),
        _ => {
            let near = suggest::hint(&view.show(), ["On", "Off"]);
            sink.error_maybe(view.span(), format!("{what} On or Off, not {:?}", view.show()), near);
            None
        }
    }
}

/// One of a few words.
pub(super) fn word<T: Copy>(
    view: View<'_>,
    what: &str,
    all: &[T],
    name: fn(T) -> &'static str,
    parse: fn(&str) -> Option<T>,
    sink: &mut Sink,
) -> Option<T> {
    let value = view.str().and_then(parse);
    if value.is_none() {
        let names: Vec<&str> = all.iter().map(|&value| name(value)).collect();
        let near = suggest::hint(&view.show(), names.iter().copied());
        let message = format!("{what} one of {}; {:?} is not one of them", names.join(", "), view.show());
        sink.error_maybe(view.span(), message, near);
    }
    value
}

/// `200000`: 1 to 4,294,967,295.
pub(super) fn rule_id(view: View<'_>, what: impl Display, sink: &mut Sink) -> Option<RuleId> {
    match number::<u32>(view, what, sink)? {
        0 => {
            sink.error(view.span(), "rule ids begin with 1");
            None
        }
        id => Some(RuleId(id)),
    }
}

/// `1 5-9,12`: ids and ranges, separated by commas or blanks.
pub(super) fn id_ranges(view: View<'_>, what: &str, sink: &mut Sink) -> Option<Vec<IdRange>> {
    let mut out = Vec::new();
    let mut right = true;
    let mut at = 0;
    while at < view.bytes.len() {
        let rest = view.from(at);
        let separator = |b: &u8| is_blank(*b) || *b == b',';
        let start = rest.bytes.iter().position(|b| !separator(b)).unwrap_or(rest.bytes.len());
        let end = rest.bytes[start..].iter().position(separator).map_or(rest.bytes.len(), |end| start + end);
        at += end;
        let part = rest.slice(start, end);
        if part.bytes.is_empty() {
            continue;
        }
        match part.split_once(b'-') {
            None => match rule_id(part, what, sink) {
                Some(RuleId(id)) => out.push(IdRange { first: id, last: id }),
                None => right = false,
            },
            Some((first, last)) => {
                let (first, last) =
                    (number::<u32>(first.trim(), what, sink), number::<u32>(last.trim(), what, sink));
                match (first, last) {
                    (Some(first), Some(last)) if first <= last => out.push(IdRange { first, last }),
                    (Some(_), Some(_)) => {
                        sink.error_hint(part.span(), "the range is empty", "write the lower id first");
                        right = false;
                    }
                    _ => right = false,
                }
            }
        }
    }
    if out.is_empty() && right {
        sink.error(view.span(), format!("{what} a rule id or a range of them"));
        return None;
    }
    right.then_some(out)
}
