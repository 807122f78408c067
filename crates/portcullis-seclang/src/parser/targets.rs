//! `ARGS|!ARGS:/^x/|&REQUEST_HEADERS:Host`: what a rule looks at.

use bstr::BString;
use portcullis_types::{Shape, Variable};

use super::Sink;
use crate::ast::{Selector, Spanned, Target, TargetKind};
use crate::lexer::{Text, View, is_blank};
use crate::{limits, suggest};

/// A whole list. Wrong targets are reported and left out.
pub(super) fn list(view: View<'_>, sink: &mut Sink) -> Vec<Spanned<Target>> {
    let mut out = Vec::new();
    let mut at = 0;
    loop {
        while view.bytes.get(at).is_some_and(|&b| is_blank(b) || is_separator(b)) {
            at += 1;
        }
        if at >= view.bytes.len() {
            break;
        }
        if out.len() == limits::TARGETS_MAX {
            sink.error(view.from(at).span(), format!("a rule takes at most {} targets", limits::TARGETS_MAX));
            break;
        }
        let (target, length) = one(view.from(at), sink);
        if let Some(node) = target {
            out.push(Spanned { node, span: view.slice(at, at + length).span() });
        }
        at += length;
    }
    if view.bytes.iter().all(|&b| is_blank(b) || is_separator(b)) {
        sink.error_hint(
            view.span(),
            "a target is missing",
            "name what to look at, such as ARGS or REQUEST_URI",
        );
    }
    out
}

fn is_separator(byte: u8) -> bool {
    byte == b'|' || byte == b','
}

fn ends_target(byte: u8) -> bool {
    is_separator(byte) || is_blank(byte)
}

/// The target at the start of `view`, and how many bytes it takes (at least one).
fn one(view: View<'_>, sink: &mut Sink) -> (Option<Target>, usize) {
    let (name_end, has_key) = end_of_name(view.bytes);
    let (kind, name) = match view.bytes.first() {
        Some(b'!') => (TargetKind::Exclude, view.slice(1, name_end)),
        Some(b'&') => (TargetKind::Count, view.slice(1, name_end)),
        _ => (TargetKind::Values, view.slice(0, name_end)),
    };
    let is_xpath = name.str().and_then(Variable::from_name).is_some_and(|v| v.shape() == Shape::Xpath);
    let (selector, length) = if has_key {
        let (selector, length) = selector(view.from(name_end + 1), is_xpath, sink);
        (Some(selector), name_end + 1 + length)
    } else {
        (None, name_end)
    };
    let length = length.max(1);
    let target = match selector {
        Some(None) => None,
        Some(Some(selector)) => resolve(kind, name, Some(&selector), view.slice(0, length), sink),
        None => resolve(kind, name, None, view.slice(0, length), sink),
    };
    (target, length)
}

/// The length of a target's name with its `!` or `&`, and whether a key follows: behind a colon, or, as
/// libmodsecurity has it, behind a full stop that follows the name of a collection.
fn end_of_name(target: &[u8]) -> (usize, bool) {
    let end = target.iter().position(|&b| b == b':' || ends_target(b)).unwrap_or(target.len());
    let name = &target[usize::from(matches!(target.first(), Some(b'!' | b'&'))).min(end)..end];
    let stop = name.iter().position(|&b| b == b'.').filter(|&stop| {
        let variable = std::str::from_utf8(&name[..stop]).ok().and_then(Variable::from_name);
        variable.is_some_and(|variable| matches!(variable.shape(), Shape::Collection | Shape::Persistent))
    });
    match stop {
        Some(stop) => (end - name.len() + stop, true),
        None => (end, target.get(end) == Some(&b':')),
    }
}

/// The text after the colon, quoting undone, and how many bytes it takes.
fn selector(view: View<'_>, is_xpath: bool, sink: &mut Sink) -> (Option<RawSelector>, usize) {
    match view.bytes.first() {
        Some(b'\'') => {
            let Some(end) = closing_quote(view.bytes) else {
                sink.error_hint(
                    view.slice(0, 1).span(),
                    "the quote is not closed",
                    "close the selector with '",
                );
                return (None, view.bytes.len());
            };
            let after = view.bytes.get(end + 1).copied();
            if after.is_some_and(|b| !ends_target(b)) {
                sink.error_hint(
                    view.slice(end, end + 2).span(),
                    "the selector goes on after its closing quote",
                    "separate targets with |, or write the quote inside the selector as \\'",
                );
            }
            (Some(RawSelector { text: view.slice(1, end).unescape(b'\''), quoted: true }), end + 1)
        }
        Some(b'/') if !is_xpath => {
            if let Some(end) = closing_slash(view.bytes) {
                return (Some(RawSelector { text: view.slice(0, end + 1).copy(), quoted: false }), end + 1);
            }
            plain(view)
        }
        _ => plain(view),
    }
}

