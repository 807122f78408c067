//! Output of field lines and chunk framing, shared by both writers.

use super::bytes::has_control;
use crate::message::{BodyFraming, Field};
use portcullis_types::Decimal;
use std::io::Write;

/// The interim answer that lets a client send its body.
pub const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
/// The end of a chunk, after its data.
pub const CHUNK_END: &[u8] = b"\r\n";
/// The end of a chunked body, without trailers.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// Appends the line that precedes a chunk of `len` bytes. A chunk of length 0 would end the body: send none.
pub fn write_chunk_size(len: usize, out: &mut Vec<u8>) {
    debug_assert!(len > 0);
    let _ = write!(out, "{len:x}\r\n"); // a Vec takes everything
}

/// Writes field lines. Control bytes in a value, which only a caller's mistake can bring here, become spaces:
/// no value can end its line.
pub(super) struct FieldWriter<'o>(&'o mut Vec<u8>);

impl<'o> FieldWriter<'o> {
    pub fn new(out: &'o mut Vec<u8>) -> Self {
        FieldWriter(out)
    }

    pub fn field(&mut self, name: &[u8], value: &[u8]) {
        self.0.extend_from_slice(name);
        self.0.extend_from_slice(b": ");
        self.value(value);
        self.0.extend_from_slice(b"\r\n");
    }

    /// A field as it was received; `bytes` are those of the head that owns it. Most lines are in the form
    /// that we write, and are copied whole.
    pub fn received(&mut self, bytes: &[u8], field: &Field) {
        let (name, value, line) = (field.name, field.value, field.line);
        let plain = name.start == line.start
            && value.start == name.end + 2
            && line.end == value.end + 2
            && bytes.get(name.end as usize + 1) == Some(&b' ')
            && bytes.get(value.end as usize) == Some(&b'\r');
        if plain {
            self.0.extend_from_slice(line.of(bytes));
        } else {
            self.field(name.of(bytes), value.of(bytes));
        }
    }

    /// One field whose value is `values`, joined with commas.
    pub fn list<'v>(&mut self, name: &[u8], values: impl Iterator<Item = &'v [u8]>) {
        self.0.extend_from_slice(name);
        self.0.extend_from_slice(b": ");
        for (i, value) in values.enumerate() {
            if i > 0 {
                self.0.extend_from_slice(b", ");
            }
            self.value(value);
        }
        self.0.extend_from_slice(b"\r\n");
    }

    fn value(&mut self, value: &[u8]) {
        if has_control(value) {
            self.0.extend(value.iter().map(|b| if has_control(&[*b]) { b' ' } else { *b }));
        } else {
            self.0.extend_from_slice(value);
        }
    }

    pub fn number(&mut self, name: &[u8], n: u64) {
        self.field(name, &Decimal::unsigned(n));
    }

    pub fn end(self) {
        self.0.extend_from_slice(b"\r\n");
    }
}

pub(super) fn write_framing(framing: BodyFraming, fields: &mut FieldWriter<'_>) {
    match framing {
        BodyFraming::Length(n) => fields.number(b"Content-Length", n),
        BodyFraming::Chunked => fields.field(b"Transfer-Encoding", b"chunked"),
        BodyFraming::None | BodyFraming::UntilClose => {}
    }
}
