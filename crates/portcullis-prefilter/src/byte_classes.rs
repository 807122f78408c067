//! Byte classes: what of a text's bytes rules care for, in one word.

use portcullis_decode::Transformation;
use portcullis_types::ByteSet;

/// Upper-case letters have this class and that of their letter.
pub(crate) const UPPER: u64 = 1 << 27;
/// The class of `&`.
pub(crate) const AMPERSAND: u64 = TABLE[b'&' as usize];
/// The class of digits.
pub(crate) const DIGIT: u64 = 1 << 26;
const BLANK: u64 = 1 << 28;
const CONTROL: u64 = 1 << 29;
const HIGH: u64 = 1 << 30;
/// The byte A0 has a class of its own: transformations of white space act on it, and on no other high byte.
const HIGH_BLANK: u64 = 1 << 63;
/// Space and punctuation have a class for each byte, from here on, but that `^` goes with `~`.
const FIRST_MARK: u32 = 31;

/// The classes of each byte: letters one each, whatever their case; digits one; the other bytes by their
/// rarity.
static TABLE: [u64; 256] = {
    let mut table = [0; 256];
    let mut mark = FIRST_MARK;
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            letter @ b'a'..=b'z' => 1 << (letter - b'a'),
            letter @ b'A'..=b'Z' => 1 << (letter - b'A') | UPPER,
            b'0'..=b'9' => DIGIT,
            b'\t'..=b'\r' => BLANK,
            0..0x20 | 0x7f => CONTROL,
            0xa0 => HIGH_BLANK,
            0x80..=0xff => HIGH,
            b'~' => table[b'^' as usize],
            _ => {
                mark += 1;
                1 << (mark - 1)
            }
        };
        byte += 1;
    }
    assert!(mark <= HIGH_BLANK.trailing_zeros());
    table
};

/// The classes that the bytes of `text` have.
pub(crate) fn of(text: &[u8]) -> u64 {
    let mut chunks = text.chunks_exact(4);
    let mut all = [0; 4];
    for chunk in &mut chunks {
        for (classes, &byte) in all.iter_mut().zip(chunk) {
            *classes |= TABLE[byte as usize];
        }
    }
    let rest = chunks.remainder().iter().fold(0, |classes, &byte| classes | TABLE[byte as usize]);
    all[0] | all[1] | all[2] | all[3] | rest
}

/// The effect of a transformation on the byte classes of a text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClassEffect {
    /// No result has them.
    gone: u64,
    /// Only some of their bytes go.
    mixed: u64,
    /// If the text has one of these, the result may have
    replaced: u64,
    /// this one.
    by: u64,
}

impl ClassEffect {
    pub(crate) fn of(last: Transformation) -> Option<ClassEffect> {
        let effect = last.effect()?;
        let (mut gone, mut kept) = (0, 0);
        for byte in 0..=255u8 {
            let classes = TABLE[usize::from(byte)];
            // Of a letter in upper case that goes, the one in lower case is left.
            let going = match effect.removes.contains(byte) {
                true if byte.is_ascii_uppercase() => UPPER,
                true => classes,
                false => 0,
            };
            (gone, kept) = (gone | going, kept | classes & !going);
        }
        let of_set = |set: ByteSet| set.iter().fold(0, |all, byte| all | TABLE[usize::from(byte)]);
        let (replaced, by) = (of_set(effect.replaces), TABLE[usize::from(effect.by)]);
        Some(ClassEffect { gone: gone & !kept, mixed: gone & kept, replaced, by })
    }

    /// The classes of what comes of a text with these: those, or a few more. `None` where its bytes have to
    /// be looked at.
    pub(crate) fn after(self, classes: u64) -> Option<u64> {
        let by = if classes & self.replaced == 0 { 0 } else { self.by };
        (classes & self.mixed == 0).then_some(classes & !self.gone | by)
    }
}

