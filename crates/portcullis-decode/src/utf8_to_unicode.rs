//! # `utf8toUnicode`
//!
//! Writes each UTF-8 sequence of two to four bytes as `%uhhhh` (lower-case digits, at least four), so that
//! rules and `urlDecodeUni` see the character. Details are ModSecurity's, and CRS rules look for some of
//! them:
//!
//! * behind an overlong form or a surrogate the first byte of the sequence is repeated: `C0 AF` becomes
//!   `%u002f` `C0`;
//! * a first byte that its sequence does not follow is dropped; F5 to F7 stay, and a sequence they begin is
//!   also written;
//! * a continuation byte on its own and F8 to FF stay;
//! * NUL bytes are dropped.
//!
//! Result: at most four times as long as the input.
//! Example: `‹x` becomes `%u2039x`.

use crate::scan::Table;
use portcullis_types::ByteSet;

pub(crate) static TRIGGERS: Table = Table::of(ByteSet::range(0x80, 0xff).with(0));

pub(crate) fn utf8_to_unicode(clean: &[u8], rest: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(clean);
    let mut rest = rest;
    while let Some((&first, tail)) = rest.split_first() {
        let len = match first {
            0 => {
                rest = tail;
                continue;
            }
            0xc0..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf7 => 4,
            _ => {
                out.push(first);
                rest = tail;
                continue;
            }
        };
        if first >= 0xf5 {
            out.push(first);
        }
        let Some(code) = sequence(rest, len) else {
            rest = tail;
            continue;
        };
        write_code(code, out);
        let overlong = code < [0x80, 0x800, 0x1_0000][len - 2];
        let surrogate = (0xd800..=0xdfff).contains(&code);
        let repeats = usize::from(overlong) + usize::from(surrogate);
        out.extend(std::iter::repeat_n(first, repeats));
        rest = &rest[len..];
    }
}

/// The number that a sequence of `len` bytes spells, if continuation bytes follow the first.
fn sequence(text: &[u8], len: usize) -> Option<u32> {
    let (first, tail) = text.get(..len)?.split_first()?;
    let lead = u32::from(*first) & (0x7f >> len);
    tail.iter().try_fold(lead, |code, &b| (b & 0xc0 == 0x80).then(|| code << 6 | u32::from(b & 0x3f)))
}

fn write_code(code: u32, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.extend_from_slice(b"%u");
    let len = (32 - code.leading_zeros()).div_ceil(4).max(4);
    out.extend((0..len).rev().map(|digit| DIGITS[(code >> (4 * digit)) as usize & 15]));
}
