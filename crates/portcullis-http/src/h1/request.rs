use super::field::{FieldProblem, continuation, is_continuation, split_field};
use super::lines::{Found, Line, Lines};
use super::{Compat, Limits, bytes, request_line, semantics};
use crate::message::{Field, Oddity, Refusal, RequestHead, join};
use portcullis_types::Span;

/// The outcome of [`RequestParser::parse`].
#[derive(Clone, Debug)]
pub enum Parsed {
    /// The head is not complete; call again with more bytes.
    NeedMore,
    /// A whole head that may be inspected and forwarded.
    Head(RequestHead),
    /// A head that is not forwarded. Rules run over what could be read of it, then
    /// [`status`](Refusal::status) is answered and the connection closes.
    Refused {
        /// The part of the head that could be read. Unless the refusal is one that stops at once, all header
        /// lines are there.
        partial: RequestHead,
        /// The first thing that was wrong.
        refusal: Refusal,
    },
}

/// Parses request heads from a growing buffer.
///
/// Call [`parse`](RequestParser::parse) with all bytes received and not yet consumed; between two calls for
/// the same head the buffer may only grow at its end. A byte is searched for line ends once, however the
/// input is cut, and the outcome is the same for every cut. After [`Parsed::Head`] drop
/// [`received_len`](RequestHead::received_len) bytes, decode the body, and use the parser for the next head.
///
/// ```
/// use portcullis_http::h1::{Compat, Limits, Parsed, RequestParser};
///
/// let mut parser = RequestParser::new(Limits::default(), Compat::Strict);
/// let input = b"GET /?q=<x> HTTP/1.1\r\nHost: a.example\r\n\r\n";
/// assert!(matches!(parser.parse(&input[..20]), Parsed::NeedMore));
/// let Parsed::Head(head) = parser.parse(input) else { panic!() };
/// assert_eq!(head.query(), Some(&b"q=<x>"[..]));
/// assert_eq!(head.received_len(), input.len());
/// ```
#[derive(Clone, Debug)]
pub struct RequestParser {
    limits: Limits,
    compat: Compat,
    lines: Lines,
    empty_lines: usize,
    /// The request line has been read.
    in_fields: bool,
    /// Line ends of the head seen so far, with and without CR.
    crlf: bool,
    lf: bool,
    folded: bool,
    refusal: Option<Refusal>,
    head: RequestHead,
}

impl RequestParser {
    /// A parser for one connection.
    pub fn new(limits: Limits, compat: Compat) -> Self {
        RequestParser {
            limits,
            compat,
            lines: Lines::default(),
            empty_lines: 0,
            in_fields: false,
            crlf: false,
            lf: false,
            folded: false,
            refusal: None,
            head: RequestHead::default(),
        }
    }

    /// Looks for a whole head at the start of `buf`.
    pub fn parse(&mut self, buf: &[u8]) -> Parsed {
        if !self.in_fields
            && let Some(outcome) = self.parse_request_line(buf)
        {
            return outcome;
        }
        self.parse_fields(buf)
    }

    /// The input has ended, or its time is up: what `buf` holds is all there will be. `None` if no byte of a
    /// request came.
    pub fn end(&mut self, buf: &[u8]) -> Option<Parsed> {
        match self.parse(buf) {
            Parsed::NeedMore if buf.len() <= self.lines.start && !self.in_fields => None,
            Parsed::NeedMore => {
                if !self.in_fields {
                    let end = buf.len();
                    self.read_line_start(buf, end);
                }
                Some(self.stop(buf, buf.len(), Refusal::Incomplete))
            }
            outcome @ (Parsed::Head(_) | Parsed::Refused { .. }) => Some(outcome),
        }
    }

    /// True if part of a head has been seen; false between requests.
    pub fn started(&self, buf: &[u8]) -> bool {
        self.in_fields || buf.len() > self.lines.start
    }

    fn parse_request_line(&mut self, buf: &[u8]) -> Option<Parsed> {
        loop {
            let start = self.lines.start;
            if let Some(&first) = buf.get(start)
                && bytes::class(first) & (bytes::CONTROL | bytes::HIGH) != 0
                && !matches!(first, b'\r' | b'\n' | b'\t')
            {
                self.head.line = Span::new(start, start + 1);
                return Some(self.stop(buf, start + 1, Refusal::NotHttp));
            }
            let line = match self.lines.next(buf, self.limits.request_line_bytes_max) {
                Found::NeedMore => return Some(Parsed::NeedMore),
                Found::TooLong => {
                    let end = start + self.limits.request_line_bytes_max;
                    self.read_line_start(buf, end);
                    return Some(self.stop(buf, end, Refusal::RequestLineTooLong));
                }
                Found::Line(line) => line,
            };
            if line.start == line.end {
                self.empty_lines += 1;
                self.head.note(Oddity::LeadingEmptyLine);
                if self.empty_lines > self.limits.empty_lines_max {
                    return Some(self.stop(buf, line.next, Refusal::TooManyEmptyLines));
                }
                continue;
            }
            self.note_line_end(line);
            self.in_fields = true;
            return match request_line::read(buf, line.start, line.end, self.compat, &mut self.head) {
                request_line::Outcome::Fields(refusal) => {
                    self.head.fields.reserve(16); // what browsers send
                    self.refusal = refusal;
                    None
                }
                request_line::Outcome::Simple => Some(self.complete(buf, line.next, true)),
                request_line::Outcome::Stop(refusal) => Some(self.stop(buf, line.next, refusal)),
            };
        }
    }

