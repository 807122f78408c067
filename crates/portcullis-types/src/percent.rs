//! Percent-encoding.

/// `text` with each `%hh` decoded. A percent sign without two hexadecimal digits stays, and so does `+`,
/// unless `plus_is_space` says that it stands for a space, as in forms and queries.
///
/// ```
/// use portcullis_types::percent_decode;
///
/// assert_eq!(percent_decode(b"a%2Fb+%zz%", false), b"a/b+%zz%");
/// assert_eq!(percent_decode(b"a+%2B", true), b"a +");
/// ```
pub fn percent_decode(text: &[u8], plus_is_space: bool) -> Vec<u8> {
    let hex = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, tail)) = rest.split_first() {
        let pair = tail.first_chunk().and_then(|&[high, low]| Some(hex(high)? << 4 | hex(low)?));
        match pair.filter(|_| byte == b'%') {
            Some(decoded) => {
                out.push(decoded);
                rest = &tail[2..];
            }
            None => {
                out.push(if plus_is_space && byte == b'+' { b' ' } else { byte });
                rest = tail;
            }
        }
    }
    out
}
