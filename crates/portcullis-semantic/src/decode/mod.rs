//! Layers of encoding, taken off one at a time.
//!
//! A value is looked at as it is, and then in each form that a decoder makes of it: a decoder acts only if
//! its marks are there, and where marks prove little (Base64, hexadecimal) only if the result is mostly text.
//! How deep and how much is in [`limits`](crate::limits). Nothing here blocks anything: a layer is context,
//! its content is judged.

mod binary;
mod excerpt;
mod loose;
mod magic;
mod packed;
pub(crate) mod pickle;
mod serialised;
mod signs;
mod structured;
mod texts;

pub(crate) use binary::is_short_command;
pub(crate) use packed::inflate;
pub(crate) use portcullis_lex::base64::value as base64_value;
pub(crate) use structured::keys_of_nothing;
pub(crate) use texts::{code, may_have_code, texts, texts_in_part};

use crate::{ByteGroups, Layers};

/// A kind of encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Layer {
    /// `%27`, `%u0027`, and `+` for a space beside them.
    Percent,
    /// `&#39;`, `&#x27;`, `&apos;`
    Entity,
    /// `\u0027`, `\x27`, `\047`
    Escape,
    /// Overlong UTF-8, full-width forms, typographic quotes and spaces, as an old code page would fold them.
    Fold,
    /// Base64, also with URL alphabet, in a data URL, or as the parts of a token with dots.
    Base64,
    /// Pairs of hexadecimal digits.
    Hex,
    /// UTF-16, seen by its zero bytes.
    Utf16,
    /// UTF-7
    Utf7,
    /// A value of JSON in a string.
    Json,
    /// A parameter of a URL or form in a string.
    Parameter,
    /// A string in what PHP has serialised.
    Php,
}

impl Layer {
    /// Signs of the text stand for others; what it is stays.
    pub(crate) fn is_of_signs(self) -> bool {
        matches!(self, Layer::Percent | Layer::Entity | Layer::Escape | Layer::Fold)
    }

    /// The name in events and explanations.
    pub fn name(self) -> &'static str {
        match self {
            Layer::Percent => "percent",
            Layer::Entity => "entity",
            Layer::Escape => "escape",
            Layer::Fold => "fold",
            Layer::Base64 => "base64",
            Layer::Hex => "hex",
            Layer::Utf16 => "utf16",
            Layer::Utf7 => "utf7",
            Layer::Json => "json",
            Layer::Parameter => "parameter",
            Layer::Php => "php",
        }
    }
}

/// Takes a form: by which layer it came, its path of names in JSON, and its bytes.
pub(crate) type Emit<'e> = dyn FnMut(Layer, &[u8], &[u8]) + 'e;

