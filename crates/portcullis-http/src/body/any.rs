//! One type for whichever parser a body needs.

use super::content_type::Processor;
use super::{BodySink, Doctype, Json, JsonNames, Limits, Multipart, Report, UrlEncoded, Xml};

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
}

impl Default for Options {
    fn default() -> Self {
        Options {
            limits: Limits::default(),
            separator: b'&',
            json_names: JsonNames::default(),
            doctype: Doctype::default(),
        }
    }
}

/// A body parser chosen at run time (`REQBODY_PROCESSOR`).
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // One per request, never moved but at its ends.
pub enum BodyParser {
    /// `URLENCODED`
    UrlEncoded(UrlEncoded),
    /// `MULTIPART`
    Multipart(Multipart),
    /// `JSON`
    Json(Json),
    /// `XML`
    Xml(Xml),
}

impl BodyParser {
    /// The parser for `processor`. `content_type` is the header's value, empty if there is none.
    pub fn new(processor: Processor, content_type: &[u8], options: &Options) -> Self {
        let limits = options.limits.clone();
        match processor {
            Processor::UrlEncoded => {
                BodyParser::UrlEncoded(UrlEncoded::with_separator(limits, options.separator))
            }
            Processor::Multipart => BodyParser::Multipart(Multipart::new(limits, content_type)),
            Processor::Json => BodyParser::Json(Json::with_names(limits, options.json_names)),
            Processor::Xml => BodyParser::Xml(Xml::with_doctype(limits, options.doctype)),
        }
    }

    /// Takes the next bytes.
    pub fn feed(&mut self, chunk: &[u8], sink: &mut dyn BodySink) {
        match self {
            BodyParser::UrlEncoded(parser) => parser.feed(chunk, sink),
            BodyParser::Multipart(parser) => parser.feed(chunk, sink),
            BodyParser::Json(parser) => parser.feed(chunk, sink),
            BodyParser::Xml(parser) => parser.feed(chunk, sink),
        }
    }

    /// The input is complete.
    pub fn finish(self, sink: &mut dyn BodySink) -> Report {
        match self {
            BodyParser::UrlEncoded(parser) => parser.finish(sink),
            BodyParser::Multipart(parser) => parser.finish(sink),
            BodyParser::Json(parser) => parser.finish(sink),
            BodyParser::Xml(parser) => parser.finish(sink),
        }
    }
}
