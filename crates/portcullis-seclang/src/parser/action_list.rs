//! `id:1,phase:2,msg:'a, b'`: a list of actions, cut into names and arguments.

use portcullis_types::Phase;

use super::{Sink, action};
use crate::actions::{ActionName, ArgumentUse};
use crate::ast::{Action, Spanned};
use crate::lexer::{Text, View, is_blank};
use crate::source::SourceSpan;
use crate::{limits, suggest};

/// One entry of a list.
pub(super) struct Item {
    pub(super) action: ActionName,
    /// The text after the colon, quoting undone; `None` if nothing follows.
    pub(super) argument: Option<Text>,
    /// All of it.
    pub(super) span: SourceSpan,
}

/// A whole list. Wrong actions are reported and left out.
pub(super) fn read(list: View<'_>, sink: &mut Sink) -> Vec<Spanned<Action>> {
    let mut out = Vec::new();
    let mut at = 0;
    // A second `phase` or `id` makes the first one pointless.
    let mut id_at = None;
    let mut phase_at = None;
    loop {
        while list.bytes.get(at).is_some_and(|&b| is_blank(b) || b == b',') {
            at += 1;
        }
        if at >= list.bytes.len() {
            return out;
        }
        if out.len() >= limits::ACTIONS_MAX {
            sink.error(list.from(at).span(), format!("a rule takes at most {} actions", limits::ACTIONS_MAX));
            return out;
        }
        let (item, length) = entry(list.from(at), sink);
        at += length;
        let Some(item) = item else { continue };
        if let ActionName::Id = item.action {
            once("id", item.span, &mut id_at, sink)
        } else if let ActionName::Phase = item.action {
            once("phase", item.span, &mut phase_at, sink)
        }
        action::read(&item, list, &mut out, sink);
    }
}

fn once(name: &str, span: SourceSpan, seen: &mut Option<SourceSpan>, sink: &mut Sink) {
    if let Some(first) = *seen {
        let message = format!("{name} is given twice; the last one counts");
        sink.push(crate::Diagnostic::warning(span, message).with_related(first, "first given here"));
    }
    *seen = Some(span);
}

/// The entry at the start of `view`, and how many bytes it takes (at least one).
fn entry(view: View<'_>, sink: &mut Sink) -> (Option<Item>, usize) {
    let name_end =
        view.bytes.iter().position(|&b| matches!(b, b':' | b',') || is_blank(b)).unwrap_or(view.bytes.len());
    let name = view.slice(0, name_end);
    if view.bytes.get(name_end) != Some(&b':') {
        let mut end = name_end;
        while view.bytes.get(end).is_some_and(|&b| is_blank(b)) {
            end += 1;
        }
        let known = resolve(name, sink);
        if known.is_some() && view.bytes.get(end).is_some_and(|&b| b != b',') {
            let span = view.slice(end, end + 1).span();
            sink.error_hint(
                span,
                format!("a comma is missing after {}", name.show()),
                "separate actions with commas",
            );
        }
        return (known.and_then(|action| check(action, None, name.span(), sink)), name_end.max(1));
    }
    let start = name_end + 1;
    let (argument, end) = match view.bytes.get(start) {
        Some(b'\'') => match closing_quote(view.bytes, start + 1) {
            Some(close) => (Some(view.slice(start + 1, close).unescape(b'\'')), close + 1),
            None => {
                sink.error_hint(
                    view.slice(start, start + 1).span(),
                    format!("the quote of {} is not closed", name.show()),
                    "close it with ', or write \\' for a quote inside the text",
                );
                return (None, view.bytes.len());
            }
        },
        _ => {
            let rest = view.from(start);
            let length =
                rest.bytes.iter().position(|&b| b == b',' || is_blank(b)).unwrap_or(rest.bytes.len());
            let argument = rest.slice(0, length);
            ((length > 0).then(|| argument.copy()), start + length)
        }
    };
    let whole = view.slice(0, end);
    let Some(action) = resolve(name, sink) else {
        return (None, end.max(1));
    };
    if !follow(view, start, end, name, sink) {
        // Continue with the next entry: what stands before it is the rest of this one.
        let rest = view
            .bytes
            .iter()
            .skip(end)
            .position(|&b| b == b',')
            .map_or(view.bytes.len(), |comma| end + comma);
        return (None, rest.max(1));
    }
    (check(action, argument, whole.span(), sink), end.max(1))
}

