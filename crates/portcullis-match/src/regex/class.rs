//! Byte classes: `\d` and its kin, `[...]`, POSIX names.

use super::RegexError;
use super::cursor::{Cursor, error};
use super::escape::{self, Escape};
use regex_syntax::hir::{ClassBytes, ClassBytesRange};

/// Every byte.
pub(super) fn any() -> ClassBytes {
    ranges(&[(0, 255)])
}

/// One byte.
pub(super) fn only(byte: u8) -> ClassBytes {
    ranges(&[(byte, byte)])
}

/// Every byte but the newline.
pub(super) fn not_newline() -> ClassBytes {
    negated(ranges(&[(b'\n', b'\n')]))
}

/// `\v`: the bytes that end a line on their own.
pub(super) fn vertical_space() -> ClassBytes {
    ranges(&[(0x0a, 0x0d), (0x85, 0x85)])
}

/// An ASCII letter in both cases.
pub(super) fn both_cases(letter: u8) -> ClassBytes {
    let (upper, lower) = (letter.to_ascii_uppercase(), letter.to_ascii_lowercase());
    ranges(&[(upper, upper), (lower, lower)])
}

/// The class of `\d`, `\D` and so on, as PCRE has them in the C locale and without UTF mode. `\s` has the
/// vertical tab, as since PCRE 8.34.
pub(super) fn of_escape(letter: u8) -> Option<ClassBytes> {
    let class = match letter.to_ascii_lowercase() {
        b'd' => ranges(&[(b'0', b'9')]),
        b's' => ranges(&[(0x09, 0x0d), (b' ', b' ')]),
        b'w' => ranges(&[(b'0', b'9'), (b'A', b'Z'), (b'_', b'_'), (b'a', b'z')]),
        b'h' => ranges(&[(b'\t', b'\t'), (b' ', b' '), (0xa0, 0xa0)]),
        b'v' => vertical_space(),
        _ => return None,
    };
    Some(if letter.is_ascii_uppercase() { negated(class) } else { class })
}

/// The options for reading a class.
#[derive(Clone, Copy)]
pub(super) struct Options {
    /// ASCII letters stand for both cases.
    pub(super) fold: bool,
    /// `(?xx)`: blanks and tabs mean nothing.
    pub(super) extended_classes: bool,
}

/// Reads `[...]`; the cursor is behind the opening bracket, which was at `start`.
///
/// `[`, `&&`, `--` and `~~` are plain bytes here; a `]` that comes first is literal; a hyphen is literal at
/// either end and next to a class such as `\w`.
pub(super) fn bracketed(
    cursor: &mut Cursor<'_>,
    start: usize,
    options: Options,
) -> Result<ClassBytes, RegexError> {
    let negate = cursor.eat(b"^");
    let mut class = ClassBytes::empty();
    let mut first = true;
    let mut quoting = false;
    loop {
        let at = cursor.offset();
        if options.extended_classes && !quoting && matches!(cursor.peek(), Some(b' ' | b'\t')) {
            cursor.skip(1);
            continue;
        }
        let item = match next_item(cursor, start, &mut quoting, first)? {
            Item::End => break,
            Item::Nothing => continue,
            item @ (Item::Byte(_) | Item::Class(_)) => item,
        };
        first = false;
        let low = match item {
            Item::Class(set) => {
                class.union(&set);
                continue;
            }
            Item::Byte(byte) => byte,
            Item::End | Item::Nothing => continue,
        };
        match range_end(cursor, start, &mut quoting)? {
            Some(high) if high < low => return error(at, "the range's end is below its start"),
            Some(high) => class.push(ClassBytesRange::new(low, high)),
            None => class.push(ClassBytesRange::new(low, low)),
        }
    }
    if options.fold {
        class.case_fold_simple();
    }
    if negate {
        class.negate();
    }
    Ok(class)
}

enum Item {
    Byte(u8),
    Class(ClassBytes),
    /// `\E`, `\Q`: changes how the next bytes read.
    Nothing,
    End,
}

