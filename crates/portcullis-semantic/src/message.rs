//! A request or response, taken apart into values.

use portcullis_http::body::content_type::Processor;
use portcullis_http::body::{Arg, BodyParser, BodySink, Doctype, Limits, Options, parse_query};
use portcullis_http::cookie::{CookieFormat, parse as parse_cookies};

use crate::analysis::{SEGMENT, is_odd_path};
use crate::detectors::protocol;
use crate::limits::{FILE_BYTES_MAX, XML_TEXT_BYTES_MAX};
use crate::{Analysis, Class, Detectors, Location, Place};

impl Analysis {
    /// Looks at the request line and the header fields. `fields` are names and values in order.
    pub fn request_head<'h>(
        &mut self,
        detectors: &Detectors,
        method: &[u8],
        target: &[u8],
        fields: impl Iterator<Item = (&'h [u8], &'h [u8])>,
    ) {
        if method.len() > 16 || !method.iter().all(u8::is_ascii_alphabetic) {
            self.value(detectors, Location::of(Place::Method), method);
        }
        self.target(detectors, target);
        for (name, value) in fields {
            if name.eq_ignore_ascii_case(b"cookie") {
                self.cookies(detectors, value);
            } else {
                self.value(detectors, Location::new(Place::Header, name), value);
            }
            if is_odd_name(name) {
                self.value(detectors, Location::new(Place::HeaderName, b""), name);
            }
        }
    }

    /// Looks at a request target: the path, its segments, the query string and its parameters.
    pub fn target(&mut self, detectors: &Detectors, target: &[u8]) {
        let target = &target[..memchr::memchr(b'#', target).unwrap_or(target.len())];
        let (path, query) = match memchr::memchr(b'?', target) {
            Some(at) => (&target[..at], Some(&target[at + 1..])),
            None => (target, None),
        };
        self.value(detectors, Location::of(Place::Path), path);
        if is_odd_path(path) {
            for segment in path.split(|&b| b == b'/').filter(|segment| is_odd_path(segment)) {
                self.value(detectors, SEGMENT, segment);
            }
        }
        let Some(query) = query else { return };
        self.value(detectors, Location::of(Place::QueryString), query);
        let mut sink = Leaves::new(self, detectors, Place::Query);
        parse_query(query, b'&', &Limits::default(), &mut sink);
    }

    fn cookies(&mut self, detectors: &Detectors, header: &[u8]) {
        let found = parse_cookies(header, CookieFormat::V0, None);
        for cookie in &found.cookies {
            let name = cookie.name.of(header);
            self.value(detectors, Location::new(Place::Cookie, name), cookie.value.of(header));
            if is_odd_name(name) {
                self.value(detectors, Location::of(Place::Name), name);
            }
        }
        if found.nameless > 0 {
            self.value(detectors, Location::of(Place::Cookie), header);
        }
    }

    /// Looks at a whole request body, its transfer and content codings removed.
    pub fn request_body(&mut self, detectors: &Detectors, content_type: &[u8], body: &[u8]) {
        if body.is_empty() {
            return;
        }
        self.value(detectors, Location::of(Place::RawBody), body);
        let named = Processor::by_media_type(content_type);
        let processor = named.or_else(|| sniff(body));
        let Some(processor) = processor else {
            self.value(detectors, Location::of(Place::Text), body);
            return;
        };
        let options = Options { doctype: Doctype::Skip, ..Options::default() };
        let place = match processor {
            Processor::UrlEncoded => Place::Form,
            Processor::Multipart => Place::MultipartField,
            Processor::Json => Place::Json,
            Processor::Xml => Place::XmlText,
        };
        let mut parser = BodyParser::new(processor, content_type, &options);
        let mut sink = Leaves::new(self, detectors, place);
        parser.feed(body, &mut sink);
        let report = parser.finish(&mut sink);
        sink.flush();
        let is_named = named.is_some();
        let is_ambiguous = !report.ambiguities.is_empty();
        if let Some(error) = report.error.as_ref().filter(|_| is_named) {
            let text = error.to_string();
            self.note(
                detectors,
                Location::of(Place::RawBody),
                Class::Protocol,
                protocol::UNREADABLE_BODY,
                text.as_bytes(),
            );
        }
        if is_named && is_ambiguous {
            let text = format!("{:?}", report.ambiguities);
            self.note(
                detectors,
                Location::of(Place::RawBody),
                Class::Protocol,
                protocol::AMBIGUOUS_BODY,
                text.as_bytes(),
            );
        }
        // What a parser could not read to its end may still mean something to another one.
        if report.error.is_some() || is_ambiguous {
            self.value(detectors, Location::of(Place::Text), body);
        }
    }
}