/// Calls `emit` with each form of `text` that one decoding step makes. `spare` is scratch. With
/// `only_changed`, what decoding would leave as it is is left out of the forms, but for some hundred bytes
/// around what it changes. True if `text` is JSON.
pub(crate) fn unwrap(
    text: &[u8],
    groups: ByteGroups,
    layers: Layers,
    only_changed: bool,
    spare: &mut Vec<u8>,
    emit: &mut Emit<'_>,
) -> bool {
    let is_json = (groups.has(b'{') || groups.has(b'['))
        && structured::json(text, &mut |path, form| emit(Layer::Json, path, form));
    let mut emit = |layer, form: &[u8]| emit(layer, b"", form);
    let came_by = |layer: Layer| layers.iter().last() == Some(layer);
    let mut try_one = |layer: Layer, spare: &mut Vec<u8>, decode: fn(&[u8], &mut Vec<u8>) -> bool| {
        spare.clear();
        let text =
            if layer == Layer::Percent { structured::url_before_query(text).unwrap_or(text) } else { text };
        let changed = (only_changed && layer.is_of_signs()).then(|| excerpt::excerpt(text, decode));
        let text = changed.as_deref().unwrap_or(text);
        if decode(text, spare) && spare.as_slice() != text {
            emit(layer, spare);
        }
    };
    if groups.has(b'%') {
        try_one(Layer::Percent, spare, signs::percent);
    }
    // What was encoded twice has lost its percent signs, and its spaces are still plus signs.
    const TELLING: ByteGroups = ByteGroups::of(b"'\"(;#");
    if groups.has(b'+') && !groups.has(b'%') && groups.intersects(TELLING) {
        try_one(Layer::Percent, spare, signs::plus);
    }
    if groups.has(b'&') {
        try_one(Layer::Entity, spare, signs::entities);
    }
    if groups.has(b'\\') {
        try_one(Layer::Escape, spare, signs::escapes);
    }
    if groups.has(0x80) && !came_by(Layer::Fold) {
        try_one(Layer::Fold, spare, signs::fold);
    }
    if groups.has(0) {
        try_one(Layer::Utf16, spare, binary::utf16);
    }
    if groups.has(b'+') {
        try_one(Layer::Utf7, spare, binary::utf7);
    }
    if binary::may_be_base64(text) {
        let is_read = binary::base64(text, groups, spare, &mut |form| emit(Layer::Base64, form));
        loose::base64(text, groups, (is_json, is_read), spare, &mut |form| emit(Layer::Base64, form));
        spare.clear();
        if binary::hex(text, groups, spare) {
            emit(Layer::Hex, spare);
        }
    }
    if groups.has(b':') && groups.has(b'"') {
        structured::php_strings(text, &mut |form| emit(Layer::Php, form));
    }
    if groups.has(b'?') || groups.has(b'=') && groups.has(b'&') {
        structured::parameters(text, &mut |form| emit(Layer::Parameter, form));
    }
    is_json
}

/// `text` with the character references of HTML decoded, as an attribute's value is.
pub(crate) fn entities(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    signs::entities(text, &mut out);
    out
}

/// True if `text` is an object or array of JSON, all of it.
pub(crate) fn is_json(text: &[u8], groups: ByteGroups) -> bool {
    (groups.has(b'{') || groups.has(b'[')) && structured::json(text, &mut |_, _| {})
}

/// Nothing in these bytes that a decoder acts on. Letters and digits alone may be Base64 or hexadecimal.
pub(crate) fn is_plain(text: &[u8], groups: ByteGroups) -> bool {
    const HARMLESS: ByteGroups = ByteGroups::of(b"az09-_. ,:/;()@#!*'\"<>?~|`^$\t");
    // Words, not Base64 with spaces around it or `Basic ` before it.
    let has_words = || text.trim_ascii_end().iter().skip(BASE64_LEAD_BYTES).any(|b| *b == b' ');
    let is_short = || text.len() < binary::BASE64_BYTES_MIN && !is_short_command(text);
    let is_base64 = || binary::is_spaced_base64(text, groups) || loose::is_hidden_in_words(text);
    let is_of_words = || groups.has(b' ') && has_words() && !is_base64();
    groups.is_within(HARMLESS) && (is_short() || is_of_words())
}

/// A space after more bytes than this is no end of what stands before Base64.
const BASE64_LEAD_BYTES: usize = 8;

pub(crate) use magic::{is_bundle, is_file, is_of_shown};

/// True if `text` is none, but a picture, an archive, a program, something encrypted: by the bytes that stand
/// all over it, not by what it begins with or is said to be. One of ten is no text, one of fifty a control
/// byte, which no character set has in texts, and it is in no encoding of 16 bits.
pub(crate) fn is_bytes(text: &[u8], groups: ByteGroups) -> bool {
    let is_wide = || binary::utf16(&text[..text.len().min(WIDE_BYTES)], &mut Vec::new());
    text.len() >= BYTES_MIN && (groups.has(0) || groups.has(1)) && has_controls(text) && !is_wide()
}

