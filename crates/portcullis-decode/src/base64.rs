//! # `base64Decode`, `base64DecodeExt`, `base64Encode`
//!
//! `base64Decode` decodes up to the first byte that is not of the alphabet (`A-Z a-z 0-9 + /`), so an input
//! without any becomes empty. Bits that do not fill a byte are dropped.
//!
//! `base64DecodeExt` is the forgiving one: bytes that are not of the alphabet are passed over, since decoders
//! in applications do so and attackers put noise between the letters. A `=` where only one letter of a group
//! of four was read makes the result empty, unless another `=` follows. ModSecurity 2 stops at a NUL byte;
//! here and in ModSecurity 3 it is passed over like others.
//!
//! `base64Encode` encodes with `=` at the end and without line breaks.
//!
//! Result: decoding at most three quarters of the input, encoding four thirds of it, rounded up to a multiple
//! of four. Example: `U0VM.RUNU` becomes `SEL`, or `SELECT` with `base64DecodeExt`.

/// 0 to 63, or [`OTHER`].
static VALUES: [u8; 256] = {
    let mut values = [OTHER; 256];
    let mut i = 0;
    while i < 64 {
        values[ALPHABET[i] as usize] = i as u8;
        i += 1;
    }
    values
};
const OTHER: u8 = 255;
/// The same, with a bit for what is no letter that four letters together do not reach, wherever among them it
/// stands.
static WIDE: [u64; 256] = {
    let mut wide = [WIDE_OTHER; 256];
    let mut byte = 0;
    while byte < 256 {
        if VALUES[byte] != OTHER {
            wide[byte] = VALUES[byte] as u64;
        }
        byte += 1;
    }
    wide
};
const WIDE_OTHER: u64 = 1 << 24;
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Groups of four letters whose bytes are written together.
const GROUPS: usize = 16;

pub(crate) fn decode(input: &[u8], out: &mut Vec<u8>) {
    let (groups, rest) = input.as_chunks::<4>();
    for block in groups.chunks(GROUPS) {
        let mut bytes = [0; 3 * GROUPS];
        let mut whole = 0;
        for (letters, bytes) in block.iter().zip(bytes.as_chunks_mut::<3>().0) {
            let bits = letters.iter().fold(0, |bits, &byte| bits << 6 | WIDE[usize::from(byte)]);
            if bits >= WIDE_OTHER {
                break;
            }
            *bytes = [(bits >> 16) as u8, (bits >> 8) as u8, bits as u8];
            whole += 1;
        }
        out.extend_from_slice(&bytes[..3 * whole]);
        if let Some(last) = block.get(whole) {
            return decode_last(last, out);
        }
    }
    decode_last(rest, out);
}

/// The first letters of a group that has less than four.
fn decode_last(group: &[u8], out: &mut Vec<u8>) {
    let values = group.iter().map(|&byte| VALUES[usize::from(byte)]).take_while(|&value| value != OTHER);
    let (mut bits, mut count) = (0u32, 0);
    values.for_each(|value| (bits, count) = (bits << 6 | u32::from(value), count + 1));
    match count {
        2 => out.push((bits >> 4) as u8),
        3 => out.extend_from_slice(&[(bits >> 10) as u8, (bits >> 2) as u8]),
        _ => {}
    }
}

pub(crate) fn decode_ext(input: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    let mut group = Group::default();
    for (at, &byte) in input.iter().enumerate() {
        let value = VALUES[usize::from(byte)];
        if value != OTHER {
            group.push(value, out);
        } else if byte == b'=' && group.letters == 1 && input.get(at + 1) != Some(&b'=') {
            out.truncate(start);
            return;
        }
    }
}

pub(crate) fn encode(input: &[u8], out: &mut Vec<u8>) {
    out.reserve(input.len().div_ceil(3) * 4);
    for chunk in input.chunks(3) {
        let bits = chunk.iter().fold(0u32, |bits, &b| bits << 8 | u32::from(b)) << (8 * (3 - chunk.len()));
        for letter in 0..4 {
            if letter <= chunk.len() {
                out.push(ALPHABET[(bits >> (18 - 6 * letter)) as usize & 63]);
            } else {
                out.push(b'=');
            }
        }
    }
}

/// Collects letters of six bits into bytes.
#[derive(Default)]
struct Group {
    /// Bits not yet given out, in the low end.
    bits: u16,
    /// Letters of the current group of four read so far.
    letters: u8,
}

impl Group {
    #[inline]
    fn push(&mut self, value: u8, out: &mut Vec<u8>) {
        self.bits = self.bits << 6 | u16::from(value);
        self.letters = (self.letters + 1) & 3;
        match self.letters {
            2 => out.push((self.bits >> 4) as u8),
            3 => out.push((self.bits >> 2) as u8),
            0 => out.push(self.bits as u8),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Group, OTHER, VALUES, decode};

    /// Letter by letter.
    fn plainly(text: &[u8]) -> Vec<u8> {
        let (mut out, mut group) = (Vec::new(), Group::default());
        let values = text.iter().map(|&byte| VALUES[usize::from(byte)]);
        values.take_while(|&value| value != OTHER).for_each(|value| group.push(value, &mut out));
        out
    }

    #[test]
    fn groups_are_what_their_letters_are() {
        let mut state = 9u64;
        let mut next = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for round in 0..20_000 {
            let rare = 1 + round % 150;
            let bytes = (0..next(200)).map(|_| match next(rare) {
                0 => next(256) as u8,
                n => b"aZ09+/qwMN"[n as usize % 10],
            });
            let text: Vec<u8> = bytes.collect();
            let mut out = b"before".to_vec();
            decode(&text, &mut out);
            assert_eq!(out, [b"before", plainly(&text).as_slice()].concat(), "{}", text.escape_ascii());
        }
    }
}
