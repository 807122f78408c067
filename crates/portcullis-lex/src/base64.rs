//! The letters of Base64.

/// By byte: its six bits, of either alphabet; [`MARK`] for padding and line ends, which may stand between;
/// [`NONE`] for all others.
pub const TABLE: [u8; 256] = {
    let mut table = [NONE; 256];
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut at = 0;
    while at < letters.len() {
        table[letters[at] as usize] = at as u8;
        at += 1;
    }
    table[b'-' as usize] = 62;
    table[b'_' as usize] = 63;
    table[b'=' as usize] = MARK;
    table[b'\r' as usize] = MARK;
    table[b'\n' as usize] = MARK;
    table
};
/// Of padding and line ends.
pub const MARK: u8 = 0xFE;
/// Of bytes that Base64 does not have.
pub const NONE: u8 = 0xFF;

/// The value of a letter of Base64, of either alphabet.
///
/// ```
/// assert_eq!(portcullis_lex::base64::value(b'_'), Some(63));
/// assert_eq!(portcullis_lex::base64::value(b'='), None);
/// ```
pub fn value(b: u8) -> Option<u32> {
    let value = TABLE[usize::from(b)];
    (value < 64).then_some(u32::from(value))
}
