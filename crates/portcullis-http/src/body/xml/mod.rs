//! XML 1.0, as a stream of events.
//!
//! ```text
//! bytes ──decode──> UTF-8 text ──tokenize──> start, attribute, text, end, comment, instruction
//! ```
//!
//! Documents that libxml2 would call not well-formed are an error here. Entities are never expanded beyond
//! the five that XML predefines: a document type declaration is refused or, as configured, skipped, and a
//! reference to an entity it may define is an error. Namespaces are not resolved; names are as written.

pub(super) mod args;
mod decode;
mod markup;
#[cfg(test)]
mod tests;

use memchr::{memchr, memchr3, memmem};

use self::decode::Decoder;
use self::markup::{EndSearch, Kind, is_space};
use super::{Ambiguities, Ambiguity, BodyError, BodyErrorKind, BodySink, Limits, Report, XmlError as Error};

/// The policy for `<!DOCTYPE ...>`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Doctype {
    /// [`XmlError::DocumentType`](super::XmlError::DocumentType): the way to external entities is closed.
    #[default]
    Refuse,
    /// Give one that declares nothing itself (`<!DOCTYPE plist PUBLIC "..." "...">`) to
    /// [`xml_doctype`](BodySink::xml_doctype) and note [`Ambiguity::DocumentType`]; what it names is not
    /// read. Refuse others.
    SkipExternal,
    /// The same for all, whatever they declare: nothing is defined.
    Skip,
}

/// Parses an XML body.
#[derive(Debug)]
pub struct Xml {
    decoder: Decoder,
    tokenizer: Tokenizer,
    failed: bool,
    report: Report,
}

impl Xml {
    /// Bytes of memory that it holds of what it has taken.
    pub(super) fn held_bytes(&self) -> usize {
        self.decoder.held_bytes() + self.tokenizer.held_bytes()
    }

    /// A parser that refuses document type declarations.
    pub fn new(limits: Limits) -> Self {
        Xml::with_doctype(limits, Doctype::Refuse)
    }

    /// A parser that treats document type declarations as said.
    pub fn with_doctype(limits: Limits, doctype: Doctype) -> Self {
        Xml {
            decoder: Decoder::new(),
            tokenizer: Tokenizer::new(limits, doctype),
            failed: false,
            report: Report::default(),
        }
    }

    /// Takes the next bytes.
    pub fn feed(&mut self, chunk: &[u8], sink: &mut dyn BodySink) {
        self.report.bytes += chunk.len() as u64;
        self.advance(chunk, false, sink);
    }

    /// The input is complete. An empty body is no error.
    pub fn finish(mut self, sink: &mut dyn BodySink) -> Report {
        if self.report.bytes > 0 {
            self.advance(&[], true, sink);
            if !self.failed && !self.tokenizer.is_complete() {
                self.fail(Error::Truncated);
            }
        }
        self.report.ambiguities = self.tokenizer.ambiguities;
        self.report.no_files_bytes = self.report.bytes;
        self.report
    }

    fn advance(&mut self, chunk: &[u8], at_end: bool, sink: &mut dyn BodySink) {
        if self.failed {
            return;
        }
        let tokenizer = &mut self.tokenizer;
        if let Err(error) = self.decoder.feed(chunk, at_end, &mut |text| tokenizer.feed(text, sink)) {
            self.fail(error);
        }
    }

    fn fail(&mut self, error: Error) {
        self.failed = true;
        let position = self.tokenizer.error_at.unwrap_or(self.tokenizer.offset);
        self.report.error = Some(BodyError { kind: BodyErrorKind::Xml(error), position });
    }
}

/// Takes UTF-8 text, in any pieces that end at character borders.
#[derive(Debug)]
struct Tokenizer {
    limits: Limits,
    doctype: Doctype,
    state: State,
    /// The bytes of the current markup or reference that came with earlier pieces.
    pending: Vec<u8>,
    search: EndSearch,
    /// Offset of the current piece.
    offset: u64,
    /// Offset of the current markup or reference.
    token_at: u64,
    error_at: Option<u64>,
    /// `]` seen right before, 2 meaning two or more; in a CDATA section they are not reported yet.
    brackets: usize,
    /// The last character of text was a CR, reported as LF: a LF right behind it belongs to it.
    after_cr: bool,
    /// The names of the open elements, one after the other, and where each starts.
    names: Vec<u8>,
    open: Vec<usize>,
    seen_root: bool,
    scratch: Vec<u8>,
    ambiguities: Ambiguities,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Text,
    Cdata,
    /// After `&`.
    Reference,
    /// After `<`; the kind once it is known.
    Markup(Option<Kind>),
}

