//! Beginnings of code that no expression shows: tags, calls by their shape, and property paths as parameters'
//! names.

mod calls;
mod properties;
mod tags;

use std::cell::{Cell, OnceCell};

use portcullis_types::Span;

pub(super) use self::properties::render_keys;
use super::names::Names;
use super::value::program::{self, Act};
use super::{BACKDOOR, PHP_READINGS, runs_input, takes_input};
use crate::detectors::shown::Shown;
use crate::detectors::{command, purpose};
use crate::limits::TOKEN_BYTES;
use crate::{Class, Found, Input, KindId, Place};

/// Notes all marks in the text. With `is_source`, it is a source of PHP that runs nothing a request gives it;
/// `shown` is what the text shows as code, once that was asked.
pub(super) fn detect(
    names: &Names,
    shell: &command::Names,
    input: &Input<'_>,
    is_source: bool,
    shown: &OnceCell<Shown>,
    found: &mut Found<'_>,
) {
    let marks = Marks {
        names,
        shell,
        input,
        text: input.text,
        is_source,
        takes_code: purpose::takes_code(input.location),
        takes_text: purpose::may_mention(Class::Code, input.location),
        shown,
        is_active: Cell::new(None),
    };
    let groups = input.groups;
    if groups.has(b'<') {
        marks.tags(found);
    }
    if groups.has(b'.') {
        marks.class_path(found);
    }
    if groups.has(b'#') {
        marks.render_array(found);
        marks.ognl_context(found);
    }
    if groups.has(b'*') {
        marks.products(found);
    }
    if groups.has(b'(') {
        marks.annotations(found);
    }
    if groups.has(b'(') || groups.has(b'`') {
        marks.whole_calls(found);
    }
    marks.inclusions(found);
    if groups.has(b'(') {
        marks.modules(found);
        marks.interpolated_calls(found);
        marks.endless_loops(found);
    }
    if groups.has(b'{') && groups.has(b':') {
        marks.lookups(found);
    }
    marks.quoted_commands(shell, found);
    if input.location.place == Place::Header && input.text.starts_with(b"zerodium") {
        found.add(BACKDOOR, Span::new(0, input.text.len().min(60)));
    }
    marks.request_parameters(found);
}

/// The text, and what its field is for.
struct Marks<'i> {
    names: &'i Names,
    shell: &'i command::Names,
    input: &'i Input<'i>,
    text: &'i [u8],
    /// See [`detect`].
    is_source: bool,
    /// The field is for source code.
    takes_code: bool,
    /// The field is for text in which code may be quoted.
    takes_text: bool,
    shown: &'i OnceCell<Shown>,
    /// See [`Marks::is_active`].
    is_active: Cell<Option<bool>>,
}

impl Marks<'_> {
    /// The field is for code, or for texts and the byte at `at` stands in what the text shows as code.
    fn is_shown(&self, at: usize) -> bool {
        self.takes_code || self.takes_text && self.shown.get_or_init(|| Shown::of(self.text)).has(at)
    }

    /// As a source of PHP the text runs what it is given, or takes a value of the request.
    fn is_active(&self, found: &mut Found<'_>) -> bool {
        let is_active = self.is_active.get().unwrap_or_else(|| {
            !found.may_read(PHP_READINGS * self.text.len())
                || takes_input(self.text)
                || runs_input(self.text, self.shell)
        });
        self.is_active.set(Some(is_active));
        is_active
    }
}

impl Marks<'_> {
    /// All of a block, `block` up to its end, is a program that reads a file, a variable of the system or
    /// what its language keeps of the machine, by a function that is known for it.
    fn reads_machine(&self, block: &[u8], found: &mut Found<'_>) -> bool {
        let block = &block[..memchr::memmem::find(block, b"?>").unwrap_or(block.len())];
        let reading = program::read(block, self.names, self.shell, found.left() / TOKEN_BYTES);
        let reads =
            |act: &Act| matches!(act, Act::Reaches { is_bare: false } | Act::Calls { is_known: true });
        found.may_walk(reading.bytes, reading.tokens)
            && reading.program.is_some_and(|program| program.acts.iter().flatten().any(reads))
    }
}

/// Bytes of a block or call in which its end is looked for.
const BLOCK_BYTES_MAX: usize = 400;

/// Adds `kind`; if it is only shown there, as what is.
fn add(found: &mut Found<'_>, kind: KindId, span: Span, is_shown: bool) {
    match is_shown {
        true => found.shown(kind, span),
        false => found.add(kind, span),
    }
}

fn starts(text: &[u8], start: &[u8]) -> bool {
    text.len() >= start.len() && text[..start.len()].eq_ignore_ascii_case(start)
}
