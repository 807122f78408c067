//! # `htmlEntityDecode`
//!
//! Decodes `&#DD;`, `&#xHH;` (any number of digits, the low byte is kept) and the names `quot`, `amp`, `lt`,
//! `gt`, `nbsp` (as `A0`) in any case. The semicolon may be missing. A name ends at the first byte that is
//! neither an ASCII letter nor a digit, and other names stay as they are.
//!
//! Result: at most as long as the input.
//! Example: `&lt;a href=&#106;&#x61vascript` becomes `<a href=javascript`.

const NAMES: [(&[u8], u8); 5] =
    [(b"quot", b'"'), (b"amp", b'&'), (b"lt", b'<'), (b"gt", b'>'), (b"nbsp", 0xa0)];

/// True if `htmlEntityDecode` changes this text. A query is full of ampersands, of which hardly any begins an
/// entity.
pub(crate) fn has_html_entity(text: &[u8]) -> bool {
    memchr::memchr_iter(b'&', text).any(|at| entity(&text[at + 1..]).is_some())
}

pub(crate) fn html_entity_decode(clean: &[u8], rest: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(clean);
    let mut rest = rest;
    while let Some(ampersand) = memchr::memchr(b'&', rest) {
        out.extend_from_slice(&rest[..ampersand]);
        rest = &rest[ampersand..];
        match entity(&rest[1..]) {
            Some((byte, len)) => {
                out.push(byte);
                rest = &rest[1 + len..];
                rest = rest.strip_prefix(b";").unwrap_or(rest);
            }
            None => {
                out.push(b'&');
                rest = &rest[1..];
            }
        }
    }
    out.extend_from_slice(rest);
}

/// The byte for the entity whose text, behind the ampersand, `text` begins with, and the length of that text
/// without the semicolon.
fn entity(text: &[u8]) -> Option<(u8, usize)> {
    if let [b'#', number @ ..] = text {
        let (digits, radix) = match number {
            [b'x' | b'X', digits @ ..] => (digits, 16),
            digits => (digits, 10),
        };
        let prefix = text.len() - digits.len();
        let len = digits.iter().take_while(|&&b| char::from(b).is_digit(radix)).count();
        return (len > 0).then(|| (low_byte(&digits[..len], radix), prefix + len));
    }
    // The longest name has four letters: no need to look at more than five bytes.
    let len = text.iter().take(5).take_while(|b| b.is_ascii_alphanumeric()).count();
    let name = &text[..len];
    NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|&(_, byte)| (byte, len))
}

/// The low byte of the number, as C's `strtol` gives it: a number above 63 bits is the largest one.
fn low_byte(digits: &[u8], radix: u32) -> u8 {
    let mut value: i64 = 0;
    for digit in digits.iter().filter_map(|&b| char::from(b).to_digit(radix)) {
        let next = value.checked_mul(i64::from(radix)).and_then(|v| v.checked_add(i64::from(digit)));
        match next {
            Some(next) => value = next,
            None => return i64::MAX as u8,
        }
    }
    value as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_an_entity_is_changed() {
        for text in [
            "a=1&b=2&page=3",
            "&lt",
            "x&AMP;y",
            "&ltx",
            "&#",
            "&#9",
            "&#x",
            "a&&#xg&#xa",
            "&",
            "",
            "&nbsp1",
            "&quote&quot",
        ] {
            let mut out = Vec::new();
            let acted = crate::Transformation::HtmlEntityDecode.apply(text.as_bytes(), &mut out);
            assert_eq!(has_html_entity(text.as_bytes()), acted, "{text}");
        }
    }
}