impl Tokenizer {
    /// Bytes of memory that it holds of what it has taken.
    fn held_bytes(&self) -> usize {
        self.pending.capacity()
            + self.names.capacity()
            + self.open.capacity() * size_of::<usize>()
            + self.scratch.capacity()
    }

    fn new(limits: Limits, doctype: Doctype) -> Self {
        Tokenizer {
            limits,
            doctype,
            state: State::Text,
            pending: Vec::new(),
            search: EndSearch::default(),
            offset: 0,
            token_at: 0,
            error_at: None,
            brackets: 0,
            after_cr: false,
            names: Vec::new(),
            open: Vec::new(),
            seen_root: false,
            scratch: Vec::new(),
            ambiguities: Ambiguities::default(),
        }
    }

    fn is_complete(&self) -> bool {
        self.state == State::Text && self.seen_root && self.open.is_empty()
    }

    fn feed(&mut self, text: &[u8], sink: &mut dyn BodySink) -> Result<(), Error> {
        let mut at = 0;
        while at < text.len() {
            at = match self.state {
                State::Text => self.text(text, at, sink)?,
                State::Cdata => self.cdata(text, at, sink)?,
                State::Reference => self.reference(text, at, sink)?,
                State::Markup(kind) => self.markup(kind, text, at, sink)?,
            };
        }
        self.offset += text.len() as u64;
        Ok(())
    }

    /// An error at this place of the current piece.
    fn fail<T>(&mut self, error: Error, at: usize) -> Result<T, Error> {
        self.error_at = Some(self.offset + at as u64);
        Err(error)
    }

    /// Text up to the next `<`, `&` or `]`, and the latter.
    fn text(&mut self, text: &[u8], at: usize, sink: &mut dyn BodySink) -> Result<usize, Error> {
        let end = memchr3(b'<', b'&', b']', &text[at..]).map_or(text.len(), |len| at + len);
        if end > at {
            if self.brackets == 2 && text[at] == b'>' {
                return self.fail(Error::CdataEnd, at);
            }
            self.brackets = 0;
            self.emit(text, at, end, sink)?;
        }
        let Some(byte) = text.get(end) else { return Ok(end) };
        if *byte == b']' {
            self.emit(text, end, end + 1, sink)?;
            self.brackets = (self.brackets + 1).min(2);
            return Ok(end + 1);
        }
        self.brackets = 0;
        self.after_cr = false;
        self.token_at = self.offset + end as u64;
        self.state = if *byte == b'<' { State::Markup(None) } else { State::Reference };
        if *byte == b'&' && self.open.is_empty() {
            return self.fail(Error::OutsideRoot, end);
        }
        Ok(end)
    }

    /// Reports `text[at..end]` with its line ends made LF.
    fn emit(&mut self, text: &[u8], at: usize, end: usize, sink: &mut dyn BodySink) -> Result<(), Error> {
        let mut run = &text[at..end];
        if self.open.is_empty() {
            return match run.iter().position(|&b| !is_space(b)) {
                Some(bad) => self.fail(Error::OutsideRoot, at + bad),
                None => Ok(()),
            };
        }
        if std::mem::take(&mut self.after_cr) {
            run = run.strip_prefix(b"\n").unwrap_or(run);
        }
        while let Some(cr) = memchr(b'\r', run) {
            if cr > 0 {
                sink.xml_text(&run[..cr]);
            }
            sink.xml_text(b"\n");
            self.after_cr = cr + 1 == run.len();
            run = &run[cr + 1..];
            run = run.strip_prefix(b"\n").unwrap_or(run);
        }
        if !run.is_empty() {
            sink.xml_text(run);
        }
        Ok(())
    }

    fn cdata(&mut self, text: &[u8], mut at: usize, sink: &mut dyn BodySink) -> Result<usize, Error> {
        while at < text.len() {
            match (self.brackets, text[at]) {
                (2, b'>') => {
                    self.brackets = 0;
                    self.after_cr = false;
                    self.state = State::Text;
                    return Ok(at + 1);
                }
                (2, b']') => self.emit(b"]", 0, 1, sink)?,
                (_, b']') => self.brackets += 1,
                (brackets, _) => {
                    if brackets > 0 {
                        self.emit(b"]]", 0, brackets, sink)?;
                        self.brackets = 0;
                    }
                    let end = memchr(b']', &text[at..]).map_or(text.len(), |len| at + len);
                    self.emit(text, at, end, sink)?;
                    at = end;
                    continue;
                }
            }
            at += 1;
        }
        Ok(at)
    }

