//! One character of a path, whatever it was written as.

/// A character and how it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    /// The character; what is not ASCII stays a byte from 0x80.
    pub byte: u8,
    /// Bytes it was written with.
    pub len: usize,
    /// The way it was written.
    pub writing: Writing,
}

/// The way a character was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Writing {
    /// As itself.
    Plain,
    /// `%2e`
    Encoded,
    /// As no client writes it: twice encoded, overlong, `%u002e`, `0x2e`, or a character that only looks like
    /// it.
    Odd,
    /// A broken escape, which stands for nothing (`%c0%9v`): some decoders make a separator of it.
    Broken,
}

/// The first character of `text`, which is not empty.
pub fn unit(text: &[u8]) -> Unit {
    let odd = |byte, len| Unit { byte, len, writing: Writing::Odd };
    match text {
        [b'%', ..] => percent(text),
        [b'0', b'x' | b'X', b'2', b'e' | b'E', ..] => odd(b'.', 4),
        [b'0', b'x' | b'X', b'2', b'f' | b'F', ..] => odd(b'/', 4),
        [b'0', b'x' | b'X', b'5', b'c' | b'C', ..] => odd(b'\\', 4),
        [b'\\', b'x', b'2', b'e' | b'E', ..] => odd(b'.', 4),
        [b'\\', b'x', b'2', b'f' | b'F', ..] => odd(b'/', 4),
        [first @ 0x80..=0xFF, ..] => match high(*first, text, 1) {
            Some((byte, len)) => odd(byte, len),
            None => Unit { byte: *first, len: 1, writing: Writing::Plain },
        },
        _ => Unit { byte: text.first().copied().unwrap_or(0), len: 1, writing: Writing::Plain },
    }
}

fn percent(text: &[u8]) -> Unit {
    let plain = Unit { byte: b'%', len: 1, writing: Writing::Plain };
    let start = behind_percent(text, 0);
    if let [b'u' | b'U', rest @ ..] = &text[start..] {
        let Some(code) = hex(rest, 4) else { return plain };
        let byte = look_alike(code).unwrap_or(if code < 0x80 { code as u8 } else { 0xFF });
        return Unit { byte, len: start + 5, writing: Writing::Odd };
    }
    match byte_at(text, 0) {
        Some((first @ 0x80.., len)) => match high(first, text, len) {
            Some((byte, len)) => Unit { byte, len, writing: Writing::Odd },
            // An overlong form that stands for nothing in particular; valid UTF-8 never begins so.
            None if matches!(first, 0xC0 | 0xC1) => {
                let next = byte_at(text, len).map_or_else(|| broken(text, len), |(_, len)| len);
                Unit { byte: first, len: len + next, writing: Writing::Broken }
            }
            None => Unit { byte: first, len, writing: Writing::Encoded },
        },
        Some((byte, len)) => {
            let writing = if len == 3 { Writing::Encoded } else { Writing::Odd };
            Unit { byte, len, writing }
        }
        None => match broken(text, 0) {
            0 => plain,
            len => Unit { byte: 0xFF, len, writing: Writing::Broken },
        },
    }
}

/// The length of `%` and two letters or digits that are not hexadecimal, at `at`.
fn broken(text: &[u8], at: usize) -> usize {
    match text.get(at..) {
        Some([b'%', a, b, ..]) if a.is_ascii_alphanumeric() && b.is_ascii_alphanumeric() => 3,
        _ => 0,
    }
}

/// Behind a percent sign at `at`, however often it was itself encoded: `%`, `%25`, `%2525`.
fn behind_percent(text: &[u8], at: usize) -> usize {
    let mut next = at + 1;
    while text[next.min(text.len())..].starts_with(b"25")
        && text.get(next + 2).is_some_and(|b| b.is_ascii_hexdigit() || matches!(b, b'%' | b'u' | b'U'))
    {
        next += 2;
    }
    next
}

/// The byte that an escape at `at` stands for, and the escape's length. The digits may be escapes themselves,
/// even with a percent sign too many (`%%32%%65`).
fn byte_at(text: &[u8], at: usize) -> Option<(u8, usize)> {
    if text.get(at) != Some(&b'%') {
        return None;
    }
    let start = behind_percent(text, at);
    let (high, used) = digit(text, start)?;
    let (low, more) = digit(text, start + used)?;
    Some((high << 4 | low, start + used + more - at))
}

fn digit(text: &[u8], at: usize) -> Option<(u8, usize)> {
    let first = *text.get(at)?;
    if let Some(value) = value(first) {
        return Some((value, 1));
    }
    let at_escape = at + usize::from(first == b'%' && text.get(at + 1) == Some(&b'%'));
    let code = match text.get(at_escape..at_escape + 3)? {
        [b'%', a, b] => value(*a)? << 4 | value(*b)?,
        _ => return None,
    };
    Some((value(code)?, at_escape + 3 - at))
}

fn value(b: u8) -> Option<u8> {
    (b as char).to_digit(16).map(|value| value as u8)
}

fn hex(text: &[u8], digits: usize) -> Option<u32> {
    text.get(..digits)?.iter().try_fold(0, |code, &b| Some(code << 4 | u32::from(value(b)?)))
}

/// A dot or a separator written as more than one byte, of which `first` was read: overlong UTF-8 and
/// look-alikes. `used` is the length of `first`'s writing.
fn high(first: u8, text: &[u8], used: usize) -> Option<(u8, usize)> {
    let sign = |code: u32| matches!(code, 0x2E | 0x2F | 0x5C).then_some(code as u8);
    let next = |at: usize| -> Option<(u8, usize)> {
        match text.get(at)? {
            b'%' => byte_at(text, at),
            // `%c0ae`
            a if used > 1 => Some((value(*a)? << 4 | value(*text.get(at + 1)?)?, 2)),
            raw => Some((*raw, 1)),
        }
    };
    let more = match first {
        0xC0 | 0xC1 => 1,
        0xE0 | 0xE2 | 0xEF | 0xEE => 2,
        0xF0 => 3,
        0xF8 => 4,
        0xFC => 5,
        _ => return None,
    };
    let (mut at, mut last, mut before) = (used, 0u8, first);
    let mut code = 0u32;
    for index in 0..more {
        let (byte, len) = next(at)?;
        at += len;
        if more > 1 && index > 0 {
            before = last;
        }
        if matches!(first, 0xE0 | 0xF0 | 0xF8 | 0xFC) && index + 2 < more && byte & 0x3F != 0 {
            return None;
        }
        code = code << 6 | u32::from(byte & 0x3F);
        last = byte;
    }
    let found = match first {
        // Lax decoders take the low bits of whatever follows, or drop the first byte.
        0xC0 | 0xC1 => sign(u32::from(first & 1) << 6 | u32::from(last & 0x3F)).or(sign(u32::from(last))),
        0xE2 | 0xEE | 0xEF => look_alike(u32::from(first & 0x0F) << 12 | code),
        _ if before & 0x3F <= 1 => sign(u32::from(before & 1) << 6 | u32::from(last & 0x3F)),
        _ => None,
    };
    Some((found?, at))
}

/// The dot or separator that a character looks like, or that code pages turn it to.
fn look_alike(code: u32) -> Option<u8> {
    match code {
        0x2E | 0x2F | 0x5C => Some(code as u8),
        0xFF0E | 0x2024 | 0xFE52 => Some(b'.'),
        0xFF0F | 0x2044 | 0x2215 | 0x29F8 | 0xEFC8 => Some(b'/'),
        0xFF3C | 0x2216 | 0x29F5 | 0xFE68 | 0xF025 => Some(b'\\'),
        _ => None,
    }
}
