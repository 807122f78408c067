//! One type for whichever parser a body needs.

use super::content_type::{self, Processor};
use super::readings::{Memory, WithReadings};
use super::{Ambiguity, BodySink, Doctype, Json, JsonNames, Limits, Multipart, Report, UrlEncoded, Xml};

/// How bodies are parsed, whatever they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The limits.
    pub limits: Limits,
    /// Between the pairs of a form (`SecArgumentSeparator`). Default `&`.
    pub separator: u8,
    /// Names of JSON values. Default as ModSecurity 2.
    pub json_names: JsonNames,
    /// Document type declarations in XML. Default: refused.
    pub doctype: Doctype,
    /// Report second readings, too ([`second_reading`](super::second_reading)). Default: no.
    pub second_readings: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            limits: Limits::default(),
            separator: b'&',
            json_names: JsonNames::default(),
            doctype: Doctype::default(),
            second_readings: false,
        }
    }
}

/// A body parser chosen at run time (`REQBODY_PROCESSOR`).
#[derive(Debug)]
pub struct BodyParser {
    kind: Kind,
    /// The content type names a character set in which the bytes may mean something else.
    foreign_charset: bool,
    /// Where second readings are wanted.
    readings: Option<Memory>,
}

#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // One per request.
enum Kind {
    UrlEncoded(UrlEncoded),
    Multipart(Multipart),
    Json(Json),
    Xml(Xml),
}

impl BodyParser {
    /// The parser for `processor`. `content_type` is the header's value, empty if there is none.
    pub fn new(processor: Processor, content_type: &[u8], options: &Options) -> Self {
        let limits = options.limits.clone();
        let kind = match processor {
            Processor::UrlEncoded => Kind::UrlEncoded(
                UrlEncoded::with_separator(limits, options.separator)
                    .with_second_readings(options.second_readings),
            ),
            Processor::Multipart => Kind::Multipart(Multipart::new(limits, content_type)),
            Processor::Json => Kind::Json(Json::with_names(limits, options.json_names)),
            Processor::Xml => Kind::Xml(Xml::with_doctype(limits, options.doctype)),
        };
        BodyParser {
            kind,
            foreign_charset: content_type::is_foreign(content_type),
            readings: options.second_readings.then(|| Memory::new(content_type)),
        }
    }

    /// Takes the next bytes.
    pub fn feed(&mut self, chunk: &[u8], sink: &mut dyn BodySink) {
        match &mut self.readings {
            Some(memory) => self.kind.feed(chunk, &mut WithReadings { sink, memory }),
            None => self.kind.feed(chunk, sink),
        }
    }

    /// The input is complete.
    pub fn finish(self, sink: &mut dyn BodySink) -> Report {
        let mut report = match self.readings {
            Some(mut memory) => self.kind.finish(&mut WithReadings { sink, memory: &mut memory }),
            None => self.kind.finish(sink),
        };
        if self.foreign_charset && report.bytes > 0 {
            report.ambiguities.insert(Ambiguity::Charset);
        }
        report
    }
}

impl Kind {
    fn feed(&mut self, chunk: &[u8], sink: &mut dyn BodySink) {
        match self {
            Kind::UrlEncoded(parser) => parser.feed(chunk, sink),
            Kind::Multipart(parser) => parser.feed(chunk, sink),
            Kind::Json(parser) => parser.feed(chunk, sink),
            Kind::Xml(parser) => parser.feed(chunk, sink),
        }
    }

    fn finish(self, sink: &mut dyn BodySink) -> Report {
        match self {
            Kind::UrlEncoded(parser) => parser.finish(sink),
            Kind::Multipart(parser) => parser.finish(sink),
            Kind::Json(parser) => parser.finish(sink),
            Kind::Xml(parser) => parser.finish(sink),
        }
    }
}