/// A body without a telling type: JSON and XML show themselves; a form does only if it has a pair and no line ends.
fn sniff(body: &[u8]) -> Option<Processor> {
    match Processor::sniff(body) {
        Processor::UrlEncoded => {
            let is_form =
                memchr::memchr(b'=', body).is_some() && memchr::memchr2(b'\n', b' ', body).is_none();
            is_form.then_some(Processor::UrlEncoded)
        }
        other => Some(other),
    }
}

/// A name that is more than a word.
fn is_odd_name(name: &[u8]) -> bool {
    !name
        .iter()
        .all(|&b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'[' | b']' | b':' | b'/'))
}

/// Gives what a body parser finds to the detectors.
struct Leaves<'a> {
    analysis: &'a mut Analysis,
    detectors: &'a Detectors,
    place: Place,
    /// Text of the XML element that is open, or content of the file.
    text: Vec<u8>,
    name: Vec<u8>,
}

impl<'a> Leaves<'a> {
    fn new(analysis: &'a mut Analysis, detectors: &'a Detectors, place: Place) -> Leaves<'a> {
        Leaves { analysis, detectors, place, text: Vec::new(), name: Vec::new() }
    }

    fn value(&mut self, place: Place, name: &[u8], value: &[u8]) {
        self.analysis.value(self.detectors, Location::new(place, name), value);
    }

    /// Ends the XML text that is collected.
    fn flush(&mut self) {
        if !self.text.is_empty() {
            let text = std::mem::take(&mut self.text);
            let name = std::mem::take(&mut self.name);
            self.value(Place::XmlText, &name, &text);
            (self.text, self.name) = (text, name);
            self.text.clear();
        }
    }
}

impl BodySink for Leaves<'_> {
    fn arg(&mut self, arg: Arg<'_>) {
        self.value(self.place, arg.name, arg.value);
        if is_odd_name(arg.name) {
            self.value(Place::Name, b"", arg.name);
        }
    }

    fn part_header(&mut self, part_name: &[u8], line: &[u8]) {
        self.value(Place::PartHeader, part_name, line);
    }

    fn file_begin(&mut self, field_name: &[u8], filename: &[u8]) {
        self.value(Place::FileName, field_name, filename);
        self.name.clear();
        self.name.extend_from_slice(field_name);
        self.text.clear();
    }

    fn file_data(&mut self, data: &[u8]) {
        let room = FILE_BYTES_MAX.saturating_sub(self.text.len());
        self.text.extend_from_slice(&data[..data.len().min(room)]);
    }

    fn file_end(&mut self, _size: u64) {
        let text = std::mem::take(&mut self.text);
        let name = std::mem::take(&mut self.name);
        self.value(Place::FileContent, &name, &text);
        (self.text, self.name) = (text, name);
        self.text.clear();
    }

    fn xml_start(&mut self, name: &[u8]) {
        self.flush();
        self.name.clear();
        self.name.extend_from_slice(name);
    }

    fn xml_attribute(&mut self, name: &[u8], value: &[u8]) {
        self.value(Place::XmlAttribute, name, value);
    }

    fn xml_text(&mut self, text: &[u8]) {
        let room = XML_TEXT_BYTES_MAX.saturating_sub(self.text.len());
        self.text.extend_from_slice(&text[..text.len().min(room)]);
        if text.len() > room {
            self.flush();
        }
    }

    fn xml_end(&mut self, _name: &[u8]) {
        self.flush();
    }

    fn xml_comment(&mut self, text: &[u8]) {
        self.value(Place::XmlText, b"", text);
    }

    fn xml_doctype(&mut self, text: &[u8]) {
        self.value(Place::XmlDoctype, b"", text);
    }

    fn xml_instruction(&mut self, _target: &[u8], data: &[u8]) {
        self.value(Place::XmlText, b"", data);
    }
}
