//! Changes that rules make to bodies: `append` and `prepend`, and `@rsub` on `STREAM_INPUT_BODY` and
//! `STREAM_OUTPUT_BODY`.
//!
//! The transaction only says what a body is to become; the caller sends it, with framing made anew.

use portcullis_match::Regex;
use portcullis_types::{Span, Variable};

use crate::collect::Item;
use crate::execution::Execution;
use crate::template::Template;
use crate::transaction::{BodyPlan, Transaction};

/// `s/find/replacement/`.
#[derive(Clone, Debug)]
pub struct Substitution {
    /// The text to replace, everywhere in the value.
    pub find: Find,
    /// The replacement; once its macros are expanded, `\1` to `\9` in it stand for the captured groups.
    pub replacement: Template,
}

/// The search text or pattern of a substitution.
#[derive(Clone, Debug)]
pub enum Find {
    /// A pattern.
    Regex(std::sync::Arc<Regex>),
    /// A text made of the request, taken literally (flag `d`).
    Literal(Template),
}

/// The changes to a response body: its replacement, and the text to send before and after it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseEdits {
    /// The changed body.
    pub body: Option<Vec<u8>>,
    /// `prepend`.
    pub before: Vec<u8>,
    /// `append`.
    pub after: Vec<u8>,
}

impl ResponseEdits {
    /// True if the body goes as it came.
    pub fn is_empty(&self) -> bool {
        self.body.is_none() && self.before.is_empty() && self.after.is_empty()
    }
}

/// The changes made so far.
#[derive(Debug, Default)]
pub(crate) struct Rewrites {
    pub(crate) before: Option<Span>,
    pub(crate) after: Option<Span>,
    input_changed: bool,
    output_changed: bool,
    /// Bytes of all texts that substitutions made.
    made_bytes: usize,
    incomplete: u64,
}

impl Transaction {
    /// Places that one `@rsub` replaces in a body; the rest stays as it is, and is counted.
    pub const SUBSTITUTIONS_MAX: usize = 10_000;
    /// Bytes that a body may grow by in one `@rsub`; the rest stays as it is, and is counted.
    pub const GROWTH_BYTES_MAX: usize = 1 << 20;
    /// Bytes of all bodies that the `@rsub`s of a transaction make; further ones change nothing, and are
    /// counted.
    pub const REWRITTEN_BYTES_MAX: usize = 64 << 20;

    /// The request body that is to go upstream, if rules changed it.
    pub fn rewritten_request_body(&self) -> Option<&[u8]> {
        self.stream(Variable::StreamInputBody).filter(|_| self.journal.rewrites.input_changed)
    }

    /// The changes to the response body, after phase 4.
    pub fn response_edits(&self) -> ResponseEdits {
        if !self.plan.settings.content_injection {
            return ResponseEdits::default();
        }
        let text =
            |span: Option<Span>| span.map_or(Vec::new(), |span| self.message.store.text(span).to_vec());
        let body = self.stream(Variable::StreamOutputBody).filter(|_| self.journal.rewrites.output_changed);
        ResponseEdits {
            body: body.map(<[u8]>::to_vec),
            before: text(self.journal.rewrites.before),
            after: text(self.journal.rewrites.after),
        }
    }

    /// Substitutions that a limit cut short.
    pub fn substitutions_incomplete(&self) -> u64 {
        self.journal.rewrites.incomplete
    }

    fn stream(&self, variable: Variable) -> Option<&[u8]> {
        self.message
            .store
            .scalar(variable)
            .map(|value| self.message.store.text(self.message.store.data(value)))
    }

    /// `STREAM_INPUT_BODY` is the request body, which has come to its end.
    pub(crate) fn begin_request_stream(&mut self) {
        if self.plan.streams_request
            && self.request_body_plan() != BodyPlan::Skip
            && self.message.body.length() > 0
        {
            self.message.store.set_scalar(Variable::StreamInputBody, self.message.body.shown());
        }
    }

    pub(crate) fn begin_response_stream(&mut self, body: &[u8]) {
        if self.plan.streams_response {
            self.message.store.set_scalar(Variable::StreamOutputBody, body);
        }
    }
}

impl Execution<'_> {
    /// Carries `substitution` out on `form`, which is what the transformations made of `item`; where the
    /// result is.
    pub(crate) fn substitute(
        &mut self,
        substitution: &Substitution,
        item: &Item,
        form: Span,
        replacement: &[u8],
    ) -> Span {
        let find = match &substitution.find {
            Find::Regex(regex) => Needle::Regex(regex),
            Find::Literal(template) => {
                let mut text = Vec::new();
                self.expand(template, &mut text);
                Needle::Literal(text)
            }
        };
        let room = Transaction::REWRITTEN_BYTES_MAX.saturating_sub(self.journal.rewrites.made_bytes);
        let text = self.message.store.text(form);
        if room < text.len() + Transaction::GROWTH_BYTES_MAX {
            self.journal.rewrites.incomplete += 1;
            return form;
        }
        let Replaced { text, whole } = replace(text, &find, replacement);
        self.journal.rewrites.incomplete += u64::from(!whole);
        self.journal.rewrites.made_bytes += text.len();
        let result = self.message.store.push(&text);
        self.message.store.set_scalar_span(item.variable, result);
        if let Variable::StreamInputBody = item.variable {
            self.journal.rewrites.input_changed = true
        } else {
            self.journal.rewrites.output_changed = true
        }
        result
    }
}

