//! Texts that stand in contents which are none: messages of a binary protocol, data of a program, anything
//! unknown.
//!
//! In random bytes, and so in what is encrypted or compressed, runs of printable bytes come about by chance.
//! A text counts if one as long is not to be expected in so many bytes ([`CHANCE_MAX`]), or if its place
//! tells that it is a value: a length stands before it, zeros stand around it, the contents begin or end with
//! it. Other bytes in a text count against it and do not end it, so that no single byte cuts a payload into
//! pieces too short to count.

mod noise;

use std::ops::Range;

/// How many texts may be expected by chance in contents of random bytes.
const CHANCE_MAX: f64 = 1e-3;
/// Bounds of what a text must count at least, whatever the contents are.
const SCORE_MIN: usize = 8;
const SCORE_MAX: usize = 32;
/// Bytes of a text whose place tells that it is a value.
const FRAMED_BYTES_MIN: usize = 10;
/// Bytes of one that the contents begin or end with.
const EDGE_BYTES_MIN: usize = 8;
/// What a byte that is no text counts against one.
const ODD_COST: usize = 4;
/// A text ends where its last bytes counted as much against it.
const DROP_MAX: usize = 16;

/// Printable ASCII and white space, by byte.
const TEXT: [bool; 256] = {
    let mut table = [false; 256];
    let mut b = 0x20;
    while b < 0x7F {
        table[b] = true;
        b += 1;
    }
    table[b'\t' as usize] = true;
    table[b'\n' as usize] = true;
    table[b'\r' as usize] = true;
    table
};

/// True for printable ASCII and white space.
pub(super) fn is_text(b: u8) -> bool {
    TEXT[usize::from(b)]
}

/// Calls `emit` with each text in `bytes`, in order; one may be in another.
pub(crate) fn texts(bytes: &[u8], emit: &mut dyn FnMut(&[u8])) {
    find(bytes, score_min(bytes), emit);
}

/// The same in a part of contents that may be very long: only what is long enough wherever it stands.
pub(crate) fn texts_in_part(part: &[u8], emit: &mut dyn FnMut(&[u8])) {
    let emit = &mut |text: &[u8]| {
        if text.len() >= SCORE_MAX {
            emit(text);
        }
    };
    for range in noise::between(part) {
        find_in(part, range, SCORE_MAX, emit);
    }
}

fn find(bytes: &[u8], least: usize, emit: &mut dyn FnMut(&[u8])) {
    find_in(bytes, 0..bytes.len(), least, emit);
}

/// The texts of `bytes` that begin and end in `range`.
fn find_in(bytes: &[u8], range: Range<usize>, least: usize, emit: &mut dyn FnMut(&[u8])) {
    let mut run = range.start;
    let mut text = Scored::from(range.start);
    let mut at = range.start;
    while let Some(&b) = bytes[..range.end].get(at) {
        if is_text(b) {
            at += 1;
            text.score += 1;
            if text.score > text.best {
                (text.best, text.end) = (text.score, at);
            }
            continue;
        }
        if run < at {
            value(bytes, run, at, least, emit);
        }
        let width = letter(&bytes[at..]);
        if width > 0 {
            // A letter of another script counts neither way.
            at += width;
            run = at;
            continue;
        }
        at += 1;
        run = at;
        text.score = text.score.saturating_sub(ODD_COST);
        if text.score == 0 || text.score + DROP_MAX < text.best {
            if text.best >= least {
                emit(text.with_context(bytes));
            }
            text = Scored::from(at);
        }
    }
    if run < at {
        value(bytes, run, at, least, emit);
    }
    if text.best >= least {
        emit(text.with_context(bytes));
    }
}

/// A text while it is read.
struct Scored {
    start: usize,
    /// Where it ends if nothing better follows.
    end: usize,
    score: usize,
    best: usize,
}

impl Scored {
    fn from(start: usize) -> Scored {
        Scored { start, end: start, score: 0, best: 0 }
    }

    /// The text with the run on each side of it that one odd byte parts from it.
    fn with_context(self, bytes: &[u8]) -> &[u8] {
        let before = &bytes[..self.start.saturating_sub(1)];
        let start = before.iter().rposition(|b| !is_text(*b)).map_or(0, |at| at + 1);
        let following = bytes.get(self.end + 1..).unwrap_or_default();
        let end = self.end + 1 + following.iter().take_while(|b| is_text(**b)).count();
        let start = if start < before.len() { start } else { self.start };
        &bytes[start..if end > self.end + 1 { end } else { self.end }]
    }
}

