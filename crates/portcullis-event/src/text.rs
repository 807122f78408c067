use std::fmt::Write as _;

/// Text for an event from bytes of a request: at most `bytes_max` of them, UTF-8 kept, any other byte as
/// `\xHH`.
///
/// A cut is marked: `...[+17 bytes]`. The form is for people and searches; it is not meant to be turned back
/// into bytes (an input that holds a literal `\xHH` looks the same).
pub fn text(bytes: &[u8], bytes_max: usize) -> String {
    let kept = &bytes[..cut(bytes, bytes_max)];
    let mut out = String::with_capacity(kept.len() + 24);
    if let Ok(kept) = std::str::from_utf8(kept) {
        out.push_str(kept);
    } else {
        escape(kept, &mut out);
    }
    if kept.len() < bytes.len() {
        let _ = write!(out, "{CUT_MARK}{} bytes]", bytes.len() - kept.len());
    }
    out
}

fn escape(bytes: &[u8], out: &mut String) {
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
}

/// Begins the mark of a cut; after it come the number of missing bytes and ` bytes]`.
pub(crate) const CUT_MARK: &str = "...[+";

/// The largest length up to `max` that does not split a UTF-8 character (or `max`, if that is not UTF-8).
fn cut(bytes: &[u8], max: usize) -> usize {
    if bytes.len() <= max {
        return bytes.len();
    }
    let is_continuation = |i: usize| bytes[i] & 0xc0 == 0x80;
    (max.saturating_sub(3)..=max).rev().find(|&i| !is_continuation(i)).unwrap_or(max)
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn keeps_utf8_and_escapes_the_rest() {
        assert_eq!(text("' or 1=1 -- é".as_bytes(), 100), "' or 1=1 -- é");
        assert_eq!(text(b"a\xffb\xc3", 100), "a\\xffb\\xc3");
        assert_eq!(text(b"", 0), "");
    }

    #[test]
    fn cuts_between_characters() {
        assert_eq!(text("aé".as_bytes(), 3), "aé");
        assert_eq!(text("aéb".as_bytes(), 2), "a...[+3 bytes]");
        assert_eq!(text(b"abcdef", 4), "abcd...[+2 bytes]");
        assert_eq!(text(b"\x80\x80\x80\x80\x80\x80", 4), "\\x80\\x80\\x80\\x80...[+2 bytes]");
    }
}
