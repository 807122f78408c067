//! Arguments from the elements of an XML body (`SecParseXmlIntoArgs`).
//!
//! An element without elements in it makes one: its name is the path of names from the root, without prefixes
//! and behind `xml`, its value the text in it. `<a><p:b>1</p:b></a>` makes `xml.a.b` with the value `1`. Text
//! between elements and attributes make none. So do ModSecurity 2.9.9 and libmodsecurity 3.0.14.

use portcullis_types::Span;

use crate::body::{Arg, BodySink, Limits};

/// The setting of whether XML bodies make arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum XmlArgs {
    /// They do not.
    #[default]
    Off,
    /// They do, and the events of the document are reported, too.
    On,
    /// They do, and the events of the document are not reported.
    OnlyArgs,
}

/// State of making arguments from the leaves of a document.
#[derive(Debug)]
pub(crate) struct Leaves {
    only: bool,
    arguments_max: usize,
    path_bytes_max: usize,
    path: Vec<u8>,
    /// Length of the path outside of each open element.
    outer: Vec<usize>,
    /// The innermost open element has had no element in it, but this text.
    leaf: Option<Vec<u8>>,
    /// Arguments so far.
    pub(crate) arguments: usize,
    /// The limit that stops further arguments, once reached.
    pub(crate) full: Option<Full>,
}

/// The limit that was met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    Arguments(usize),
    Path(usize),
}

impl Leaves {
    /// Bytes of memory that it holds of what it has taken.
    pub(crate) fn held_bytes(&self) -> usize {
        self.path.capacity() + self.leaf.as_ref().map_or(0, Vec::capacity)
    }

    pub(crate) fn new(args: XmlArgs, limits: &Limits) -> Option<Leaves> {
        (args != XmlArgs::Off).then(|| Leaves {
            only: args == XmlArgs::OnlyArgs,
            arguments_max: limits.arguments_max,
            path_bytes_max: limits.path_bytes_max,
            path: b"xml".to_vec(),
            outer: Vec::new(),
            leaf: None,
            arguments: 0,
            full: None,
        })
    }

    fn start(&mut self, name: &[u8]) {
        let local = name.iter().position(|&byte| byte == b':').map_or(name, |colon| &name[colon + 1..]);
        self.outer.push(self.path.len());
        if self.path.len() + 1 + local.len() > self.path_bytes_max {
            self.full.get_or_insert(Full::Path(self.path_bytes_max));
        }
        if self.full.is_none() {
            self.path.push(b'.');
            self.path.extend_from_slice(local);
        }
        self.leaf = Some(Vec::new());
    }

    fn text(&mut self, text: &[u8]) {
        if let Some(value) = &mut self.leaf {
            value.extend_from_slice(text);
        }
    }

    fn end(&mut self, sink: &mut dyn BodySink) {
        if let Some(value) = self.leaf.take()
            && self.full.is_none()
        {
            if self.arguments < self.arguments_max {
                self.arguments += 1;
                sink.arg(Arg { name: &self.path, value: &value, raw_value: Span::default() });
            } else {
                self.full = Some(Full::Arguments(self.arguments_max));
            }
        }
        if let Some(outer) = self.outer.pop() {
            self.path.truncate(outer);
        }
    }
}

/// Hands the events of a document on, and the arguments that it makes.
pub(crate) struct WithLeaves<'s> {
    pub(crate) sink: &'s mut dyn BodySink,
    pub(crate) leaves: &'s mut Leaves,
}

impl WithLeaves<'_> {
    /// The sink of events, if events are wanted.
    fn events(&mut self) -> Option<&mut dyn BodySink> {
        if self.leaves.only { None } else { Some(self.sink) }
    }
}

