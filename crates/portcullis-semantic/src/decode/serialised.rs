//! Objects that a language has serialised, by what their bytes begin with: such bytes are no text, and what
//! stands in them is a value all the same.

use super::pickle;

/// True if `bytes` begin as a serialised object of Java, .NET, Ruby or Python does. That of PHP is a text.
pub(super) fn is_object(bytes: &[u8]) -> bool {
    has_mark(bytes) || pickle::read(bytes).is_some()
}

/// True if what begins so may be one.
pub(super) fn may_begin(head: &[u8]) -> bool {
    has_mark(head) || pickle::may_begin(head)
}

fn has_mark(bytes: &[u8]) -> bool {
    matches!(
        bytes,
        [0xAC, 0xED, 0, 5, 0x70..=0x7E, ..]
            | [0, 1, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 1, ..]
            | [0xFF, 1, 0x32, ..]
            | [4, 8, b'o' | b'e' | b'U' | b'u' | b'C' | b'c' | b'[' | b'{' | b'I', ..]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects() {
        for bytes in [
            &b"\xAC\xED\0\x05sr\0\x11java.util.HashMap"[..],
            b"\0\x01\0\0\0\xFF\xFF\xFF\xFF\x01\0",
            b"\x04\x08o:\x15Gem::Requirement",
            b"\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x02id\x85R.",
            b"cposix\nsystem\nq\0X\x02\0\0\0id\x85R.",
        ] {
            assert!(may_begin(bytes) && is_object(bytes), "{}", bytes.escape_ascii());
        }
        for bytes in [&b"\xAC\xED and so on"[..], b"plain text", b"\x80\x04\xFF\xFF", b"common\nsense\n", b""]
        {
            assert!(!is_object(bytes), "{}", bytes.escape_ascii());
        }
    }
}
