//! Recognises URLs that run scripts, however their scheme is written.

/// Returns true if the URL begins with a scheme that runs scripts, or could.
pub(super) fn is_script_url(url: &[u8]) -> bool {
    // Browsers skip blanks and some of the bytes from 0x7f on before the scheme.
    let start = url.iter().position(|byte| matches!(byte, b'!'..=b'~')).unwrap_or(url.len());
    SCHEMES.iter().any(|scheme| begins_with(&url[start..], scheme))
}

/// `JAVA` also begins `JAVASCRIPT`.
const SCHEMES: [&str; 4] = ["DATA", "VIEW-SOURCE", "JAVA", "VBSCRIPT"];

/// Compares decoded characters, in any case, without blanks before them and without NULs and line feeds among
/// them.
fn begins_with(url: &[u8], scheme: &str) -> bool {
    let mut expected = scheme.bytes();
    let mut next = expected.next();
    let mut leading = true;
    for character in (Characters { rest: url }) {
        let Some(wanted) = next else { return true };
        if leading && character <= 32 {
            continue;
        }
        leading = false;
        if character == 0 || character == 10 {
            continue;
        }
        // Only the lowest byte is compared, as in the original, but the case is folded on the whole.
        let folded = if (97..=122).contains(&character) { character - 32 } else { character };
        if folded as u8 != wanted {
            return false;
        }
        next = expected.next();
    }
    next.is_none()
}

/// An iterator over characters: bytes, and numeric character references, whose semicolon may be missing.
struct Characters<'a> {
    rest: &'a [u8],
}

impl Iterator for Characters<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let (&first, after) = self.rest.split_first()?;
        let (character, len) = reference(self.rest).unwrap_or((u32::from(first), 1));
        self.rest = self.rest.get(len..).unwrap_or(after);
        Some(character)
    }
}

/// The character and length of a numeric reference at the beginning, if there is one and it is not too large.
fn reference(text: &[u8]) -> Option<(u32, usize)> {
    let (digits_start, radix) = match text {
        [b'&', b'#', b'x' | b'X', ..] => (3, 16),
        [b'&', b'#', ..] => (2, 10),
        _ => return None,
    };
    let digits = &text[digits_start..];
    let mut character = char::from(*digits.first()?).to_digit(radix)?;
    let mut len = 1;
    while let Some(digit) = digits.get(len).and_then(|&byte| char::from(byte).to_digit(radix)) {
        character = character * radix + digit;
        if character > CHARACTER_MAX {
            return None;
        }
        len += 1;
    }
    let semicolon = usize::from(digits.get(len) == Some(&b';'));
    Some((character, digits_start + len + semicolon))
}

/// Larger numbers are no characters. (The original's bound; Unicode ends at 0x10ffff.)
const CHARACTER_MAX: u32 = 0x1000ff;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn script_urls() {
        for url in [
            "javascript:alert(1)",
            " \x01\x7fJaVaScRiPt:",
            "java",
            "data:",
            "vbscript:",
            "view-source:x",
            "&#106;ava",
            "&#x6a;ava",
            "&#x6A;ava",
            "&#106ava",
            "&#0000106;ava",
            "j&#10;a\0va",
            "j\nava",
            "&#32;&#9;java",
            "&#x14a;AVA",
        ] {
            assert!(is_script_url(url.as_bytes()), "{url:?}");
        }
        for url in [
            "",
            "jav",
            "/java",
            "http://java",
            "j ava",
            "&#106",
            "&#x;java",
            "&java",
            "&#99999999;java",
            "&",
            "&#",
            "&#x",
        ] {
            assert!(!is_script_url(url.as_bytes()), "{url:?}");
        }
    }
}