impl BodySink for WithLeaves<'_> {
    fn arg(&mut self, arg: Arg<'_>) {
        self.sink.arg(arg);
    }

    fn xml_start(&mut self, name: &[u8]) {
        self.leaves.start(name);
        if let Some(sink) = self.events() {
            sink.xml_start(name);
        }
    }

    fn xml_attribute(&mut self, name: &[u8], value: &[u8]) {
        if let Some(sink) = self.events() {
            sink.xml_attribute(name, value);
        }
    }

    fn xml_text(&mut self, text: &[u8]) {
        self.leaves.text(text);
        if let Some(sink) = self.events() {
            sink.xml_text(text);
        }
    }

    fn xml_end(&mut self, name: &[u8]) {
        self.leaves.end(self.sink);
        if let Some(sink) = self.events() {
            sink.xml_end(name);
        }
    }

    fn xml_comment(&mut self, text: &[u8]) {
        if let Some(sink) = self.events() {
            sink.xml_comment(text);
        }
    }

    fn xml_doctype(&mut self, text: &[u8]) {
        if let Some(sink) = self.events() {
            sink.xml_doctype(text);
        }
    }

    fn xml_instruction(&mut self, target: &[u8], data: &[u8]) {
        if let Some(sink) = self.events() {
            sink.xml_instruction(target, data);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::content_type::Processor;
    use crate::body::test_sink::{Event, Recorder};
    use crate::body::{BodyErrorKind, BodyParser, Options, Report, XmlError};

    fn parse(body: &str, options: &Options) -> (Recorder, Report) {
        let whole = parse_in(body, options, body.len());
        let single = parse_in(body, options, 1);
        assert_eq!(whole.0, single.0, "{body}");
        whole
    }

    fn parse_in(body: &str, options: &Options, size: usize) -> (Recorder, Report) {
        let mut sink = Recorder::default();
        let mut parser = BodyParser::new(Processor::Xml, b"text/xml", options);
        body.as_bytes().chunks(size.max(1)).for_each(|chunk| parser.feed(chunk, &mut sink));
        let report = parser.finish(&mut sink);
        (sink, report)
    }

    fn args(body: &str) -> String {
        let (sink, report) = parse(body, &Options { xml_args: XmlArgs::On, ..Options::default() });
        assert_eq!(report.error, None, "{body}");
        assert_eq!(report.arguments, sink.args().len());
        let args = sink.args();
        let list =
            args.iter().map(|(name, value)| format!("{}={}", name.escape_ascii(), value.escape_ascii()));
        list.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn elements_without_elements_are_arguments() {
        assert_eq!(args("<a/>"), "xml.a=");
        assert_eq!(args("<a>x</a>"), "xml.a=x");
        assert_eq!(args("<a><b>1</b><b>2</b><c><d/></c></a>"), "xml.a.b=1 xml.a.b=2 xml.a.c.d=");
        // Text beside elements is no value; comments and instructions do not end one.
        assert_eq!(args("<a>x<b>1<!-- - -->2<?p i?>3</b>y</a>"), "xml.a.b=123");
        assert_eq!(args("<a><b>&lt;<![CDATA[<c>]]>\n</b></a>"), "xml.a.b=<<c>\\n");
        assert_eq!(args("<p:a xmlns:p='u' b='1'><p:b p:c='2'>v</p:b></p:a>"), "xml.a.b=v");
    }

    #[test]
    fn the_document_is_there_too_or_not() {
        let count = |xml_args| {
            let (sink, _) = parse("<a b='1'>x</a>", &Options { xml_args, ..Options::default() });
            let args = sink.events.iter().filter(|event| matches!(event, Event::Arg(..))).count();
            (args, sink.events.len() - args)
        };
        let (none, all) = count(XmlArgs::Off);
        assert_eq!((none, all > 0), (0, true));
        assert_eq!(count(XmlArgs::On), (1, all));
        assert_eq!(count(XmlArgs::OnlyArgs), (1, 0));
    }

    #[test]
    fn limits() {
        let options = |limits| Options { xml_args: XmlArgs::On, limits, ..Options::default() };
        let few = options(Limits { arguments_max: 2, ..Limits::default() });
        let (sink, report) = parse("<a><b/><b/><b/></a>", &few);
        assert_eq!(sink.args().len(), 2);
        assert_eq!(report.error.map(|error| error.kind), Some(BodyErrorKind::ArgumentsLimit(2)));
        let short = options(Limits { path_bytes_max: 6, ..Limits::default() });
        assert_eq!(parse("<ab/>", &short).1.error, None);
        let (sink, report) = parse("<ab><c/></ab>", &short);
        assert_eq!(sink.args().len(), 0);
        assert_eq!(report.error.map(|error| error.kind), Some(BodyErrorKind::Xml(XmlError::PathLength(6))));
        // An error of form is reported before a limit.
        let (_, report) = parse("<a><b/><b/><b/></x>", &few);
        assert!(matches!(report.error.map(|error| error.kind), Some(BodyErrorKind::Xml(_))));
    }
}
