//! # `cmdLine`
//!
//! Undoes the noise that shells ignore: drops `"`, `'`, `\` and `^`; turns each run of blanks, commas, semicolons,
//! tabs and line ends into one blank; drops a blank before `/` and `(`; turns letters into lower case.
//!
//! Result: at most as long as the input. Not idempotent: dropping a backslash may bring two blanks together.
//! Example: `C^at  "/e\tc` becomes `cat/etc`.
//!
//! ModSecurity 2 stops at a NUL byte, so that what stands behind one escapes its rules; here and in ModSecurity 3 a
//! NUL is a byte like others.

use crate::scan::Table;
use portcullis_types::ByteSet;

pub(crate) static TRIGGERS: Table =
    Table::of(ByteSet::of(b"\"'\\^ ,;\t\r\n").union(ByteSet::range(b'A', b'Z')));

/// What a byte is, in [`KINDS`].
const PLAIN: u8 = 0;
const DROPPED: u8 = 1;
const BLANK: u8 = 2;
/// `/` and `(`, which take a blank before them away.
const TAKES_BLANK: u8 = 3;

static KINDS: [u8; 256] = {
    let mut kinds = [PLAIN; 256];
    let (dropped, blank, takes) = (b"\"'\\^", b" ,;\t\r\n", b"/(");
    let mut i = 0;
    while i < 256 {
        let byte = i as u8;
        if ByteSet::of(dropped).contains(byte) {
            kinds[i] = DROPPED;
        } else if ByteSet::of(blank).contains(byte) {
            kinds[i] = BLANK;
        } else if ByteSet::of(takes).contains(byte) {
            kinds[i] = TAKES_BLANK;
        }
        i += 1;
    }
    kinds
};

/// Bytes that are looked at together.
const BLOCK: usize = 16;

pub(crate) fn cmd_line(clean: &[u8], rest: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(clean);
    let mut end = out.len();
    out.resize(end + rest.len(), 0);
    // The last byte written is a blank that came from `rest`.
    let mut blank = false;
    for block in rest.chunks(BLOCK) {
        if let Some(block) = block.first_chunk::<BLOCK>()
            && !(blank && block[0] == b' ')
            && is_prose(block)
        {
            let place = &mut out[end..end + BLOCK];
            place.copy_from_slice(block);
            place.make_ascii_lowercase();
            end += BLOCK;
            blank = block[BLOCK - 1] == b' ';
            continue;
        }
        // Without a branch for each byte: blanks come too often to be foreseen.
        for &byte in block {
            let kind = KINDS[usize::from(byte)];
            end -= usize::from(blank & (kind == TAKES_BLANK));
            out[end] = if kind == BLANK { b' ' } else { byte.to_ascii_lowercase() };
            end += usize::from((kind != DROPPED) & !(blank & (kind == BLANK)));
            blank = (kind == BLANK) | (blank & (kind == DROPPED));
        }
    }
    out.truncate(end);
}

/// True if nothing happens to these bytes but that letters become lower case. Written so that the compiler makes vector code of it.
fn is_prose(block: &[u8; BLOCK]) -> bool {
    let acts = |byte: u8| {
        // `"` to `/` has `"`, `'`, `(`, `,` and `/`, with others that are rare in texts, and `-` and `.`, which are not.
        let mark = (byte.wrapping_sub(b'"') < 14) & (byte != b'-') & (byte != b'.');
        mark | (byte < b' ') | (byte == b';') | (byte == b'\\') | (byte == b'^')
    };
    let blanks = block.iter().zip(&block[1..]).fold(false, |any, (&a, &b)| any | ((a == b' ') & (b == b' ')));
    !block.iter().fold(blanks, |any, &byte| any | acts(byte))
}

#[cfg(test)]
mod tests {
    use super::cmd_line;

    /// Byte for byte, as the head of this file says it.
    fn plainly(text: &[u8]) -> Vec<u8> {
        let mut out: Vec<u8> = Vec::new();
        for &byte in text {
            match byte {
                b'"' | b'\'' | b'\\' | b'^' => {}
                b' ' | b',' | b';' | b'\t' | b'\r' | b'\n' if out.last() == Some(&b' ') => {}
                b' ' | b',' | b';' | b'\t' | b'\r' | b'\n' => out.push(b' '),
                b'/' | b'(' => {
                    if out.last() == Some(&b' ') {
                        out.pop();
                    }
                    out.push(byte);
                }
                _ => out.push(byte.to_ascii_lowercase()),
            }
        }
        out
    }

    #[test]
    fn blocks_are_what_their_bytes_are() {
        let mut state = 7u64;
        let mut next = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for round in 0..20_000 {
            let rare = 1 + round % 40;
            let bytes = (0..next(120)).map(|_| match next(rare) {
                0 => next(256) as u8,
                1 => b"\"'\\^ ,;\t\r\n/("[next(12) as usize],
                n if n % 6 == 2 => b' ',
                _ => b"aZ09-._=[{"[next(10) as usize],
            });
            let text: Vec<u8> = bytes.collect();
            let mut out = Vec::new();
            cmd_line(b"", &text, &mut out);
            assert_eq!(out.escape_ascii().to_string(), plainly(&text).escape_ascii().to_string());
        }
    }
}