    /// Reads what there is of a request line that has no end, as evidence.
    fn read_line_start(&mut self, buf: &[u8], end: usize) {
        let start = self.lines.start;
        if start < end {
            let _ = request_line::read(buf, start, end, Compat::Strict, &mut self.head);
        }
    }

    fn parse_fields(&mut self, buf: &[u8]) -> Parsed {
        loop {
            let start = self.lines.start;
            let left = self.limits.head_bytes_max.saturating_sub(start);
            let line = match self.lines.next(buf, left.min(self.limits.header_bytes_max)) {
                Found::NeedMore => return Parsed::NeedMore,
                Found::TooLong if left <= self.limits.header_bytes_max => {
                    return self.stop(buf, start + left, Refusal::HeadTooLong);
                }
                Found::TooLong => {
                    return self.stop(buf, start + self.limits.header_bytes_max, Refusal::HeaderTooLong);
                }
                Found::Line(line) => line,
            };
            self.note_line_end(line);
            if line.start == line.end {
                return self.complete(buf, line.next, false);
            }
            if self.head.fields.len() == self.limits.header_count_max {
                return self.stop(buf, line.next, Refusal::TooManyHeaders);
            }
            self.read_field(buf, line);
        }
    }

    fn read_field(&mut self, buf: &[u8], line: Line) {
        let fold = is_continuation(buf, line);
        let (field, problem) = if fold && !self.head.fields.is_empty() {
            self.folded = true;
            self.head.note(Oddity::FoldedHeader);
            if self.compat == Compat::Strict {
                self.refuse(Refusal::FoldedHeader);
            }
            continuation(buf, line)
        } else {
            if fold {
                self.refuse(Refusal::FoldedHeader); // nothing to continue: other readers skip the line or take it as a field
            }
            split_field(buf, line)
        };
        if let Some(problem) = problem {
            self.refuse(refusal_of(problem));
            if problem == FieldProblem::BareCarriageReturn {
                // One line for some readers, two for others: neither reading is shown to rules as a field.
                return;
            }
        }
        if bytes::has_high(field.value.of(buf)) {
            self.head.note(Oddity::HighByteInValue);
        }
        self.head.fields.push(field);
    }

    fn refuse(&mut self, why: Refusal) {
        self.refusal = self.refusal.or(Some(why));
    }

    /// Heads whose lines all end in LF come from hand-made clients and mean no harm. A head that mixes both
    /// kinds is what a request hidden from the next server looks like.
    fn note_line_end(&mut self, line: Line) {
        if line.crlf {
            self.crlf = true;
        } else {
            self.lf = true;
            self.head.note(Oddity::BareLineFeed);
        }
        if self.crlf && self.lf {
            self.refuse(Refusal::MixedLineEnds);
        }
    }

    /// The head ends at `end`.
    fn complete(&mut self, buf: &[u8], end: usize, simple: bool) -> Parsed {
        let refusal = self.refusal;
        let mut head = self.take(buf, end);
        if simple {
            head.reusable = false;
            return match refusal {
                Some(refusal) => Parsed::Refused { partial: head, refusal },
                None => Parsed::Head(head),
            };
        }
        let settled = semantics::settle(&mut head, &self.limits, self.compat);
        if self.compat == Compat::Apache {
            semantics::merge_same_names(&mut head);
        }
        match refusal.or(settled) {
            Some(refusal) => Parsed::Refused { partial: head, refusal },
            None => Parsed::Head(head),
        }
    }

    /// Refuses at once; `end` bytes have been looked at.
    fn stop(&mut self, buf: &[u8], end: usize, why: Refusal) -> Parsed {
        let refusal = self.refusal.unwrap_or(why);
        Parsed::Refused { partial: self.take(buf, end.min(buf.len())), refusal }
    }

    /// Takes the head out, with its bytes, and makes the parser ready for the next.
    fn take(&mut self, buf: &[u8], end: usize) -> RequestHead {
        let folded = self.folded;
        let mut head = std::mem::replace(self, RequestParser::new(self.limits, self.compat)).head;
        head.bytes = buf[..end].to_vec();
        head.received = end;
        if folded {
            unfold(&mut head.bytes, head.received, &mut head.fields);
        }
        head
    }
}

/// Joins each continuation line, kept as a field without a name, to the field before it with one space.
pub(super) fn unfold(text: &mut Vec<u8>, received: usize, fields: &mut Vec<Field>) {
    let lines = std::mem::take(fields);
    fields.reserve(lines.len());
    for line in lines {
        let continues =
            line.name.is_empty() && text.get(line.line.start as usize).is_some_and(|&b| bytes::is_blank(b));
        match fields.last_mut() {
            Some(last) if continues => {
                last.line.end = line.line.end;
                if last.value.is_empty() {
                    last.value = line.value;
                } else if !line.value.is_empty() {
                    last.value = join(text, received, last.value, b" ", line.value);
                }
            }
            _ => fields.push(line),
        }
    }
}

pub(super) fn refusal_of(problem: FieldProblem) -> Refusal {
    match problem {
        FieldProblem::MissingColon => Refusal::MissingColon,
        FieldProblem::EmptyName => Refusal::EmptyHeaderName,
        FieldProblem::SpaceBeforeColon => Refusal::SpaceBeforeColon,
        FieldProblem::InvalidName => Refusal::InvalidHeaderName,
        FieldProblem::BareCarriageReturn => Refusal::BareCarriageReturn,
        FieldProblem::Control => Refusal::ControlInHeader,
    }
}
