//! Second readings: the text that some application would make of a value, where it is another text than the
//! bytes say.
//!
//! Rules see the value as ModSecurity 2 sees it. Where a known kind of application reads on, its reading is
//! reported beside that, as [`BodySink::arg_reading`], and rules see both:
//!
//! | in the value | who reads it otherwise |
//! |---|---|
//! | a declared multi-byte character set (Shift_JIS, GBK, Big5, EUC, ISO-2022-JP), UTF-7, UTF-16, UTF-32, EBCDIC | applications that honour it |
//! | UTF-8 in more bytes than needed (`C0 BC` for `<`) | decoders that do not check, old Java and PHP among them |
//! | full-width `＜ ＞ ＇ ＂` | best-fit conversion to a one-byte character set |
//! | `%` without two hex digits, in a form or query (see [`UrlEncoded`](super::UrlEncoded)) | classic ASP, which drops the sign |
//! | a percent sign that is still encoded after decoding (`%253C`, sent as `%25253C`) | a chain that decodes again |
//!
//! There is one such reading at most, with all of these undone, never longer than three times the value; a
//! dropped percent sign makes another. Ordinary text has none: it costs one scan for `%` and bytes above
//! 0x7F.

use encoding_rs::Encoding;
use memchr::{memchr, memmem};

use super::charset::Charset;
use super::{Arg, BodySink, content_type, transcode};

/// A declared character set in which a value may be another text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Declared {
    /// Several bytes to a character.
    MultiByte(&'static Encoding),
    /// Not even ASCII is itself.
    Transcoded(transcode::Foreign),
}

/// The argument that says how all are to be read.
const CHARSET: &[u8] = b"_charset_";

/// The second reading of `value`, sent in `charset`; `None` if it reads the same.
pub fn second_reading(value: &[u8], charset: Option<Declared>) -> Option<Vec<u8>> {
    if !may_read_otherwise(value) && !matches!(charset, Some(Declared::Transcoded(_))) {
        return None;
    }
    let (charset, transcoded) = match charset {
        Some(Declared::Transcoded(foreign)) => (None, Some(foreign.decode(value))),
        Some(Declared::MultiByte(encoding)) => (Some(encoding), None),
        None => (None, None),
    };
    if let Some(text) = transcoded {
        let text = undone(&text, None).unwrap_or(text);
        return (text != value).then_some(text);
    }
    undone(value, charset)
}

/// True if no value of a query string has a second reading.
pub(super) fn is_read_alike(query: &[u8]) -> bool {
    !may_read_otherwise(query) && memchr(b'_', query).is_none_or(|_| memmem::find(query, CHARSET).is_none())
}

fn undone(value: &[u8], charset: Option<&'static Encoding>) -> Option<Vec<u8>> {
    let has_percent = memchr(b'%', value).is_some();
    let has_high = !value.is_ascii();
    let has_escape = charset.is_some() && memchr(0x1B, value).is_some();
    if !has_percent && !has_high && !has_escape {
        return None;
    }
    let mut text = match charset.filter(|_| has_high || has_escape) {
        Some(encoding) => encoding.decode_without_bom_handling(value).0.into_owned().into_bytes(),
        None => value.to_vec(),
    };
    if has_high {
        text = narrowed(&text);
    }
    if memchr(b'%', &text).is_some() {
        text = percent_signs_decoded(&text);
    }
    (text != value).then_some(text)
}

