//! Parsing of escape sequences, outside and inside a bracketed class.

use super::RegexError;
use super::class;
use super::cursor::{Cursor, error, number, unsupported};
use regex_syntax::hir::{ClassBytes, Look};

/// The meaning of one escape sequence.
pub(super) enum Escape {
    /// A single byte.
    Byte(u8),
    /// Any byte of a set, such as `\d`.
    Class(ClassBytes),
    /// A position, such as `\b`.
    Look(Look),
    /// `\R`: a line ending, of one or two bytes.
    LineEnding,
    /// `\Z`: the end, or before a newline that ends the text.
    EndOrNewline,
    /// `\K`: the match begins here.
    Keep,
    /// `\1`, `\g{1}`: what the group of that number matched.
    BackReference(u32),
    /// `\g{-1}`: counted back from here.
    RelativeReference(u32),
    /// `\k<name>`, `\g{name}`.
    NamedReference(Vec<u8>),
    /// `\Q`: what follows is literal up to `\E`.
    QuoteStart,
    /// `\E` without `\Q`: nothing.
    QuoteEnd,
}

/// Reads an escape; the cursor is behind the backslash, which was at `start`. `groups` counts the capture
/// groups opened so far: it decides whether `\12` is a back reference or an octal byte, as in PCRE.
pub(super) fn outside_class(
    cursor: &mut Cursor<'_>,
    start: usize,
    groups: u32,
) -> Result<Escape, RegexError> {
    let Some(letter) = cursor.next() else {
        return error(start, "the pattern ends with a lone backslash");
    };
    Ok(match letter {
        b'A' | b'G' => Escape::Look(Look::Start),
        b'z' => Escape::Look(Look::End),
        b'Z' => Escape::EndOrNewline,
        b'b' => Escape::Look(Look::WordAscii),
        b'B' => Escape::Look(Look::WordAsciiNegate),
        b'R' => Escape::LineEnding,
        b'C' => Escape::Class(class::any()),
        b'N' if cursor.peek() != Some(b'{') || looks_like_count(cursor.rest()) => {
            Escape::Class(class::not_newline())
        }
        b'Q' => Escape::QuoteStart,
        b'E' => Escape::QuoteEnd,
        b'K' => Escape::Keep,
        b'X' => return unsupported(start, "`\\X` (grapheme) is not supported: patterns work on bytes"),
        b'g' if matches!(cursor.peek(), Some(b'<' | b'\'')) => {
            return unsupported(start, "a call of a group as a subroutine is not supported");
        }
        b'g' | b'k' => reference(cursor, start)?,
        b'1'..=b'9' => {
            let mut ahead = *cursor;
            let mut digits = vec![letter];
            digits.extend_from_slice(ahead.take_while(8, |b| b.is_ascii_digit()));
            let group = number(&digits, 10).unwrap_or(u32::MAX);
            if group < 10 || (group <= groups && letter < b'8') {
                *cursor = ahead;
                return Ok(Escape::BackReference(group));
            }
            Escape::Byte(octal_or_digit(cursor, start, letter)?)
        }
        _ => shared(cursor, start, letter)?,
    })
}

/// Reads an escape inside `[...]`; the cursor is behind the backslash, which was at `start`.
pub(super) fn inside_class(cursor: &mut Cursor<'_>, start: usize) -> Result<Escape, RegexError> {
    let Some(letter) = cursor.next() else {
        return error(start, "the pattern ends with a lone backslash");
    };
    Ok(match letter {
        b'b' => Escape::Byte(0x08),
        b'B' | b'R' | b'X' | b'N' => {
            return error(start, format!("`\\{}` has no meaning inside a class", char::from(letter)));
        }
        b'Q' => Escape::QuoteStart,
        b'E' => Escape::QuoteEnd,
        b'1'..=b'9' => Escape::Byte(octal_or_digit(cursor, start, letter)?),
        _ => shared(cursor, start, letter)?,
    })
}