/// True if one byte of fifty is a control byte, and one of ten is no text. What is packed and was taken for
/// Latin-1 and written as UTF-8 has letters only, but for its control bytes: then one of 25, zeros left out,
/// which may part texts.
fn has_controls(text: &[u8]) -> bool {
    let is_control = |b: u8| matches!(b, 0..=8 | 0x0E..=0x1F | 0x7F);
    has_share(text, 50, is_control)
        && (!is_mostly_text(text) || has_share(text, 25, |b| b != 0 && is_control(b)))
}

/// True if at least one byte of `share` is such. It does not look at more than it takes.
fn has_share(text: &[u8], share: usize, is_one: impl Fn(u8) -> bool) -> bool {
    let mut count = 0;
    text.chunks(SHARE_BYTES).any(|chunk| {
        count += chunk.iter().map(|b| u32::from(is_one(*b))).sum::<u32>() as usize;
        count * share >= text.len()
    })
}

/// Bytes that are counted at once.
const SHARE_BYTES: usize = 4_096;

/// What is shorter tells too little by its bytes.
const BYTES_MIN: usize = 48;
/// How much of a text tells whether each of its characters has two bytes.
const WIDE_BYTES: usize = 512;

/// True if at least nine bytes of ten are text: printable ASCII, white space, or UTF-8.
pub(crate) fn is_mostly_text(bytes: &[u8]) -> bool {
    // No character of UTF-8 has these bytes, and of noise every sixth is one: it need not be read byte by
    // byte.
    let is_never = |b: u8| matches!(b, 0..=8 | 0x0B | 0x0C | 0x0E..=0x1F | 0x7F | 0xC0 | 0xC1 | 0xF5..);
    if bytes.len() >= SHARE_BYTES && has_share(bytes, 9, is_never) {
        return false;
    }
    let mut odd = 0;
    let mut rest = bytes;
    while !rest.is_empty() {
        let width = text_width(rest);
        if width == 0 {
            odd += 1;
            // Most of what is no text shows it early.
            if odd * 10 > bytes.len() {
                return false;
            }
        }
        rest = &rest[width.max(1)..];
    }
    odd * 10 <= bytes.len()
}

/// True if in any text that begins so, more than `max` bytes are no text.
fn has_more_noise(beginning: &[u8], max: usize) -> bool {
    let mut odd = 0;
    let mut rest = beginning;
    // Of the last bytes some may be a character's that is cut off.
    while rest.len() >= CHAR_BYTES_MAX {
        let width = text_width(rest);
        odd += usize::from(width == 0);
        rest = &rest[width.max(1)..];
    }
    odd > max
}

/// Bytes of the longest character.
const CHAR_BYTES_MAX: usize = 4;

/// Bytes of the character that `bytes` begins with, if it is text (printable ASCII, white space, or UTF-8); 0
/// if it is none.
#[inline]
fn text_width(bytes: &[u8]) -> usize {
    let width = match bytes.first() {
        Some(b'\t' | b'\n' | b'\r' | 0x20..=0x7E) => return 1,
        Some(0xC2..=0xDF) => 2,
        Some(0xE0..=0xEF) => 3,
        Some(0xF0..=0xF4) => CHAR_BYTES_MAX,
        _ => return 0,
    };
    let whole = bytes.get(1..width).is_some_and(|tail| tail.iter().all(|b| b & 0xC0 == 0x80));
    if whole { width } else { 0 }
}

