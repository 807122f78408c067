//! The type of a value.

use std::fmt;
use std::ops::BitOr;

use serde::{Deserialize, Serialize};

use crate::bytes::{self, Syntax, bit, class, is_within};
use crate::hash::word;

macro_rules! types {
    ($($(#[$doc:meta])* $variant:ident $name:literal $title:literal;)*) => {
        /// The type of a value, as its bytes show it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        #[repr(u8)]
        pub enum ValueType { $($(#[$doc])* $variant,)* }

        impl ValueType {
            /// All types.
            pub const ALL: &'static [ValueType] = &[$(ValueType::$variant,)*];

            /// The name in state files and lists.
            pub fn name(self) -> &'static str {
                match self { $(ValueType::$variant => $name,)* }
            }

            /// Values of the type, in the plural.
            pub fn title(self) -> &'static str {
                match self { $(ValueType::$variant => $title,)* }
            }
        }
    };
}

types! {
    /// Digits, perhaps with a sign.
    Whole "whole" "whole numbers";
    /// A number with a fraction or an exponent.
    Decimal "decimal" "decimal numbers";
    /// `true`, `off` and the like.
    Boolean "boolean" "booleans";
    /// A UUID.
    Uuid "uuid" "UUIDs";
    /// Hexadecimal digits, 16 or more.
    Hash "hash" "hashes";
    /// A date, a time, or both.
    Date "date" "dates";
    /// An e-mail address.
    Email "email" "e-mail addresses";
    /// Letters, digits and underscores.
    Word "word" "words";
    /// Words joined by hyphens, dots and underscores.
    Slug "slug" "identifiers";
    /// A URL of one of the site's own hosts.
    OwnUrl "own-url" "URLs of the site";
    /// What tokens are made of: Base64, lists of identifiers and the like.
    Token "token" "tokens";
    /// A URL of another host.
    OtherUrl "other-url" "URLs";
    /// A path.
    Path "path" "paths";
    /// One line of text.
    Line "line" "lines of text";
    /// Text of several lines.
    Text "text" "texts";
    /// Text with elements of markup.
    Markup "markup" "markup";
    /// Text with the bytes of code.
    Code "code" "code";
    /// An object or array of JSON.
    Json "json" "JSON";
    /// Bytes that are no text.
    Binary "binary" "binary data";
}

/// A set of types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TypeSet(u32);

impl TypeSet {
    /// The types of `list`.
    pub const fn of(list: &[ValueType]) -> TypeSet {
        let mut bits = 0;
        let mut at = 0;
        while at < list.len() {
            bits |= 1 << list[at] as u8;
            at += 1;
        }
        TypeSet(bits)
    }

    /// True if `kind` is in it.
    pub fn has(self, kind: ValueType) -> bool {
        self.0 >> kind as u8 & 1 == 1
    }

    /// True if all of it is in `other`.
    pub fn is_within(self, other: TypeSet) -> bool {
        self.0 & !other.0 == 0
    }

    /// What is in both.
    pub(crate) fn both(self, other: TypeSet) -> TypeSet {
        TypeSet(self.0 & other.0)
    }

    /// True if nothing is in it.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl BitOr for TypeSet {
    type Output = TypeSet;

    fn bitor(self, other: TypeSet) -> TypeSet {
        TypeSet(self.0 | other.0)
    }
}

impl FromIterator<ValueType> for TypeSet {
    fn from_iter<I: IntoIterator<Item = ValueType>>(types: I) -> TypeSet {
        types.into_iter().fold(TypeSet::default(), |all, kind| all | TypeSet::of(&[kind]))
    }
}

impl ValueType {
    /// The plain types: a field of one of them has no room for code. Narrower ones stand before wider ones.
    pub const PLAIN: &'static [ValueType] = &[
        ValueType::Whole,
        ValueType::Decimal,
        ValueType::Boolean,
        ValueType::Uuid,
        ValueType::Hash,
        ValueType::Date,
        ValueType::Email,
        ValueType::Word,
        ValueType::Slug,
        ValueType::OwnUrl,
        ValueType::Token,
    ];

    /// The types that a field of this plain type may carry: `7` is an identifier, too.
    pub fn covers(self) -> TypeSet {
        use ValueType::{
            Binary, Boolean, Code, Date, Decimal, Email, Hash, Json, Line, Markup, OtherUrl, OwnUrl, Path,
            Slug, Text, Token, Uuid, Whole, Word,
        };
        const WORDS: TypeSet = TypeSet::of(&[Word, Boolean, Whole, Hash]);
        const SLUGS: TypeSet = TypeSet(WORDS.0 | TypeSet::of(&[Slug, Uuid, Decimal, Date]).0);
        match self {
            Decimal => TypeSet::of(&[Whole, Decimal]),
            Word => WORDS,
            Slug => SLUGS,
            OwnUrl => TypeSet::of(&[OwnUrl, Path]),
            Token => SLUGS | TypeSet::of(&[Token, Email, Path]),
            Whole | Boolean | Uuid | Hash | Date | Email | OtherUrl | Path | Line | Text | Markup | Code
            | Json | Binary => TypeSet::of(&[self]),
        }
    }
}

/// What a value is, and which bytes of code it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Its type.
    pub kind: ValueType,
    /// The classes of bytes that code needs.
    pub syntax: Syntax,
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())
    }
}

