//! Tags that begin a block of code in a page: PHP, JSP, ASP, ColdFusion.

use memchr::memmem;
use portcullis_types::Span;

use super::{BLOCK_BYTES_MAX, Marks, add, starts};
use crate::detectors::code::{BACKTICK, PHP_BLOCK, PHP_TAG, SCRIPT_TAG};
use crate::{Found, KindId};

impl Marks<'_> {
    /// `<?php`, `<%@ page`, `<script runat=`
    pub(super) fn tags(&self, found: &mut Found<'_>) {
        for at in memchr::memchr_iter(b'<', self.text) {
            if let Some(kind) = tag(&self.text[at + 1..]) {
                self.note_tag(kind, at, found);
            }
        }
    }

    fn note_tag(&self, kind: KindId, at: usize, found: &mut Found<'_>) {
        let text = self.text;
        let rest = &text[at + 1..];
        let span = Span::new(at, text.len().min(at + 24));
        // Documents and posts show how PHP begins: in a quotation, after a word. A server runs it there, too.
        let follows_word = || matches!(text[..at], [.., before, b' '] if before.is_ascii_alphabetic());
        let is_shown = kind == PHP_TAG
            && (self.is_source
                || (self.is_shown(at) || self.takes_text && follows_word())
                    && !self.is_active(found)
                    && !self.reads_machine(block_of(rest), found));
        add(found, kind, span, is_shown);
        if kind != PHP_TAG {
            return;
        }
        let block = &rest[..rest.len().min(BLOCK_BYTES_MAX)];
        if memmem::find(block, b"?>").is_some() || memchr::memchr(b';', block).is_some() {
            // A file or a field for texts may hold a source that reaches nothing.
            add(found, PHP_BLOCK, span, is_shown || self.takes_text && is_plain_source(text));
        }
        // `<?=`...`` runs what stands in back-ticks, whatever that is made of.
        if rest.iter().take(12).any(|b| *b == b'`') {
            add(found, BACKTICK, span, is_shown);
        }
    }
}

/// What stands behind `?php` or `?=`.
fn block_of(rest: &[u8]) -> &[u8] {
    let begins = rest.get(1..4).is_some_and(|name| name.eq_ignore_ascii_case(b"php"));
    rest.get(if begins { 4 } else { 2 }..).unwrap_or_default()
}

/// The kind of the tag that `rest` goes on with after its `<`.
fn tag(rest: &[u8]) -> Option<KindId> {
    const PHP: &[&[u8]] = &[b"script language=\"php\"", b"script language='php'", b"script language=php"];
    const SCRIPT: &[&[u8]] = &[b"jsp:scriptlet", b"jsp:expression", b"cfexecute", b"script runat="];
    let begins = |list: &[&[u8]]| list.iter().any(|start| starts(rest, start));
    let runs_at_server = || {
        starts(rest, b"script language=") && memmem::find(&rest[..rest.len().min(80)], b"runat=").is_some()
    };
    match rest {
        [b'?', rest @ ..] if is_php(rest) => Some(PHP_TAG),
        [b'%', b'@', rest @ ..] if is_directive(rest) => Some(SCRIPT_TAG),
        _ if begins(PHP) => Some(PHP_TAG),
        _ if begins(SCRIPT) || runs_at_server() => Some(SCRIPT_TAG),
        _ => None,
    }
}

/// `php`, `=`, or white space with code after it; not `xml`.
fn is_php(rest: &[u8]) -> bool {
    match rest {
        [b'=', rest @ ..] => is_output(rest),
        [b'p' | b'P', b'h' | b'H', b'p' | b'P', after, ..] => {
            after.is_ascii_whitespace() || matches!(after, b'/' | b'(' | b'@')
        }
        [b' ' | b'\n' | b'\t', rest @ ..] => rest.iter().take(200).any(|b| matches!(b, b'(' | b'$' | b'`')),
        _ => false,
    }
}

/// What `<?=` puts out: a variable, call or text, and nothing that no source has (archives have the three
/// signs by chance).
fn is_output(rest: &[u8]) -> bool {
    let head = &rest[..rest.len().min(12)];
    let is_text = head.iter().all(|b| (b' '..0x7F).contains(b) || b.is_ascii_whitespace());
    let window = &rest[..rest.len().min(200)];
    is_text && (window.iter().any(|b| b"$(`'\"".contains(b)) || memmem::find(window, b"?>").is_some())
}

/// `page import="..."`, ` WebHandler Language="C#"`: what JSP and ASP.NET know after `<%@`.
fn is_directive(rest: &[u8]) -> bool {
    const NAMES: &[&[u8]] = words!("code", "directives");
    let rest = rest.trim_ascii_start();
    let len = rest.iter().take(24).take_while(|b| b.is_ascii_alphabetic()).count();
    NAMES.iter().any(|known| rest[..len].eq_ignore_ascii_case(known))
        && rest.get(len).is_none_or(|b| b.is_ascii_whitespace() || matches!(b, b'=' | b'%'))
}

/// A source of PHP of several lines that takes nothing of the request, runs nothing that it is given, and
/// reads and writes no files: a class, a configuration, a template.
fn is_plain_source(text: &[u8]) -> bool {
    const LINES_MIN: usize = 4;
    const REACHES: &[&[u8]] = words!("code", "reaches");
    let starts = text.trim_ascii_start().starts_with(b"<?php");
    let is_long = memchr::memchr_iter(b'\n', text).take(LINES_MIN).count() == LINES_MIN;
    if !starts || !is_long {
        return false;
    }
    let lower = text.to_ascii_lowercase();
    // A name that is put together is called by a variable: `$f('x')`.
    let calls_variable = memchr::memchr_iter(b'$', &lower).any(|at| {
        let rest = &lower[at + 1..];
        let len = rest
            .iter()
            .take(64)
            .take_while(|b| b.is_ascii_alphanumeric() || **b == b'_' || **b >= 0x80)
            .count();
        rest[len..].trim_ascii_start().starts_with(b"(")
    });
    // `("sys"."tem")('x')`, `[$a, 'b']()`
    let calls_value = memmem::find(&lower, b")(").is_some() || memmem::find(&lower, b"](").is_some();
    !calls_variable && !calls_value && !REACHES.iter().any(|name| memmem::find(&lower, name).is_some())
}