enum Needle<'a> {
    Regex(&'a Regex),
    Literal(Vec<u8>),
}

struct Replaced {
    text: Vec<u8>,
    /// No limit was reached.
    whole: bool,
}

/// As `msre_op_rsub_execute`: what is left after a match is a text of its own, so `^` finds its beginning.
/// After an empty match, which sends the original into an endless loop, one byte passes.
fn replace(text: &[u8], find: &Needle<'_>, replacement: &[u8]) -> Replaced {
    let most = text.len() + Transaction::GROWTH_BYTES_MAX;
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    let mut groups = portcullis_match::Captures::default();
    for _ in 0..Transaction::SUBSTITUTIONS_MAX {
        groups.fill(None);
        let found = match find {
            Needle::Regex(regex) => regex.captures(rest, &mut groups).then_some(groups[0]).flatten(),
            Needle::Literal(needle) if needle.is_empty() => None,
            Needle::Literal(needle) => {
                memchr::memmem::find(rest, needle).map(|at| Span::new(at, at + needle.len()))
            }
        };
        let Some(found) = found else {
            out.extend_from_slice(rest);
            return Replaced { text: out, whole: true };
        };
        let (start, mut end) = (found.start as usize, found.end as usize);
        let mut inserted = Vec::with_capacity(replacement.len());
        push_replacement(replacement, rest, &groups, &mut inserted);
        if out.len() + start + inserted.len() + rest.len() - end > most {
            break;
        }
        out.extend_from_slice(&rest[..start]);
        out.extend_from_slice(&inserted);
        if start == end {
            let Some(&byte) = rest.get(end) else { return Replaced { text: out, whole: true } };
            out.push(byte);
            end += 1;
        }
        rest = &rest[end..];
    }
    out.extend_from_slice(rest);
    Replaced { text: out, whole: false }
}

fn push_replacement(replacement: &[u8], text: &[u8], groups: &portcullis_match::Captures, out: &mut Vec<u8>) {
    let mut at = 0;
    while let Some(&byte) = replacement.get(at) {
        match replacement.get(at + 1) {
            Some(&digit @ b'1'..=b'9') if byte == b'\\' => {
                if let Some(group) = groups[usize::from(digit - b'0')] {
                    out.extend_from_slice(group.of(text));
                }
                at += 2;
            }
            _ => {
                out.push(byte);
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use portcullis_match::RegexFlags;

    use super::*;

    #[track_caller]
    fn check(pattern: &str, replacement: &str, text: &str, expected: &str) {
        let regex = Regex::new(pattern.as_bytes(), RegexFlags::default()).unwrap();
        let replaced = replace(text.as_bytes(), &Needle::Regex(&regex), replacement.as_bytes());
        assert_eq!((replaced.text.as_slice(), replaced.whole), (expected.as_bytes(), true), "{pattern}");
    }

    #[test]
    fn replaces_everywhere() {
        check("b+", "x", "abba b", "axa x");
        check("(a)(b)?", r"[\2\1]", "ab a", "[ba] [a]");
        check("z", "x", "abc", "abc");
        check("a", "", "banana", "bnn");
        check("^a", "b", "aaa", "bbb");
        check("x*", "-", "abc", "-a-b-c-");
    }

    #[test]
    fn limits_leave_the_rest_as_it_is() {
        let regex = Regex::new(b"a", RegexFlags::default()).unwrap();
        let text = vec![b'a'; Transaction::SUBSTITUTIONS_MAX + 5];
        let replaced = replace(&text, &Needle::Regex(&regex), b"b");
        assert!(!replaced.whole && replaced.text.len() == text.len() && replaced.text.ends_with(b"baaaaa"));

        let long = vec![b'x'; Transaction::GROWTH_BYTES_MAX / 3];
        let replaced = replace(b"aaaaa!", &Needle::Regex(&regex), &long);
        assert!(!replaced.whole && replaced.text.ends_with(b"xaa!"), "three fit");
    }

    #[test]
    fn literals() {
        let replaced = replace(b"a.c abc a.c", &Needle::Literal(b"a.c".to_vec()), b"<\\1>");
        assert_eq!(replaced.text, b"<> abc <>");
        let replaced = replace(b"abc", &Needle::Literal(Vec::new()), b"x");
        assert_eq!(replaced.text, b"abc");
    }
}
