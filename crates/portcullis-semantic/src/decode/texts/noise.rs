//! Stretches in which no text of [`SCORE_MAX`] stands, found without a branch for each byte: most of what is
//! random or packed.
//!
//! - A text of that score is longer than two parts of [`PART`] bytes, so that at least one part lies in it of
//!   which more bytes are text than odd bytes take away: its two ends, which lie in parts that go on, bring
//!   less than the score.
//! - A value that its place tells is a run of [`FRAMED_BYTES_MIN`] printable bytes, or stands where the
//!   contents begin or end.
//!
//! A block with neither is not read byte by byte. Where reading begins after such blocks, it begins in two
//! parts in which every text ends, whatever stood before: from there on all is as if everything had been
//! read.

use std::ops::Range;

use super::{DROP_MAX, FRAMED_BYTES_MIN, ODD_COST, SCORE_MAX, TEXT};

/// Bytes of a block.
const BLOCK: usize = 64;
/// Bytes of a part of one.
const PART: usize = 16;
const PARTS: usize = BLOCK / PART;

const _: () = assert!(SCORE_MAX > 2 * (PART - 1) && PART <= DROP_MAX && FRAMED_BYTES_MIN == 10);

/// The ranges of `bytes` that must be read byte by byte, in order.
pub(super) fn between(bytes: &[u8]) -> impl Iterator<Item = Range<usize>> + '_ {
    let blocks = bytes.len() / BLOCK;
    let mut at = 0;
    std::iter::from_fn(move || {
        while at > 0 && at + 1 < blocks && !Block::of(bytes, at).may_have_text() {
            at += 1;
        }
        if at * BLOCK >= bytes.len() {
            return None;
        }
        let start = start(bytes, at);
        // To the first block after which nothing is left of what stands here.
        loop {
            at += 1;
            let Some(block) = (at + 1 < blocks).then(|| Block::of(bytes, at)) else {
                at = bytes.len().div_ceil(BLOCK);
                return Some(start..bytes.len());
            };
            if block.end_of_texts().is_some() && !block.may_have_text() {
                at += 1;
                return Some(start..at * BLOCK);
            }
        }
    })
}

/// Where reading must begin so that it is in step at block `at`.
fn start(bytes: &[u8], at: usize) -> usize {
    let part = (0..at).rev().find_map(|at| Some(at * BLOCK + Block::of(bytes, at).end_of_texts()? * PART));
    // Not in the middle of a run.
    part.map_or(0, |from| from + bytes[from..].iter().take_while(|b| TEXT[usize::from(**b)]).count())
}

/// The classes of the bytes of a block.
struct Block {
    /// Printable ones; after those of the block, the first of the next.
    text: u128,
    /// Those of letters beyond ASCII, at least.
    letters: u64,
}

impl Block {
    fn of(bytes: &[u8], at: usize) -> Block {
        let bytes = &bytes[at * BLOCK..];
        let (Some(block), Some(next)) = (bytes.first_chunk::<BLOCK>(), bytes.get(1..)) else {
            return Block { text: u128::MAX, letters: 0 };
        };
        // What begins in the last bytes may go on in the next block.
        let mut shifted = [[0u8; BLOCK]; 2];
        for (number, shifted) in shifted.iter_mut().enumerate() {
            let from = &next[number.min(next.len())..];
            let len = from.len().min(BLOCK);
            shifted[..len].copy_from_slice(&from[..len]);
        }
        let after: &[u8] = bytes.get(BLOCK..).unwrap_or_default();
        let mut next = [0; BLOCK];
        next[..after.len().min(PART)].copy_from_slice(&after[..after.len().min(PART)]);
        let goes_on = |b: u8| b & 0xC0 == 0x80;
        let short = mask(|i| (0xC3..=0xDF).contains(&block[i]) & goes_on(shifted[0][i]));
        let long =
            mask(|i| (0xE0..=0xF4).contains(&block[i]) & goes_on(shifted[0][i]) & goes_on(shifted[1][i]));
        // Those of a letter that began before.
        let rest = mask(|i| (i < 3) & goes_on(block[i]));
        let letters = short | short << 1 | long | long << 1 | long << 2 | long << 3 | rest;
        let text = mask(|i| is_text(block[i]));
        let next = mask(|i| is_text(next[i]));
        Block { text: u128::from(text) | u128::from(next) << BLOCK, letters }
    }