/// Parses the reference after `\g` and `\k`: `1`, `-1`, `{1}`, `{-1}`, `{name}`, `<name>`, `'name'`.
fn reference(cursor: &mut Cursor<'_>, start: usize) -> Result<Escape, RegexError> {
    let closing = match cursor.peek() {
        Some(b'{') => Some(b'}'),
        Some(b'<') => Some(b'>'),
        Some(b'\'') => Some(b'\''),
        _ => None,
    };
    cursor.skip(usize::from(closing.is_some()));
    let back = cursor.eat(b"-");
    let is_part = |b: u8| b.is_ascii_digit() || (closing.is_some() && (b.is_ascii_alphabetic() || b == b'_'));
    let name = cursor.take_while(32, is_part);
    if let Some(closing) = closing
        && !cursor.eat(&[closing])
    {
        return error(start, "this reference is not closed");
    }
    match number(name, 10) {
        Some(count) if back => Ok(Escape::RelativeReference(count)),
        Some(0) => error(start, "there is no group 0 to refer to"),
        Some(group) => Ok(Escape::BackReference(group)),
        None if name.is_empty() || back || closing.is_none() => {
            error(start, "a group's number or name is missing")
        }
        None => Ok(Escape::NamedReference(name.to_vec())),
    }
}

/// The escapes that mean the same inside and outside a class.
fn shared(cursor: &mut Cursor<'_>, start: usize, letter: u8) -> Result<Escape, RegexError> {
    if let Some(class) = class::of_escape(letter) {
        return Ok(Escape::Class(class));
    }
    let byte = match letter {
        b'a' => 0x07,
        b'e' => 0x1b,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'0' => {
            let digits = cursor.take_while(2, is_octal);
            if digits.is_empty() { 0 } else { byte(start, digits, 8)? }
        }
        b'o' => braced(cursor, start, 8)?,
        b'x' if cursor.peek() == Some(b'{') => braced(cursor, start, 16)?,
        b'x' => {
            let digits = cursor.take_while(2, |b| b.is_ascii_hexdigit());
            if digits.is_empty() { 0 } else { byte(start, digits, 16)? }
        }
        b'c' => match cursor.next() {
            Some(control @ b' '..=b'~') => control.to_ascii_uppercase() ^ 0x40,
            _ => return error(start, "`\\c` needs a printable ASCII character after it"),
        },
        b'p' | b'P' => {
            return unsupported(start, "Unicode properties are not supported: patterns work on bytes");
        }
        b'l' | b'L' | b'u' | b'U' | b'N' => {
            return error(start, format!("`\\{}` is not supported, as in PCRE", char::from(letter)));
        }
        letter if letter.is_ascii_alphanumeric() => {
            return error(start, format!("`\\{}` is not a known escape", char::from(letter)));
        }
        other => other,
    };
    Ok(Escape::Byte(byte))
}

/// `\12`: up to three octal digits; `\8` and `\9` are the digit itself.
fn octal_or_digit(cursor: &mut Cursor<'_>, start: usize, first: u8) -> Result<u8, RegexError> {
    if !is_octal(first) {
        return Ok(first);
    }
    let mut digits = vec![first];
    digits.extend_from_slice(cursor.take_while(2, is_octal));
    byte(start, &digits, 8)
}

/// `\x{bc}`, `\o{274}`: one byte. PCRE without its UTF mode reads it the same way.
fn braced(cursor: &mut Cursor<'_>, start: usize, radix: u32) -> Result<u8, RegexError> {
    let valid = |b: u8| char::from(b).is_digit(radix);
    if !cursor.eat(b"{") {
        return error(start, "`\\o` needs digits in braces after it");
    }
    let digits = cursor.take_while(usize::MAX, valid);
    if digits.is_empty() || !cursor.eat(b"}") {
        return error(start, "expected digits and a closing brace");
    }
    byte(start, digits, radix)
}

fn byte(start: usize, digits: &[u8], radix: u32) -> Result<u8, RegexError> {
    let significant = digits.iter().position(|&b| b != b'0').unwrap_or(digits.len() - 1);
    match number(&digits[significant..], radix).map(u8::try_from) {
        Some(Ok(byte)) => Ok(byte),
        _ => error(start, "character code above 255: patterns work on bytes"),
    }
}

fn is_octal(byte: u8) -> bool {
    (b'0'..=b'7').contains(&byte)
}

/// True if `text` starts with `{n}`, `{n,}` or `{n,m}`; `{,n}` is literal text in PCRE.
pub(super) fn looks_like_count(text: &[u8]) -> bool {
    text.first() == Some(&b'{') && looks_like_count_tail(&text[1..])
}

/// The same behind the opening brace.
pub(super) fn looks_like_count_tail(text: &[u8]) -> bool {
    let mut cursor = Cursor::new(text);
    if cursor.take_while(usize::MAX, |b| b.is_ascii_digit()).is_empty() {
        return false;
    }
    if cursor.eat(b",") {
        cursor.take_while(usize::MAX, |b| b.is_ascii_digit());
    }
    cursor.eat(b"}")
}