/// The type of `value`. `is_own` says whether a host, in the case in which it was sent, is one of the site's.
///
/// ```
/// use portcullis_learn::{ValueType, classify};
///
/// let kind = |value: &str| classify(value.as_bytes(), |host| host == b"shop.example").kind;
/// assert_eq!(kind("4711"), ValueType::Whole);
/// assert_eq!(kind("en-GB"), ValueType::Slug);
/// assert_eq!(kind("https://shop.example/a?b=c"), ValueType::OwnUrl);
/// assert_eq!(kind("1 or 1=1"), ValueType::Line);
/// ```
pub fn classify<'v>(value: &'v [u8], is_own: impl FnOnce(&'v [u8]) -> bool) -> Shape {
    let classes = bytes::of(value);
    Shape { kind: kind(value.trim_ascii(), classes, is_own), syntax: Syntax::of_classes(classes) }
}

/// The shape of a value whose type its bytes alone tell, as those of most parameters do.
#[inline]
pub(crate) fn plain(value: &[u8]) -> Option<Shape> {
    let classes = bytes::of(value);
    // None of these types has spaces around it.
    at_once(value, classes).map(|kind| Shape { kind, syntax: Syntax::of_classes(classes) })
}

fn kind<'v>(value: &'v [u8], classes: u64, is_own: impl FnOnce(&'v [u8]) -> bool) -> ValueType {
    if let Some(kind) = at_once(value, classes) {
        return kind;
    }
    use class::{
        ALPHANUMERIC, AT, COLON, COMMA, DIGIT, DOT, HEX, HIGH, HYPHEN, PLUS, SPACE, TILDE, UNDERSCORE,
    };
    // Spaces around a value are no part of it.
    let classes = if value.contains(&b' ') { classes } else { classes & !SPACE };
    if is_within(classes, DIGIT) && value.len() <= NUMBER_BYTES_MAX {
        return ValueType::Whole;
    }
    if bytes::is_within(
        classes,
        ALPHANUMERIC | UNDERSCORE | HYPHEN | DOT | PLUS | COMMA | COLON | SPACE | SLASH,
    ) && let Some(kind) = number(value, classes).or_else(|| date(value, classes))
    {
        return kind;
    }
    if is_within(classes, HEX | DIGIT | HYPHEN) && is_uuid(value) {
        return ValueType::Uuid;
    }
    let is_text = classes & HIGH == 0 || std::str::from_utf8(value).is_ok();
    if is_within(classes, ALPHANUMERIC | UNDERSCORE) && is_text {
        return match () {
            () if is_boolean(value) => ValueType::Boolean,
            () if is_hash(value, classes) => ValueType::Hash,
            () => ValueType::Word,
        };
    }
    let has_dots = classes & bit(Syntax::DOTS) != 0;
    let dashes = bit(Syntax::DASHES);
    if is_within(classes, ALPHANUMERIC | UNDERSCORE | HYPHEN | DOT | dashes) && is_text {
        return ValueType::Slug;
    }
    if classes & AT != 0 && is_email(value) {
        return ValueType::Email;
    }
    if let Some(host) = url_host(value, classes) {
        return if is_own(host) { ValueType::OwnUrl } else { ValueType::OtherUrl };
    }
    if is_within(classes, PATH) && classes & SLASH != 0 && !has_dots && is_path(value, classes) {
        return ValueType::Path;
    }
    let is_token = is_within(
        classes,
        ALPHANUMERIC | UNDERSCORE | HYPHEN | DOT | TILDE | PLUS | COLON | AT | COMMA | TOKEN,
    );
    // A URL that leads elsewhere than it seems is no token.
    let is_url = value.starts_with(b"//") || value.windows(3).any(|part| part == b"://");
    if is_token && is_text && is_padded(value) && !is_url {
        return ValueType::Token;
    }
    of_text(value, classes, is_text)
}