    fn reference(&mut self, text: &[u8], at: usize, sink: &mut dyn BodySink) -> Result<usize, Error> {
        let room = markup::REFERENCE_BYTES_MAX - self.pending.len();
        let window = &text[at..text.len().min(at + room)];
        let end = memchr(b';', window);
        let taken = end.map_or(window.len(), |end| end + 1);
        self.pending.extend_from_slice(&window[..taken]);
        if end.is_some() {
            self.scratch.clear();
            self.error_at = Some(self.token_at);
            markup::push_reference(&self.pending, &mut self.scratch)?;
            self.error_at = None;
            self.pending.clear();
            self.state = State::Text;
            sink.xml_text(&self.scratch);
        } else if self.pending.len() == markup::REFERENCE_BYTES_MAX {
            self.error_at = Some(self.token_at);
            return Err(Error::Reference);
        }
        Ok(at + taken)
    }

    /// Markup that starts at `text[at]` or, if there are pending bytes, continues there.
    fn markup(
        &mut self,
        kind: Option<Kind>,
        text: &[u8],
        at: usize,
        sink: &mut dyn BodySink,
    ) -> Result<usize, Error> {
        let mut pending = std::mem::take(&mut self.pending);
        let before = pending.len();
        let rest = &text[at..];
        let markup = if before == 0 {
            rest
        } else {
            pending.extend_from_slice(rest);
            &pending
        };
        self.error_at = Some(self.token_at);
        let kind = match kind {
            Some(kind) => Some(Ok(kind)),
            None => markup::kind(markup, self.doctype)?,
        };
        let end = match kind {
            Some(Ok(kind)) => {
                self.state = State::Markup(Some(kind));
                let end = self.search.find(kind, markup);
                let max = self.limits.xml_markup_bytes_max;
                if end.unwrap_or(markup.len()) > max {
                    return Err(Error::MarkupLength(max));
                }
                if let Some(end) = end {
                    self.complete(kind, &markup[..end], sink)?;
                    self.state = State::Text;
                    self.search = EndSearch::default();
                }
                end
            }
            Some(Err(())) if self.open.is_empty() => return Err(Error::OutsideRoot),
            Some(Err(())) => {
                self.state = State::Cdata;
                Some(b"<![CDATA[".len())
            }
            None => None,
        };
        self.error_at = None;
        if end.is_some() {
            pending.clear();
        } else if before == 0 {
            pending.extend_from_slice(rest);
        }
        self.pending = pending;
        Ok(end.map_or(text.len(), |end| at + end - before))
    }

    fn complete(&mut self, kind: Kind, markup: &[u8], sink: &mut dyn BodySink) -> Result<(), Error> {
        match kind {
            Kind::Start => self.start(markup, sink),
            Kind::End => {
                let name = markup::end_tag(markup)?;
                let start = self.open.pop().ok_or(Error::MismatchedTag)?;
                if &self.names[start..] != name {
                    return Err(Error::MismatchedTag);
                }
                self.names.truncate(start);
                sink.xml_end(name);
                Ok(())
            }
            Kind::Comment => {
                let inner = &markup[4..markup.len() - 3];
                if memmem::find(inner, b"--").is_some() || inner.ends_with(b"-") {
                    return Err(Error::Markup);
                }
                sink.xml_comment(inner);
                Ok(())
            }
            Kind::Instruction => {
                let (target, data) = markup::instruction(markup)?;
                if !target.eq_ignore_ascii_case(b"xml") {
                    sink.xml_instruction(target, data);
                    return Ok(());
                }
                if target != b"xml" || self.token_at != 0 {
                    return Err(Error::Markup);
                }
                markup::check_declaration(data)
            }
            Kind::Doctype => {
                if self.seen_root || self.ambiguities.contains(Ambiguity::DocumentType) {
                    return Err(Error::Markup);
                }
                if self.doctype == Doctype::SkipExternal && memchr(b'[', markup).is_some() {
                    return Err(Error::DocumentType);
                }
                self.ambiguities.insert(Ambiguity::DocumentType);
                sink.xml_doctype(&markup[b"<!DOCTYPE".len()..markup.len() - 1]);
                Ok(())
            }
        }
    }

    fn start(&mut self, tag: &[u8], sink: &mut dyn BodySink) -> Result<(), Error> {
        if self.open.is_empty() && self.seen_root {
            return Err(Error::OutsideRoot);
        }
        if self.open.len() >= self.limits.xml_depth_max {
            return Err(Error::Depth(self.limits.xml_depth_max));
        }
        self.seen_root = true;
        let (name, empty) = markup::start_tag(tag, &self.limits, &mut self.scratch, sink)?;
        if empty {
            sink.xml_end(name);
        } else {
            self.open.push(self.names.len());
            self.names.extend_from_slice(name);
        }
        Ok(())
    }
}
