//! Readings of a value as code: all of it, after a quote, in a client-side template.

use portcullis_types::Span;

use super::effects::{Effects, Outcome};
use super::script::{walk, walk_after};
use super::*;
use crate::detectors::scan::is_body_of_class;
use crate::detectors::{document, purpose};
use crate::{Found, Input};

/// Line ends from which a text is a program or an article.
const LINES_MAX: usize = 3;

impl Xss {
    /// Code: all of the value, or what follows a quote that ends a string of the page.
    pub(super) fn code(&self, input: &Input<'_>, found: &mut Found<'_>) {
        let text = input.text;
        // Several lines of code are a program, or an article with one in it; what is injected is a line.
        let is_text = memchr::memchr_iter(b'\n', text).take(LINES_MAX).count() == LINES_MAX;
        // A field for code shows it, and pastes it into no script.
        let takes_code = purpose::takes_code(input.location);
        // Without these the whole tells nothing, and of what follows quotes only the first one does.
        let may_have_sinks = self.names.may_have_sinks(text, input.is_telling);
        if may_have_sinks && !is_question(text) {
            let whole = walk(text, 0, &self.names);
            found.may_walk(whole.bytes_read, whole.tokens as usize);
            // What reads the visitor's data is none that a text shows.
            let reads = whole.effects.any(Effects::DATA);
            let is_shown = takes_code || purpose::takes_text(input.location);
            let reading = match is_text || is_shown && !reads {
                // The editor of a page's scripts takes a dialog that says something.
                _ if whole.is_demo && takes_code => Reading::Suppressed("dialog-in-code"),
                _ if purpose::quotes_code(input.location) => Reading::Suppressed("reported-code"),
                true => Reading::Lines,
                false => Reading::Whole,
            };
            self.note_code(0, &whole, found, reading);
        }
        self.between_quotes(text, found);
        if !may_have_sinks && is_text {
            return;
        }
        for quote in [b'\'', b'"', b'`'] {
            if !input.groups.has(quote) {
                continue;
            }
            let mut reading = Reading::FirstQuote;
            let mut before = None;
            let strings = match input.document.is_file {
                true => document::quotes(text),
                false => Vec::new(),
            };
            // To where quotes that open and quotes that close were read already: each reading takes every
            // other quote for the one or the other, and another one begins only where it ended.
            let mut read_to = [0; 2];
            for (number, at) in memchr::memchr_iter(quote, text).enumerate() {
                let opening = before.replace(at);
                if strings.binary_search(&at).is_ok() {
                    continue;
                }
                // A fence of Markdown.
                if quote == b'`'
                    && text[at.saturating_sub(2)..].windows(3).take(3).any(|three| three == b"```")
                {
                    continue;
                }
                if at >= read_to[number % 2] && may_follow_quote(&text[at + 1..]) {
                    if reading == Reading::LaterQuote && !may_have_sinks {
                        break;
                    }
                    let outcome = walk_after(text, at + 1, &self.names);
                    if !found.may_walk(outcome.bytes_read, outcome.tokens as usize) {
                        return;
                    }
                    read_to[number % 2] = at + 1 + outcome.bytes_read;
                    // The quote before it opened a string: what is injected would have gone on after that
                    // one.
                    let ends_string = reading == Reading::LaterQuote
                        && opening.is_some_and(|opening| begins_string(&text[..opening]));
                    let reading = if is_text || takes_code || ends_string { Reading::Lines } else { reading };
                    self.note_code(at, &outcome, found, reading);
                }
                reading = Reading::LaterQuote;
            }
        }
    }

    /// `' alert(1) '`: a call between two quotes that end strings of the page, which something is to join.
    fn between_quotes(&self, text: &[u8], found: &mut Found<'_>) {
        let [quote @ (b'\'' | b'"'), b' ', inner @ .., b' ', last] = text else { return };
        if quote == last && memchr::memchr(*quote, inner).is_none() {
            let outcome = walk(&text[..text.len() - 1], 2, &self.names);
            if outcome.holds && !outcome.is_worded && outcome.effects.any(Effects::DIALOG) {
                found.add(JS_BREAK_OUT, Span::new(0, text.len()));
            }
        }
    }

