//! A sink that writes down what it gets, and the chunking check all parsers share.

use portcullis_types::Span;

use super::{Arg, BodySink, Report};

/// One call of a sink, with adjacent pieces of file data and of text joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Arg(Vec<u8>, Vec<u8>),
    Part(Vec<u8>, Option<Vec<u8>>),
    PartHeader(Vec<u8>, Vec<u8>),
    FileBegin(Vec<u8>, Vec<u8>),
    FileData(Vec<u8>),
    FileEnd(u64),
    XmlStart(Vec<u8>),
    XmlAttribute(Vec<u8>, Vec<u8>),
    XmlText(Vec<u8>),
    XmlEnd(Vec<u8>),
    XmlComment(Vec<u8>),
    XmlDoctype(Vec<u8>),
    XmlInstruction(Vec<u8>, Vec<u8>),
}

/// Writes down every event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Recorder {
    pub(crate) events: Vec<Event>,
    pub(crate) raw_values: Vec<Span>,
}

#[allow(dead_code)]
impl Recorder {
    /// Names and values of the arguments.
    pub(crate) fn args(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let args = self.events.iter().filter_map(|event| match event {
            Event::Arg(name, value) => Some((name.clone(), value.clone())),
            _ => None,
        });
        args.collect()
    }

    /// All text of an XML document: `XML:/*`.
    pub(crate) fn text(&self) -> Vec<u8> {
        let texts = self.events.iter().filter_map(|event| match event {
            Event::XmlText(text) => Some(text.as_slice()),
            _ => None,
        });
        texts.collect::<Vec<_>>().concat()
    }

    /// Everything that was reported, one after the other: to look for a payload in.
    pub(crate) fn everything(&self) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        for event in self.events.iter().cloned() {
            match event {
                Event::Arg(a, b)
                | Event::PartHeader(a, b)
                | Event::FileBegin(a, b)
                | Event::XmlAttribute(a, b)
                | Event::XmlInstruction(a, b) => all.extend([a, b]),
                Event::Part(a, b) => all.extend([a, b.unwrap_or_default()]),
                Event::FileData(a)
                | Event::XmlStart(a)
                | Event::XmlText(a)
                | Event::XmlEnd(a)
                | Event::XmlDoctype(a)
                | Event::XmlComment(a) => all.push(a),
                Event::FileEnd(_) => {}
            }
        }
        all
    }
}

impl BodySink for Recorder {
    fn arg(&mut self, arg: Arg<'_>) {
        self.raw_values.push(arg.raw_value);
        self.events.push(Event::Arg(arg.name.to_vec(), arg.value.to_vec()));
    }
    fn part(&mut self, name: &[u8], filename: Option<&[u8]>) {
        self.events.push(Event::Part(name.to_vec(), filename.map(<[u8]>::to_vec)));
    }
    fn part_header(&mut self, part_name: &[u8], line: &[u8]) {
        self.events.push(Event::PartHeader(part_name.to_vec(), line.to_vec()));
    }
    fn file_begin(&mut self, field_name: &[u8], filename: &[u8]) {
        self.events.push(Event::FileBegin(field_name.to_vec(), filename.to_vec()));
    }
    fn file_data(&mut self, data: &[u8]) {
        assert!(!data.is_empty(), "a piece of file data is never empty");
        match self.events.last_mut() {
            Some(Event::FileData(all)) => all.extend_from_slice(data),
            _ => self.events.push(Event::FileData(data.to_vec())),
        }
    }
    fn file_end(&mut self, size: u64) {
        self.events.push(Event::FileEnd(size));
    }
    fn xml_start(&mut self, name: &[u8]) {
        self.events.push(Event::XmlStart(name.to_vec()));
    }
    fn xml_attribute(&mut self, name: &[u8], value: &[u8]) {
        self.events.push(Event::XmlAttribute(name.to_vec(), value.to_vec()));
    }
    fn xml_text(&mut self, text: &[u8]) {
        assert!(!text.is_empty(), "a piece of text is never empty");
        match self.events.last_mut() {
            Some(Event::XmlText(all)) => all.extend_from_slice(text),
            _ => self.events.push(Event::XmlText(text.to_vec())),
        }
    }
    fn xml_end(&mut self, name: &[u8]) {
        self.events.push(Event::XmlEnd(name.to_vec()));
    }
    fn xml_comment(&mut self, text: &[u8]) {
        self.events.push(Event::XmlComment(text.to_vec()));
    }
    fn xml_doctype(&mut self, text: &[u8]) {
        self.events.push(Event::XmlDoctype(text.to_vec()));
    }
    fn xml_instruction(&mut self, target: &[u8], data: &[u8]) {
        self.events.push(Event::XmlInstruction(target.to_vec(), data.to_vec()));
    }
}

/// Feeds `body` whole, byte by byte, and in chunks of the sizes `cuts` (the rest in one); all must agree.
pub(crate) fn assert_chunking_is_irrelevant<P>(
    body: &[u8],
    cuts: &[usize],
    new: impl Fn() -> P,
    feed: fn(&mut P, &[u8], &mut dyn BodySink),
    finish: fn(P, &mut dyn BodySink) -> Report,
) {
    let run = |sizes: &mut dyn Iterator<Item = usize>| {
        let (mut parser, mut sink, mut rest) = (new(), Recorder::default(), body);
        while !rest.is_empty() {
            let size = sizes.next().unwrap_or(rest.len()).clamp(1, rest.len());
            feed(&mut parser, &rest[..size], &mut sink);
            rest = &rest[size..];
        }
        let report = finish(parser, &mut sink);
        (sink, report)
    };
    let whole = run(&mut std::iter::empty());
    assert_eq!(run(&mut std::iter::repeat(1)), whole, "byte by byte: {}", body.escape_ascii());
    assert_eq!(run(&mut cuts.iter().copied()), whole, "chunks {cuts:?}: {}", body.escape_ascii());
}