/// The type of what most parameters are, as their bytes alone tell it: with a letter beyond `f` or an
/// underscore a value is no number, hash or UUID, and without a colon no time.
#[inline]
fn at_once(value: &[u8], classes: u64) -> Option<ValueType> {
    use class::{DIGIT, DOT, HEX, HYPHEN, LETTER, UNDERSCORE};
    const LETTERS: u64 = HEX | LETTER;
    if is_within(classes, DIGIT) && (1..=NUMBER_BYTES_MAX).contains(&value.len()) {
        return Some(ValueType::Whole);
    }
    if is_within(classes, LETTERS) && !value.is_empty() {
        return Some(if is_boolean(value) { ValueType::Boolean } else { ValueType::Word });
    }
    if classes & (LETTER | UNDERSCORE) == 0 {
        return None;
    }
    match () {
        () if is_within(classes, LETTERS | DIGIT | UNDERSCORE) => Some(ValueType::Word),
        () if is_within(classes, LETTERS | DIGIT | UNDERSCORE | HYPHEN | DOT) => Some(ValueType::Slug),
        () => None,
    }
}

/// The type of a value that is not one of the short plain ones.
fn of_text(value: &[u8], classes: u64, is_text: bool) -> ValueType {
    const CODE: u64 = bit(Syntax::QUOTE)
        | bit(Syntax::DOUBLE_QUOTE)
        | bit(Syntax::BACKTICK)
        | bit(Syntax::PARENTHESIS)
        | bit(Syntax::SQUARE)
        | bit(Syntax::BRACE)
        | bit(Syntax::ANGLE)
        | bit(Syntax::SEMICOLON)
        | bit(Syntax::PIPE)
        | bit(Syntax::DOLLAR)
        | bit(Syntax::BACKSLASH)
        | bit(Syntax::EQUALS);
    let is_control = |b: &u8| b.is_ascii_control() && !matches!(b, b'\t' | b'\r' | b'\n');
    if classes & bit(Syntax::CONTROL) != 0 && value.iter().any(is_control) || !is_text && value.len() > 256 {
        return ValueType::Binary;
    }
    if matches!((value.first(), value.last()), (Some(b'{'), Some(b'}')) | (Some(b'['), Some(b']')))
        && (value.len() > JSON_BYTES_MAX || serde_json::from_slice::<serde::de::IgnoredAny>(value).is_ok())
    {
        return ValueType::Json;
    }
    let is_tag =
        |pair: &[u8]| pair[0] == b'<' && (pair[1].is_ascii_alphabetic() || b"/!?".contains(&pair[1]));
    match () {
        () if classes & bit(Syntax::ANGLE) != 0 && value.windows(2).any(is_tag) => ValueType::Markup,
        () if (classes & CODE).count_ones() >= CODE_CLASSES_MIN => ValueType::Code,
        () if classes & bit(Syntax::CONTROL) != 0 => ValueType::Text,
        () => ValueType::Line,
    }
}

