//! A body whose type says nothing, or says form where the bytes say otherwise, read by what it looks like.
//!
//! ```text
//! Content-Type: text/plain                    {"comment": "..."}      as JSON
//! Content-Type: application/x-www-form-...    --x\r\nContent-...      as multipart
//! none                                        a=1&b=2                 as a form
//! ```
//!
//! Applications that do not look at the type, or guess, read such a body. Their values are reported as
//! second readings only: rules for the declared reading see nothing new.

use memchr::memchr;

use super::content_type::{Processor, media_type};
use super::{Arg, BodyParser, BodySink, Options};

/// Bytes after which no more is needed to tell what a body looks like.
const LOOK_BYTES: usize = 256;

/// Reads a body by its looks, beside the parser that its type asks for.
#[derive(Debug)]
pub struct Undeclared {
    declared: Option<Processor>,
    options: Options,
    state: State,
}

#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // One per request.
enum State {
    /// The first bytes, until they tell.
    Looking(Vec<u8>),
    Reading(BodyParser, Collected),
    /// It is what it says, or nothing known.
    Nothing,
}

impl Undeclared {
    /// For a body with this type and the parser chosen for it; `None` where a second look is of no use: the
    /// type is JSON, XML or multipart, and a body that is not that is an error already; or files, media,
    /// archives.
    pub fn new(declared: Option<Processor>, content_type: &[u8], options: &Options) -> Option<Undeclared> {
        let state = State::Looking(Vec::new());
        let new = || Undeclared { declared, options: options.clone(), state };
        Undeclared::applies(declared, content_type).then(new)
    }

    /// True if there is such a second look.
    pub fn applies(declared: Option<Processor>, content_type: &[u8]) -> bool {
        match declared {
            Some(processor) => processor == Processor::UrlEncoded,
            None => may_be_guessed(media_type(content_type)),
        }
    }

    /// True if a body that begins with these bytes is not looked at again: there are enough of them, and it
    /// is what it says, or nothing known.
    pub fn is_settled(declared: Option<Processor>, start: &[u8]) -> bool {
        let is_nothing = || looks_like(start).is_none_or(|(processor, _)| declared == Some(processor));
        start.len() >= LOOK_BYTES && is_nothing()
    }

    /// Takes the next bytes.
    pub fn feed(&mut self, chunk: &[u8], sink: &mut dyn BodySink) {
        match &mut self.state {
            State::Nothing => {}
            State::Reading(parser, collected) => parser.feed(chunk, &mut Second { sink, collected }),
            State::Looking(start) => {
                start.extend_from_slice(chunk);
                if start.len() >= LOOK_BYTES {
                    self.decide(sink);
                }
            }
        }
    }

    /// Bytes of memory that it holds of what it has taken.
    pub fn held_bytes(&self) -> usize {
        match &self.state {
            State::Looking(start) => start.capacity(),
            State::Reading(parser, collected) => parser.held_bytes() + collected.held_bytes(),
            State::Nothing => 0,
        }
    }

    /// The input is complete.
    pub fn finish(mut self, sink: &mut dyn BodySink) {
        if matches!(self.state, State::Looking(_)) {
            self.decide(sink);
        }
        if let State::Reading(parser, mut collected) = self.state {
            // Whatever is wrong with this reading: it is not the one that counts.
            parser.finish(&mut Second { sink, collected: &mut collected });
            if !collected.xml_text.is_empty() {
                sink.xml_reading(&collected.xml_text);
            }
        }
    }

    fn decide(&mut self, sink: &mut dyn BodySink) {
        let State::Looking(start) = std::mem::replace(&mut self.state, State::Nothing) else { return };
        let Some((processor, content_type)) = looks_like(&start) else { return };
        if self.declared == Some(processor) {
            return;
        }
        let mark = if start.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        let mut parser = BodyParser::new(processor, &content_type, &self.options);
        let mut collected = Collected::default();
        parser.feed(&start[mark..], &mut Second { sink, collected: &mut collected });
        self.state = State::Reading(parser, collected);
    }
}

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Types of bodies that applications take for something else: none, text, and names made up after the known
/// ones.
fn may_be_guessed(media_type: &[u8]) -> bool {
    let name = media_type.to_ascii_lowercase();
    let has = |part: &[u8]| memchr::memmem::find(&name, part).is_some();
    memchr(b'/', &name).is_none()
        || name.starts_with(b"text/")
        || name.starts_with(b"*/")
        || name.starts_with(b"multipart/")
        || [b"json".as_slice(), b"xml", b"form", b"report", b"javascript"].iter().any(|part| has(part))
}