/// A run of text that is too short to count by its length, if it stands where a value does.
fn value(bytes: &[u8], start: usize, end: usize, least: usize, emit: &mut dyn FnMut(&[u8])) {
    let len = end - start;
    if len >= least || len < EDGE_BYTES_MIN {
        return;
    }
    let is_edge = start == 0 || end == bytes.len();
    // A length may be a sign of text itself.
    let first = usize::from(bytes[start]);
    let is_told = matches!(bytes[..start], [.., 0 | 0xD9]) && (first == len - 1 || first == len);
    if len > FRAMED_BYTES_MIN && is_told {
        emit(&bytes[start + 1..end]);
    } else if is_edge || len >= FRAMED_BYTES_MIN && is_framed(&bytes[..start], len, bytes.get(end).copied()) {
        emit(&bytes[start..end]);
    }
}

/// A length of two bytes or more stands before so many bytes of text, with a mark or not, or zeros stand on
/// both sides.
fn is_framed(before: &[u8], len: usize, after: Option<u8>) -> bool {
    // Some count the zero after it.
    let is_len = |n: usize| n == len || n == len + 1;
    let two = |bytes: [u8; 2]| {
        is_len(usize::from(u16::from_be_bytes(bytes))) || is_len(usize::from(u16::from_le_bytes(bytes)))
    };
    match before {
        [.., a, b] if two([*a, *b]) => true,
        // MessagePack, CBOR
        [.., 0xD9 | 0x78, n] if is_len(usize::from(*n)) => true,
        [.., a, b, 0, 0] if two([*a, *b]) => true,
        [.., 0] => after == Some(0),
        _ => false,
    }
}

/// What a text in `bytes` must count at least: longer where there are more of them, and where more of them
/// are printable.
fn score_min(bytes: &[u8]) -> usize {
    let printable = bytes.iter().filter(|b| is_text(**b)).count();
    // Added texts raise this no further than to what no noise reaches.
    let share = (printable as f64 / bytes.len().max(1) as f64).clamp(0.2, 0.45);
    let runs = bytes.len() as f64 * (1.0 - share);
    let score = (runs / CHANCE_MAX).ln() / -share.ln();
    (score.ceil() as usize + 1).clamp(SCORE_MIN, SCORE_MAX)
}

/// How many bytes a character of UTF-8 beyond ASCII has; none if there is none.
fn letter(bytes: &[u8]) -> usize {
    let width = match bytes.first() {
        Some(0xC3..=0xDF) => 2,
        Some(0xE0..=0xEF) => 3,
        Some(0xF0..=0xF4) => 4,
        _ => return 0,
    };
    let is_whole = bytes.len() >= width && bytes[1..width].iter().all(|b| b & 0xC0 == 0x80);
    if is_whole { width } else { 0 }
}

/// Calls `emit` with each text in `bytes` that may be code of a web server's language, a script, a lookup: it
/// begins with a sign that one begins with, after which more text stands than chance puts there. Bytes that
/// are no text may be in it.
pub(crate) fn code(bytes: &[u8], emit: &mut dyn FnMut(&[u8])) {
    let mut from = 0;
    for at in memchr::memchr2_iter(b'<', b'$', bytes) {
        if at >= from && is_sign(&bytes[at..]) {
            from = at + code_len(&bytes[at..]);
            emit(&bytes[at..from]);
        }
    }
    // The stub of PHP's archives.
    if let Some(at) = memchr::memmem::find(bytes, b"__HALT_COMPILER") {
        emit(&bytes[at..(at + STUB_BYTES).min(bytes.len())]);
    }
}

/// True if [`code`] would find something.
pub(crate) fn may_have_code(bytes: &[u8]) -> bool {
    memchr::memchr2_iter(b'<', b'$', bytes).any(|at| is_sign(&bytes[at..]))
        || memchr::memmem::find(bytes, b"__HALT_COMPILER").is_some()
}

fn is_sign(code: &[u8]) -> bool {
    let lead = match code {
        [b'<', b'?', rest @ ..] if rest.get(..3).is_some_and(|name| name.eq_ignore_ascii_case(b"php")) => 0,
        [b'<', b'?' | b'%' | b'!', ..] => LEAD_BYTES,
        [b'<', b, ..] if b.is_ascii_alphabetic() => LEAD_BYTES,
        [b'$', b'{' | b'_', ..] => LOOKUP_LEAD_BYTES,
        _ => return false,
    };
    code.iter().take(lead).all(|b| is_text(*b))
}

