//! The leaves that body parsers find, as values for the detectors.

use portcullis_http::body::content_type::Processor;
use portcullis_http::body::{Arg, BodyParser, BodySink};

use super::body::parser;
use super::joined::{Commented, Texts};
use super::page_scripts::PageScripts;
use super::windows::{Later, Windows};
use crate::detectors::{nosql, protocol};
use crate::odd_name::is_odd_name;
use crate::{Analysis, Detectors, Location, Place};

/// A shorter file may be a field to the application, be its bytes text or not.
const FIELD_BYTES_MAX: usize = 1_024;

/// A long name without a value is a value that nobody named.
const LONG_NAME_BYTES: usize = 12;

/// The value of a JSON key `query` (or `...query`) that is a document of GraphQL.
fn is_document(name: &[u8], value: &[u8]) -> bool {
    name.ends_with(b"query") && memchr::memchr(b'{', value).is_some() && memchr::memchr(b'"', value).is_some()
}

/// The label of a character set in which ASCII is written with other bytes, if `line` names one: EBCDIC and
/// UTF-7. No browser sends them; UTF-16 is seen by its zeros and decoded.
pub(crate) fn hides_ascii(line: &[u8]) -> Option<&[u8]> {
    let at = line.windows(8).position(|part| part.eq_ignore_ascii_case(b"charset="))? + 8;
    let label = line[at..].trim_ascii_start();
    let label = label.strip_prefix(b"\"").unwrap_or(label);
    let end = label
        .iter()
        .position(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_')))
        .unwrap_or(label.len());
    let label = &label[..end];
    let begins = |start: &[u8]| label.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start));
    let is_hidden = [
        &b"utf-7"[..],
        b"utf7",
        b"ibm",
        b"ebcdic",
        b"cp037",
        b"cp500",
        b"cp875",
        b"cp1026",
        b"cp1140",
        b"x-ibm",
        b"unicode-1-1-utf-7",
    ];
    // Code pages of DOS are called so, too, and are supersets of ASCII.
    let is_dos = [
        &b"ibm437"[..],
        b"ibm850",
        b"ibm852",
        b"ibm855",
        b"ibm857",
        b"ibm858",
        b"ibm860",
        b"ibm861",
        b"ibm862",
        b"ibm863",
        b"ibm865",
        b"ibm866",
        b"ibm869",
    ];
    let is_one = |list: &[&[u8]]| list.iter().any(|start| begins(start));
    (is_one(&is_hidden) && !is_one(&is_dos)).then_some(label)
}

/// Gives what a body parser finds to the detectors.
pub(crate) struct Leaves<'a> {
    analysis: &'a mut Analysis,
    detectors: &'a Detectors,
    place: Place,
    open: Open,
}

/// Objects and arrays that are open.
#[derive(Debug, Default)]
pub(crate) struct Open {
    /// Text of the XML element that is open, or content of the file.
    windows: Windows,
    /// A text is collected.
    is_text: bool,
    /// The name of the element or of the file's field.
    name: Vec<u8>,
    spare: Vec<u8>,
    /// The number of the value that the name of the open file is, if something was found in it.
    file_name: usize,
    /// How many values had findings when the last XML element ended.
    closed: usize,
    /// Texts of XML that may be joined.
    texts: Texts,
    /// Scripts in XML.
    scripts: PageScripts,
    /// Values that may be joined.
    commented: Commented,
    /// The open file as JSON.
    json: Values,
}

/// The values of a file that is JSON.
#[derive(Debug, Default)]
struct Values {
    is_wanted: bool,
    parser: Option<Box<BodyParser>>,
}

impl Values {
    fn feed(&mut self, analysis: &mut Analysis, detectors: &Detectors, data: &[u8]) {
        if std::mem::take(&mut self.is_wanted) {
            let begins = data.trim_ascii_start().first();
            self.is_wanted = begins.is_none();
            if matches!(begins, Some(b'{' | b'[')) {
                self.parser = Some(Box::new(parser(Processor::Json, b"application/json")));
            }
        }
        if let Some(parser) = &mut self.parser {
            parser.feed(data, &mut Leaves::new(analysis, detectors, Place::Json));
        }
    }

