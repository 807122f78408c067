//! Encodings of single characters.

use memchr::memchr;

use super::{hex_digit, push_char};

/// `%HH` and `%uHHHH`. Where there is no space, a `+` that was sent as such is one.
pub(super) fn percent(text: &[u8], out: &mut Vec<u8>) -> bool {
    let plus_is_space = memchr(b' ', text).is_none();
    let copy = |out: &mut Vec<u8>, part: &[u8]| {
        let start = out.len();
        out.extend_from_slice(part);
        if plus_is_space {
            out[start..].iter_mut().filter(|b| **b == b'+').for_each(|b| *b = b' ');
        }
    };
    let mut rest = text;
    let mut decoded = false;
    while let Some(at) = memchr(b'%', rest) {
        copy(out, &rest[..at]);
        rest = &rest[at..];
        match rest {
            [_, a, b, tail @ ..] if let (Some(a), Some(b)) = (hex_digit(*a), hex_digit(*b)) => {
                out.push((a << 4 | b) as u8);
                (rest, decoded) = (tail, true);
            }
            [_, b'u' | b'U', tail @ ..] if let Some(code) = hex_number(tail, 4) => {
                push_char(out, code);
                (rest, decoded) = (&tail[4..], true);
            }
            _ => {
                out.push(b'%');
                rest = &rest[1..];
            }
        }
    }
    copy(out, rest);
    decoded
}

/// `+` for a space, where there is none and several of them stand.
pub(super) fn plus(text: &[u8], out: &mut Vec<u8>) -> bool {
    let parts_words = memchr(b' ', text).is_none() && memchr::memchr_iter(b'+', text).nth(1).is_some();
    if parts_words {
        out.extend(text.iter().map(|b| if *b == b'+' { b' ' } else { *b }));
    }
    parts_words
}

fn hex_number(text: &[u8], digits: usize) -> Option<u32> {
    text.get(..digits)?.iter().try_fold(0, |number, &b| Some(number << 4 | hex_digit(b)?))
}

/// References by number, and by the names that stand for signs.
pub(super) fn entities(text: &[u8], out: &mut Vec<u8>) -> bool {
    let mut rest = text;
    let mut decoded = false;
    while let Some(at) = memchr(b'&', rest) {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        match entity(rest) {
            Some((code, used)) => {
                push_char(out, code);
                rest = &rest[used..];
                rest = rest.strip_prefix(b";").unwrap_or(rest);
                decoded = true;
            }
            None => out.push(b'&'),
        }
    }
    out.extend_from_slice(rest);
    decoded
}

/// The character that the reference after an ampersand stands for, and its length without the semicolon.
fn entity(text: &[u8]) -> Option<(u32, usize)> {
    if let [b'#', number @ ..] = text {
        let (digits, radix, before) = match number {
            [b'x' | b'X', digits @ ..] => (digits, 16, 2),
            digits => (digits, 10, 1),
        };
        let count = digits.iter().take(12).take_while(|b| (**b as char).is_digit(radix)).count();
        let code = digits[..count].iter().fold(0u32, |number, b| {
            number.saturating_mul(radix).saturating_add((*b as char).to_digit(radix).unwrap_or(0))
        });
        return (count > 0).then_some((code, before + count));
    }
    let name = &text[..text.iter().take(12).take_while(|b| b.is_ascii_alphanumeric()).count()];
    // HTML takes these without a semicolon, and then as the beginning of a longer word.
    let short = [(&b"lt"[..], b'<'), (b"gt", b'>'), (b"amp", b'&'), (b"quot", b'"')];
    let has_semicolon = text.get(name.len()) == Some(&b';');
    if !has_semicolon {
        // `&ltimg`: the beginning of a longer word; `&ampere` and `&quotes` are names of parameters.
        let begins = |known: &[u8]| {
            matches!(known, b"lt" | b"gt")
                && name.get(..known.len()).is_some_and(|head| head.eq_ignore_ascii_case(known))
                && name.get(known.len()).is_some_and(u8::is_ascii_alphabetic)
        };
        if let Some((known, byte)) = short.iter().find(|(known, _)| begins(known)) {
            return Some((u32::from(*byte), known.len()));
        }
        return short
            .iter()
            .find(|(known, _)| name.len() == known.len() && name.eq_ignore_ascii_case(known))
            .map(|(known, byte)| (u32::from(*byte), known.len()));
    }
    let sign = ENTITIES.iter().find(|(known, _)| name.eq_ignore_ascii_case(known.as_bytes()))?;
    Some((u32::from(sign.1), name.len()))
}

/// Signs of ASCII that have names in HTML.
const ENTITIES: &[(&str, char)] = &[
    ("lt", '<'),
    ("gt", '>'),
    ("amp", '&'),
    ("quot", '"'),
    ("apos", '\''),
    ("nbsp", ' '),
    ("tab", '\t'),
    ("newline", '\n'),
    ("lpar", '('),
    ("rpar", ')'),
    ("colon", ':'),
    ("semi", ';'),
    ("comma", ','),
    ("period", '.'),
    ("sol", '/'),
    ("bsol", '\\'),
    ("equals", '='),
    ("num", '#'),
    ("excl", '!'),
    ("quest", '?'),
    ("percnt", '%'),
    ("dollar", '$'),
    ("commat", '@'),
    ("plus", '+'),
    ("ast", '*'),
    ("hyphen", '-'),
    ("dash", '-'),
    ("grave", '`'),
    ("lcub", '{'),
    ("lbrace", '{'),
    ("rcub", '}'),
    ("rbrace", '}'),
    ("lsqb", '['),
    ("lbrack", '['),
    ("rsqb", ']'),
    ("rbrack", ']'),
    ("verbar", '|'),
    ("vert", '|'),
    ("lowbar", '_'),
    ("hat", '^'),
];

