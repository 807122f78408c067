//! What no delimiters show.

use memchr::memmem;
use portcullis_types::Span;

use super::{CODE, COMMENT_PROBE, PHP_BLOCK, POLYGLOT, PREPROCESSING, SMARTY, Template};
use crate::detectors::code::scan::{Fact, Scan};
use crate::{Found, Input};

/// A value that tries several engines at once is short.
const POLYGLOT_BYTES_MAX: usize = 96;

pub(super) fn detect(detector: &Template, input: &Input<'_>, found: &mut Found<'_>) {
    let text = input.text;
    if let Some(at) = memmem::find(text, b"__${").or_else(|| memmem::find(text, b"__*{")) {
        found.add(PREPROCESSING, Span::new(at, text.len().min(at + 60)));
    }
    if let Some(at) = memmem::find(text, b"{php}").or_else(|| memmem::find(text, b"{php ")) {
        found.add(PHP_BLOCK, Span::new(at, at + 5));
    }
    if let Some(at) = memmem::find(text, b"{$smarty.") {
        let is_short = text.len() <= 160;
        let span = Span::new(at, text.len().min(at + 40));
        if is_short {
            found.add(SMARTY, span)
        } else {
            found.mention(SMARTY, span)
        }
        if is_short && memmem::find(text, b"{$smarty.get").is_none() {
            found.add(super::WHOLE, span);
            found.add(super::OBJECT, span);
        }
    }
    comment_probe(text, found);
    polyglot(text, found);
    // Velocity has no delimiters: `$class.inspect("java.lang.Runtime")`, `$x.getClass()`.
    if input.groups.has(b'$')
        && text.len() <= 4_096
        && memmem::find(text, b"#set").or_else(|| memmem::find(text, b"$class.")).is_some()
    {
        let mut scan = Scan::new(text, &detector.names, &detector.shell);
        while let Some((fact, span)) = scan.next_fact() {
            if matches!(fact, Fact::Reflection | Fact::Type | Fact::Execute) {
                found.add(CODE, span);
            }
        }
    }
}

/// `a{*comment*}b`: Smarty and Latte take it out of the word.
fn comment_probe(text: &[u8], found: &mut Found<'_>) {
    for at in memmem::find_iter(text, b"{*").take(8) {
        let rest = &text[at + 2..];
        let Some(end) = memmem::find(&rest[..rest.len().min(40)], b"*}") else { continue };
        let before = at.checked_sub(1).is_some_and(|i| text[i].is_ascii_alphanumeric());
        let after = rest.get(end + 2).is_some_and(u8::is_ascii_alphanumeric);
        if before && after && rest[..end].iter().all(u8::is_ascii_alphanumeric) {
            found.add(COMMENT_PROBE, Span::new(at, at + end + 4));
        }
    }
}

/// `${{<%[%'"}}%\`
fn polyglot(text: &[u8], found: &mut Found<'_>) {
    if text.len() > POLYGLOT_BYTES_MAX {
        return;
    }
    let openings = [&b"${"[..], b"{{", b"<%", b"#{", b"[%", b"{%", b"@(", b"[["];
    // `#{{ order.id }}`, `${{ github.ref }}`: a sign before the braces of one engine.
    let is_there = |mark: &&&[u8]| {
        memmem::find_iter(text, *mark)
            .any(|at| !matches!(mark, [b'$' | b'#', b'{']) || text.get(at + 2) != Some(&b'{'))
    };
    // `{{ .. }}` and `{% .. %}` are one engine's.
    let both = memmem::find(text, b"{{").is_some() && memmem::find(text, b"{%").is_some();
    let count = openings.iter().filter(is_there).count() - usize::from(both);
    if count >= 3 {
        found.add(POLYGLOT, Span::new(0, text.len()));
    }
}