    fn end(&mut self, analysis: &mut Analysis, detectors: &Detectors) {
        if let Some(parser) = self.parser.take() {
            parser.finish(&mut Leaves::new(analysis, detectors, Place::Json));
        }
    }
}

impl<'a> Leaves<'a> {
    pub fn new(analysis: &'a mut Analysis, detectors: &'a Detectors, place: Place) -> Leaves<'a> {
        Leaves::going_on(analysis, detectors, place, Open::default())
    }

    /// Those of a body of which a part has been looked at.
    pub fn going_on(
        analysis: &'a mut Analysis,
        detectors: &'a Detectors,
        place: Place,
        open: Open,
    ) -> Leaves<'a> {
        Leaves { analysis, detectors, place, open }
    }

    /// What has begun, for [`going_on`](Leaves::going_on).
    pub fn into_open(self) -> Open {
        self.open
    }

    /// How many values have findings, see [`Analysis::values_len`], that stand before the end of some XML
    /// element.
    pub fn closed(&self) -> usize {
        self.open.closed
    }

    /// A name that is more than a word may be a text that its first `=` cut in two.
    fn odd_name(&mut self, name: &[u8], value: &[u8]) {
        self.value(Place::Name, b"", name);
        // `name[KEY]`: PHP and others make a key of what stands in brackets, which some pages paste into
        // statements.
        if let Some(open) = memchr::memchr(b'[', name) {
            let close = memchr::memrchr(b']', name).filter(|close| *close > open).unwrap_or(name.len());
            let key = &name[open + 1..close];
            if !key.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'[' | b']')) {
                self.value(Place::Name, b"", key);
            }
        }
        let is_cut = name.iter().any(|b| matches!(b, b' ' | b'<' | b'>' | b'"' | b'\'' | b'(' | b'|' | b'{'));
        if is_cut && !value.is_empty() && matches!(self.place, Place::Query | Place::Form) {
            let mut whole = std::mem::take(&mut self.open.spare);
            whole.clear();
            for part in [name, b"=", value] {
                whole.extend_from_slice(part);
            }
            self.value(Place::Name, b"", &whole);
            self.open.spare = whole;
        }
    }

    fn value(&mut self, place: Place, name: &[u8], value: &[u8]) {
        self.analysis.look(self.detectors, Location::new(place, name), value);
    }

    /// The strings that stand in a document of GraphQL.
    pub fn literals(&mut self, name: &[u8], document: &[u8]) {
        let mut at = 0;
        while let Some(open) = document.get(at..).and_then(|rest| memchr::memchr(b'"', rest)) {
            let start = at + open + 1;
            let mut end = start;
            while document.get(end).is_some_and(|b| *b != b'"') {
                end += if document[end] == b'\\' { 2 } else { 1 };
            }
            let end = end.min(document.len());
            self.value(self.place, name, &document[start..end]);
            at = end + 1;
        }
    }

    /// Ends what is collected.
    pub fn end(&mut self) {
        self.flush();
        self.open.texts.look_at_open(self.analysis, self.detectors);
        self.open.commented.end(self.analysis, self.detectors, self.place);
    }

    /// Ends the XML text that is collected.
    fn flush(&mut self) {
        if std::mem::take(&mut self.open.is_text) {
            let location = Location::new(Place::XmlText, &self.open.name);
            self.open.windows.end(self.analysis, self.detectors, location);
        }
    }

    fn name(&mut self, name: &[u8]) {
        self.open.name.clear();
        self.open.name.extend_from_slice(name);
    }
}