/// Guesses the type of a body from its first bytes; returns it with a `Content-Type` that names it.
fn looks_like(start: &[u8]) -> Option<(Processor, Vec<u8>)> {
    let text = start.strip_prefix(BYTE_ORDER_MARK).unwrap_or(start).trim_ascii_start();
    match text {
        [b'{' | b'[', ..] => Some((Processor::Json, Vec::new())),
        [b'<', b'?' | b'!' | b'a'..=b'z' | b'A'..=b'Z' | b'_', ..] => Some((Processor::Xml, Vec::new())),
        [b'-', b'-', line @ ..] => {
            let end = memchr(b'\n', line)?;
            let boundary = line[..end].strip_suffix(b"\r").unwrap_or(&line[..end]);
            let headers = line[end + 1..].get(..8)?;
            let plain = !boundary.is_empty()
                && boundary.len() <= 70
                && boundary.iter().all(|b| b.is_ascii_alphanumeric() || b"'()+_./:=?-".contains(b));
            (plain && headers.eq_ignore_ascii_case(b"content-")).then(|| {
                let content_type = [b"multipart/form-data; boundary=", boundary].concat();
                (Processor::Multipart, content_type)
            })
        }
        _ => {
            let name =
                text.iter().take_while(|b| b.is_ascii_alphanumeric() || b"_.-[]%+".contains(b)).count();
            (name > 0 && text.get(name) == Some(&b'=')).then_some((Processor::UrlEncoded, Vec::new()))
        }
    }
}

/// Turns the events of a parser into second readings.
pub(super) struct Second<'s> {
    sink: &'s mut dyn BodySink,
    collected: &'s mut Collected,
}

impl<'s> Second<'s> {
    pub(super) fn new(sink: &'s mut dyn BodySink, collected: &'s mut Collected) -> Self {
        Second { sink, collected }
    }
}

#[derive(Debug, Default)]
pub(super) struct Collected {
    xml_text: Vec<u8>,
}

impl Collected {
    /// Bytes of memory of it.
    pub(super) fn held_bytes(&self) -> usize {
        self.xml_text.capacity()
    }
}

impl BodySink for Second<'_> {
    fn arg(&mut self, arg: Arg<'_>) {
        self.sink.name_reading(arg.name);
        self.sink.arg_reading(arg.name, arg.value);
    }

    fn arg_reading(&mut self, name: &[u8], value: &[u8]) {
        self.sink.arg_reading(name, value);
    }

    fn name_reading(&mut self, name: &[u8]) {
        self.sink.name_reading(name);
    }

    fn file_begin(&mut self, field_name: &[u8], filename: &[u8]) {
        self.sink.arg_reading(field_name, filename);
    }

    fn xml_attribute(&mut self, _: &[u8], value: &[u8]) {
        self.sink.xml_reading(value);
    }

    fn xml_text(&mut self, text: &[u8]) {
        self.collected.xml_text.extend_from_slice(text);
    }

    fn xml_reading(&mut self, text: &[u8]) {
        self.sink.xml_reading(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Seen(Vec<String>);

    impl BodySink for Seen {
        fn arg(&mut self, arg: Arg<'_>) {
            self.0.push(format!("arg {}", arg.name.escape_ascii()));
        }
        fn arg_reading(&mut self, name: &[u8], value: &[u8]) {
            self.0.push(format!("{}={}", name.escape_ascii(), value.escape_ascii()));
        }
        fn xml_reading(&mut self, text: &[u8]) {
            self.0.push(format!("xml {}", text.escape_ascii()));
        }
    }

    #[track_caller]
    fn check(content_type: &str, body: &[u8], want: &[&str]) {
        let declared = Processor::by_media_type(content_type.as_bytes());
        for size in [1, body.len().max(1)] {
            let mut seen = Seen::default();
            if let Some(mut reader) = Undeclared::new(declared, content_type.as_bytes(), &Options::default())
            {
                body.chunks(size).for_each(|chunk| reader.feed(chunk, &mut seen));
                reader.finish(&mut seen);
            }
            assert_eq!(seen.0, want, "{content_type}: {}", body.escape_ascii());
        }
    }

    #[test]
    fn read_by_their_looks() {
        check("", b"a=1&b=%41", &["a=1", "b=A"]);
        check("text/plain", b" {\"a\":1}", &["a=1"]);
        check("text/plain", b"\xEF\xBB\xBF[1]", &["array.array=1"]);
        check("application/x-www-form-urlencoded", b"{\"a\":\"x\"}", &["a=x"]);
        check("text/x", b"<a b='1'>x<c>y</c></a>", &["xml 1", "xml xy"]);
        let parts = b"--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--x--\r\n";
        check("multipart/form-dat", parts, &["a=1"]);
        check("application/x-www-form-urlencoded", parts, &["a=1"]);
    }

    #[test]
    fn left_alone() {
        check("application/x-www-form-urlencoded", b"a=1", &[]);
        check("application/json", b"a=1", &[]);
        check("application/octet-stream", b"a=1", &[]);
        check("image/png", b"{\"a\":1}", &[]);
        check("text/plain", b"Dear all, 1 = 1", &[]);
        check("text/plain", b"-- \nAnn", &[]);
        check("text/plain", b"", &[]);
    }
}
