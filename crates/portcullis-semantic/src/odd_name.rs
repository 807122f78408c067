//! Names that are more than words: the cheapest look at a name of a body.

/// The role of a byte in a name.
mod name_byte {
    /// No letter, no digit and none of the usual joints, which make words.
    pub const ODD: u8 = 1;
    pub const DOT: u8 = 2;
    pub const UNDERSCORE: u8 = 4;
    /// Letters that few names have, of the words that are looked for.
    pub const UPPER_L: u8 = 8;
    pub const C: u8 = 16;
    pub const U: u8 = 32;

    pub static TABLE: [u8; 256] = {
        let mut table = [ODD; 256];
        let mut b = 0;
        while b < 256 {
            table[b] = match b as u8 {
                b'.' => DOT,
                b'_' => UNDERSCORE,
                b'L' => UPPER_L,
                b'c' => C,
                b'u' => U,
                b'-' | b'[' | b']' | b':' | b'/' => 0,
                byte if byte.is_ascii_alphanumeric() => 0,
                _ => ODD,
            };
            b += 1;
        }
        table
    };
}

/// What objects of JavaScript and Python have in two underscores that leads to all others.
const INNER: [&[u8]; 5] = [b"__proto__", b"__class__", b"__globals__", b"__base", b"__subclasses__"];

/// A name that is more than a word, or one that objects of JavaScript have by default. Each name of a
/// body is asked.
pub(crate) fn is_odd_name(name: &[u8]) -> bool {
    use name_byte::{C, DOT, ODD, TABLE, U, UNDERSCORE, UPPER_L};
    let (mut seen, mut pairs, mut before) = (0, 0, 0);
    let (fours, rest) = name.as_chunks::<4>();
    for four in fours {
        let [a, b, c, d] = four.map(|b| TABLE[usize::from(b)]);
        seen |= a | b | c | d;
        pairs |= before & a | a & b | b & c | c & d;
        before = d;
    }
    for &b in rest {
        let byte = TABLE[usize::from(b)];
        seen |= byte;
        pairs |= byte & before;
        before = byte;
    }
    let has = |letters: u8, word: &[u8]| {
        seen & letters == letters && name.len() >= word.len() && memchr::memmem::find(name, word).is_some()
    };
    // Two dots make a path.
    seen & ODD != 0
        || pairs & DOT != 0
        || name.first() == Some(&b'/')
        || pairs & UNDERSCORE != 0 && INNER.iter().any(|word| has(UNDERSCORE, word))
        || has(UPPER_L, b"lassLoader")
        || has(C | U, b"constructor")
}
