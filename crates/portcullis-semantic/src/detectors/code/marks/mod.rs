//! Beginnings of code that no expression shows: tags, calls by their shape, and property paths as parameters'
//! names.

mod calls;
mod properties;
mod tags;

use portcullis_types::Span;

pub(super) use self::properties::render_keys;
use super::BACKDOOR;
use crate::detectors::quotation::Quotation;
use crate::detectors::{command, purpose};
use crate::{Class, Found, Input, KindId, Place};

/// Notes all marks in the text. With `is_source`, it is a source of PHP that runs nothing a request gives it.
pub(super) fn detect(shell: &command::Names, input: &Input<'_>, is_source: bool, found: &mut Found<'_>) {
    let mut marks = Marks {
        input,
        text: input.text,
        is_source,
        takes_code: purpose::takes_code(input.location),
        takes_text: purpose::may_mention(Class::Code, input.location),
        quotation: Quotation::new(input.text),
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
    input: &'i Input<'i>,
    text: &'i [u8],
    /// See [`detect`].
    is_source: bool,
    /// The field is for source code.
    takes_code: bool,
    /// The field is for text in which code may be quoted.
    takes_text: bool,
    quotation: Quotation<'i>,
}

/// Bytes of a block or call in which its end is looked for.
const BLOCK_BYTES_MAX: usize = 400;

/// Adds `kind`, as a mention if it is only shown there.
fn add(found: &mut Found<'_>, kind: KindId, span: Span, is_shown: bool) {
    match is_shown {
        true => found.mention(kind, span),
        false => found.add(kind, span),
    }
}

fn starts(text: &[u8], start: &[u8]) -> bool {
    text.len() >= start.len() && text[..start.len()].eq_ignore_ascii_case(start)
}
