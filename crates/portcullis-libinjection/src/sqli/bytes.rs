//! Byte classes: the tokens that each byte may begin, end or be part of.
//!
//! libinjection asks C's `strchr` whether a byte is in a set, and `strchr` finds the terminating NUL too: so
//! NUL is a blank, a hexadecimal, binary and money digit, and a letter of a dollar quote's name. It stays so
//! here.

/// The kinds of tokens that can begin with this byte.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    Blank,
    Word,
    Number,
    /// `'` or `"`.
    String,
    Tick,
    /// One of `( ) { } , ;`, each a kind of its own.
    Punctuation,
    /// An operator of one byte.
    Operator,
    /// An operator of one, two or three bytes.
    LongOperator,
    Dash,
    Slash,
    Hash,
    At,
    Dollar,
    Bracket,
    Backslash,
    Unknown,
    /// `b'0101'`
    BitString,
    /// `x'12ab'`
    HexString,
    /// `e'...'`
    EscapeString,
    /// `u&'...'`
    UnicodeString,
    /// `q'[...]'`
    OracleString,
    /// `n'...'`, `nq'[...]'`
    NationalString,
}

pub(super) const START: [Start; 256] = {
    let mut table = [Start::Word; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = start_of(byte as u8);
        byte += 1;
    }
    table
};

const fn start_of(byte: u8) -> Start {
    match byte {
        0..=b' ' | 0x7f | 0xa0 => Start::Blank,
        b'0'..=b'9' | b'.' => Start::Number,
        b'\'' | b'"' => Start::String,
        b'`' => Start::Tick,
        b'(' | b')' | b'{' | b'}' | b',' | b';' => Start::Punctuation,
        b'%' | b'+' | b'^' | b'~' => Start::Operator,
        b'!' | b'&' | b'*' | b':' | b'<' | b'=' | b'>' | b'|' => Start::LongOperator,
        b'-' => Start::Dash,
        b'/' => Start::Slash,
        b'#' => Start::Hash,
        b'@' => Start::At,
        b'$' => Start::Dollar,
        b'[' => Start::Bracket,
        b'\\' => Start::Backslash,
        b'?' | b']' => Start::Unknown,
        b'b' | b'B' => Start::BitString,
        b'x' | b'X' => Start::HexString,
        b'e' | b'E' => Start::EscapeString,
        b'u' | b'U' => Start::UnicodeString,
        b'q' | b'Q' => Start::OracleString,
        b'n' | b'N' => Start::NationalString,
        _ => Start::Word,
    }
}

/// Flags of [`ROLES`].
pub(super) const BLANK: u8 = 1;
pub(super) const ENDS_WORD: u8 = 1 << 1;
pub(super) const ENDS_VARIABLE: u8 = 1 << 2;
/// A word may be cut before this byte: `SELECT.1`, ``SELECT`a` ``.
pub(super) const SEAM: u8 = 1 << 3;
pub(super) const HEX_DIGIT: u8 = 1 << 4;
pub(super) const BIT: u8 = 1 << 5;
pub(super) const MONEY: u8 = 1 << 6;
pub(super) const LETTER: u8 = 1 << 7;

/// For each byte, the flags above.
pub(super) const ROLES: [u8; 256] = {
    let mut table = [0; 256];
    add(&mut table, b" \t\n\x0b\x0c\r\xa0\0", BLANK);
    add(&mut table, b" []{}<>:\\?=@!#~+-*/&|^%(),';\t\n\x0b\x0c\r\"\xa0\0", ENDS_WORD);
    add(&mut table, b" <>:\\?=@!#~+-*/&|^%(),';\t\n\x0b\x0c\r'`\"\0", ENDS_VARIABLE);
    add(&mut table, b".`", SEAM);
    add(&mut table, b"0123456789abcdefABCDEF\0", HEX_DIGIT);
    add(&mut table, b"01\0", BIT);
    add(&mut table, b"0123456789.,\0", MONEY);
    add(&mut table, b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ\0", LETTER);
    table
};

const fn add(table: &mut [u8; 256], bytes: &[u8], flag: u8) {
    let mut i = 0;
    while i < bytes.len() {
        table[bytes[i] as usize] |= flag;
        i += 1;
    }
}

pub(super) fn has_role(byte: u8, flags: u8) -> bool {
    ROLES[byte as usize] & flags != 0
}

/// Length of the leading run of bytes with this role.
pub(super) fn run(bytes: &[u8], flag: u8) -> usize {
    bytes.iter().position(|&byte| !has_role(byte, flag)).unwrap_or(bytes.len())
}

/// Length of the leading run of bytes without this role.
pub(super) fn run_until(bytes: &[u8], flag: u8) -> usize {
    bytes.iter().position(|&byte| has_role(byte, flag)).unwrap_or(bytes.len())
}

/// Returns the first place where the two bytes follow each other.
pub(super) fn find_pair(bytes: &[u8], pair: [u8; 2]) -> Option<usize> {
    memchr::memchr_iter(pair[0], bytes).find(|&at| bytes.get(at + 1) == Some(&pair[1]))
}
