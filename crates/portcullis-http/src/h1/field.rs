//! One header line, taken apart.

use super::bytes::{TOKEN, class, has_control, is_blank, is_token, trim_blanks};
use super::lines::Line;
use crate::message::Field;
use portcullis_types::Span;

/// A fault in a header line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldProblem {
    MissingColon,
    EmptyName,
    SpaceBeforeColon,
    InvalidName,
    BareCarriageReturn,
    Control,
}

/// Splits a header line. The field is as good as it can be made even where there is a problem.
pub fn split_field(buf: &[u8], line: Line) -> (Field, Option<FieldProblem>) {
    let text = &buf[line.start..line.end];
    let raw = Span::new(line.start, line.next);
    let stop = text.iter().position(|&b| class(b) & TOKEN == 0).unwrap_or(text.len());
    let (name_end, colon, mut problem) = if text.get(stop) == Some(&b':') {
        (stop, stop, (stop == 0).then_some(FieldProblem::EmptyName))
    } else {
        match memchr::memchr(b':', text) {
            Some(colon) => {
                let (_, end) = trim_blanks(text, 0, colon);
                let problem = match &text[..end] {
                    [] => FieldProblem::EmptyName,
                    name if is_token(name) => FieldProblem::SpaceBeforeColon,
                    _ => FieldProblem::InvalidName,
                };
                (end, colon, Some(problem))
            }
            None => {
                let field = Field {
                    name: Span::new(line.start, line.end),
                    value: Span::new(line.end, line.end),
                    line: raw,
                };
                return (field, Some(FieldProblem::MissingColon));
            }
        }
    };
    let (start, end) = trim_blanks(buf, line.start + colon + 1, line.end);
    problem = problem.or_else(|| value_problem(&buf[start..end]));
    let field =
        Field { name: Span::new(line.start, line.start + name_end), value: Span::new(start, end), line: raw };
    (field, problem)
}

/// Returns the fault for which `value` cannot be a field value, if there is one.
pub fn value_problem(value: &[u8]) -> Option<FieldProblem> {
    if !has_control(value) {
        return None;
    }
    let cr = memchr::memchr(b'\r', value).is_some();
    Some(if cr { FieldProblem::BareCarriageReturn } else { FieldProblem::Control })
}

/// True if the line continues the one before it.
pub fn is_continuation(buf: &[u8], line: Line) -> bool {
    line.start < line.end && is_blank(buf[line.start])
}

/// A continuation line as a field without a name, and what is wrong with it.
pub fn continuation(buf: &[u8], line: Line) -> (Field, Option<FieldProblem>) {
    let (start, end) = trim_blanks(buf, line.start, line.end);
    let name = Span::new(line.start, line.start);
    let field = Field { name, value: Span::new(start, end), line: Span::new(line.start, line.next) };
    (field, value_problem(&buf[start..end]))
}