    fn note_code(&self, from: usize, outcome: &Outcome, found: &mut Found<'_>, reading: Reading) {
        let effects = outcome.effects;
        let span = Span::new(from, outcome.end.max(from));
        if !outcome.holds || !effects.any(Effects::ACTS) {
            if reading == Reading::Whole && effects.any(Effects::EXECUTE) {
                if outcome.is_tight {
                    found.add(JS_WHOLE, span);
                    found.add(JS_EXECUTE, span);
                } else {
                    found.mention(JS_EXECUTE, span);
                }
            }
            return;
        }
        let sinks = effects.any(Effects::SINKS);
        let telling = effects.any(Effects::TELLING);
        let ends = outcome.ends_in_comment || outcome.ends_in_string;
        let takes_password = purpose::takes_password(found.location);
        let mut note = |kind: KindId| match reading {
            Reading::Suppressed(row) => found.suppress(kind, span, row),
            Reading::Lines => found.mention(kind, span),
            Reading::Whole | Reading::FirstQuote | Reading::LaterQuote => found.add(kind, span),
        };
        match reading {
            Reading::Whole if outcome.is_worded => return,
            Reading::Whole | Reading::Lines | Reading::Suppressed(_) if sinks => note(JS_WHOLE),
            Reading::FirstQuote | Reading::LaterQuote if telling => note(JS_BREAK_OUT),
            // A call of an unknown name is code only where nothing else can be meant.
            // A random password may have one in it.
            Reading::FirstQuote if ends && effects.any(Effects::CALL) && takes_password => {
                return found.suppress(JS_BREAK_OUT_CALL, span, "password-signs");
            }
            Reading::FirstQuote if ends && effects.any(Effects::CALL) => note(JS_BREAK_OUT_CALL),
            Reading::Whole
            | Reading::FirstQuote
            | Reading::LaterQuote
            | Reading::Lines
            | Reading::Suppressed(_) => return,
        }
        for (effect, kind) in [
            (Effects::DIALOG, JS_DIALOG),
            (Effects::EXECUTE, JS_EXECUTE),
            (Effects::WRITE, JS_WRITE),
            (Effects::SEND, JS_SEND),
            (Effects::DECODE, JS_DECODE),
            (Effects::DATA, JS_DATA),
            (Effects::NAVIGATE, JS_NAVIGATE),
            (Effects::COMPUTED, JS_COMPUTED),
            (Effects::REFLECT, JS_REFLECT),
            (Effects::INDIRECT, JS_INDIRECT),
            (Effects::OBFUSCATED, JS_OBFUSCATED),
        ] {
            if effects.any(effect) {
                note(kind);
            }
        }
        if effects.any(Effects::DATA) && effects.any(Effects::SEND) {
            note(JS_TAKES);
        }
        if outcome.ends_in_comment || outcome.ends_in_markup {
            note(JS_COMMENT_END);
        }
        if outcome.closes {
            note(JS_CLOSES);
        }
    }

    /// Expressions of a template, `{{...}}` or `${...}`, that call what no template needs.
    pub(super) fn templates(&self, text: &[u8], found: &mut Found<'_>) {
        for at in memchr::memchr_iter(b'{', text) {
            let (from, end) = match (at.checked_sub(1).map(|before| text[before]), text.get(at + 1)) {
                (Some(b'$'), _) if is_body_of_class(text, at) => continue,
                (Some(b'$'), _) => (at + 1, memchr::memchr(b'}', &text[at + 1..])),
                (_, Some(b'{')) => (at + 2, memchr::memmem::find(&text[at + 2..], b"}}")),
                _ => continue,
            };
            let Some(len) = end else { return };
            if !found.may_read(len) {
                return;
            }
            let outcome = walk(&text[..from + len], from, &self.names);
            // In a template literal of a page's script the expression runs as it stands.
            let of_literal = text[from - 1] == b'{' && at > 0 && text[at - 1] == b'$';
            let is_all = from == 2 && from + len + 1 == text.trim_ascii_end().len();
            if outcome.leaves_scope() || of_literal && outcome.runs_in_literal(is_all) {
                found.add(CLIENT_TEMPLATE, Span::new(from, from + len));
            }
        }
    }
}

/// `alert() in javascript`: a call without arguments, and the language that a question is about.
fn is_question(text: &[u8]) -> bool {
    let words = memchr::memmem::find(text, b"() in ").map(|at| text[at + 6..].trim_ascii());
    words
        .is_some_and(|words| !words.is_empty() && words.iter().all(|b| b.is_ascii_alphabetic() || *b == b' '))
        && memchr::memchr_iter(b'(', text).count() == 1
}

/// A quote after this opens a string.
fn begins_string(before: &[u8]) -> bool {
    matches!(before.trim_ascii_end().last(), Some(b'(' | b'=' | b'[' | b',' | b':' | b'+'))
}

/// A way to read a text as code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    /// From its beginning.
    Whole,
    /// After its first quote.
    FirstQuote,
    /// After another quote.
    LaterQuote,
    /// It has several lines.
    Lines,
    /// From its beginning, in a field that this exception is for.
    Suppressed(&'static str),
}

/// What a string that ends may be followed by in code: an operator, a bracket or the end of the statement.
fn may_follow_quote(rest: &[u8]) -> bool {
    let space = rest.iter().take_while(|b| matches!(b, b' ' | b'\t')).count();
    let rest = &rest[space..];
    let first = rest.first();
    // `'in alert(1)in'`
    let is_operator = [&b"in"[..], b"instanceof"].iter().any(|word| {
        rest.strip_prefix(*word).and_then(<[u8]>::first).is_some_and(|b| !b.is_ascii_alphanumeric())
    });
    is_operator
        || first.is_some_and(|b| {
            matches!(
                b,
                b';' | b'-'
                    | b'+'
                    | b'*'
                    | b'/'
                    | b'%'
                    | b'^'
                    | b'&'
                    | b'|'
                    | b'<'
                    | b'>'
                    | b'?'
                    | b':'
                    | b','
                    | b')'
                    | b']'
                    | b'}'
                    | b'='
                    | b'\n'
                    | b'\r'
                    | b'.'
                    | b'`'
                    | b'['
                    | b'('
            )
        })
}
