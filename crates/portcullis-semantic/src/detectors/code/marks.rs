//! Beginnings of code that no expression shows: tags, and property paths as parameters' names.

use memchr::memmem;
use portcullis_types::Span;

use super::{CLASS_PATH, INPUT, PHP_TAG, SCRIPT_TAG, begins_as_code};
use crate::{Found, Input};

/// Tags of one text that are looked at.
const TAGS_MAX: usize = 16;

pub(super) fn detect(input: &Input<'_>, found: &mut Found<'_>) {
    let text = input.text;
    if input.groups.has(b'<') {
        for at in memchr::memchr_iter(b'<', text).take(TAGS_MAX * 4) {
            let rest = &text[at + 1..];
            let kind = match rest {
                [b'?', rest @ ..] if is_php(rest) => PHP_TAG,
                [b'%', b'@', ..] => SCRIPT_TAG,
                _ if starts(rest, b"script language=\"php\"")
                    || starts(rest, b"script language='php'")
                    || starts(rest, b"script language=php") =>
                {
                    PHP_TAG
                }
                _ if starts(rest, b"script runat=")
                    || starts(rest, b"script language=")
                        && memmem::find(&rest[..rest.len().min(80)], b"runat=").is_some() =>
                {
                    SCRIPT_TAG
                }
                _ => continue,
            };
            let span = Span::new(at, text.len().min(at + 24));
            if begins_as_code(&text[..at]) { found.add(kind, span) } else { found.add_loose(kind, span) }
        }
    }
    // The name of a parameter may be the attack: `class.module.classLoader.resources...`.
    if let Some(at) =
        memmem::find(text, b"lass.module.classLoader").or_else(|| memmem::find(text, b"lass.classLoader."))
    {
        found.add(CLASS_PATH, Span::new(at, text.len().min(at + 60)));
    }
    // A request parameter of ASP in code: `eval(request("x"))`, `Execute Request("x")`.
    for call in [&b"(request("[..], b"(request[", b"(request.item[", b" request(\"", b"request.form("] {
        let Some(at) = find_any_case(text, call) else { continue };
        let before = text[..at].trim_ascii_end();
        let is_code =
            [&b"eval"[..], b"execute", b"executeglobal"].iter().any(|name| ends_any_case(before, name));
        if is_code {
            found.add(INPUT, Span::new(at, at + call.len()));
            found.add(super::NESTED, Span::new(at, at + call.len()));
            found.add(super::EVAL, Span::new(at, at + call.len()));
        }
    }
}

/// `php`, `=`, or white space with code behind it; not `xml`.
fn is_php(rest: &[u8]) -> bool {
    match rest {
        [b'=', ..] => true,
        [b'p' | b'P', b'h' | b'H', b'p' | b'P', after, ..] => {
            after.is_ascii_whitespace() || matches!(after, b'/' | b'(' | b'@')
        }
        [b' ' | b'\n' | b'\t', rest @ ..] => rest.iter().take(200).any(|b| matches!(b, b'(' | b'$' | b'`')),
        _ => false,
    }
}

fn starts(text: &[u8], start: &[u8]) -> bool {
    text.len() >= start.len() && text[..start.len()].eq_ignore_ascii_case(start)
}

fn ends_any_case(text: &[u8], end: &[u8]) -> bool {
    text.len() >= end.len() && text[text.len() - end.len()..].eq_ignore_ascii_case(end)
}

fn find_any_case(text: &[u8], part: &[u8]) -> Option<usize> {
    let first = part[0];
    memchr::memchr_iter(first, text).take(256).find(|&at| starts(&text[at..], part))
}