fn next_item(
    cursor: &mut Cursor<'_>,
    start: usize,
    quoting: &mut bool,
    first: bool,
) -> Result<Item, RegexError> {
    let at = cursor.offset();
    if *quoting && cursor.eat(b"\\E") {
        *quoting = false;
        return Ok(Item::Nothing);
    }
    let Some(byte) = cursor.next() else {
        return error(start, "this class is not closed");
    };
    if *quoting {
        return Ok(Item::Byte(byte));
    }
    Ok(match byte {
        b']' if !first => Item::End,
        b'[' if matches!(cursor.peek(), Some(b':' | b'.' | b'=')) => match posix(cursor, at)? {
            Some(class) => Item::Class(class),
            None => Item::Byte(b'['),
        },
        b'\\' => match escape::inside_class(cursor, at)? {
            Escape::Byte(byte) => Item::Byte(byte),
            Escape::Class(class) => Item::Class(class),
            Escape::QuoteStart => {
                *quoting = true;
                Item::Nothing
            }
            Escape::Look(_)
            | Escape::LineEnding
            | Escape::EndOrNewline
            | Escape::Keep
            | Escape::BackReference(_)
            | Escape::RelativeReference(_)
            | Escape::NamedReference(_)
            | Escape::QuoteEnd => Item::Nothing,
        },
        byte => Item::Byte(byte),
    })
}

/// After one byte of a class: the other end, if `-` and a single byte follow. Otherwise the cursor stays.
fn range_end(cursor: &mut Cursor<'_>, start: usize, quoting: &mut bool) -> Result<Option<u8>, RegexError> {
    if *quoting && cursor.eat(b"\\E") {
        *quoting = false;
    }
    if *quoting {
        return Ok(None);
    }
    while cursor.eat(b"\\E") || cursor.eat(b"\\Q\\E") {}
    let mut ahead = *cursor;
    if !ahead.eat(b"-") {
        return Ok(None);
    }
    let mut ahead_quoting = false;
    loop {
        match next_item(&mut ahead, start, &mut ahead_quoting, false)? {
            Item::Nothing => continue,
            Item::Byte(high) => {
                *cursor = ahead;
                *quoting = ahead_quoting;
                return Ok(Some(high));
            }
            // `[a-]` and `[a-\d]`: the hyphen is itself.
            Item::End | Item::Class(_) => return Ok(None),
        }
    }
}

/// Reads `:name:]` behind a `[`; none if it only looks like one, and the bracket is literal.
fn posix(cursor: &mut Cursor<'_>, at: usize) -> Result<Option<ClassBytes>, RegexError> {
    let mut ahead = *cursor;
    let kind = ahead.next();
    let negate = ahead.eat(b"^");
    let name = ahead.take_while(usize::MAX, |b| b.is_ascii_alphabetic());
    if ahead.next() != kind || !ahead.eat(b"]") {
        return Ok(None);
    }
    if kind != Some(b':') {
        return error(at, "POSIX collating elements are not supported, as in PCRE");
    }
    let class = match name {
        b"alnum" => ranges(&[(b'0', b'9'), (b'A', b'Z'), (b'a', b'z')]),
        b"alpha" => ranges(&[(b'A', b'Z'), (b'a', b'z')]),
        b"ascii" => ranges(&[(0, 127)]),
        b"blank" => ranges(&[(b'\t', b'\t'), (b' ', b' ')]),
        b"cntrl" => ranges(&[(0, 31), (127, 127)]),
        b"digit" => ranges(&[(b'0', b'9')]),
        b"graph" => ranges(&[(b'!', b'~')]),
        b"lower" => ranges(&[(b'a', b'z')]),
        b"print" => ranges(&[(b' ', b'~')]),
        b"punct" => ranges(&[(b'!', b'/'), (b':', b'@'), (b'[', b'`'), (b'{', b'~')]),
        b"space" => ranges(&[(0x09, 0x0d), (b' ', b' ')]),
        b"upper" => ranges(&[(b'A', b'Z')]),
        b"word" => ranges(&[(b'0', b'9'), (b'A', b'Z'), (b'_', b'_'), (b'a', b'z')]),
        b"xdigit" => ranges(&[(b'0', b'9'), (b'A', b'F'), (b'a', b'f')]),
        _ => return error(at, "unknown POSIX class name"),
    };
    *cursor = ahead;
    Ok(Some(if negate { negated(class) } else { class }))
}

fn ranges(pairs: &[(u8, u8)]) -> ClassBytes {
    ClassBytes::new(pairs.iter().map(|&(low, high)| ClassBytesRange::new(low, high)))
}

fn negated(mut class: ClassBytes) -> ClassBytes {
    class.negate();
    class
}
