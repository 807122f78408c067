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

/// Cuts a text that is longer than `bytes_max` as a JSON string, its quotes left out.
pub(crate) fn cut_json(long: &mut String, bytes_max: usize) {
    // A sign takes six bytes at most.
    if long.len() <= bytes_max / 6 {
        return;
    }
    let escaped = long.bytes().filter(|byte| matches!(byte, 0..=0x1f | b'"' | b'\\')).count();
    if long.len() + 5 * escaped <= bytes_max {
        return;
    }
    let mut length = 0;
    let is_beyond = |sign: char| {
        length += match sign {
            '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
            '\0'..='\u{1f}' => 6,
            sign => sign.len_utf8(),
        };
        length > bytes_max
    };
    let Some(kept) = long.find(is_beyond) else { return };
    // A text that was cut before says what is missing in all.
    let before = missing(long);
    let whole = before.map_or(long.len(), |(at, _)| at);
    let kept = kept.min(whole);
    let bytes = before.map_or(0, |(_, bytes)| bytes).saturating_add((whole - kept) as u64);
    long.truncate(kept);
    let _ = write!(long, "{CUT_MARK}{bytes} bytes]");
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

/// The position of a cut in a text, and the number of missing bytes.
fn missing(text: &str) -> Option<(usize, u64)> {
    let at = text.rfind(CUT_MARK)?;
    let number = text[at + CUT_MARK.len()..].strip_suffix(" bytes]")?;
    Some((at, number.parse().ok()?))
}

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
    use super::{cut_json, text};

    #[test]
    fn keeps_utf8_and_escapes_the_rest() {
        assert_eq!(text("' or 1=1 -- é".as_bytes(), 100), "' or 1=1 -- é");
        assert_eq!(text(b"a\xffb\xc3", 100), "a\\xffb\\xc3");
        assert_eq!(text(b"", 0), "");
    }

    #[test]
    fn cuts_by_the_bytes_of_json() {
        let cut = |text: &str, most: usize| {
            let mut text = text.to_owned();
            cut_json(&mut text, most);
            text
        };
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdefg", 6), "abcdef...[+1 bytes]");
        assert_eq!(cut("\u{1}\u{2}", 11), "\u{1}...[+1 bytes]");
        assert_eq!(cut("\"\"\"", 5), "\"\"...[+1 bytes]");
        assert_eq!(cut("aéb", 2), "a...[+3 bytes]");
        // What was cut before is counted, and a client that writes a mark changes nothing but a number.
        assert_eq!(cut("abcdefgh...[+17 bytes]", 6), "abcdef...[+19 bytes]");
        assert_eq!(cut("ab...[+17 bytes]", 6), "ab...[+17 bytes]");
        assert_eq!(cut("abcdefgh...[+99999999999999999999 bytes]", 6), "abcdef...[+34 bytes]");
    }

    #[test]
    fn cuts_what_is_longer_as_json_and_nothing_else() {
        let signs = ['a', '"', '\n', '\u{1}', 'é'];
        for number in 0..5usize.pow(6) {
            let digits = (0..6).map(|place| number / 5usize.pow(place) % 5);
            let text: String = digits.map(|digit| signs[digit]).collect();
            let json_bytes = serde_json::to_string(&text).unwrap().len() - 2;
            for bytes_max in [8, json_bytes - 1, json_bytes, 40] {
                let mut cut = text.clone();
                cut_json(&mut cut, bytes_max);
                assert_eq!(cut == text, json_bytes <= bytes_max, "{text:?} {bytes_max}");
            }
        }
    }

    #[test]
    fn cuts_between_characters() {
        assert_eq!(text("aé".as_bytes(), 3), "aé");
        assert_eq!(text("aéb".as_bytes(), 2), "a...[+3 bytes]");
        assert_eq!(text(b"abcdef", 4), "abcd...[+2 bytes]");
        assert_eq!(text(b"\x80\x80\x80\x80\x80\x80", 4), "\\x80\\x80\\x80\\x80...[+2 bytes]");
    }
}
