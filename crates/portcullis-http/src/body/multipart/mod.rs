//! `multipart/form-data` (RFC 7578), read as strictly as ModSecurity 2.9.7 reads it.
//!
//! The body is cut into segments: a line with its line end, or the first
//! [`part_header_line_bytes_max`](super::Limits::part_header_line_bytes_max) bytes of a longer one.
//! Everything is decided segment by segment, so chunk borders cannot matter:
//!
//! ```text
//! preamble ──boundary──> headers ──empty line──> content ──boundary──> headers ... ──final boundary──> epilogue
//! (data_before)             │                       │                                               (data_after)
//!                           └ errors, folding       └ the last line end is held back: it may belong to a boundary
//! ```

mod boundary;
mod disposition;
mod part;
#[cfg(test)]
mod tests;

use memchr::{memchr, memmem};
use portcullis_types::Span;

use self::boundary::is_space;
use self::part::{Described, Headers, without_line_end};
use super::charset::Charset;
use super::{
    Ambiguity, Arg, BodyError, BodyErrorKind, BodySink, Limits, MultipartError as Error, Report,
    UnmatchedBoundary,
};

/// No segment is shorter than this unless its line is: a boundary (up to 1,024 bytes) fits in one segment.
const SEGMENT_BYTES_MIN: usize = 2_048;

/// Parses a multipart body.
///
/// Arguments, files and part headers go to the sink when the part's headers are complete or, for an argument,
/// when the part is. On an error the part that was being read is still reported as far as it is known.
#[derive(Debug)]
pub struct Multipart {
    limits: Limits,
    segment_max: usize,
    /// `--` and the boundary.
    delimiter: Vec<u8>,
    finder: memmem::Finder<'static>,
    state: State,
    /// The bytes of a segment that is not complete yet.
    pending: Vec<u8>,
    /// Offset in the body of the current segment.
    segment_start: u64,
    /// The last segment ended with a line end, or there was none.
    at_line_start: bool,
    /// The last line ended with LF alone.
    after_lone_lf: bool,
    boundaries: usize,
    files: usize,
    /// The caller decodes the character sets that parts name.
    decoded: bool,
    report: Report,
}

#[derive(Debug)]
enum State {
    /// Before the first boundary.
    Preamble,
    Headers(Headers),
    Content(Content),
    /// After the final boundary.
    Epilogue,
    /// An error was found; the rest is not looked at.
    Failed,
}

/// A part's content so far.
#[derive(Debug)]
struct Content {
    part: Described,
    /// The value of a part that is no file, without `held`.
    value: Vec<u8>,
    /// The line end of the last segment, until it is known not to belong to a boundary.
    held: &'static [u8],
    /// At least one segment of content came.
    any: bool,
    /// Offset of the content's first byte.
    start: u64,
    size: u64,
    /// The file's data goes to the sink (the file limit is not reached).
    wanted: bool,
}

impl Multipart {
    /// Bytes of memory that it holds of what it has taken.
    pub(super) fn held_bytes(&self) -> usize {
        let value = match &self.state {
            State::Content(content) => content.value.capacity(),
            State::Preamble | State::Headers(_) | State::Epilogue | State::Failed => 0,
        };
        self.pending.capacity() + value
    }

    /// A parser for a body with this `Content-Type` value (empty if there is none). A value without a good
    /// boundary makes every body an error, told by [`finish`](Multipart::finish).
    pub fn new(limits: Limits, content_type: &[u8]) -> Self {
        Multipart::with_parameters(limits, content_type, false)
    }

