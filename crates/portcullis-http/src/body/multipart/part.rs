//! One part of a multipart body while it is read: first its headers, then its content.

use memchr::memchr;

use super::boundary::is_space;
use super::disposition::Disposition;
use crate::body::{Ambiguities, Ambiguity, Limits, MultipartError as Error, MultipartFlags, content_type};

/// The header block of a part, and what it says once it is complete.
#[derive(Debug, Default)]
pub(super) struct Headers {
    /// Unfolded, without line ends: a folded line is rebuilt as `name: value`.
    lines: Vec<Line>,
    bytes: usize,
}

#[derive(Debug)]
struct Line {
    text: Vec<u8>,
    name_len: usize,
    value_start: usize,
    folded: bool,
}

impl Line {
    fn name(&self) -> &[u8] {
        &self.text[..self.name_len]
    }
    fn value(&self) -> &[u8] {
        &self.text[self.value_start..]
    }
}

/// The name and file name of a part with complete headers.
#[derive(Debug)]
pub(super) struct Described {
    pub(super) name: Vec<u8>,
    /// Present for a file, perhaps empty.
    pub(super) filename: Option<Vec<u8>>,
}

impl Headers {
    /// The lines as `MULTIPART_PART_HEADERS` has them.
    pub(super) fn lines(&self) -> impl Iterator<Item = &[u8]> {
        self.lines.iter().map(|line| line.text.as_slice())
    }

    /// Takes one line with its line end, which is not the empty line.
    pub(super) fn line(
        &mut self,
        line: &[u8],
        limits: &Limits,
        flags: &mut MultipartFlags,
    ) -> Result<(), Error> {
        self.bytes += line.len();
        if self.bytes > limits.part_headers_bytes_max {
            return Err(Error::Headers(limits.part_headers_bytes_max));
        }
        let text = without_line_end(line);
        if line.first().is_some_and(|&b| is_space(b)) {
            return self.fold(line, text, flags);
        }
        let colon = memchr(b':', text).ok_or(Error::HeaderColon)?;
        if colon == 0 {
            return Err(Error::HeaderName);
        }
        if self.lines.iter().any(|line| line.name().eq_ignore_ascii_case(&text[..colon])) {
            return Err(Error::HeaderRepeated);
        }
        let blanks = text[colon + 1..].iter().take_while(|&&b| matches!(b, b' ' | b'\t')).count();
        if self.lines.len() == limits.part_headers_max {
            return Err(Error::HeaderCount(limits.part_headers_max));
        }
        let value_start = colon + 1 + blanks;
        self.lines.push(Line { text: text.to_vec(), name_len: colon, value_start, folded: false });
        Ok(())
    }

    fn fold(&mut self, line: &[u8], text: &[u8], flags: &mut MultipartFlags) -> Result<(), Error> {
        flags.header_folding = true;
        let spaces = line.iter().take_while(|&&b| is_space(b)).count();
        flags.invalid_header_folding |= line[..spaces].iter().any(|b| !matches!(b, b' ' | b'\t'));
        let last = self.lines.last_mut().ok_or(Error::HeaderFolding)?;
        if !last.folded {
            let text = [last.name(), b": ", last.value()].concat();
            *last = Line { text, value_start: last.name_len + 2, folded: true, name_len: last.name_len };
        }
        last.text.push(b' ');
        last.text.extend_from_slice(text.get(spaces..).unwrap_or_default());
        Ok(())
    }

    /// The empty line came: says what the part is.
    pub(super) fn describe(
        &self,
        decoded: bool,
        flags: &mut MultipartFlags,
        ambiguities: &mut Ambiguities,
    ) -> Result<Described, Error> {
        let disposition = self.value(b"content-disposition").ok_or(Error::DispositionMissing)?;
        let mut read = Disposition::default();
        let result = read.read(disposition);
        flags.invalid_quoting |= read.invalid_quoting;
        if read.escapes {
            ambiguities.insert(Ambiguity::NameEscape);
        }
        if self.lines().any(|line| memchr(b'\r', line).is_some()) {
            ambiguities.insert(Ambiguity::LoneCarriageReturn);
        }
        result.map_err(Error::Disposition)?;
        let name = read.name.ok_or(Error::NameMissing)?;
        self.note_encodings(decoded, ambiguities);
        Ok(Described { name, filename: read.filename })
    }

    /// Other ways to read the content: transfer encodings, character sets, nesting.
    fn note_encodings(&self, decoded: bool, ambiguities: &mut Ambiguities) {
        if let Some(encoding) = self.value(b"content-transfer-encoding") {
            let plain: [&[u8]; 4] = [b"7bit", b"8bit", b"binary", b""];
            if !plain.iter().any(|p| p.eq_ignore_ascii_case(encoding.trim_ascii())) {
                ambiguities.insert(Ambiguity::TransferEncoding);
            }
        }
        if let Some(value) = self.value(b"content-type") {
            if content_type::is_foreign(value, decoded) {
                ambiguities.insert(Ambiguity::PartCharset);
            }
            if value.get(..10).is_some_and(|start| start.eq_ignore_ascii_case(b"multipart/")) {
                ambiguities.insert(Ambiguity::NestedMultipart);
            }
        }
    }

    fn value(&self, name: &[u8]) -> Option<&[u8]> {
        self.lines.iter().find(|line| line.name().eq_ignore_ascii_case(name)).map(Line::value)
    }
}

/// `line` without one LF and one CR before it.
pub(super) fn without_line_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}
