//! Base64 (RFC 4648 section 4) for test data. The product has its own decoders; using them here would
//! let a bug hide itself.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Decodes padded Base64; line breaks are skipped, as Go's decoder does. `None` if it is anything else.
///
/// ```
/// use portcullis_testkit::base64;
/// assert_eq!(base64::decode("YQ0KYg==").as_deref(), Some(&b"a\r\nb"[..]));
/// assert_eq!(base64::decode("YQ0KYg"), None);
/// ```
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let symbols: Vec<u8> = text.bytes().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
    if !symbols.len().is_multiple_of(4) {
        return None;
    }
    let padding = symbols.iter().rev().take_while(|&&byte| byte == b'=').count();
    if padding > 2 {
        return None;
    }
    let mut out = Vec::with_capacity(symbols.len() / 4 * 3);
    let (mut bits, mut count) = (0_u32, 0);
    for &symbol in &symbols[..symbols.len() - padding] {
        let value = ALPHABET.iter().position(|&byte| byte == symbol)? as u32;
        bits = (bits << 6) | value;
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn every_padding() {
        for (text, want) in
            [("", &b""[..]), ("Zg==", b"f"), ("Zm8=", b"fo"), ("Zm9v", b"foo"), ("/+8=", b"\xff\xef")]
        {
            assert_eq!(decode(text).as_deref(), Some(want), "{text}");
        }
    }

    #[test]
    fn refuses_what_is_not_base64() {
        for text in ["Z", "Zg=", "====", "Z===", "Zm9!", "=Zm9"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