/// A longer row of digits is no number that anybody reads.
const NUMBER_BYTES_MAX: usize = 40;
/// A longer text in brackets or braces is not read to know that it is JSON.
const JSON_BYTES_MAX: usize = 16 << 10;
/// The hexadecimal digits of the shortest hash.
const HASH_BYTES_MIN: usize = 16;
/// Classes of bytes that code needs from which on a text is taken for code.
const CODE_CLASSES_MIN: u32 = 3;
const SLASH: u64 = bit(Syntax::SLASH);
/// Bytes of tokens beside those of identifiers.
const TOKEN: u64 = SLASH | bit(Syntax::EQUALS) | bit(Syntax::DASHES);
/// Bytes of paths with a query.
const PATH: u64 = class::ALPHANUMERIC
    | class::UNDERSCORE
    | class::HYPHEN
    | class::DOT
    | class::TILDE
    | class::PLUS
    | class::COLON
    | class::AT
    | class::COMMA
    | class::MARK
    | bit(Syntax::SLASH)
    | bit(Syntax::EQUALS)
    | bit(Syntax::AMPERSAND)
    | bit(Syntax::PERCENT)
    | bit(Syntax::NUMBER_SIGN)
    | bit(Syntax::DASHES);

fn number(value: &[u8], classes: u64) -> Option<ValueType> {
    if classes & class::DIGIT == 0 || value.len() > NUMBER_BYTES_MAX {
        return None;
    }
    let digits = |text: &[u8]| text.iter().take_while(|b| b.is_ascii_digit()).count();
    let unsigned = value.strip_prefix(b"-").or_else(|| value.strip_prefix(b"+")).unwrap_or(value);
    let whole = digits(unsigned);
    let mut rest = &unsigned[whole..];
    if whole > 0 && rest.is_empty() {
        return Some(ValueType::Whole);
    }
    let mut fraction = 0;
    if let [b'.' | b',', after @ ..] = rest {
        fraction = digits(after);
        rest = &after[fraction..];
        if fraction == 0 {
            return None;
        }
    }
    if let [b'e' | b'E', after @ ..] = rest {
        let after = after.strip_prefix(b"-").or_else(|| after.strip_prefix(b"+")).unwrap_or(after);
        let exponent = digits(after);
        if exponent == 0 || exponent > 3 {
            return None;
        }
        rest = &after[exponent..];
    }
    (rest.is_empty() && whole + fraction > 0).then_some(ValueType::Decimal)
}

/// `2026-11-29`, `29.11.2026`, `11/29/2026`, `18:05`, and a time behind a date.
fn date(value: &[u8], classes: u64) -> Option<ValueType> {
    if classes & class::DIGIT == 0 || !(4..=40).contains(&value.len()) {
        return None;
    }
    let is_one = match value.iter().position(|b| matches!(b, b'T' | b't' | b' ')) {
        Some(at) => is_day(&value[..at]) && is_time(&value[at + 1..]),
        None => is_day(value) || is_time(value),
    };
    is_one.then_some(ValueType::Date)
}

fn is_day(text: &[u8]) -> bool {
    let Some(mark) = text.iter().copied().find(|b| !b.is_ascii_digit()) else { return false };
    if !matches!(mark, b'-' | b'.' | b'/') {
        return false;
    }
    let mut widths = [0; 3];
    let mut count = 0;
    for part in text.split(|b| *b == mark) {
        if count == 3 || part.is_empty() || !part.iter().all(u8::is_ascii_digit) {
            return false;
        }
        widths[count] = part.len();
        count += 1;
    }
    match (count, widths) {
        (3, [4, 1 | 2, 1 | 2] | [1 | 2, 1 | 2, 4]) => true,
        (2, [4, 2, 0]) => mark != b'.',
        _ => false,
    }
}

/// `18:05`, `18:05:30.25Z`, `18:05:30+01:00`
fn is_time(text: &[u8]) -> bool {
    let text = text.strip_suffix(b"Z").or_else(|| text.strip_suffix(b"z")).unwrap_or(text);
    let zone = text.iter().rposition(|b| matches!(b, b'+' | b'-'));
    let clock = &text[..zone.unwrap_or(text.len())];
    let offset = zone.map_or(&b"00"[..], |at| &text[at + 1..]);
    let is_offset =
        matches!(offset.len(), 2 | 4 | 5) && offset.iter().all(|b| b.is_ascii_digit() || *b == b':');
    let mut parts = clock.trim_ascii_end().split(|b| *b == b':');
    let is_two =
        |part: Option<&[u8]>| part.is_some_and(|part| part.len() == 2 && part.iter().all(u8::is_ascii_digit));
    let is_clock = is_two(parts.next()) && is_two(parts.next());
    let is_seconds = parts.next().is_none_or(|part| {
        let (whole, fraction) = part.split_at(part.len().min(2));
        let digits = |text: &[u8]| text.iter().all(u8::is_ascii_digit);
        whole.len() == 2
            && digits(whole)
            && fraction.strip_prefix(b".").unwrap_or(fraction).iter().all(u8::is_ascii_digit)
    });
    is_clock && is_seconds && is_offset && parts.next().is_none()
}

