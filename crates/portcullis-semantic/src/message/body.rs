//! Request bodies: by their type, by what they are, and as lax readers would take them apart.

use portcullis_http::body::content_type::Processor;
use portcullis_http::body::{
    Arg, BodyErrorKind, BodyParser, BodySink as _, Doctype, JsonError, Limits, Options, Report,
};
use portcullis_types::Span;

use super::leaves::{Leaves, hides_ascii};
use super::protobuf;
use super::windows::{Later, Windows};
use crate::decode;
use crate::detectors::{document, protocol};
use crate::graphql;
use crate::limits::{INFLATED_BYTES_MAX, PARTS_MAX};
use crate::{Analysis, ByteGroups, Detectors, Location, Place};

/// The results of another parser of a form or JSON that followed the default [`Options`], and second
/// readings, too: these arguments, no second reading of one, nothing wrong and nothing ambiguous.
#[allow(missing_debug_implementations)] // It holds any iterator.
pub struct Parsed<'p, 't> {
    /// What took the body apart. What the detectors would take apart as something else, they do themselves.
    pub processor: Processor,
    /// Names and values, in body order.
    pub arguments: &'p mut dyn Iterator<Item = (&'t [u8], &'t [u8])>,
}

impl Analysis {
    /// Looks at a whole request body, its transfer and content codings removed; what still begins as gzip
    /// does is unpacked.
    pub fn request_body(&mut self, detectors: &Detectors, content_type: &[u8], body: &[u8]) {
        self.packed_body(detectors, content_type, body, true, None);
    }

    /// The same for one that is taken apart already.
    pub fn parsed_request_body(
        &mut self,
        detectors: &Detectors,
        content_type: &[u8],
        body: &[u8],
        parsed: Parsed<'_, '_>,
    ) {
        self.packed_body(detectors, content_type, body, true, Some(parsed));
    }

    /// Looks at the beginning of a request body that is too long to be looked at as a whole.
    pub fn request_body_beginning(&mut self, detectors: &Detectors, content_type: &[u8], body: &[u8]) {
        self.packed_body(detectors, content_type, body, false, None);
    }

    fn packed_body(
        &mut self,
        detectors: &Detectors,
        content_type: &[u8],
        body: &[u8],
        is_whole: bool,
        parsed: Option<Parsed<'_, '_>>,
    ) {
        if body.is_empty() {
            return;
        }
        let wire = self.take_wire(body.len());
        if let Some((inflated, is_all)) = decode::inflate(body, INFLATED_BYTES_MAX) {
            self.work.allow_body(inflated.len(), wire);
            let is_typed =
                Processor::by_media_type(content_type).is_some() || protobuf::is_type(content_type);
            if is_typed || inflated.len() <= PACKED_VALUE_BYTES_MAX {
                self.body(detectors, content_type, &inflated, is_whole, None);
            } else {
                self.packed(detectors, content_type, &inflated, is_whole);
            }
            if is_all {
                return;
            }
            self.files += body.len() as u64;
        }
        self.work.allow_body(body.len(), wire);
        self.body(detectors, content_type, body, is_whole, parsed);
    }

    /// Contents that came packed, and nothing says what they are. JSON, XML and forms are values, as programs
    /// send them that pack what they report; anything else is a file. What only begins as JSON or XML is a
    /// file, too, and has the values that a reader takes who does not wait for its end.
    fn packed(&mut self, detectors: &Detectors, content_type: &[u8], contents: &[u8], is_whole: bool) {
        let processor = match sniff(contents) {
            Some(Processor::Xml) if document::is_no_xml(contents) => None,
            Some(processor @ (Processor::Json | Processor::Xml)) => Some(processor),
            Some(_) => return self.body(detectors, content_type, contents, is_whole, None),
            None => None,
        };
        let Some(processor) = processor else { return self.packed_file(detectors, contents) };
        self.look_at_body(detectors, contents);
        let mut sink = Leaves::new(self, detectors, place(processor));
        let mut parser = parser(processor, content_type);
        parser.feed(contents, &mut sink);
        let report = parser.finish(&mut sink);
        let closed = sink.closed();
        if report.error.is_none() {
            sink.end();
        } else if processor == Processor::Xml {
            // Of an element that does not end nobody has the value.
            self.excuse_texts_from(closed, "open-element");
        }
        if report.error.is_some() && !(processor == Processor::Json && self.json_lines(detectors, contents)) {
            self.packed_file(detectors, contents);
        }
    }