/// Classes of which a text with a byte of `set` has one.
pub(crate) fn touching(set: &ByteSet) -> u64 {
    let class = |byte: u8| match byte {
        b'A'..=b'Z' if !set.contains(byte.to_ascii_lowercase()) => UPPER,
        byte => TABLE[byte as usize] & !UPPER,
    };
    set.iter().fold(0, |classes, byte| classes | class(byte))
}

/// Bytes of ordinary text: letters, digits, blanks and the punctuation that is nearly never part of an
/// attack's syntax.
pub fn plain_bytes() -> ByteSet {
    let letters = ByteSet::range(b'a', b'z').union(ByteSet::range(b'A', b'Z'));
    letters
        .union(ByteSet::range(b'0', b'9'))
        .union(ByteSet::range(b'\t', b'\r'))
        .union(ByteSet::of(b" .,:-_@+/=%?!*#~^"))
}

/// Classes that no text of [`plain_bytes`] has.
pub(crate) fn not_plain() -> u64 {
    plain_bytes().complement().iter().fold(0, |classes, byte| classes | TABLE[byte as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_of_a_set_shows_in_the_classes() {
        for byte in 0..=255u8 {
            assert_ne!(TABLE[byte as usize], 0, "{byte}");
            for low in (0..=255u8).step_by(7) {
                let set = ByteSet::range(low, low.saturating_add(40));
                if set.contains(byte) {
                    assert_ne!(touching(&set) & of(&[byte]), 0, "{byte} {low}");
                }
            }
            assert_ne!(touching(&ByteSet::EMPTY.with(byte)) & of(&[b'x', byte]), 0);
        }
        assert_eq!(touching(&ByteSet::range(b'A', b'Z').with(b'\'')) & of(b"select"), 0);
        assert_eq!(not_plain() & of(b"Some text, 1/2 of it: a@b.c"), 0);
        assert!(plain_bytes().complement().iter().all(|byte| not_plain() & of(&[byte]) != 0));
        assert_eq!(touching(&ByteSet::EMPTY.with(b'<')) & of(b"abc XYZ 123 >/"), 0);
    }

    #[test]
    fn classes_of_what_is_made() {
        let mut state = 3u64;
        let mut below = |bound: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % bound
        };
        let mut known = 0;
        for round in 0..20_000 {
            let bytes = &b"aZ09 ,;\t\r\n\x0b\x0c\"'\\^~/(\xa0\xe9\0\x1b=<"[..4 + round % 22];
            let text: Vec<u8> = (0..below(12)).map(|_| bytes[below(bytes.len())]).collect();
            for &last in Transformation::ALL {
                let Some(effect) = ClassEffect::of(last) else { continue };
                let Some(classes) = effect.after(of(&text)) else { continue };
                let mut made = Vec::new();
                if !last.apply(&text, &mut made) {
                    made.clone_from(&text);
                }
                assert_eq!(of(&made) & !classes, 0, "{last} {}", text.escape_ascii());
                // A blank before a slash goes.
                let more = if last == Transformation::CmdLine { TABLE[b' ' as usize] } else { 0 };
                assert_eq!(classes & !of(&made) & !more, 0, "{last} {}", text.escape_ascii());
                known += 1;
            }
        }
        assert!(known > 40_000, "{known}");
    }

    #[test]
    fn groups_are_what_they_are_said_to_be() {
        let groups = crate::gates::GROUPS;
        let none_of = |text: &[u8]| groups.map(|group| group & of(text) == 0);
        assert_eq!(none_of(b"name some-name_2, a/b.c:d+e"), [true; 4]);
        assert_eq!(none_of(b"A"), [false, true, true, true]);
        assert_eq!(none_of(b"!"), [true, false, true, true]);
        assert_eq!(none_of(b"*"), [true, false, true, true]);
        assert_eq!(none_of(b"a=b;@"), [true, true, false, true]);
        assert_eq!(none_of(b"[]|`"), [true, true, true, false]);
    }
}