fn plain(view: View<'_>) -> (Option<RawSelector>, usize) {
    let end = view.bytes.iter().position(|&b| ends_target(b)).unwrap_or(view.bytes.len());
    (Some(RawSelector { text: view.slice(0, end).copy(), quoted: false }), end)
}

struct RawSelector {
    text: Text,
    quoted: bool,
}

/// Index of the quote that closes the one at index 0.
fn closing_quote(bytes: &[u8]) -> Option<usize> {
    let mut i = 1;
    while i < bytes.len() {
        match bytes[i] {
            b'\\' => i += 1,
            b'\'' => return Some(i),
            _ => {}
        }
        i += 1;
    }
    None
}

/// Index of the slash that closes the one at index 0: the first one, not escaped, that the target ends after.
/// So the regex may hold `|`, `,`, blanks and slashes.
fn closing_slash(bytes: &[u8]) -> Option<usize> {
    let mut i = 1;
    while i < bytes.len() {
        match bytes[i] {
            b'\\' => i += 1,
            b'/' if bytes.get(i + 1).is_none_or(|&b| ends_target(b)) => return Some(i),
            _ => {}
        }
        i += 1;
    }
    None
}

fn resolve(
    kind: TargetKind,
    name: View<'_>,
    selector: Option<&RawSelector>,
    whole: View<'_>,
    sink: &mut Sink,
) -> Option<Target> {
    let text = name.str().unwrap_or_default();
    // As ModSecurity 2 has it, HTTP_NAME stands for REQUEST_HEADERS:NAME.
    if let (None, Some(header)) = (selector, text.strip_prefix("HTTP_").filter(|header| !header.is_empty())) {
        let selector = Some(Selector::Key(BString::from(header)));
        return Some(Target { kind, variable: Variable::RequestHeaders, selector });
    }
    let Some(variable) = Variable::from_name(text) else {
        let message = if name.bytes.is_empty() {
            "a variable name is missing".to_owned()
        } else {
            format!("unknown variable {}", name.show())
        };
        let names = Variable::ALL.iter().map(|v| v.name());
        let span = if name.bytes.is_empty() { whole.span() } else { name.span() };
        sink.error_maybe(span, message, suggest::hint(text, names));
        return None;
    };
    // A list in ModSecurity 2, of lines, which do not exist here.
    let is_list = variable.shape() != Shape::Scalar || variable == Variable::WebserverErrorLog;
    if kind == TargetKind::Count && !is_list {
        sink.error_hint(
            whole.span(),
            format!("& counts the values of a collection; {} has one value", variable.name()),
            "remove the &, or compare the value with an empty text",
        );
        return None;
    }
    let selector = match selector {
        None => None,
        Some(raw) => {
            let text = raw.text.view(name_file(name)).bytes;
            if text.is_empty() && variable.shape() != Shape::Scalar {
                sink.warn_hint(
                    whole.span(),
                    "a key is missing after the colon: only values without a name are looked at",
                    "remove the colon to take all values",
                );
            }
            match variable.shape() {
                Shape::Scalar => {
                    let message = format!("{} has one value and takes no key", variable.name());
                    sink.error_hint(whole.span(), message, "remove the colon and what follows");
                    return None;
                }
                Shape::Xpath => Some(Selector::XPath(text.into())),
                Shape::Collection | Shape::Persistent => Some(key(raw, text, whole, sink)),
            }
        }
    };
    Some(Target { kind, variable, selector })
}

fn key(raw: &RawSelector, text: &[u8], whole: View<'_>, sink: &mut Sink) -> Selector {
    let is_regex = text.len() > 2 && text.starts_with(b"/") && text.ends_with(b"/");
    if is_regex {
        return Selector::Regex(text[1..text.len() - 1].into());
    }
    if text.starts_with(b"/") && !raw.quoted {
        sink.warn_hint(
            whole.span(),
            "the regular expression of the selector does not end in /: it is taken for a name",
            "write NAME:'/regex/'; for a key that begins with a slash, NAME:'/key'",
        );
    }
    Selector::Key(text.into())
}

/// The file of a view, for views that are made anew.
fn name_file(view: View<'_>) -> crate::source::FileId {
    view.span().file
}