    /// The same; `parameters_behind`: the boundary ends at a semicolon, as in ModSecurity 3 and in most
    /// applications, so that other parameters may stand behind it.
    pub fn with_parameters(limits: Limits, content_type: &[u8], parameters_behind: bool) -> Self {
        let mut report = Report::default();
        let boundary = boundary::parse(content_type, parameters_behind, &mut report.multipart);
        let mut delimiter = b"--".to_vec();
        let mut state = State::Preamble;
        match boundary {
            Ok(boundary) => delimiter.extend_from_slice(&boundary),
            Err(error) => {
                report.multipart.error = true;
                report.error = Some(BodyError { kind: BodyErrorKind::Multipart(error), position: 0 });
                state = State::Failed;
            }
        }
        Multipart {
            segment_max: limits.part_header_line_bytes_max.max(SEGMENT_BYTES_MIN),
            limits,
            finder: memmem::Finder::new(&delimiter).into_owned(),
            delimiter,
            state,
            pending: Vec::new(),
            segment_start: 0,
            at_line_start: true,
            after_lone_lf: false,
            boundaries: 0,
            files: 0,
            decoded: false,
            report,
        }
    }

    /// Character sets of parts that can be decoded are: they are no [`Ambiguity::PartCharset`].
    pub fn with_decoded_parts(self, decoded: bool) -> Self {
        Multipart { decoded, ..self }
    }

    /// Takes the next bytes.
    pub fn feed(&mut self, chunk: &[u8], sink: &mut dyn BodySink) {
        self.report.bytes += chunk.len() as u64;
        let mut rest = chunk;
        while !rest.is_empty() {
            match self.state {
                State::Failed => return,
                State::Epilogue => {
                    self.report.multipart.data_after = true;
                    return;
                }
                State::Preamble | State::Headers(_) | State::Content(_) => {}
            }
            if self.pending.is_empty()
                && let Some(len) = segment_len(rest, self.segment_max)
            {
                self.segment(&rest[..len], sink);
                rest = &rest[len..];
                continue;
            }
            // Top up the pending bytes; only the new ones can hold the line end.
            let room = self.segment_max - self.pending.len();
            let window = &rest[..rest.len().min(room)];
            let taken = memchr(b'\n', window).map_or(window.len(), |at| at + 1);
            self.pending.extend_from_slice(&window[..taken]);
            rest = &rest[taken..];
            if self.pending.ends_with(b"\n") || self.pending.len() == self.segment_max {
                let mut pending = std::mem::take(&mut self.pending);
                let len = segment_len(&pending, self.segment_max).unwrap_or(pending.len());
                self.segment(&pending[..len], sink);
                pending.drain(..len);
                self.pending = pending;
            }
        }
    }

    /// The input is complete.
    pub fn finish(mut self, sink: &mut dyn BodySink) -> Report {
        let rest = std::mem::take(&mut self.pending);
        match self.state {
            State::Preamble if self.report.bytes > 0 => {
                self.report.multipart.data_before |= !rest.is_empty();
                self.fail(Error::NoBoundary, sink);
            }
            State::Headers(_) | State::Content(_) if self.is_final_boundary(&rest) => {
                self.report.multipart.lf_line |= self.after_lone_lf;
                let began = matches!(&self.state, State::Content(content) if content.any);
                self.report.multipart.invalid_part |= !began;
                self.end_part(sink);
            }
            State::Headers(_) => self.fail(Error::FinalBoundary, sink),
            State::Content(_) => {
                // The part of the content that came counts: some readers take a body that is cut off.
                self.content(&rest, sink);
                self.fail(Error::FinalBoundary, sink);
            }
            State::Preamble | State::Epilogue | State::Failed => {}
        }
        self.report
    }

    /// `rest` is the final boundary without a line end.
    fn is_final_boundary(&self, rest: &[u8]) -> bool {
        self.at_line_start && rest.strip_prefix(self.delimiter.as_slice()) == Some(b"--")
    }

    /// One segment: sorts out what it is.
    fn segment(&mut self, segment: &[u8], sink: &mut dyn BodySink) {
        let result = match self.boundary_line(segment) {
            Ok(None) => self.other_line(segment, sink),
            Ok(Some(is_final)) => self.boundary(is_final, sink),
            Err(error) => Err(error),
        };
        if let Err(error) = result {
            self.fail(error, sink);
        }
        self.segment_start += segment.len() as u64;
        self.at_line_start = segment.ends_with(b"\n");
        self.after_lone_lf = self.at_line_start && !segment.ends_with(b"\r\n");
    }