    /// A file that is packed: who takes it keeps it as one. Code in it is code all the same.
    fn packed_file(&mut self, detectors: &Detectors, contents: &[u8]) {
        self.work.allow_decoded(contents.len());
        self.windows(detectors, Later::OnlyCode, contents);
        self.files += contents.len() as u64;
    }

    /// Looks at the contents of a file.
    fn windows(&mut self, detectors: &Detectors, later: Later, contents: &[u8]) {
        let (mut windows, location) = (Windows::default(), Location::of(Place::FileContent));
        windows.begin(later);
        windows.feed(self, detectors, location, contents);
        windows.end(self, detectors, location);
    }

    /// Looks at the name by which `contents` are stored, as at that of a file in a form.
    pub(crate) fn stored(&mut self, detectors: &Detectors, contents: &[u8]) {
        if !self.stored_name.is_empty() {
            let (number, name) = (self.values_len(), std::mem::take(&mut self.stored_name));
            self.look(detectors, Location::of(Place::FileName), &name);
            self.excuse_name(number, contents);
        }
    }

    fn body(
        &mut self,
        detectors: &Detectors,
        content_type: &[u8],
        body: &[u8],
        is_whole: bool,
        parsed: Option<Parsed<'_, '_>>,
    ) {
        let named = Processor::by_media_type(content_type);
        // JSON is no file but a request about one, as interfaces of code hosts have them. Whether it is JSON
        // is up to its parser, below.
        let may_be_request =
            named == Some(Processor::Json) && matches!(body.trim_ascii_start().first(), Some(b'{' | b'['));
        if self.stores && !may_be_request && !body.is_empty() {
            self.stored(detectors, body);
        }
        let is_bytes = named.is_none() && decode::is_bytes(body, ByteGroups::of(body));
        // What begins as XML or JSON is read as such by some parser, whatever stands after it.
        if !is_bytes || matches!(body.trim_ascii_start().first(), Some(b'<' | b'{' | b'[')) {
            self.look_at_body(detectors, body);
        }
        if named.is_none() && protobuf::is_type(content_type) {
            let names = self.message_names.clone();
            let read = protobuf::strings(content_type, body, names.as_deref(), &mut |path, text| {
                // It may have been packed, and be longer than the body.
                self.work.allow_decoded(text.len());
                match names.as_ref().and_then(|names| names.name(path)) {
                    Some(name) => {
                        let location = Location::new(Place::Json, name.as_bytes());
                        self.note_field(location.place, location.name, text);
                        self.look(detectors, location, text);
                    }
                    None => self.look(detectors, Location::of(Place::Text), text),
                }
            });
            self.hidden += read.hidden;
            // Who reads a text does not mind the type.
            if !protobuf::may_be_text(body) {
                if !read.is_sound {
                    self.untyped(detectors, body);
                }
                return;
            }
        }
        if named.is_none() && !is_bytes && self.frames(detectors, body) {
            return;
        }
        // `<?xml` in EBCDIC says that the rest is.
        let hidden = hides_ascii(content_type)
            .or_else(|| body.starts_with(b"\x4C\x6F\xA7\x94\x93").then_some(b"ebcdic"));
        if let Some(charset) = hidden {
            self.note(
                detectors,
                Location::of(Place::RawBody),
                protocol::KINDS,
                protocol::HIDDEN_CHARSET,
                charset,
            );
        }
        if graphql::is_type(content_type) && graphql::texts(body).is_some() {
            return self.look(detectors, Location::new(Place::Text, b"query"), body);
        }
        let processor = named.or_else(|| sniff(body).filter(|by| !is_bytes || *by != Processor::UrlEncoded));
        // WebDAV and S3 store what PUT sends: it is read as an uploaded file.
        let is_stored = self.stores && named.is_none() && document::has_form_of_file(body);
        // Who stores a page reads no XML in it.
        let processor = processor.filter(|_| !(is_stored && document::is_no_xml(body)));
        let is_bundle = content_type.starts_with(b"application/mercurial-") && decode::is_bundle(body);
        let Some(processor) = processor.filter(|_| !is_bundle) else {
            match is_stored || is_bundle {
                true => self.windows(detectors, Later::Code, body),
                false => self.untyped(detectors, body),
            }
            return;
        };
        let report = self.by(detectors, processor, content_type, body, parsed.filter(|_| named.is_some()));
        let is_ambiguous = !report.ambiguities.is_empty();
        let is_lines =
            processor == Processor::Json && report.error.is_some() && self.json_lines(detectors, body);
        if self.stores && may_be_request && !is_lines && !is_json_so_far(&report, is_whole) {
            self.stored(detectors, body);
        }
        // A body that was cut off breaks the rules of its type by that alone.
        if let Some(error) = report.error.as_ref().filter(|_| named.is_some() && !is_lines && is_whole) {
            let text = error.to_string();
            let at = Location::of(Place::RawBody);
            self.note(detectors, at, protocol::KINDS, protocol::UNREADABLE_BODY, text.as_bytes());
            // Who takes it all the same takes it for what it is, or as far as it is right.
            if let Some(other) = sniff(body).filter(|other| *other != processor) {
                self.by(detectors, other, b"", body, None);
            }
        }
        if named.is_some() && is_ambiguous {
            let text = format!("{:?}", report.ambiguities);
            let at = Location::of(Place::RawBody);
            self.note(detectors, at, protocol::KINDS, protocol::AMBIGUOUS_BODY, text.as_bytes());
        }
        // What a parser could not read to its end may still mean something to another one. What only looks
        // like a type may be a text, but for JSON from end to end, as beacons send it; so may a form with
        // signs that no browser sends in one.
        let is_json = processor == Processor::Json && (report.error.is_none() || is_lines);
        let is_text = named.is_none() && !is_json
            || processor == Processor::UrlEncoded
                && memchr::memchr2(b'<', b'\'', body).is_some()
                && !is_encoded_form(body);
        let has_files = processor == Processor::Multipart && memchr::memchr(0, body).is_some();
        if is_stored && processor != Processor::Multipart {
            self.windows(detectors, Later::Code, body);
        } else if is_ambiguous && has_files && report.error.is_none() {
            // Bytes that are no text say nothing as one.
            self.parts(detectors, body);
        } else if report.error.is_some() && !is_lines || is_ambiguous || is_text {
            self.untyped(detectors, body);
        } else if processor != Processor::Multipart {
            self.parts(detectors, body);
        }
    }