/// A percent sign, a byte above 0x7F or an escape is in it. Each name and value is asked, and most are short.
#[inline]
fn may_read_otherwise(value: &[u8]) -> bool {
    const SHORT: usize = 64;
    const ONES: u64 = u64::MAX / 255;
    if value.len() > SHORT {
        return !value.is_ascii() || memchr::memchr2(b'%', 0x1B, value).is_some();
    }
    // The high bit of a byte is set if the byte is zero, and perhaps of those above it.
    let zero = |word: u64| word.wrapping_sub(ONES) & !word;
    let marks = |word: u64| word | zero(word ^ (ONES * b'%' as u64)) | zero(word ^ (ONES * 0x1B));
    let marks = if let Some(last) = value.last_chunk::<8>() {
        let (blocks, _) = value.as_chunks::<8>();
        let blocks = blocks.iter().chain([last]).map(|block| u64::from_le_bytes(*block));
        blocks.fold(0, |all, block| all | marks(block))
    } else if let (Some(first), Some(last)) = (value.first_chunk::<4>(), value.last_chunk::<4>()) {
        marks(u64::from(u32::from_le_bytes(*first)) << 32 | u64::from(u32::from_le_bytes(*last)))
    } else {
        return value.iter().any(|b| matches!(b, b'%' | 0x1B | 0x80..));
    };
    marks & (ONES << 7) != 0
}

/// Overlong UTF-8 made ASCII; full-width forms, too, where quotes or angle brackets are among them.
fn narrowed(text: &[u8]) -> Vec<u8> {
    let wide = |at: usize| match text[at..] {
        [0xEF, 0xBC, low @ 0x81..=0xBF, ..] => Some(low - 0x60),
        [0xEF, 0xBD, low @ 0x80..=0x9E, ..] => Some(low - 0x20),
        _ => None,
    };
    let fold = (0..text.len()).any(|at| wide(at).is_some_and(|c| matches!(c, b'<' | b'>' | b'\'' | b'"')));
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let narrow = overlong(&text[at..]).or_else(|| wide(at).filter(|_| fold).map(|c| (c, 3)));
        let (byte, length) = narrow.unwrap_or((text[at], 1));
        out.push(byte);
        at += length;
    }
    out
}

/// An ASCII character in two to six bytes at the start of `bytes`, and its length.
fn overlong(bytes: &[u8]) -> Option<(u8, usize)> {
    let tail = |byte: u8| (0x80..0xC0).contains(&byte).then_some(byte & 0x3F);
    let (high, low, length) = match *bytes {
        [lead @ 0xC0..=0xC1, low, ..] => (lead & 1, low, 2),
        [0xE0, high @ 0x80..=0x81, low, ..] => (high & 1, low, 3),
        [0xF0, 0x80, high @ 0x80..=0x81, low, ..] => (high & 1, low, 4),
        [0xF8, 0x80, 0x80, high @ 0x80..=0x81, low, ..] => (high & 1, low, 5),
        [0xFC, 0x80, 0x80, 0x80, high @ 0x80..=0x81, low, ..] => (high & 1, low, 6),
        _ => return None,
    };
    Some((high << 6 | tail(low)?, length))
}

/// `%25hh` becomes `%hh`.
fn percent_signs_decoded(text: &[u8]) -> Vec<u8> {
    let is_hex = |at: usize| text.get(at).is_some_and(u8::is_ascii_hexdigit);
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        if byte == b'%' {
            out.push(b'%');
            let again = text[at..].starts_with(b"%25") && is_hex(at + 3) && is_hex(at + 4);
            at += if again { 3 } else { 1 };
        } else {
            out.push(byte);
            at += 1;
        }
    }
    out
}

/// `raw` without the percent signs that two hex digits do not follow; `%u` with four, and a sign before white
/// space or at the end, stay.
pub(super) fn without_stray_percent(raw: &[u8]) -> Vec<u8> {
    let is_hex = |at: usize| raw.get(at).is_some_and(u8::is_ascii_hexdigit);
    let mut out = Vec::with_capacity(raw.len());
    for (at, &byte) in raw.iter().enumerate() {
        let spoken = raw.get(at + 1).is_some_and(|next| next.is_ascii_graphic() && !b"%+".contains(next));
        let unicode = matches!(raw.get(at + 1), Some(b'u' | b'U')) && (2..6).all(|digit| is_hex(at + digit));
        let stray = byte == b'%' && spoken && !unicode && !(is_hex(at + 1) && is_hex(at + 2));
        if !stray {
            out.push(byte);
        }
    }
    out
}

/// State that is kept from one event of a body to the next.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Of the whole body, or from a `_charset_` field on.
    charset: Option<Declared>,
    /// Of the current part.
    part_charset: Option<Declared>,
    /// The content of a part with an empty file name, under its name.
    unnamed_file: Option<(Vec<u8>, Vec<u8>)>,
}