    /// Is this a boundary line, and the final one? Also raises the flags of lines that only look like one.
    fn boundary_line(&mut self, segment: &[u8]) -> Result<Option<bool>, Error> {
        if !self.at_line_start {
            return Ok(None);
        }
        let flags = &mut self.report.multipart;
        if segment.len() <= 3 || !segment.starts_with(b"--") {
            if self.finder.find(segment).is_some() {
                flags.unmatched_boundary = UnmatchedBoundary::InLine;
            }
            return Ok(None);
        }
        let Some(after) = segment.strip_prefix(self.delimiter.as_slice()) else {
            let boundary = &self.delimiter[2..];
            let inner = &segment[2..];
            if flags.boundary_quoted && inner.strip_prefix(b"\"").is_some_and(|i| i.starts_with(boundary)) {
                return Err(Error::BoundaryDecorated);
            }
            let spaces = inner.iter().take_while(|&&b| is_space(b)).count();
            if spaces > 0 && inner[spaces..].starts_with(boundary) {
                return Err(Error::BoundaryDecorated);
            }
            flags.unmatched_boundary = flags.unmatched_boundary.max(UnmatchedBoundary::DashLine);
            return Ok(None);
        };
        flags.lf_line |= self.after_lone_lf;
        let in_content = matches!(&self.state, State::Content(content) if content.any);
        if self.boundaries > 0 && !in_content {
            // Where the headers or the first line of the content should be: then it is taken as that.
            flags.invalid_part = true;
            return Ok(None);
        }
        let (is_final, after) = match after.strip_prefix(b"--") {
            Some(after) => (true, after),
            None => (false, after),
        };
        match after {
            b"\r\n" => flags.crlf_line = true,
            b"\n" => flags.lf_line = true,
            _ => return Err(Error::BoundaryLine),
        }
        Ok(Some(is_final))
    }

    fn boundary(&mut self, is_final: bool, sink: &mut dyn BodySink) -> Result<(), Error> {
        self.boundaries += 1;
        self.end_part(sink);
        if !is_final {
            if self.boundaries > self.limits.multipart_parts_max {
                return Err(Error::Parts(self.limits.multipart_parts_max));
            }
            self.state = State::Headers(Headers::default());
        }
        Ok(())
    }

    fn other_line(&mut self, segment: &[u8], sink: &mut dyn BodySink) -> Result<(), Error> {
        match &mut self.state {
            State::Preamble => {
                self.report.multipart.data_before = true;
                Ok(())
            }
            State::Headers(headers) => {
                let max = self.limits.part_header_line_bytes_max;
                if !segment.ends_with(b"\n") || segment.len() > max {
                    return Err(Error::HeaderLine(max));
                }
                if memchr(0, segment).is_some() {
                    return Err(Error::HeaderNul);
                }
                let flags = &mut self.report.multipart;
                match segment.ends_with(b"\r\n") {
                    true => flags.crlf_line = true,
                    false => flags.lf_line = true,
                }
                let is_empty = without_line_end(segment).is_empty();
                if !is_empty {
                    headers.line(segment, &self.limits, flags)?;
                }
                let described = is_empty
                    .then(|| headers.describe(self.decoded, flags, &mut self.report.ambiguities))
                    .transpose()?;
                if let Some(part) = described {
                    self.begin_content(part, segment.len(), sink);
                }
                self.count_no_files(segment.len())
            }
            State::Content(content) => {
                let is_file = content.part.filename.is_some();
                let added = self.content(segment, sink);
                self.count_no_files(if is_file { 0 } else { added })
            }
            State::Epilogue | State::Failed => Ok(()),
        }
    }