    /// Takes a body apart by `processor`, or takes the parts from another parser.
    fn by(
        &mut self,
        detectors: &Detectors,
        processor: Processor,
        content_type: &[u8],
        body: &[u8],
        parsed: Option<Parsed<'_, '_>>,
    ) -> Report {
        let mut sink = Leaves::new(self, detectors, place(processor));
        let report = match parsed.filter(|parsed| processor == parsed.processor) {
            Some(parsed) => {
                for (name, value) in parsed.arguments {
                    sink.arg(Arg { name, value, raw_value: Span::default() });
                }
                Report::default()
            }
            None => {
                let mut parser = parser(processor, content_type);
                parser.feed(body, &mut sink);
                parser.finish(&mut sink)
            }
        };
        sink.end();
        match processor {
            Processor::UrlEncoded => self.joined(detectors, Place::Form, body),
            Processor::Json => {
                decode::keys_of_nothing(body, &mut |key| {
                    self.look(detectors, Location::of(Place::Name), key)
                });
            }
            Processor::Multipart | Processor::Xml => {}
        }
        report
    }

    /// A body that is not taken apart by a parser, or not only.
    fn untyped(&mut self, detectors: &Detectors, body: &[u8]) {
        if decode::is_bytes(body, ByteGroups::of(body)) {
            self.windows(detectors, Later::Code, body);
            match decode::is_file(body) {
                true => self.files += body.len() as u64,
                false => self.texts(detectors, Location::of(Place::Text), body),
            }
        } else {
            self.look(detectors, Location::of(Place::Text), body);
        }
        self.parts(detectors, body);
    }

