//! The residue of a text: the bytes that no byte-removing transformation takes away.
//!
//! `t:urlDecodeUni,t:jsDecode,t:removeWhitespace` of a text in which nothing is escaped takes away some of
//! its white space, `%` and `\`, or puts other white space in its place; `t:replaceComments` acts on `/*`. So
//! a word that is in such a form stands, without these bytes, in what the text has left without them: its
//! residue.

/// Begins an escape.
const LEAD: u8 = 1;
/// Begins a comment.
const SLASH: u8 = 2;
/// The bytes behind [`LEAD`] that make another byte of it: digits, and letters in any case.
const FOLLOWS: u8 = LEAD << 2;
/// The same behind [`SLASH`].
const STAR: u8 = SLASH << 2;
/// May be taken away.
const GOES: u8 = 16;

static KINDS: [u8; 256] = {
    let mut kinds = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        kinds[byte] = match byte as u8 {
            b'%' | b'\\' => LEAD | GOES,
            b'\t'..=b'\r' | b' ' | b'+' | 0 | 0xa0 => GOES,
            b'/' => SLASH,
            b'*' => STAR,
            b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F' => FOLLOWS,
            b'n' | b'r' | b't' | b'u' | b'v' | b'x' | b'N' | b'R' | b'T' | b'U' | b'V' | b'X' => FOLLOWS,
            _ => 0,
        };
        byte += 1;
    }
    kinds
};

/// True if transformations could make more of `text` than its residue: something in it is escaped, or a
/// comment begins.
pub fn is_escaped(text: &[u8]) -> bool {
    let mut rest = text;
    while let Some(at) = memchr::memchr3(b'%', b'\\', b'/', rest) {
        let mut before = 0;
        let mut bytes = rest[at..].iter();
        // Bytes that may go may stand between the two.
        for &byte in bytes.by_ref() {
            let kind = KINDS[usize::from(byte)];
            if before & kind >> 2 != 0 {
                return true;
            }
            match kind & (LEAD | SLASH) {
                0 if kind & GOES == 0 => break,
                SLASH => before = SLASH,
                lead => before |= lead,
            }
        }
        rest = bytes.as_slice();
    }
    false
}

/// True if this byte is in no residue.
pub fn is_removed(byte: u8) -> bool {
    KINDS[usize::from(byte)] & GOES != 0
}

/// Bytes that are looked at together.
const BLOCK: usize = 64;

/// Replaces `out` by the residue of `text`.
pub fn residue(text: &[u8], out: &mut Vec<u8>) {
    out.clear();
    for block in text.chunks(BLOCK) {
        // Without a branch for each byte: which of them go cannot be foreseen.
        let (mut left, mut count) = ([0; BLOCK], 0);
        for &byte in block {
            left[count % BLOCK] = byte;
            count += usize::from(KINDS[usize::from(byte)] < GOES);
        }
        out.extend_from_slice(&left[..count]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<String> {
        let mut out = b"left over".to_vec();
        residue(text.as_bytes(), &mut out);
        (!is_escaped(text.as_bytes())).then(|| String::from_utf8(out).unwrap())
    }

    #[test]
    fn what_is_left() {
        assert_eq!(of("").as_deref(), Some(""));
        assert_eq!(of(" pro\tcess+.\0env% \\").as_deref(), Some("process.env"));
        assert_eq!(of("100% sure, \\Quoted, a/b *").as_deref(), Some("100sure,Quoted,a/b*"));
        for acting in [
            "%41", "%u0041", "% 41", "\\x41", "\\\\101", "%\\n", "\\N", "a/*b", "a/ %*", "/%41", "//*",
            "%%%%a",
        ] {
            assert_eq!(of(acting), None, "{acting}");
        }
    }
}