impl Memory {
    /// Bytes of memory that it holds of what it has taken.
    pub(super) fn held_bytes(&self) -> usize {
        self.unnamed_file.as_ref().map_or(0, |(name, content)| name.capacity() + content.capacity())
    }

    pub(super) fn new(content_type: &[u8]) -> Memory {
        Memory { charset: declared(content_type), ..Memory::default() }
    }
}

/// The character set that a `Content-Type` names, if values may be another text in it.
fn declared(content_type: &[u8]) -> Option<Declared> {
    by_label(content_type::parameter(content_type, b"charset")?)
}

fn by_label(label: &[u8]) -> Option<Declared> {
    match Charset::from_label(label) {
        Charset::MultiByte(encoding) => Some(Declared::MultiByte(encoding)),
        Charset::Transcoded(foreign) => Some(Declared::Transcoded(foreign)),
        Charset::Ascii | Charset::Foreign => None,
    }
}

/// Hands every event on, and second readings behind the events they belong to.
pub(super) struct WithReadings<'s> {
    pub(super) sink: &'s mut dyn BodySink,
    pub(super) memory: &'s mut Memory,
}

impl BodySink for WithReadings<'_> {
    fn arg(&mut self, arg: Arg<'_>) {
        self.sink.arg(arg);
        if arg.name == CHARSET {
            self.memory.charset = by_label(arg.value).or(self.memory.charset);
        }
        let charset = self.memory.part_charset.take().or(self.memory.charset);
        if charset.is_none() && !may_read_otherwise(arg.name) && !may_read_otherwise(arg.value) {
            return;
        }
        if let Some(name) = second_reading(arg.name, charset) {
            self.sink.name_reading(&name);
        }
        if let Some(value) = second_reading(arg.value, charset) {
            self.sink.arg_reading(arg.name, &value);
        }
    }

    fn arg_reading(&mut self, name: &[u8], value: &[u8]) {
        self.sink.arg_reading(name, value);
    }

    fn name_reading(&mut self, name: &[u8]) {
        self.sink.name_reading(name);
    }

    fn xml_reading(&mut self, text: &[u8]) {
        self.sink.xml_reading(text);
    }

    fn part(&mut self, name: &[u8], filename: Option<&[u8]>) {
        self.memory.part_charset = None;
        self.sink.part(name, filename);
    }

    fn part_header(&mut self, part_name: &[u8], line: &[u8]) {
        if line.get(..13).is_some_and(|start| start.eq_ignore_ascii_case(b"content-type:")) {
            self.memory.part_charset = declared(&line[13..]);
        }
        self.sink.part_header(part_name, line);
    }

    fn file_begin(&mut self, field_name: &[u8], filename: &[u8]) {
        self.memory.unnamed_file = filename.is_empty().then(|| (field_name.to_vec(), Vec::new()));
        self.sink.file_begin(field_name, filename);
    }

    fn file_data(&mut self, data: &[u8]) {
        if let Some((_, content)) = &mut self.memory.unnamed_file {
            content.extend_from_slice(data);
        }
        self.sink.file_data(data);
    }

    fn file_end(&mut self, size: u64) {
        self.sink.file_end(size);
        // Go, for one, takes a part with an empty file name for a field. A browser sends it empty: no file
        // was chosen.
        if let Some((name, content)) = self.memory.unnamed_file.take().filter(|(_, c)| !c.is_empty()) {
            self.sink.arg_reading(&name, &content);
        }
    }

    fn xml_start(&mut self, name: &[u8]) {
        self.sink.xml_start(name);
    }

    fn xml_attribute(&mut self, name: &[u8], value: &[u8]) {
        self.sink.xml_attribute(name, value);
    }

    fn xml_text(&mut self, text: &[u8]) {
        self.sink.xml_text(text);
    }

    fn xml_end(&mut self, name: &[u8]) {
        self.sink.xml_end(name);
    }

    fn xml_comment(&mut self, text: &[u8]) {
        self.sink.xml_comment(text);
    }

    fn xml_doctype(&mut self, text: &[u8]) {
        self.sink.xml_doctype(text);
    }

    fn xml_instruction(&mut self, target: &[u8], data: &[u8]) {
        self.sink.xml_instruction(target, data);
        // `XML:/*` has no instructions, but an application may read them. The XML declaration is none.
        if !target.eq_ignore_ascii_case(b"xml") && !data.is_empty() {
            self.sink.xml_reading(data);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(value: &[u8], charset: Option<&[u8]>, want: Option<&[u8]>) {
        let have = second_reading(value, charset.and_then(by_label));
        assert_eq!(have.as_deref(), want, "{}", value.escape_ascii());
    }

    #[test]
    fn ordinary_text_has_no_second_reading() {
        for text in ["", "a b", "naïve café", "100%", "B%x1", "%20", "%u00e9", "（笑）ＡＢＣ", "don\u{2019}t"]
        {
            check(text.as_bytes(), None, None);
        }
        // Undeclared legacy bytes.
        check(b"\xCF\xF0\xE8\xE2\xE5\xF2", None, None);
    }

    #[test]
    fn what_may_read_otherwise_is_seen_wherever_it_stands() {
        for len in 0..80 {
            let mut text = vec![b'$'; len];
            assert!(!may_read_otherwise(&text), "{len}");
            for at in 0..len {
                for byte in [b'%', 0x1B, 0x80, 0xFF] {
                    text[at] = byte;
                    assert!(may_read_otherwise(&text), "{byte} at {at} of {len}");
                }
                text[at] = b'$';
            }
        }
    }

    #[test]
    fn overlong_utf_8() {
        check(b"\xC0\xBCscript\xC0\xBE", None, Some(b"<script>"));
        check(b"\xE0\x80\xBCx", None, Some(b"<x"));
        check(b"\xF0\x80\x80\xAF", None, Some(b"/"));
        check(b"\xF8\x80\x80\x80\xA7", None, Some(b"'"));
        check(b"\xFC\x80\x80\x80\x81\xA1", None, Some(b"a"));
        check(b"\xC1\x81", None, Some(b"A"));
        check(b"\xC0", None, None);
        check(b"\xC0A", None, None);
        // U+07FF and U+0800 are no ASCII in any number of bytes.
        check(b"\xDF\xBF\xE0\xA0\x80", None, None);
    }

    #[test]
    fn full_width_forms() {
        check("＜script＞alert（1）".as_bytes(), None, Some(b"<script>alert(1)"));
        check("＇ｏｒ＇".as_bytes(), None, Some(b"'or'"));
    }

    #[test]
    fn percent_signs() {
        check(b"%253Cscript%253E", None, Some(b"%3Cscript%3E"));
        check(b"%25", None, None);
        check(b"%2561", None, Some(b"%61"));
    }

    #[test]
    fn stray_percent_signs() {
        for (raw, want) in [
            ("u%ni%on%20%select", "union%20select"),
            ("%3Csc%ript%3E", "%3Cscript%3E"),
            ("100%", "100%"),
            ("50%+off%", "50%+off%"),
            ("%u00e9%ug", "%u00e9ug"),
            ("%%41", "%%41"),
        ] {
            assert_eq!(without_stray_percent(raw.as_bytes()), want.as_bytes());
        }
    }

    #[test]
    fn declared_character_sets() {
        check(b"\x93\xFA\x96{", Some(b"shift_jis"), Some("日本".as_bytes()));
        check(b"\x1B(J<\x1B(B", Some(b"iso-2022-jp"), Some(b"<"));
        check(b"abc", Some(b"gbk"), None);
        check(b"\x93\xFA\x96{", Some(b"utf-8"), None);
        // A form whose signs are ASCII and whose values are not.
        check(b"\x4C\xA2\x6E", Some(b"ibm037"), Some(b"<s>"));
        check(b"+ADw-s+AD4-", Some(b"utf-7"), Some(b"<s>"));
        check(b"abc", Some(b"utf-7"), None);
    }
}