impl BodySink for Leaves<'_> {
    fn arg(&mut self, arg: Arg<'_>) {
        self.analysis.note_field(self.place, arg.name, arg.value);
        self.value(self.place, arg.name, arg.value);
        // Of a form that is one text the pairs are read as they stand.
        let asks = self.place == Place::MultipartField && nosql::asks_in_form(arg.name);
        if asks || is_odd_name(arg.name) || arg.value.is_empty() && arg.name.len() >= LONG_NAME_BYTES {
            self.odd_name(arg.name, arg.value);
        }
        if matches!(self.place, Place::Json | Place::MultipartField) {
            self.open.commented.add(self.analysis, self.detectors, self.place, arg);
        }
        if self.place == Place::Json && is_document(arg.name, arg.value) {
            self.literals(arg.name, arg.value);
        }
    }

    fn arg_reading(&mut self, name: &[u8], value: &[u8]) {
        self.value(self.place, name, value);
    }

    fn name_reading(&mut self, name: &[u8]) {
        self.value(Place::Name, b"", name);
    }

    fn xml_reading(&mut self, text: &[u8]) {
        self.value(Place::XmlText, b"", text);
    }

    fn part_header(&mut self, part_name: &[u8], line: &[u8]) {
        // Names of fields and files are values of their own.
        let (name, value) = line.split_at(memchr::memchr(b':', line).unwrap_or(line.len()));
        if !name.trim_ascii().eq_ignore_ascii_case(b"content-disposition") {
            self.value(Place::Header, name, value.get(1..).unwrap_or_default().trim_ascii());
        }
        if let Some(charset) = hides_ascii(line) {
            let location = Location::new(Place::PartHeader, part_name);
            self.analysis.note(self.detectors, location, protocol::KINDS, protocol::HIDDEN_CHARSET, charset);
        }
    }

    fn file_begin(&mut self, field_name: &[u8], filename: &[u8]) {
        self.open.file_name = self.analysis.values_len();
        self.value(Place::FileName, field_name, filename);
        if is_odd_name(field_name) {
            self.odd_name(field_name, b"");
        }
        self.name(field_name);
        self.open.windows.begin(Later::Code);
        // Scripts send JSON as a file without an extension, mostly `blob`; applications read it as values.
        self.open.json = Values::default();
        self.open.json.is_wanted = memchr::memchr(b'.', filename).is_none();
    }

    fn file_data(&mut self, data: &[u8]) {
        let location = Location::new(Place::FileContent, &self.open.name);
        self.open.windows.feed(self.analysis, self.detectors, location, data);
        self.open.json.feed(self.analysis, self.detectors, data);
    }

    fn file_end(&mut self, _size: u64) {
        self.open.json.end(self.analysis, self.detectors);
        let location = Location::new(Place::FileContent, &self.open.name);
        let whole = self.open.windows.end(self.analysis, self.detectors, location);
        if let Some(whole) = whole {
            self.analysis.excuse_name(self.open.file_name, whole);
        }
        if let Some(whole) = whole.filter(|whole| whole.len() <= FIELD_BYTES_MAX) {
            self.analysis.texts(self.detectors, location, whole);
        }
    }

    fn xml_start(&mut self, name: &[u8]) {
        self.flush();
        self.open.texts.begin(name);
        self.open.scripts.begin(name);
        self.name(name);
    }

    fn xml_attribute(&mut self, name: &[u8], value: &[u8]) {
        self.open.scripts.attribute(name, value);
        self.value(Place::XmlAttribute, name, value);
    }

    fn xml_text(&mut self, text: &[u8]) {
        if !std::mem::replace(&mut self.open.is_text, true) {
            self.open.windows.begin(Later::Values);
        }
        let location = Location::new(Place::XmlText, &self.open.name);
        self.open.windows.feed(self.analysis, self.detectors, location, text);
        self.open.texts.text(self.analysis, self.detectors, text);
        self.open.scripts.text(text);
    }

    fn xml_end(&mut self, name: &[u8]) {
        self.flush();
        if let Some(script) = self.open.scripts.end() {
            // Without its name, which is that of a field for code.
            self.value(Place::XmlText, b"", &script);
        }
        self.open.texts.end(self.analysis, self.detectors, name);
        // The text that follows is the parent's.
        self.open.name.clear();
        self.open.name.extend_from_slice(self.open.texts.name());
        self.open.closed = self.analysis.values_len();
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