    /// How many bytes of a part are text, and what the others take away at least.
    fn part(&self, part: usize) -> (usize, usize) {
        let of = |mask: u64| ((mask >> (part * PART)) as u16).count_ones() as usize;
        let (text, letters) = (of(self.text as u64), of(self.letters & !(self.text as u64)));
        (text, (PART - text - letters) * ODD_COST)
    }

    /// False if no text that counts has a part here and no value begins here.
    fn may_have_text(&self) -> bool {
        let two = self.text & self.text >> 1;
        let four = two & two >> 2;
        let ten = four & four >> 4 & two >> 8;
        ten as u64 != 0
            || (0..PARTS).any(|part| {
                let (text, odd) = self.part(part);
                text > odd
            })
    }

    /// The first of two parts in which every text ends: in the one of any score, for more is taken away than
    /// a text may lose; in the other what has begun since, which is too little to be lost otherwise than as a
    /// whole.
    fn end_of_texts(&self) -> Option<usize> {
        (0..PARTS - 1).find(|&part| {
            let ((text, odd), (next_text, next_odd)) = (self.part(part), self.part(part + 1));
            odd > text + DROP_MAX && text + next_text <= DROP_MAX && next_odd >= text + next_text
        })
    }
}

fn is_text(b: u8) -> bool {
    (0x20..0x7F).contains(&b) | (b == b'\t') | (b == b'\n') | (b == b'\r')
}

/// A bit for each byte of a block of which `is` is true.
fn mask(is: impl Fn(usize) -> bool) -> u64 {
    let mut bits = [0u8; BLOCK];
    for (i, bit) in bits.iter_mut().enumerate() {
        *bit = u8::from(is(i));
    }
    let mut mask = 0;
    for (number, eight) in bits.chunks_exact(8).enumerate() {
        // The product moves each byte's bit to the top.
        let eight = u64::from_le_bytes(eight.try_into().unwrap_or_default());
        mask |= (eight.wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * number);
    }
    mask
}

#[cfg(test)]
mod tests {
    use super::super::{SCORE_MAX, find, find_in};
    use super::*;

    fn random(state: &mut u64) -> u64 {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32
    }

    /// Bytes of several kinds, in stretches: noise, text, letters beyond ASCII, text with odd bytes in it,
    /// frames.
    fn contents(seed: u64) -> Vec<u8> {
        let state = &mut (seed * 0x9E37_79B9 + 1);
        let mut out = Vec::new();
        let len = 64 + random(state) as usize % 3_000;
        while out.len() < len {
            let count = 1 + random(state) as usize % 40;
            match random(state) % 8 {
                0..=3 => out.extend((0..count * 4).map(|_| random(state) as u8)),
                4 => out.extend((0..count).map(|_| b'a' + random(state) as u8 % 26)),
                5 => out.extend((0..count).flat_map(|_| [0xC3, 0x80 + random(state) as u8 % 64])),
                6 => out.extend((0..count * 2).map(|_| match random(state) % 6 {
                    0 => random(state) as u8,
                    _ => b' ' + random(state) as u8 % 90,
                })),
                _ => {
                    out.extend([0, count as u8]);
                    out.extend((0..count).map(|_| b'0' + random(state) as u8 % 10));
                    out.push(0);
                }
            }
        }
        out
    }

    /// The same texts are found as if all had been read.
    #[test]
    fn nothing_is_lost_and_nothing_added() {
        let mut left_out = 0;
        for seed in 0..3_000 {
            let bytes = contents(seed);
            let (mut all, mut here) = (Vec::new(), Vec::new());
            find(&bytes, SCORE_MAX, &mut |text| all.push(text.to_vec()));
            let mut read = 0;
            for range in between(&bytes) {
                read += range.len();
                find_in(&bytes, range, SCORE_MAX, &mut |text| here.push(text.to_vec()));
            }
            left_out += bytes.len().saturating_sub(read);
            assert_eq!(here, all, "{seed}");
        }
        assert!(left_out > 1_000, "{left_out}");
        let mut state = 5;
        let noise: Vec<u8> = (0..1 << 20).map(|_| random(&mut state) as u8).collect();
        let read: usize = between(&noise).map(|range| range.len()).sum();
        assert!(read < noise.len() / 20, "{read}");
    }
}
