//! One type for whichever parser a body needs.

use super::content_type::{self, Processor};
use super::readings::{Memory, WithReadings};
use super::transcode::Transcoder;
use super::undeclared::{Collected, Second};
use super::xml::args::{Full, Leaves, WithLeaves, XmlArgs};
use super::{
    Ambiguity, BodyError, BodyErrorKind, BodySink, Doctype, Json, JsonNames, Limits, Multipart, Report,
    UrlEncoded, Xml, XmlError,
};

/// Parser options that apply to every type of body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The limits.
    pub limits: Limits,
    /// Between the pairs of a form (`SecArgumentSeparator`). Default `&`.
    pub separator: u8,
    /// Names of JSON values. Default as ModSecurity 2.
    pub json_names: JsonNames,
    /// Parameters may stand behind the boundary of a multipart body, as in ModSecurity 3. Default: they are
    /// an error.
    pub boundary_parameters: bool,
    /// Document type declarations in XML. Default: refused.
    pub doctype: Doctype,
    /// The setting of whether XML makes arguments. Default: it does not.
    pub xml_args: XmlArgs,
    /// Report second readings, too ([`second_reading`](super::second_reading)). Default: no.
    pub second_readings: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            limits: Limits::default(),
            separator: b'&',
            json_names: JsonNames::default(),
            boundary_parameters: false,
            doctype: Doctype::default(),
            xml_args: XmlArgs::default(),
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
    /// State for second readings, if they are wanted.
    readings: Option<Memory>,
    transcoded: Option<Box<Transcoded>>,
}

#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // One per request.
enum Kind {
    UrlEncoded(UrlEncoded),
    Multipart(Multipart),
    Json(Json),
    Xml(Xml, Option<Leaves>),
}

/// The body in the character set that its type names, as a second reading.
#[derive(Debug)]
struct Transcoded {
    transcoder: Transcoder,
    parser: Kind,
    collected: Collected,
    text: Vec<u8>,
}

impl BodyParser {
    /// The parser for `processor`. `content_type` is the header's value, empty if there is none.
    pub fn new(processor: Processor, content_type: &[u8], options: &Options) -> Self {
        // XML says by itself what it is in, and its parser refuses what it cannot decode.
        let decodes = options.second_readings && processor != Processor::Xml;
        let foreign_charset = content_type::is_foreign(content_type, decodes);
        let transcoded = content_type::transcoded(content_type).filter(|_| decodes && !foreign_charset);
        BodyParser {
            kind: Kind::new(processor, content_type, options),
            foreign_charset,
            readings: options.second_readings.then(|| Memory::new(content_type)),
            transcoded: transcoded.map(|from| {
                Box::new(Transcoded {
                    transcoder: Transcoder::new(from),
                    parser: Kind::new(processor, content_type, options),
                    collected: Collected::default(),
                    text: Vec::new(),
                })
            }),
        }
    }

    /// Takes the next bytes.
    pub fn feed(&mut self, chunk: &[u8], sink: &mut dyn BodySink) {
        match &mut self.readings {
            Some(memory) => self.kind.feed(chunk, &mut WithReadings { sink, memory }),
            None => self.kind.feed(chunk, sink),
        }
        self.feed_transcoded(chunk, sink);
    }

    /// Takes all of a body at once.
    pub fn whole(mut self, body: &[u8], sink: &mut dyn BodySink) -> Report {
        match &mut self.readings {
            Some(memory) => self.kind.feed_last(body, &mut WithReadings { sink, memory }),
            None => self.kind.feed_last(body, sink),
        }
        self.feed_transcoded(body, sink);
        self.finish(sink)
    }

    fn feed_transcoded(&mut self, chunk: &[u8], sink: &mut dyn BodySink) {
        if let Some(second) = &mut self.transcoded {
            let Transcoded { transcoder, parser, collected, text } = &mut **second;
            text.clear();
            transcoder.feed(chunk, text);
            parser.feed(text, &mut Second::new(sink, collected));
        }
    }

    /// Bytes of memory that it holds of what it has taken: unfinished values, for the most part.
    pub fn held_bytes(&self) -> usize {
        let second = self.transcoded.as_ref().map_or(0, |second| {
            second.parser.held_bytes() + second.text.capacity() + second.collected.held_bytes()
        });
        self.kind.held_bytes() + self.readings.as_ref().map_or(0, Memory::held_bytes) + second
    }

    /// The input is complete.
    pub fn finish(self, sink: &mut dyn BodySink) -> Report {
        let mut report = match self.readings {
            Some(mut memory) => self.kind.finish(&mut WithReadings { sink, memory: &mut memory }),
            None => self.kind.finish(sink),
        };
        if let Some(second) = self.transcoded {
            let Transcoded { transcoder, mut parser, mut collected, mut text } = *second;
            text.clear();
            transcoder.finish(&mut text);
            parser.feed(&text, &mut Second::new(sink, &mut collected));
            let decoded = parser.finish(&mut Second::new(sink, &mut collected));
            // Not readable as bytes, but in its character set: then it is what it says.
            if report.error.is_some() && decoded.error.is_none() {
                report = Report { bytes: report.bytes, arguments: report.arguments, ..decoded };
            }
        }
        if self.foreign_charset && report.bytes > 0 {
            report.ambiguities.insert(Ambiguity::Charset);
        }
        report
    }
}

impl Kind {
    fn held_bytes(&self) -> usize {
        match self {
            Kind::UrlEncoded(parser) => parser.held_bytes(),
            Kind::Multipart(parser) => parser.held_bytes(),
            Kind::Json(parser) => parser.held_bytes(),
            Kind::Xml(parser, leaves) => parser.held_bytes() + leaves.as_ref().map_or(0, Leaves::held_bytes),
        }
    }

