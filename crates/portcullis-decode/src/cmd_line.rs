//! # `cmdLine`
//!
//! Undoes the noise that shells ignore: drops `"`, `'`, `\` and `^`; turns each run of blanks, commas,
//! semicolons, tabs and line ends into one blank; drops a blank before `/` and `(`; turns letters into lower
//! case.
//!
//! Result: at most as long as the input. Not idempotent: dropping a backslash may bring two blanks together.
//! Example: `C^at  "/e\tc` becomes `cat/etc`.
//!
//! ModSecurity 2 stops at a NUL byte, so that what stands behind one escapes its rules; here and in
//! ModSecurity 3 a NUL is a byte like others.

use crate::scan::Table;
use portcullis_types::ByteSet;

pub(crate) static TRIGGERS: Table =
    Table::of(ByteSet::of(b"\"'\\^ ,;\t\r\n").union(ByteSet::range(b'A', b'Z')));

/// The kinds of bytes, in [`KINDS`].
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
    let mut at = 0;
    while let Some(window) = rest[at..].first_chunk() {
        let is_taken = blank & (KINDS[usize::from(window[0])] >= BLANK);
        match Block::of(window).filter(|_| !is_taken) {
            Some(block) => {
                end += block.write(&mut out[end..]);
                blank = block.ends_with_blank();
            }
            None => {
                for &byte in &window[..BLOCK] {
                    write(byte, out, &mut end, &mut blank);
                }
            }
        }
        at += BLOCK;
    }
    for &byte in &rest[at..] {
        write(byte, out, &mut end, &mut blank);
    }
    out.truncate(end);
}

/// Transforms one byte. Without a branch: blanks come too often to be foreseen.
#[inline]
fn write(byte: u8, out: &mut [u8], end: &mut usize, blank: &mut bool) {
    let kind = KINDS[usize::from(byte)];
    *end -= usize::from(*blank & (kind == TAKES_BLANK));
    out[*end] = if kind == BLANK { b' ' } else { byte.to_ascii_lowercase() };
    *end += usize::from((kind != DROPPED) & !(*blank & (kind == BLANK)));
    *blank = (kind == BLANK) | (*blank & (kind == DROPPED));
}

/// The transformed bytes of a block.
struct Block {
    made: [u8; BLOCK],
    /// [`YES`] for each byte of `made` that goes.
    gone: [u8; BLOCK],
}

const YES: u8 = 0xff;

impl Block {
    /// `None` if one of the bytes is dropped. Of a run of blanks the last one stays, unless what follows
    /// takes it away: the next byte tells. Written, and kept out of its caller, so that the compiler makes
    /// vector code of it.
    #[inline(never)]
    fn of(window: &[u8; BLOCK + 1]) -> Option<Block> {
        let is = |yes: bool| if yes { YES } else { 0 };
        let is_blank = |byte: u8| {
            let is_end = is(byte == b'\t') | is(byte == b'\n') | is(byte == b'\r');
            is(byte == b' ') | is(byte == b',') | is(byte == b';') | is_end
        };
        let mut block = Block { made: [0; BLOCK], gone: [0; BLOCK] };
        let mut dropped = [0; BLOCK];
        for at in 0..BLOCK {
            let (byte, next) = (window[at], window[at + 1]);
            let blank = is_blank(byte);
            let lower = byte | is(byte.wrapping_sub(b'A') < 26) & 0x20;
            block.made[at] = lower & !blank | b' ' & blank;
            block.gone[at] = blank & (is_blank(next) | is(next == b'/') | is(next == b'('));
            dropped[at] = is(byte == b'"') | is(byte == b'\'') | is(byte == b'\\') | is(byte == b'^');
        }
        (u128::from_le_bytes(dropped) == 0).then_some(block)
    }

    /// Writes what stays, with anything behind it, and returns how many bytes stay. Those that go are few, or
    /// none.
    #[inline]
    fn write(&self, out: &mut [u8]) -> usize {
        let (mut text, mut gone) = (u128::from_le_bytes(self.made), u128::from_le_bytes(self.gone));
        let mut kept = BLOCK;
        while gone != 0 {
            let below = (1 << gone.trailing_zeros()) - 1;
            text = text & below | text >> 8 & !below;
            gone = gone >> 8 & !below;
            kept -= 1;
        }
        out[..BLOCK].copy_from_slice(&text.to_le_bytes());
        kept
    }

    fn ends_with_blank(&self) -> bool {
        self.made[BLOCK - 1] == b' ' && self.gone[BLOCK - 1] != YES
    }
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
