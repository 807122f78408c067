//! The residue of a text: the bytes that no byte-removing transformation takes away.
//!
//! `t:urlDecodeUni,t:jsDecode,t:removeWhitespace` of a text in which nothing is escaped takes away some of
//! its white space, `%` and `\`, or puts other white space in its place; `t:replaceComments` acts on `/*`. So
//! a word that is in such a form stands, without these bytes, in what the text has left without them: its
//! residue.

use crate::Transformation;

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

/// Replaces `out` by the residue of `text`. False if transformations could make more of it than that.
pub fn residue(text: &[u8], out: &mut Vec<u8>) -> bool {
    out.clear();
    out.resize(text.len(), 0);
    // The byte before the present one, but for bytes that may go.
    let (mut end, mut before, mut acts) = (0, 0, 0);
    for &byte in text {
        let kind = KINDS[usize::from(byte)];
        let goes = kind / GOES;
        acts |= before & kind >> 2;
        before = before & goes.wrapping_neg() | kind & (LEAD | SLASH);
        out[end] = byte;
        end += usize::from(1 - goes);
    }
    out.truncate(end);
    acts == 0
}

impl Transformation {
    /// True if it leaves the [`residue`] of a text as it is, but for the case of letters, and no more than
    /// that.
    pub fn keeps_residue(self) -> bool {
        matches!(
            self,
            Transformation::CompressWhitespace
                | Transformation::JsDecode
                | Transformation::Lowercase
                | Transformation::RemoveNulls
                | Transformation::RemoveWhitespace
                | Transformation::ReplaceComments
                | Transformation::ReplaceNulls
                | Transformation::Trim
                | Transformation::TrimLeft
                | Transformation::TrimRight
                | Transformation::Uppercase
                | Transformation::UrlDecode
                | Transformation::UrlDecodeUni
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<String> {
        let mut out = b"left over".to_vec();
        residue(text.as_bytes(), &mut out).then(|| String::from_utf8(out).unwrap())
    }

    #[test]
    fn what_is_left() {
        assert_eq!(of("").as_deref(), Some(""));
        assert_eq!(of(" pro\tcess+.\0env% \\").as_deref(), Some("process.env"));
        assert_eq!(of("100% sure, \\Quoted, a/b *").as_deref(), Some("100sure,Quoted,a/b*"));
        for acting in ["%41", "%u0041", "% 41", "\\x41", "\\\\101", "%\\n", "\\N", "a/*b", "a/ %*"] {
            assert_eq!(of(acting), None, "{acting}");
        }
    }
}