pub(crate) fn is_uuid(value: &[u8]) -> bool {
    value.len() == 36
        && value.iter().enumerate().all(|(at, b)| match at {
            8 | 13 | 18 | 23 => *b == b'-',
            _ => b.is_ascii_hexdigit(),
        })
}

pub(crate) fn is_date(value: &[u8]) -> bool {
    is_day(value)
}

#[inline]
fn is_boolean(value: &[u8]) -> bool {
    // Of all bytes this bit makes a lower-case letter of that letter alone.
    let lower = |mask: u64| word(value) | mask;
    match value.len() {
        2 => [word(b"no"), word(b"on")].contains(&lower(0x2020)),
        3 => [word(b"yes"), word(b"off")].contains(&lower(0x20_2020)),
        4 => word(b"true") == lower(0x2020_2020),
        5 => word(b"false") == lower(0x20_2020_2020),
        _ => false,
    }
}

/// Hexadecimal digits, among them a letter and a digit.
fn is_hash(value: &[u8], classes: u64) -> bool {
    value.len() >= HASH_BYTES_MIN && classes == class::HEX | class::DIGIT
}

fn is_email(value: &[u8]) -> bool {
    let Some(at) = value.iter().position(|b| *b == b'@') else { return false };
    let (local, domain) = (&value[..at], &value[at + 1..]);
    let is_local = |b: &u8| b.is_ascii_alphanumeric() || b"._+-".contains(b) || *b >= 0x80;
    let is_domain = |b: &u8| b.is_ascii_alphanumeric() || b".-".contains(b) || *b >= 0x80;
    (1..=64).contains(&local.len())
        && local.iter().all(is_local)
        && domain.contains(&b'.')
        && domain.split(|b| *b == b'.').all(|label| !label.is_empty() && label.iter().all(is_domain))
}

/// The host of a URL of HTTP, also of one without its scheme (`//host/`), if nothing in it ends a URL.
fn url_host(value: &[u8], classes: u64) -> Option<&[u8]> {
    const NEVER: u64 = class::SPACE
        | bit(Syntax::QUOTE)
        | bit(Syntax::DOUBLE_QUOTE)
        | bit(Syntax::BACKTICK)
        | bit(Syntax::ANGLE)
        | bit(Syntax::BRACE)
        | bit(Syntax::BACKSLASH)
        | bit(Syntax::PIPE)
        | bit(Syntax::DOLLAR)
        | bit(Syntax::CONTROL)
        | bit(Syntax::DOTS);
    if classes & SLASH == 0 || classes & NEVER != 0 {
        return None;
    }
    let begins =
        |scheme: &[u8]| value.get(..scheme.len()).is_some_and(|head| head.eq_ignore_ascii_case(scheme));
    let schemes: [&[u8]; 3] = [b"https://", b"http://", b"//"];
    let scheme = schemes.into_iter().find(|scheme| begins(scheme))?;
    let rest = &value[scheme.len()..];
    let authority = rest.split(|b| matches!(b, b'/' | b'?' | b'#')).next().unwrap_or_default();
    // A name of a user in front of it leads elsewhere than it seems.
    if authority.is_empty() || authority.contains(&b'@') {
        return None;
    }
    let end = authority.iter().rposition(|b| *b == b':').unwrap_or(authority.len());
    Some(&authority[..end])
}

/// A path from the root, or one of plain segments.
fn is_path(value: &[u8], classes: u64) -> bool {
    let is_plain = is_within(
        classes,
        class::ALPHANUMERIC | class::UNDERSCORE | class::HYPHEN | class::DOT | SLASH | bit(Syntax::DASHES),
    );
    value.starts_with(b"/") && !value.starts_with(b"//") || is_plain
}

/// Equals signs stand at the end alone.
fn is_padded(value: &[u8]) -> bool {
    let end = value.iter().rposition(|b| *b != b'=').map_or(0, |at| at + 1);
    value.len() - end <= 2 && !value[..end].contains(&b'=')
}
