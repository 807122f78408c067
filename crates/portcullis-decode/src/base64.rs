//! # `base64Decode`, `base64DecodeExt`, `base64Encode`
//!
//! `base64Decode` decodes up to the first byte that is not of the alphabet (`A-Z a-z 0-9 + /`), so an input without
//! any becomes empty. Bits that do not fill a byte are dropped.
//!
//! `base64DecodeExt` is the forgiving one: bytes that are not of the alphabet are passed over, since decoders in
//! applications do so and attackers put noise between the letters. A `=` where only one letter of a group of four
//! was read makes the result empty, unless another `=` follows. ModSecurity 2 stops at a NUL byte; here and in
//! ModSecurity 3 it is passed over like others.
//!
//! `base64Encode` encodes with `=` at the end and without line breaks.
//!
//! Result: decoding at most three quarters of the input, encoding four thirds of it, rounded up to a multiple of four.
//! Example: `U0VM.RUNU` becomes `SEL`, or `SELECT` with `base64DecodeExt`.

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
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(crate) fn decode(input: &[u8], out: &mut Vec<u8>) {
    let (groups, _) = input.as_chunks::<4>();
    let start = out.len();
    out.resize(start + 3 * groups.len(), 0);
    let mut whole = 0;
    for (letters, bytes) in groups.iter().zip(out[start..].as_chunks_mut::<3>().0) {
        let values = letters.map(|byte| VALUES[usize::from(byte)]);
        if values[0] | values[1] | values[2] | values[3] > 63 {
            break;
        }
        let bits = values.iter().fold(0, |bits, &value| bits << 6 | u32::from(value));
        *bytes = [(bits >> 16) as u8, (bits >> 8) as u8, bits as u8];
        whole += 1;
    }
    out.truncate(start + 3 * whole);
    let whole = whole * 4;
    let mut group = Group::default();
    for &byte in &input[whole..] {
        let value = VALUES[usize::from(byte)];
        if value == OTHER {
            return;
        }
        group.push(value, out);
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