/// `\uHHHH`, `\u{H...}`, `\xHH` and `\OOO`. Other escapes stay, for a lone `\n` may be part of a path; not
/// where an escape (`\033`) says that a string of a program stands there.
pub(super) fn escapes(text: &[u8], out: &mut Vec<u8>) -> bool {
    let mut rest = text;
    let mut decoded = false;
    let is_string =
        memchr::memmem::find(text, b"\\033[").is_some() || memchr::memmem::find(text, b"\\x1b[").is_some();
    while let Some(at) = memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        let code = match rest {
            [b'u' | b'U', b'{', tail @ ..] => {
                let digits = tail.iter().take(7).take_while(|b| b.is_ascii_hexdigit()).count();
                let is_whole = digits > 0 && tail.get(digits) == Some(&b'}');
                is_whole.then(|| (hex_number(tail, digits).unwrap_or(0), digits + 3))
            }
            [b'u' | b'U', tail @ ..] => hex_number(tail, 4).map(|code| (code, 5)),
            [b'x' | b'X', tail @ ..] => hex_number(tail, 2).map(|code| (code, 3)),
            [b'n' | b'r', ..] if is_string => Some((u32::from(b'\n'), 1)),
            [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..] => {
                Some((u32::from(a - b'0') << 6 | u32::from(b - b'0') << 3 | u32::from(c - b'0'), 3))
            }
            // Two digits are a sign of ASCII: `\74img`.
            [a @ b'4'..=b'7', b @ b'0'..=b'7', ..] => {
                Some((u32::from(a - b'0') << 3 | u32::from(b - b'0'), 2))
            }
            _ => None,
        };
        match code {
            Some((code, used)) => {
                push_char(out, code);
                rest = &rest[used..];
                decoded = true;
            }
            None => out.push(b'\\'),
        }
    }
    out.extend_from_slice(rest);
    decoded
}

/// Characters that look like ASCII signs, or that lax decoders and old code pages turn into them.
pub(super) fn fold(text: &[u8], out: &mut Vec<u8>) -> bool {
    let mut rest = text;
    let mut folded = false;
    while let Some(at) = rest.iter().position(|&b| b >= 0x80) {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        match look_alike(rest) {
            Some((ascii, used)) => {
                out.extend_from_slice(ascii.as_bytes());
                rest = &rest[used..];
                folded = true;
            }
            None => {
                out.push(rest[0]);
                rest = &rest[1..];
            }
        }
    }
    out.extend_from_slice(rest);
    folded
}

/// All of ASCII, to take one-character strings from.
const ASCII: &str = "\0\x01\x02\x03\x04\x05\x06\x07\x08\t\n\x0b\x0c\r\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\
\x1b\x1c\x1d\x1e\x1f !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~\x7f";

fn look_alike(text: &[u8]) -> Option<(&'static str, usize)> {
    let ascii = |code: u8| ASCII.get(usize::from(code)..usize::from(code) + 1);
    match text {
        [a @ (0xC0 | 0xC1), b, ..] => Some((ascii((a & 1) << 6 | b & 0x3F)?, 2)),
        [0xE0, b @ 0x80..=0x81, c, ..] => Some((ascii((b & 1) << 6 | c & 0x3F)?, 3)),
        [0xF0, 0x80, c @ 0x80..=0x81, d, ..] => Some((ascii((c & 1) << 6 | d & 0x3F)?, 4)),
        [0xEF, 0xBC, c @ 0x81..=0xBF, ..] => Some((ascii(c - 0x60)?, 3)),
        [0xEF, 0xBD, c @ 0x80..=0x9E, ..] => Some((ascii(c - 0x20)?, 3)),
        [0xC2, 0xA0, ..] => Some((" ", 2)),
        [0xC2, 0xB4, ..] | [0xCA, 0xB9 | 0xBB | 0xBC, ..] => Some(("'", 2)),
        [0xCA, 0xBA, ..] => Some(("\"", 2)),
        [0xE3, 0x80, 0x80, ..] => Some((" ", 3)),
        [0xE2, 0x80, c, ..] => match c {
            0x80..=0x8A | 0xA8 | 0xA9 | 0xAF => Some((" ", 3)),
            0x8B..=0x8F => Some(("", 3)),
            // What word processors make of two hyphens; in a sentence it is a dash, and for code pages one
            // hyphen.
            0x93 | 0x94 if text[3..].trim_ascii().is_empty() => Some(("--", 3)),
            0x93 | 0x94 => Some(("-", 3)),
            0x98 | 0x99 | 0x9B | 0xB2 => Some(("'", 3)),
            0x9C | 0x9D | 0x9F | 0xB3 => Some(("\"", 3)),
            _ => None,
        },
        _ => None,
    }
}