    /// Looks at the texts that stand in `bytes`, if these are none.
    pub(crate) fn texts(&mut self, detectors: &Detectors, location: Location<'_>, bytes: &[u8]) {
        if decode::is_bytes(bytes, ByteGroups::of(bytes)) {
            let location = Location { place: Place::Text, ..location };
            decode::texts(bytes, &mut |text| self.look(detectors, location, text));
        }
    }

    /// JSON values, one a line (NDJSON, JSON Lines). True if every line is one.
    fn json_lines(&mut self, detectors: &Detectors, body: &[u8]) -> bool {
        if memchr::memchr(b'\n', body.trim_ascii()).is_none() {
            return false;
        }
        let mut is_whole = true;
        let lines = body.split(|&b| b == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
        for line in lines {
            let mut parser = parser(Processor::Json, b"application/json");
            let mut sink = Leaves::new(self, detectors, Place::Json);
            parser.feed(line, &mut sink);
            is_whole &= parser.finish(&mut sink).error.is_none();
            sink.end();
        }
        is_whole
    }

    /// Frames of a socket that a page polls for: JSON behind a number, or in front of the byte that ends
    /// records, `42["message",{"text":"a"}]`, `{"type":6}\x1E`. True if the body is nothing else.
    fn frames(&mut self, detectors: &Detectors, body: &[u8]) -> bool {
        const RECORD_END: u8 = 0x1E;
        let is_digit = |b: &u8| b.is_ascii_digit();
        if !body.first().is_some_and(is_digit) && memchr::memchr(RECORD_END, body).is_none() {
            return false;
        }
        let mut is_any = false;
        for record in body.split(|&b| b == RECORD_END) {
            let json = &record[record.iter().take_while(|b| is_digit(b)).count()..];
            if json.is_empty() {
                continue;
            }
            if !matches!(json[0], b'[' | b'{') {
                return false;
            }
            let mut parser = parser(Processor::Json, b"application/json");
            let mut sink = Leaves::new(self, detectors, Place::Json);
            parser.feed(json, &mut sink);
            let report = parser.finish(&mut sink);
            sink.end();
            if report.error.is_some() {
                return false;
            }
            is_any = true;
        }
        is_any
    }

    /// The parts of what only looks like multipart: no type says so, or its boundary is another one for a lax
    /// reader. Lines that begin with two hyphens part it; a part's content follows its first empty line.
    fn parts(&mut self, detectors: &Detectors, body: &[u8]) {
        let is_one = memchr::memmem::find(body, b"--").is_some()
            && memchr::memmem::find(body, b"isposition")
                .or(memchr::memmem::find(body, b"ISPOSITION"))
                .is_some();
        if !is_one {
            return;
        }
        let line_end = |b: u8| matches!(b, b'\r' | b'\n');
        let mut start = 0;
        let mut count = 0;
        for at in memchr::memmem::find_iter(body, b"--") {
            let is_line = at == 0 || line_end(body[at - 1]);
            if !is_line || at < start {
                continue;
            }
            self.part(detectors, &body[start..at]);
            start = at + body[at..].iter().position(|&b| line_end(b)).unwrap_or(body.len() - at);
            count += 1;
            if count == PARTS_MAX {
                break;
            }
        }
        self.part(detectors, &body[start..]);
    }

    fn part(&mut self, detectors: &Detectors, part: &[u8]) {
        let part = part
            .strip_prefix(b"\r\n")
            .or(part.strip_prefix(b"\n"))
            .or(part.strip_prefix(b"\r"))
            .unwrap_or(part);
        const GAPS: [&[u8]; 3] = [b"\r\n\r\n", b"\n\n", b"\r\r"];
        let ends = GAPS.iter().filter_map(|gap| memchr::memmem::find(part, gap).map(|at| at + gap.len()));
        let Some(from) = ends.min() else { return };
        let content = part[from..].trim_ascii_end();
        // A field is text.
        let place = match memchr::memchr(0, content) {
            Some(_) => Place::FileContent,
            None => Place::MultipartField,
        };
        if !content.is_empty() {
            self.look(detectors, Location::of(place), content);
        }
    }
}

/// What unpacks to more, and is no form, JSON or XML, is a file.
const PACKED_VALUE_BYTES_MAX: usize = 1_024;

fn place(processor: Processor) -> Place {
    match processor {
        Processor::UrlEncoded => Place::Form,
        Processor::Multipart => Place::MultipartField,
        Processor::Json => Place::Json,
        Processor::Xml => Place::XmlText,
    }
}

/// A parser of what `processor` takes apart. The body's length bounds how many values there are, and each
/// costs work.
pub(crate) fn parser(processor: Processor, content_type: &[u8]) -> BodyParser {
    parser_within(processor, content_type, u64::MAX)
}

/// The same, with a limit for what is not files in a form.
pub(crate) fn parser_within(
    processor: Processor,
    content_type: &[u8],
    no_files_bytes_max: u64,
) -> BodyParser {
    let limits = Limits {
        arguments_max: usize::MAX,
        multipart_parts_max: usize::MAX,
        multipart_files_max: usize::MAX,
        no_files_bytes_max,
        ..Limits::default()
    };
    let options = Options { limits, doctype: Doctype::Skip, second_readings: true, ..Options::default() };
    BodyParser::new(processor, content_type, &options)
}

/// Pairs as scripts of pages write them: a name, one `=`, and a value in which `encodeURIComponent` left
/// nothing but its own signs, among them the apostrophe. Each value is what it says, and the whole is no
/// text.
fn is_encoded_form(body: &[u8]) -> bool {
    let is_name = |b: &u8| b.is_ascii_alphanumeric() || b"_-.[]%$".contains(b);
    let is_value = |b: &u8| b.is_ascii_alphanumeric() || b"-_.!~*'()%+".contains(b);
    body.split(|b| *b == b'&').all(|pair| {
        let Some(at) = memchr::memchr(b'=', pair) else { return false };
        at > 0 && pair[..at].iter().all(is_name) && pair[at + 1..].iter().all(is_value)
    })
}

/// Whether a parser of JSON took everything for JSON that there is of a body.
fn is_json_so_far(report: &Report, is_whole: bool) -> bool {
    match report.error.as_ref().map(|error| &error.kind) {
        None => true,
        Some(kind) => !is_whole && *kind == BodyErrorKind::Json(JsonError::Truncated),
    }
}

/// A body without a telling type: JSON and XML show themselves; a form does only if it has a pair and no line
/// ends.
fn sniff(body: &[u8]) -> Option<Processor> {
    match Processor::sniff(body) {
        Processor::UrlEncoded => {
            let is_form =
                memchr::memchr(b'=', body).is_some() && memchr::memchr2(b'\n', b' ', body).is_none();
            is_form.then_some(Processor::UrlEncoded)
        }
        other @ (Processor::Multipart | Processor::Json | Processor::Xml) => Some(other),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::sync::LazyLock;

    use super::*;
    use crate::Level;

    static DETECTORS: LazyLock<Detectors> = LazyLock::new(Detectors::new);
    const ATTACK: &str = "../../../../etc/passwd";

    /// The class that blocks this body at `balanced`, or nothing.
    fn verdict(content_type: &str, body: &[u8]) -> &'static str {
        let mut analysis = Analysis::new();
        analysis.request_body(&DETECTORS, content_type.as_bytes(), body);
        let worst = analysis.worst(&DETECTORS, Level::Balanced);
        worst.filter(|worst| worst.blocks(Level::Balanced)).map_or("", |worst| worst.class.name())
    }

    #[test]
    fn lines_of_json() {
        let lines = format!("{{\"a\":1}}\n{{\"b\":\"{ATTACK}\"}}\n");
        assert_eq!(verdict("application/x-ndjson", lines.as_bytes()), "path");
        assert_eq!(verdict("application/json", lines.as_bytes()), "path");
        assert_eq!(verdict("application/json", b"{\"a\":1}\n{\"b\":2}\n"), "");
        // Beacons are sent so: each string is a value, and what stands between two of them is nobody's text.
        assert_eq!(verdict("text/plain", lines.as_bytes()), "path");
        let mut analysis = Analysis::new();
        analysis.request_body(&DETECTORS, b"text/plain", lines.as_bytes());
        assert!(analysis.values().iter().all(|value| value.place != Place::Text));
    }

    #[test]
    fn forms_of_scripts() {
        let form = "application/x-www-form-urlencoded";
        let texts = |body: &[u8]| {
            let mut analysis = Analysis::new();
            analysis.request_body(&DETECTORS, form.as_bytes(), body);
            analysis.values().iter().filter(|value| value.place == Place::Text).count()
        };
        assert_eq!(texts(b"name=O'Brien&note=it's%20(5)!&a%5B0%5D=*"), 0);
        assert_eq!(verdict(form, b"name=O'Brien&id=1'%20or%20'1'%3D'1"), "sqli");
        for body in [
            &b"id=1' or 1=1"[..],
            b"id=1'or'1'='1",
            b"id=1'&&'1'='1",
            b"'1'='1&b=1",
            b"name=<script>alert(1)</script>",
        ] {
            assert!(texts(body) > 0, "{}", body.escape_ascii());
        }
    }

    #[test]
    fn parts_without_a_type() {
        let body = format!("--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n{ATTACK}\r\n--x--\r\n");
        for content_type in
            ["text/plain", "", "multipart/mixed; boundary=y", "multipart/form-data; boundary=other"]
        {
            assert_eq!(verdict(content_type, body.as_bytes()), "path", "{content_type}");
        }
        assert_eq!(verdict("text/plain", body.replace(ATTACK, "hello").as_bytes()), "");
    }

    #[test]
    fn files_with_odd_names() {
        // A backslash in a name has two readings; the file's bytes have none as a text.
        let head = "--x\r\nContent-Disposition: form-data; name=\"f\"; filename=\"C:\\it's.png\"\r\n\r\n";
        let file = b"\x89PNG\0\0\xE0\xA8 ' or 1=1 -- \xD2\0";
        let value = |text: &str| {
            format!("\r\n--x\r\nContent-Disposition: form-data; name=\"v\"\r\n\r\n{text}\r\n--x--\r\n")
        };
        let body = |text: &str| [head.as_bytes(), &file.repeat(8), value(text).as_bytes()].concat();
        assert_eq!(verdict("multipart/form-data; boundary=x", &body("hello")), "");
        assert_eq!(verdict("multipart/form-data; boundary=x", &body(ATTACK)), "path");
    }

    #[test]
    fn no_text() {
        // What stands between two strings of a binary protocol is no statement; each of them is a value.
        // Those of a program are not.
        let noise = b"\x02\x07call\0\x02\xF1 ' \xC3\x90 or \0\x88 1=1 \xFF\0 --".repeat(60);
        assert_eq!(verdict("application/octet-stream", &noise), "");
        let with = |text: &str| [&noise[..], b"\0", text.as_bytes(), b"\0", &noise].concat();
        assert_eq!(verdict("application/octet-stream", &with(ATTACK)), "path");
        assert_eq!(verdict("application/octet-stream", &with("usage: a [-b]")), "");
        let program =
            [b"\x7FELF\x02\x01\x01\0\0\0\0\0\0\0\0\0", &with("/usr/lib/python3/dist-packages")[..]].concat();
        assert_eq!(verdict("application/octet-stream", &program), "");
    }

    #[test]
    fn packed() {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(format!("a={ATTACK}").as_bytes()).unwrap();
        let body = packer.finish().unwrap();
        assert_eq!(verdict("application/x-www-form-urlencoded", &body), "path");
        // What follows the packed text is not lost.
        let tail = [&body[..], format!("&b={ATTACK}").as_bytes()].concat();
        assert_eq!(verdict("application/x-www-form-urlencoded", &tail), "path");
        // What is no gzip after all is looked at as it is.
        assert_eq!(verdict("application/x-www-form-urlencoded", b"\x1F\x8B\xFF\xFF"), "");
    }

    #[test]
    fn packed_values() {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(ATTACK.as_bytes()).unwrap();
        let packed = packer.finish().unwrap();
        const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        let mut text = String::from("a=");
        for chunk in packed.chunks(3) {
            let number =
                chunk.iter().fold(0u32, |number, b| number << 8 | u32::from(*b)) << (8 * (3 - chunk.len()));
            for index in 0..=chunk.len() {
                text.push(char::from(ALPHABET[(number >> (18 - 6 * index) & 63) as usize]));
            }
        }
        assert_eq!(verdict("application/x-www-form-urlencoded", text.as_bytes()), "path");
    }

    #[test]
    fn character_sets() {
        assert_eq!(verdict("application/json; charset=ibm037", b"\xC0\x7F"), "protocol");
        assert_eq!(verdict("text/xml", b"\x4C\x6F\xA7\x94\x93\x40"), "protocol");
        assert_eq!(verdict("application/x-www-form-urlencoded; charset=UTF-7", b"a=b"), "protocol");
        for label in ["utf-8", "iso-8859-15", "gb2312", "ibm850", "shift_jis", "windows-1251"] {
            assert_eq!(
                verdict(&format!("application/x-www-form-urlencoded; charset={label}"), b"a=b"),
                "",
                "{label}"
            );
        }
    }

    /// Names of fields are no commands, whatever they are; the texts of a document count as anywhere.
    #[test]
    fn documents_of_graphql() {
        let document = "query Q($id: ID!) {\n  id\n  me {\n    host\n    env\n    whoami\n  }\n}";
        let json = |document: &str| {
            let escaped = document.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            format!("{{\"operationName\":\"Q\",\"query\":\"{escaped}\"}}")
        };
        let form = |document: &str| {
            let encoded =
                document.replace('%', "%25").replace('&', "%26").replace('+', "%2B").replace(' ', "+");
            format!("operationName=Q&query={}", encoded.replace('\n', "%0A").replace('#', "%23"))
        };
        let types = ["application/json", "application/graphql", "application/x-www-form-urlencoded"];
        let bodies = |document: &str| [json(document), document.to_owned(), form(document)];
        for (content_type, body) in types.into_iter().zip(bodies(document)) {
            assert_eq!(verdict(content_type, body.as_bytes()), "", "{body}");
        }
        // Texts of a document, and what is none.
        for live in [
            &document.replace("env\n", &format!("env(a: \"{ATTACK}\")\n")),
            &document.replace("env\n", &format!("env # {ATTACK}\n")),
            &document.replace("env\n", "env; cat /etc/passwd\n"),
        ] {
            for (content_type, body) in types.into_iter().zip(bodies(live)) {
                assert_ne!(verdict(content_type, body.as_bytes()), "", "{body}");
            }
        }
        // Other fields take no documents.
        let other = form(document).replace("query=", "host=");
        assert_ne!(verdict(types[2], other.as_bytes()), "");
    }

    #[test]
    fn other_shapes() {
        let message = [&[0x0A, ATTACK.len() as u8][..], ATTACK.as_bytes()].concat();
        assert_eq!(verdict("application/x-protobuf", &message), "path");
        assert_eq!(
            verdict("application/grpc", b"\x00\x00\x00\x00\x1C\x0A\x1A1' union select 1,2,3-- -"),
            "sqli"
        );
        assert_eq!(verdict("application/grpc", b"a=1%27+union+select+1,2,3--+-"), "sqli", "not what it says");
        let document = format!("{{\"query\":\"query {{ file(name: \\\"{ATTACK}\\\") {{ id }} }}\"}}");
        assert_eq!(verdict("application/json", document.as_bytes()), "path");
        assert_eq!(verdict("application/x-www-form-urlencoded", b"..%2F..%2F..%2Fetc%2Fpasswd=1"), "path");
    }
}