    fn new(processor: Processor, content_type: &[u8], options: &Options) -> Kind {
        let limits = options.limits.clone();
        match processor {
            Processor::UrlEncoded => Kind::UrlEncoded(
                UrlEncoded::with_separator(limits, options.separator)
                    .with_second_readings(options.second_readings),
            ),
            Processor::Multipart => Kind::Multipart(
                Multipart::with_parameters(limits, content_type, options.boundary_parameters)
                    .with_decoded_parts(options.second_readings),
            ),
            Processor::Json => Kind::Json(Json::with_names(limits, options.json_names)),
            Processor::Xml => {
                let leaves = Leaves::new(options.xml_args, &limits);
                Kind::Xml(Xml::with_doctype(limits, options.doctype), leaves)
            }
        }
    }

    fn feed(&mut self, chunk: &[u8], sink: &mut dyn BodySink) {
        match self {
            Kind::UrlEncoded(parser) => parser.feed(chunk, sink),
            Kind::Multipart(parser) => parser.feed(chunk, sink),
            Kind::Json(parser) => parser.feed(chunk, sink),
            Kind::Xml(parser, None) => parser.feed(chunk, sink),
            Kind::Xml(parser, Some(leaves)) => parser.feed(chunk, &mut WithLeaves { sink, leaves }),
        }
    }

    fn feed_last(&mut self, chunk: &[u8], sink: &mut dyn BodySink) {
        match self {
            Kind::UrlEncoded(parser) => parser.feed_last(chunk, sink),
            Kind::Multipart(_) | Kind::Json(_) | Kind::Xml(..) => self.feed(chunk, sink),
        }
    }

    fn finish(self, sink: &mut dyn BodySink) -> Report {
        match self {
            Kind::UrlEncoded(parser) => parser.finish(sink),
            Kind::Multipart(parser) => parser.finish(sink),
            Kind::Json(parser) => parser.finish(sink),
            Kind::Xml(parser, None) => parser.finish(sink),
            Kind::Xml(parser, Some(mut leaves)) => {
                let mut report = parser.finish(&mut WithLeaves { sink, leaves: &mut leaves });
                report.arguments = leaves.arguments;
                if let (None, Some(full)) = (&report.error, leaves.full) {
                    let kind = match full {
                        Full::Arguments(max) => BodyErrorKind::ArgumentsLimit(max),
                        Full::Path(max) => BodyErrorKind::Xml(XmlError::PathLength(max)),
                    };
                    report.error = Some(BodyError { kind, position: report.bytes });
                }
                report
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::Arg;

    #[derive(Default)]
    struct Seen(Vec<String>);

    impl BodySink for Seen {
        fn arg(&mut self, arg: Arg<'_>) {
            self.0.push(format!("{}={}", arg.name.escape_ascii(), arg.value.escape_ascii()));
        }
        fn arg_reading(&mut self, name: &[u8], value: &[u8]) {
            self.0.push(format!("also {}={}", name.escape_ascii(), value.escape_ascii()));
        }
    }

    /// Checks the second readings of a body, without the values that no one reads: those with a byte that is
    /// no text.
    #[track_caller]
    fn check(content_type: &str, body: &[u8], want: &[&str], ambiguous: bool) {
        let processor = Processor::by_media_type(content_type.as_bytes()).expect("a known type");
        let options = Options { second_readings: true, ..Options::default() };
        for size in [1, body.len().max(1)] {
            let mut seen = Seen::default();
            let mut parser = BodyParser::new(processor, content_type.as_bytes(), &options);
            body.chunks(size).for_each(|chunk| parser.feed(chunk, &mut seen));
            let report = parser.finish(&mut seen);
            let also: Vec<&str> = seen.0.iter().filter_map(|seen| seen.strip_prefix("also ")).collect();
            assert!(want.iter().all(|want| also.contains(want)), "{content_type}: {:?}", seen.0);
            assert_eq!(report.error, None, "{content_type}");
            assert!(!report.multipart.strict_error(), "{content_type}");
            assert_eq!(report.ambiguities.iter().count() > 0, ambiguous, "{content_type}");
        }
    }

    fn utf16(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    #[test]
    fn bodies_in_a_character_set_that_is_not_ascii() {
        check("application/json; charset=utf-16le", &utf16(r#"{"a":"<s>"}"#), &["a=<s>"], false);
        check("application/json; charset=utf-7", br#"{"a":"+ADw-s+AD4-"}"#, &["a=<s>"], false);
        let form = "application/x-www-form-urlencoded";
        check(&format!("{form}; charset=utf-16"), &utf16("a=%3Cs%3E&b=1"), &["a=<s>", "b=1"], false);
        // All of it, or the values alone.
        check(&format!("{form}; charset=ibm037"), b"\x81\x7E\x4C\xA2\x6E", &["a=<s>"], false);
        check(&format!("{form}; charset=ibm037"), b"a=%4C%A2%6E", &["a=<s>"], false);
        // The whole of a multipart body never is: a type with a parameter beside the boundary is refused.
        let part = b"--x\r\nContent-Disposition: form-data; name=\"a\"\r\nContent-Type: text/plain; charset=utf-7\r\n\r\n+ADw-s\r\n--x--\r\n";
        check("multipart/form-data; boundary=x", part, &["a=<s"], false);
        check(&format!("{form}; charset=rot13"), b"a=1", &[], true);
    }

    #[test]
    fn what_is_readable_neither_way_is_an_error() {
        let options = Options { second_readings: true, ..Options::default() };
        let mut parser = BodyParser::new(Processor::Json, b"application/json; charset=utf-16", &options);
        let mut seen = Seen::default();
        parser.feed(b"{\"a\":", &mut seen);
        assert!(parser.finish(&mut seen).error.is_some());
    }
}