/// How far code that begins so goes on.
fn code_len(code: &[u8]) -> usize {
    let (mut score, mut best, mut end) = (0, 0, 0);
    for (at, &b) in code.iter().take(CODE_BYTES_MAX).enumerate() {
        if is_text(b) {
            score += 1;
            if score > best {
                (best, end) = (score, at + 1);
            }
        } else {
            score -= ODD_COST as isize;
            if score + CODE_DROP_MAX < best {
                break;
            }
        }
    }
    end.max(1)
}

/// Bytes that must be text where code begins, the sign among them.
const LEAD_BYTES: usize = 15;
/// The same for a lookup, which few signs begin.
const LOOKUP_LEAD_BYTES: usize = 10;
/// Code is looked at up to this length.
const CODE_BYTES_MAX: usize = 16 << 10;
/// As [`DROP_MAX`]: strings of code may be bytes.
const CODE_DROP_MAX: isize = 128;
/// Bytes of a stub.
const STUB_BYTES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    /// Random bytes, the same for each seed.
    fn noise(len: usize, seed: u64) -> Vec<u8> {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 56) as u8
        };
        (0..len).map(|_| next()).collect()
    }

    fn all(bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut found = Vec::new();
        texts(bytes, &mut |text| found.push(text.to_vec()));
        found
    }

    #[test]
    fn noise_has_no_texts() {
        let mut count = 0;
        for seed in 0..400 {
            count += all(&noise(200 + 97 * seed as usize, seed)).len();
        }
        count += all(&noise(4 << 20, 7)).len();
        // Those at the edges and between zeros are there by chance, rarely.
        assert!(count <= 3, "{count}");
    }

    #[test]
    fn a_long_text_is_found_anywhere_in_noise() {
        let payload = b"x' UNION SELECT name, secret FROM users -- ";
        for len in [60, 1_000, 100_000, 2 << 20] {
            let noise = noise(len, 3);
            for at in [0, len / 3, len] {
                let body = [&noise[..at], payload, &noise[at..]].concat();
                let has = |text: &Vec<u8>| memchr::memmem::find(text, payload).is_some();
                assert!(all(&body).iter().any(has), "{len} {at}");
            }
        }
    }

    /// Bytes that are no text do not hide what stands around them.
    #[test]
    fn odd_bytes_cut_no_text() {
        let payload = b"1'/*\x01*/union/*\xFF*/select/*\x02*/secret/*\x03*/from/*\x04*/users";
        let noise = noise(50_000, 5);
        let body = [&noise[..20_000], payload, &noise[20_000..]].concat();
        let has = |text: &Vec<u8>| memchr::memmem::find(text, payload).is_some();
        assert!(all(&body).iter().any(has));
    }

    #[test]
    fn short_values_are_told_by_their_place() {
        let noise = noise(300_000, 11);
        let text = b"a;id||x.sh";
        for (before, after) in [
            (&b"\0\x0A"[..], &b"\x80"[..]),
            (b"\x0A\0", b"\x80"),
            (b"\x0B\0\0\0", b"\0"),
            (b"\x80\xD9\x0A", b"\x80"),
            (b"\x80\0", b"\0\x80"),
        ] {
            let body = [&noise[..150_000], before, text, after, &noise[150_000..]].concat();
            assert!(all(&body).contains(&text.to_vec()), "{}", before.escape_ascii());
        }
        assert!(all(&[&noise[..], b"\x80", text].concat()).contains(&text.to_vec()));
        assert!(all(&[text, &b"\x80"[..], &noise].concat()).contains(&text.to_vec()));
    }

    #[test]
    fn signs_of_code() {
        for code in [
            &b"<?php system($x);"[..],
            b"<?=`$_GET[1]`?>",
            b"<% eval x + y %>",
            b"<svg onload=alert(1)>",
            b"${jndi:ldap",
        ] {
            let body = [&[0x80; 5_000][..], code, &[0x80; 5_000]].concat();
            let mut found = Vec::new();
            super::code(&body, &mut |piece| found.push(piece.to_vec()));
            assert!(may_have_code(&body) && found == [code], "{}", code.escape_ascii());
        }
        let hits = (0..100).filter(|seed| may_have_code(&noise(64 << 10, *seed))).count();
        assert!(hits <= 1, "{hits}");
    }
}
