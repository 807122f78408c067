//! Finds users and passwords in URLs: `https://user:password@host/`, wherever it stands in a text and however
//! it is coded there: plain, percent-encoded once or twice, or with the escapes of JSON.

use std::ops::Range;

/// Spans of what stands before the `@` of an authority, in order. Takes time in proportion to the text.
pub(crate) fn user_infos(text: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    // An `@`, however it is coded, is made of this byte or of these digits.
    let has = |byte| memchr::memchr(byte, text).is_some();
    if !(has(b'@') || has(b'4') && has(b'0')) {
        return found;
    }
    let mut at = 0;
    while let Some(n) = memchr::memchr3(b'/', b'%', b'\\', &text[at..]) {
        let first = at + n;
        let (sign, length) = unit(text, first);
        at = first + length;
        if sign != b'/' {
            continue;
        }
        let Some(start) = slash(text, at) else { continue };
        let (end, at_sign, has_colon) = authority(text, start);
        // `//a@b` without a scheme may be a path.
        let has_scheme = ends_with_colon(&text[..first]);
        if let Some(end) = at_sign.filter(|end| *end > start && (has_scheme || has_colon)) {
            found.push(start..end);
        }
        at = end.max(start);
    }
    found
}

/// The end of the slash that stands here.
fn slash(text: &[u8], at: usize) -> Option<usize> {
    let (sign, length) = text.get(at).map(|_| unit(text, at))?;
    (sign == b'/').then_some(at + length)
}

/// The end of the authority that begins here, its last `@`, and if there is a colon before that.
fn authority(text: &[u8], start: usize) -> (usize, Option<usize>, bool) {
    let (mut at, mut at_sign) = (start, None);
    let (mut colon, mut has_colon) = (false, false);
    while at < text.len() {
        let (sign, length) = unit(text, at);
        match sign {
            b'@' => (at_sign, has_colon) = (Some(at), colon),
            b':' => colon = true,
            b'/' | b'?' | b'#' | b'"' | b'<' | b'>' | b'\\' | 0..=b' ' => break,
            _ => {}
        }
        at += length;
    }
    (at, at_sign, has_colon)
}

fn ends_with_colon(text: &[u8]) -> bool {
    let ends: [&[u8]; 4] = [b":", b"%3a", b"%253a", b"\\u003a"];
    ends.iter()
        .any(|end| text.len().checked_sub(end.len()).is_some_and(|at| text[at..].eq_ignore_ascii_case(end)))
}

/// The byte that begins here, decoded twice at most, and how long it is.
fn unit(text: &[u8], at: usize) -> (u8, usize) {
    let (byte, length) = one(text, at);
    if byte != b'%' {
        return (byte, length);
    }
    let digit = |at: usize| {
        let (byte, length) = text.get(at).map(|_| one(text, at))?;
        Some((char::from(byte).to_digit(16)?, length))
    };
    let second = || {
        let (high, high_length) = digit(at + length)?;
        let (low, low_length) = digit(at + length + high_length)?;
        Some(((high << 4 | low) as u8, length + high_length + low_length))
    };
    second().unwrap_or((byte, length))
}

/// The byte that begins here, decoded once, and how long it is.
fn one(text: &[u8], at: usize) -> (u8, usize) {
    let rest = &text[at..];
    let hex = |from: usize| {
        let digits = rest.get(from..from + 2)?;
        digits.iter().try_fold(0, |number, digit| Some(number << 4 | char::from(*digit).to_digit(16)?))
    };
    match rest {
        [b'%', ..] if let Some(byte) = hex(1) => (byte as u8, 3),
        [b'\\', b'/', ..] => (b'/', 2),
        [b'\\', b'u', b'0', b'0', ..] if let Some(byte) = hex(4) => (byte as u8, 6),
        _ => (rest[0], 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let found: Vec<&str> = user_infos(text.as_bytes()).into_iter().map(|span| &text[span]).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn passwords_of_urls() {
        check("http://bob:pw@host/x", &["bob:pw"]);
        check("see http://bob@host and https://a:b@c@d/", &["bob", "a:b@c"]);
        check("u=http%3A%2F%2Fbob%3Apw%40host%2Fx", &["bob%3Apw"]);
        check("u=http%253A%252F%252Fbob%253Apw%2540host", &["bob%253Apw"]);
        check("u=%25%32%66%25%32%66bob:pw%25%34%30host", &["bob:pw"]);
        check("u=http://bob:p%40w@host&x", &["bob:p%40w"]);
        check(r#"{"u":"http:\/\/bob:pw@host"}"#, &["bob:pw"]);
        check(r#"{"u":"http:\u002f\u002fbob:pw\u0040host"}"#, &["bob:pw"]);
        check("//bob:pw@host/x", &["bob:pw"]);
        check("redis://:pw@host", &[":pw"]);
        check("http://h/a@b?c@d", &[]);
        check("//a/b@c //x@y", &[]);
        check("http://@h", &[]);
        check("a %2 %zz \\ http:/", &[]);
    }

    #[test]
    fn time_is_linear() {
        for piece in ["://", "/", "%2f", "\\/", "//a:", "//@", "%25", "http://a:b@"] {
            let text = piece.repeat((4 << 20) / piece.len());
            user_infos(text.as_bytes());
        }
    }
}