    fn begin_content(&mut self, part: Described, empty_line: usize, sink: &mut dyn BodySink) {
        sink.part(&part.name, part.filename.as_deref());
        let State::Headers(headers) = &self.state else { return };
        for line in headers.lines() {
            sink.part_header(&part.name, line);
        }
        let mut wanted = false;
        if let Some(filename) = &part.filename {
            sink.file_begin(&part.name, filename);
            self.files += 1;
            wanted = self.files <= self.limits.multipart_files_max;
            self.report.multipart.file_limit_exceeded |= !wanted;
        }
        let start = self.segment_start + empty_line as u64;
        let value = Vec::new();
        self.state = State::Content(Content { part, value, held: b"", any: false, start, size: 0, wanted });
    }

    /// Adds to the current part's content, so many bytes; holds the last line end back, which may be the
    /// boundary's.
    fn content(&mut self, segment: &[u8], sink: &mut dyn BodySink) -> usize {
        let State::Content(content) = &mut self.state else { return 0 };
        let before = content.size;
        let data = without_line_end(segment);
        let held: &[u8] = match segment.len() - data.len() {
            _ if !segment.ends_with(b"\n") => b"",
            1 => b"\n",
            _ => b"\r\n",
        };
        let data = if held.is_empty() { segment } else { data };
        for piece in [std::mem::replace(&mut content.held, held), data] {
            content.size += piece.len() as u64;
            if content.part.filename.is_none() {
                content.value.extend_from_slice(piece);
            } else if content.wanted && !piece.is_empty() {
                sink.file_data(piece);
            }
        }
        content.any = true;
        (content.size - before) as usize
    }

    fn count_no_files(&mut self, bytes: usize) -> Result<(), Error> {
        self.report.no_files_bytes += bytes as u64;
        match self.limits.no_files_bytes_max {
            max if self.report.no_files_bytes >= max => Err(Error::NoFilesLimit(max)),
            _ => Ok(()),
        }
    }

    /// The current part, if there is one, is complete.
    fn end_part(&mut self, sink: &mut dyn BodySink) {
        let State::Content(content) = std::mem::replace(&mut self.state, State::Epilogue) else { return };
        if content.part.filename.is_some() {
            sink.file_end(content.size);
            return;
        }
        let name = &content.part.name;
        let is_unread = |label: &[u8]| match Charset::from_label(label) {
            Charset::Foreign => true,
            Charset::Transcoded(_) => !self.decoded,
            Charset::Ascii | Charset::MultiByte(_) => false,
        };
        if name == b"_charset_" && is_unread(&content.value) {
            self.report.ambiguities.insert(Ambiguity::PartCharset);
        }
        if self.report.arguments >= self.limits.arguments_max {
            // Files behind this still matter, so reading continues.
            let kind = BodyErrorKind::ArgumentsLimit(self.limits.arguments_max);
            self.report.error.get_or_insert(BodyError { kind, position: content.start });
            return;
        }
        self.report.arguments += 1;
        let start = content.start as usize;
        let raw_value = Span::new(start, start + content.value.len());
        sink.arg(Arg { name, value: &content.value, raw_value });
    }

    /// Notes the error and reports what there is of the current part.
    fn fail(&mut self, error: Error, sink: &mut dyn BodySink) {
        // Errors of the whole body rather than of its form raise no flag, as in ModSecurity.
        let whole = matches!(error, Error::NoBoundary | Error::FinalBoundary | Error::NoFilesLimit(_));
        self.report.multipart.error |= !whole;
        let kind = BodyErrorKind::Multipart(error);
        self.report.error.get_or_insert(BodyError { kind, position: self.segment_start });
        self.end_part(sink);
        self.state = State::Failed;
    }
}

/// The length of the segment that `bytes` starts with, if it is complete. A CR is never the last byte of a
/// segment that was cut by length, so that it stays with its LF.
fn segment_len(bytes: &[u8], max: usize) -> Option<usize> {
    let window = &bytes[..bytes.len().min(max)];
    match memchr(b'\n', window) {
        Some(at) => Some(at + 1),
        None if window.len() < max => None,
        None => Some(max - window.ends_with(b"\r") as usize),
    }
}