fn push_char(out: &mut Vec<u8>, code: u32) {
    match char::from_u32(code) {
        Some(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        None => out.push(b'?'),
    }
}

pub(crate) fn hex_digit(b: u8) -> Option<u32> {
    (b as char).to_digit(16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &[u8], layer: Layer, want: &[&str]) {
        let mut have = Vec::new();
        unwrap(text, ByteGroups::of(text), Layers::default(), false, &mut Vec::new(), &mut |by, _, form| {
            if by == layer {
                have.push(String::from_utf8_lossy(form).into_owned());
            }
        });
        assert_eq!(have, want, "{}", text.escape_ascii());
    }

    #[test]
    fn bytes() {
        let is = |text: &[u8]| is_bytes(text, ByteGroups::of(text));
        let picture: Vec<u8> = b"\x89PNG\0\xC8\x01 IDAT\xFE\x12'\0\xF7".repeat(100);
        assert!(is(&picture) && is(&picture[..512]) && !is(&picture[..32]));
        // Of packed bytes one in fifty has no zero among a thousand.
        let no_zero: Vec<u8> = picture.iter().map(|b| (*b).max(1)).collect();
        assert!(is(&no_zero));
        let twice: String = (0..=255u8).cycle().take(2_000).map(char::from).collect();
        assert!(is(twice.as_bytes()));
        // Windows-1251 has no control bytes.
        assert!(!is(&b"\xCF\xF0\xE8\xE2\xE5\xF2 ' or 1=1 -- ".repeat(40)));
        assert!(!is(&b"text \0 with a zero".repeat(100)));
        let wide: Vec<u8> = b"a' or 1=1 -- ".repeat(100).iter().flat_map(|b| [*b, 0]).collect();
        assert!(!is(&wide));
    }

    #[test]
    fn percent() {
        check(b"%27+or+1", Layer::Percent, &["' or 1"]);
        check(b"%u0027 a+b", Layer::Percent, &["' a+b"]);
        check(b"a+%2B%27", Layer::Percent, &["a +'"]);
        check(b"100% of", Layer::Percent, &[]);
        check(b"'+or+1=1--", Layer::Percent, &["' or 1=1--"]);
        check(b"c++", Layer::Percent, &[]);
        check(b"'a' + 'b' + 'c'", Layer::Percent, &[]);
    }

    #[test]
    fn entities() {
        check(b"&#39;&#x6f;r&apos;&lt&nosuch;&", Layer::Entity, &["'or'<&nosuch;&"]);
        check(b"a&b", Layer::Entity, &[]);
    }

    #[test]
    fn escapes() {
        check(b"\\u0027\\x6f\\u{72} \\047 C:\\new", Layer::Escape, &["'or ' C:\\new"]);
        check(b"\\74b\\76", Layer::Escape, &["<b>"]);
        check(b"C:\\temp", Layer::Escape, &[]);
    }

    #[test]
    fn fold() {
        check(b"1\xC0\xA7 \xEF\xBC\x87", Layer::Fold, &["1' '"]);
        check("\u{2018}a\u{2019}\u{a0}caf\u{e9}".as_bytes(), Layer::Fold, &["'a' caf\u{e9}"]);
        check("caf\u{e9}".as_bytes(), Layer::Fold, &[]);
        check("\u{201c}a\u{201d} \u{2013} b \u{2014} ".as_bytes(), Layer::Fold, &["\"a\" - b -- "]);
    }

    #[test]
    fn base64() {
        check(b"MScgb3IgMT0xIC0t", Layer::Base64, &["1' or 1=1 --"]);
        check(b"data:text/plain;base64,MScgb3IgMT0xIC0t", Layer::Base64, &["1' or 1=1 --"]);
        check(
            b"eyJhIjoiYiJ9.eyJzdWIiOiIxIn0.c2lnbmF0",
            Layer::Base64,
            &["{\"a\":\"b\"}", "{\"sub\":\"1\"}", "signat"],
        );
        check(b" MScgb3IgMT0xIC0t ", Layer::Base64, &["1' or 1=1 --"]);
        check(b"Basic MScgb3IgMT0xIC0t", Layer::Base64, &["1' or 1=1 --"]);
        check(b"passwordpassword", Layer::Base64, &[]);
        check(b"O2lk", Layer::Base64, &[";id"]);
        check(b"fGxz", Layer::Base64, &["|ls"]);
        check(b"O2Rpcg", Layer::Base64, &[";dir"]);
        check(b"OwBjAGEAdAAgAC8AZQB0AGMALwBwAGEAcwBzAHcAZAA=", Layer::Base64, &[";cat /etc/passwd"]);
        check(b"ADsAYwBhAHQAIAAvAGUAdABjAC8AcABhAHMAcwB3AGQ=", Layer::Base64, &[";cat /etc/passwd"]);
        // A form made spaces of its plus signs, or words stand before a token.
        check(
            b"eCcgb3IgJzEnPScxJz48Pz4 Pj9 YWFhYWFhYWFh",
            Layer::Base64,
            &["x' or '1'='1'><?>>>?~aaaaaaaaa", "x' or '1'='1'><?>"],
        );
        check(b"The 3 iPhones cost 900 in all of it", Layer::Base64, &[]);
        for word in [&b"from"[..], b"June", b"Over", b"Once", b"O2ld", b"O2lkO"] {
            check(word, Layer::Base64, &[]);
        }
    }

    #[test]
    fn hex() {
        check(b"3127206f7220313d31", Layer::Hex, &["1' or 1=1"]);
        check(b"0x3127206f7220313d31", Layer::Hex, &["1' or 1=1"]);
        check(b"deadbeefdeadbeef", Layer::Hex, &[]);
    }

    #[test]
    fn wide() {
        check(b"a\0'\0 \0o\0r\0", Layer::Utf16, &["a' or"]);
        check(b"+ADw-script+AD4-", Layer::Utf7, &["<script>"]);
        check(b"c++ and +1-800", Layer::Utf7, &[]);
    }

    #[test]
    fn structured() {
        check(br#"{"a":["x' or 1",2]}"#, Layer::Json, &["x' or 1", "2"]);
        check(br#"{"a b'c":{"d":1,"e":2}}"#, Layer::Json, &["a b'c.d", "1", "2"]);
        check(b"http://a.example/?id=1%27&x=2", Layer::Parameter, &["1'", "2"]);
        check(b"a=1&b=2", Layer::Parameter, &["1", "2"]);
        check(b"http://a.example/?alert(1)", Layer::Parameter, &["alert(1)"]);
        check(br#"{"x' or 1=1-- " : { } ,"b":[{"c d":[]}],"e":{}}"#, Layer::Json, &["x' or 1=1-- ", "c d"]);
        check(br#"{"a \"b":{}}"#, Layer::Json, &[r#"a \"b"#]);
        check(br#"a:2:{s:1:"x";s:6:"a";s:2";i:1;}"#, Layer::Php, &["x", "a\";s:2"]);
        check(br#"cart|a:1:{i:0;s:4:"O2lk";}"#, Layer::Php, &["O2lk"]);
        check(br#"its: "a" and s:1:"x""#, Layer::Php, &[]);
        check(b"and/or?", Layer::Parameter, &[]);
        check(b"fish & chips", Layer::Parameter, &[]);
    }

    /// What is counted in blocks says what counting byte by byte says.
    #[test]
    fn shares_of_noise() {
        let mut state = 1u64;
        for round in 0..600 {
            let odd = round % 40;
            let bytes: Vec<u8> = (0..3_000 + round * 17)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let random = (state >> 40) as usize;
                    if random % 100 < odd { (random >> 8) as u8 } else { b'a' }
                })
                .collect();
            let controls = bytes.iter().filter(|b| matches!(**b, 0..=8 | 0x0E..=0x1F | 0x7F)).count();
            let zeros = bytes.iter().filter(|b| **b == 0).count();
            let text = String::from_utf8_lossy(&bytes);
            assert_eq!(
                has_controls(&bytes),
                controls * 50 >= bytes.len()
                    && (!is_mostly_text(&bytes) || (controls - zeros) * 25 >= bytes.len()),
                "{round}"
            );
            if !text.contains('\u{FFFD}') {
                let odd =
                    text.chars().filter(|c| matches!(*c, '\0'..=' ' | '\x7F') && !"\t\n\r ".contains(*c));
                assert_eq!(is_mostly_text(&bytes), odd.count() * 10 <= bytes.len(), "{round}");
            }
        }
    }
}