/// True if a comma follows an argument, or the end, or, as ModSecurity 2 allows, blanks and the next action.
fn follow(view: View<'_>, start: usize, end: usize, name: View<'_>, sink: &mut Sink) -> bool {
    let Some(&next) = view.bytes.get(end) else { return true };
    if next == b',' {
        return true;
    }
    let quoted = view.bytes.get(start) == Some(&b'\'');
    let rest = view.from(end);
    let tail = rest.trim();
    let is_action = |tail: View<'_>| {
        let length = tail
            .bytes
            .iter()
            .position(|&b| matches!(b, b':' | b',') || is_blank(b))
            .unwrap_or(tail.bytes.len());
        tail.slice(0, length).str().and_then(ActionName::from_name).is_some()
    };
    if tail.bytes.is_empty() || tail.bytes.starts_with(b",") || (is_blank(next) && is_action(tail)) {
        return true;
    }
    let hint = if quoted {
        "write \\' for a quote inside the text, and a comma after the closing one".to_owned()
    } else {
        format!("put the text in quotes: {}:'...'", name.show())
    };
    sink.error_hint(
        rest.slice(0, 1).span(),
        format!("the argument of {} goes on after its end", name.show()),
        hint,
    );
    false
}

fn closing_quote(bytes: &[u8], from: usize) -> Option<usize> {
    let mut i = from;
    while i < bytes.len() {
        match bytes[i] {
            b'\\' if matches!(bytes.get(i + 1), Some(b'\'' | b'\\')) => i += 1,
            b'\'' => return Some(i),
            _ => {}
        }
        i += 1;
    }
    None
}

fn resolve(name: View<'_>, sink: &mut Sink) -> Option<ActionName> {
    let text = name.str().unwrap_or_default();
    let action = ActionName::from_name(text);
    if action.is_none() && !name.bytes.is_empty() {
        let names = ActionName::ALL.iter().map(|a| a.name());
        let hint = match suggest::hint(text, names) {
            None if portcullis_decode::Transformation::from_name(text).is_some() => {
                Some(format!("did you mean t:{text}?"))
            }
            hint => hint,
        };
        sink.error_maybe(name.span(), format!("unknown action {}", name.show()), hint);
    } else if name.bytes.is_empty() {
        sink.error(name.span(), "an action name is missing before the colon");
    }
    action
}

/// Compares with the table whether there should be an argument.
fn check(action: ActionName, argument: Option<Text>, span: SourceSpan, sink: &mut Sink) -> Option<Item> {
    match (action.argument(), &argument) {
        (ArgumentUse::Required, None) => {
            let hint = format!("{}: {}", action.name(), action.meaning());
            sink.error_hint(span, format!("{} needs an argument after a colon", action.name()), hint);
            return None;
        }
        (ArgumentUse::No, Some(_)) => {
            sink.error_hint(
                span,
                format!("{} takes no argument", action.name()),
                "remove the colon and what follows it",
            );
            return None;
        }
        _ => {}
    }
    Some(Item { action, argument, span })
}

/// `1` to `5`, `request`, `response` or `logging`.
pub(super) fn phase(view: View<'_>, sink: &mut Sink) -> Option<Phase> {
    let phase = match view.bytes.to_ascii_lowercase().as_slice() {
        b"request" => Some(Phase::RequestBody),
        b"response" => Some(Phase::ResponseBody),
        b"logging" => Some(Phase::Logging),
        [digit @ b'1'..=b'5'] => Phase::from_number(digit - b'0'),
        // ModSecurity 2 reads a number as far as it goes.
        [digit @ b'1'..=b'5', next, ..] if !next.is_ascii_digit() => {
            let shown = char::from(*digit);
            let message = format!("phase {:?} is read as phase {shown}", view.show());
            sink.warn_hint(view.span(), message, format!("write phase:{shown}"));
            Phase::from_number(digit - b'0')
        }
        _ => None,
    };
    if phase.is_none() {
        let message = format!("phase takes 1 to 5, request, response or logging, not {:?}", view.show());
        sink.error(view.span(), message);
    }
    phase
}
