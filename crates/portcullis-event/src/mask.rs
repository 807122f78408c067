//! Replaces a secret by a text of the same shape: each letter by `x` or `X`, each digit by `0`, whatever else
//! stays. Lengths and encodings stay, too, so that the text is parsed as the secret would be.

/// A text of the same shape as `secret`, as long as it. What letters and digits it had is gone, be they plain
/// or behind `%` or `\u`.
pub(crate) fn mask(secret: &mut [u8]) {
    let mut non_ascii = NonAscii::default();
    let mut at = 0;
    while at < secret.len() {
        let rest = &mut secret[at..];
        let unit = unit(rest);
        match unit {
            Unit::Plain(byte) => rest[0] = shape(byte, &mut non_ascii),
            Unit::Percent(byte) => put_hex(&mut rest[1..3], u32::from(shape(byte, &mut non_ascii))),
            Unit::Unicode(code) => {
                let shaped = match u8::try_from(code) {
                    Ok(byte) if byte.is_ascii() => u32::from(shape(byte, &mut non_ascii)),
                    // Halves of pairs stay halves of pairs.
                    _ => match code {
                        0xd800..0xdc00 => 0xd83d,
                        0xdc00..0xe000 => 0xde00,
                        _ => 0xe9,
                    },
                };
                put_hex(&mut rest[2..6], shaped);
            }
            Unit::Escape => rest[1] = b'n',
        }
        at += unit.length();
    }
}

/// A piece of a text that stands for one byte or character.
#[derive(Clone, Copy)]
enum Unit {
    Plain(u8),
    /// `%41`.
    Percent(u8),
    /// `\u0041`.
    Unicode(u32),
    /// A backslash before the letter of an escape of JSON.
    Escape,
}

impl Unit {
    fn length(self) -> usize {
        match self {
            Unit::Plain(_) => 1,
            Unit::Percent(_) => 3,
            Unit::Unicode(_) => 6,
            Unit::Escape => 2,
        }
    }
}

fn unit(text: &[u8]) -> Unit {
    match text {
        [b'%', digits @ ..] if let Some(byte) = hex(digits, 2) => Unit::Percent(byte as u8),
        [b'\\', b'u', digits @ ..] if let Some(code) = hex(digits, 4) => Unit::Unicode(code),
        [b'\\', b'b' | b'f' | b'n' | b'r' | b't', ..] => Unit::Escape,
        _ => Unit::Plain(text[0]),
    }
}

/// The number that the first `count` digits stand for.
fn hex(text: &[u8], count: usize) -> Option<u32> {
    let digits = text.get(..count)?;
    digits.iter().try_fold(0, |number, digit| Some(number << 4 | char::from(*digit).to_digit(16)?))
}

/// Writes a number into as many digits as there is room for, in the case of those that are there.
fn put_hex(digits: &mut [u8], mut number: u32) {
    let is_lower = digits.iter().any(u8::is_ascii_lowercase);
    for digit in digits.iter_mut().rev() {
        let sign = char::from_digit(number & 15, 16).unwrap_or('0');
        *digit = if is_lower { sign as u8 } else { sign.to_ascii_uppercase() as u8 };
        number >>= 4;
    }
}

fn shape(byte: u8, non_ascii: &mut NonAscii) -> u8 {
    if byte.is_ascii() {
        *non_ascii = NonAscii::default();
    }
    match byte {
        // No digit of a hexadecimal number: `%ag` must not become the code of a byte.
        b'a'..=b'z' => b'x',
        b'A'..=b'Z' => b'X',
        b'0'..=b'9' => b'0',
        0..=0x7f => byte,
        _ => non_ascii.next(byte),
    }
}

/// The rest of a character of several bytes that stands for all of its length.
#[derive(Default)]
struct NonAscii(&'static [u8]);

impl NonAscii {
    fn next(&mut self, byte: u8) -> u8 {
        match (byte, self.0) {
            (0x80..=0xbf, [first, rest @ ..]) => {
                self.0 = rest;
                return *first;
            }
            (0xc2..=0xdf, _) => self.0 = "é".as_bytes(),
            (0xe0..=0xef, _) => self.0 = "字".as_bytes(),
            (0xf0..=0xf4, _) => self.0 = "😀".as_bytes(),
            // No UTF-8.
            _ => {
                self.0 = b"";
                return 0xff;
            }
        }
        let (first, rest) = self.0.split_first().unwrap_or((&0xff, b""));
        self.0 = rest;
        *first
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn masked(text: &str) -> String {
        let mut bytes = text.as_bytes().to_vec();
        mask(&mut bytes);
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn shapes_stay() {
        for (secret, shape) in [
            ("hunter2", "xxxxxx0"),
            ("Tr0ub4dor&3", "Xx0xx0xxx&0"),
            ("a%2Fb%41%c3%9f", "x%2Fx%58%c3%a9"),
            (r#"x\u0042\u00df\ud83e\udd80\n\"q"#, r#"x\u0058\u00e9\ud83d\ude00\n\"x"#),
            ("Grüße, 世界 🦀", "Xxééx, 字字 😀"),
            ("100%", "000%"),
            ("%zz%4", "%xx%0"),
            ("%ag", "%xx"),
            ("", ""),
        ] {
            assert_eq!(masked(secret), shape, "{secret}");
        }
    }

    proptest! {
        #[test]
        fn nothing_but_the_shape_is_left(bytes in prop::collection::vec(any::<u8>(), 0..80), text in ".{0,40}") {
            for mut secret in [bytes, text.into_bytes()] {
                let before = secret.clone();
                mask(&mut secret);
                prop_assert_eq!(secret.len(), before.len());
                prop_assert_eq!(std::str::from_utf8(&before).is_ok(), std::str::from_utf8(&secret).is_ok());
                let again = { let mut again = secret.clone(); mask(&mut again); again };
                prop_assert_eq!(&again, &secret);
            }
        }

        /// Two secrets of one shape cannot be distinguished afterwards.
        #[test]
        fn secrets_of_one_shape_become_the_same(pairs in prop::collection::vec(("[a-z]", "[a-z]"), 0..40)) {
            let (one, other): (String, String) = pairs.into_iter().unzip();
            prop_assert_eq!(masked(&one), masked(&other));
        }
    }
}
