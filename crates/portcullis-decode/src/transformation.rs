//! The one table of transformations.

use crate::bound::Bound;
use crate::scan::Scan;
use crate::{
    UnicodeMap, base64, case, cmd_line, comments, css_decode, digest, escape_seq_decode, hex,
    html_entity_decode, js_decode, length, normalize_path, nulls, parity, trim, url, utf8_to_unicode,
    whitespace,
};
use portcullis_types::ByteSet;

/// Bytes that a result may have though the input has none of them, but for the other case of its letters.
const NOTHING: ByteSet = ByteSet::EMPTY;
const SPACE: ByteSet = ByteSet::EMPTY.with(b' ');
const SLASH: ByteSet = ByteSet::EMPTY.with(b'/');
/// Of what decodes, and of what was not looked at.
const ANYTHING: ByteSet = ByteSet::FULL;

const UPPER: ByteSet = ByteSet::range(b'A', b'Z');
const NUL: ByteSet = ByteSet::of(b"\0");
/// Characters that `cmdLine` removes, and those that it turns into spaces.
const QUOTES: ByteSet = ByteSet::of(b"\"'\\^");
const BLANKS: ByteSet = ByteSet::of(b",;\t\r\n");

/// What becomes of the [`residue`](crate::residue) of a text, but for the case of letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Residue {
    Kept,
    /// Or so it has to be assumed.
    Lost,
}

macro_rules! optional {
    () => {
        None
    };
    ($value:expr) => {
        Some($value)
    };
}

/// Declares the transformations: names, where they act, how long a result is, which bytes it may add, what
/// becomes of residues and, of those that have it, the effect on single bytes and the sign without which some
/// of them do not act. What they do is in `apply_with`.
macro_rules! transformations {
    ($($variant:ident $name:literal $(| $alias:literal)* => $scan:expr, $bound:expr, $adds:expr, $residue:expr
        $(, effect $effect:expr)? $(, sign $sign:expr)?;)*) => {
        /// A transformation of the ModSecurity 2.9 and 3 references (`t:` in a rule). `t:none` is not one: it
        /// empties the list, which is the parser's work.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        #[allow(missing_docs)]
        pub enum Transformation { $($variant,)* }

        impl Transformation {
            /// All transformations in name order.
            pub const ALL: &'static [Transformation] = &[$(Transformation::$variant,)*];
            const NAMES: &'static [&'static [&'static str]] = &[$(&[$name $(, $alias)*],)*];
            const SCANS: &'static [Scan] = &[$($scan,)*];
            const BOUNDS: &'static [Bound] = &[$($bound,)*];
            const ADDS: &'static [ByteSet] = &[$($adds,)*];
            const RESIDUES: &'static [Residue] = &[$($residue,)*];
            const EFFECTS: &'static [Option<Effect>] = &[$(optional!($($effect)?),)*];
            const SIGNS: &'static [Option<(ByteSet, Sign)>] = &[$(optional!($($sign)?),)*];
        }
    };
}

transformations! {
    Base64Decode "base64Decode" => Scan::Always, Bound::Ratio(3, 4), ANYTHING, Residue::Lost;
    Base64DecodeExt "base64DecodeExt" => Scan::Always, Bound::Ratio(3, 4), ANYTHING, Residue::Lost;
    Base64Encode "base64Encode" => Scan::Always, Bound::Blocks(4, 3), ANYTHING, Residue::Lost;
    CmdLine "cmdLine" => Scan::Set(&cmd_line::TRIGGERS), Bound::INPUT, SPACE, Residue::Lost,
        effect Effect { removes: UPPER.union(QUOTES).union(BLANKS), replaces: BLANKS, by: b' ' };
    CompressWhitespace "compressWhitespace" => Scan::Set(&whitespace::TRIGGERS), Bound::INPUT, SPACE, Residue::Kept;
    CssDecode "cssDecode" => Scan::One(b'\\'), Bound::INPUT, ANYTHING, Residue::Lost;
    EscapeSeqDecode "escapeSeqDecode" => Scan::One(b'\\'), Bound::INPUT, ANYTHING, Residue::Lost;
    HexDecode "hexDecode" => Scan::Always, Bound::Ratio(1, 2), ANYTHING, Residue::Lost;
    HexEncode "hexEncode" => Scan::Always, Bound::Ratio(2, 1), ANYTHING, Residue::Lost;
    // Ampersands stand between the arguments of every query.
    HtmlEntityDecode "htmlEntityDecode" => Scan::One(b'&'), Bound::INPUT, ANYTHING, Residue::Lost,
        sign (ByteSet::of(b"&"), Sign::HtmlEntity);
    JsDecode "jsDecode" => Scan::One(b'\\'), Bound::INPUT, ANYTHING, Residue::Kept;
    Length "length" => Scan::Always, Bound::Bytes(20), ANYTHING, Residue::Lost;
    Lowercase "lowercase" => Scan::Range(b'A', b'Z'), Bound::INPUT, NOTHING, Residue::Kept,
        effect Effect::removing(UPPER);
    Md5 "md5" => Scan::Always, Bound::Bytes(16), ANYTHING, Residue::Lost;
    // Dots stand in every second name.
    NormalizePath "normalizePath" | "normalisePath" => Scan::Two(b'/', b'.'), Bound::INPUT, NOTHING, Residue::Lost,
        sign (ByteSet::of(b"."), Sign::FinalDot);
    NormalizePathWin "normalizePathWin" | "normalisePathWin" => Scan::Three(b'/', b'.', b'\\'), Bound::INPUT, SLASH,
        Residue::Lost, sign (ByteSet::of(b"."), Sign::FinalDot);
    ParityEven7bit "parityEven7bit" => Scan::Set(&parity::EVEN_TRIGGERS), Bound::INPUT, ANYTHING, Residue::Lost;
    ParityOdd7bit "parityOdd7bit" => Scan::Set(&parity::ODD_TRIGGERS), Bound::INPUT, ANYTHING, Residue::Lost;
    ParityZero7bit "parityZero7bit" => Scan::Range(0x80, 0xff), Bound::INPUT, ANYTHING, Residue::Lost;
    RemoveComments "removeComments" => Scan::Three(b'/', b'-', b'#'), Bound::INPUT, ANYTHING, Residue::Lost;
    RemoveCommentsChar "removeCommentsChar" => Scan::Three(b'/', b'-', b'#'), Bound::INPUT, NOTHING, Residue::Lost;
    RemoveNulls "removeNulls" => Scan::One(0), Bound::INPUT, NOTHING, Residue::Kept,
        effect Effect::removing(NUL);
    RemoveWhitespace "removeWhitespace" => Scan::Set(&whitespace::TRIGGERS), Bound::INPUT, NOTHING, Residue::Kept,
        effect Effect::removing(whitespace::BYTES);
    ReplaceComments "replaceComments" => Scan::One(b'*'), Bound::INPUT, SPACE, Residue::Kept;
    ReplaceNulls "replaceNulls" => Scan::One(0), Bound::INPUT, SPACE, Residue::Kept,
        effect Effect { removes: NUL, replaces: NUL, by: b' ' };
    Sha1 "sha1" => Scan::Always, Bound::Bytes(20), ANYTHING, Residue::Lost;
    SqlHexDecode "sqlHexDecode" => Scan::Two(b'x', b'X'), Bound::INPUT, ANYTHING, Residue::Lost;
    Trim "trim" => Scan::Set(&trim::TRIGGERS), Bound::INPUT, NOTHING, Residue::Kept;
    TrimLeft "trimLeft" => Scan::Set(&trim::TRIGGERS), Bound::INPUT, NOTHING, Residue::Kept;
    TrimRight "trimRight" => Scan::Set(&trim::TRIGGERS), Bound::INPUT, NOTHING, Residue::Kept;
    Uppercase "uppercase" => Scan::Range(b'a', b'z'), Bound::INPUT, NOTHING, Residue::Kept;
    UrlDecode "urlDecode" => Scan::Two(b'%', b'+'), Bound::INPUT, ANYTHING, Residue::Kept;
    UrlDecodeUni "urlDecodeUni" => Scan::Two(b'%', b'+'), Bound::INPUT, ANYTHING, Residue::Kept;
    UrlEncode "urlEncode" => Scan::Set(&url::ENCODE_TRIGGERS), Bound::Ratio(3, 1), ANYTHING, Residue::Lost;
    Utf8ToUnicode "utf8toUnicode" => Scan::Set(&utf8_to_unicode::TRIGGERS), Bound::Ratio(7, 2), ANYTHING, Residue::Lost;
}

/// The effect of a transformation on the set of bytes of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effect {
    /// No result has one of them. Upper-case letters may be in it in lower case.
    pub removes: ByteSet,
    /// If the text has one of these, the result may have
    pub replaces: ByteSet,
    /// this byte. All others that it has are in the text.
    pub by: u8,
}

impl Effect {
    const fn removing(removes: ByteSet) -> Effect {
        Effect { removes, replaces: ByteSet::EMPTY, by: b' ' }
    }
}

/// A condition beside single bytes under which a transformation acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// A dot that ends the text.
    FinalDot,
    /// A whole entity of HTML.
    HtmlEntity,
}

impl Sign {
    /// True if the text has it.
    pub fn is_in(self, text: &[u8]) -> bool {
        match self {
            Sign::FinalDot => text.last() == Some(&b'.'),
            Sign::HtmlEntity => html_entity_decode::has_html_entity(text),
        }
    }
}

impl Transformation {
    /// The name in the reference.
    pub fn name(self) -> &'static str {
        Transformation::NAMES[self as usize][0]
    }

    /// From a name in any case; `normalisePath` and `normalizePath` are the same.
    pub fn from_name(name: &str) -> Option<Self> {
        let known = |t: &&Transformation| {
            Transformation::NAMES[**t as usize].iter().any(|known| known.eq_ignore_ascii_case(name))
        };
        Transformation::ALL.iter().find(known).copied()
    }

    /// Returns the length of the longest result for an input of `length` bytes.
    pub fn length_max(self, length: usize) -> usize {
        Transformation::BOUNDS[self as usize].of(length)
    }

    /// Returns the smallest length of an input whose result may have `length` bytes: 0 for those whose
    /// results have one length.
    pub fn input_length_min(self, length: usize) -> usize {
        Transformation::BOUNDS[self as usize].input_min(length)
    }

    /// A bound on how many times as long as its input a result is, but for a few bytes.
    pub fn growth(self) -> u32 {
        Transformation::BOUNDS[self as usize].growth() as u32
    }

    /// The bytes that can make it act: an input with none of them is returned unchanged. [`ByteSet::FULL`]
    /// where any input may change, the empty one included (`length` makes `0` of it).
    pub fn triggers(self) -> ByteSet {
        const SETS: [ByteSet; Transformation::SCANS.len()] = {
            let mut sets = [ByteSet::EMPTY; Transformation::SCANS.len()];
            let mut i = 0;
            while i < sets.len() {
                sets[i] = Transformation::SCANS[i].set();
                i += 1;
            }
            sets
        };
        SETS[self as usize]
    }

    /// Bytes that the result may have though the input has none of them, but for the other case of its
    /// letters. [`ByteSet::FULL`] for what decodes.
    pub fn adds(self) -> ByteSet {
        Transformation::ADDS[self as usize]
    }

    /// True if it leaves the [`residue`](crate::residue) of a text as it is, but for the case of letters, and
    /// no more than that.
    pub fn keeps_residue(self) -> bool {
        Transformation::RESIDUES[self as usize] == Residue::Kept
    }

    /// Returns its effect on the bytes of a text, if that is the same for any order of them.
    pub fn effect(self) -> Option<Effect> {
        Transformation::EFFECTS[self as usize]
    }

    /// Those of [`Transformation::triggers`] that do not let it act by themselves, but only where the text
    /// has this.
    pub fn sign(self) -> Option<(ByteSet, Sign)> {
        Transformation::SIGNS[self as usize]
    }

    /// Appends the result to `out` and returns true; or returns false and leaves `out` alone: the result is
    /// `input` itself. Never true if the result equals the input.
    ///
    /// Linear in the length of `input`. The result is never longer than [`Transformation::length_max`]. Any
    /// bytes will do as input; none makes it panic.
    ///
    /// `urlDecodeUni` works without a map here: see [`Transformation::apply_with`].
    pub fn apply(self, input: &[u8], out: &mut Vec<u8>) -> bool {
        self.apply_with(input, None, out)
    }

    /// As [`Transformation::apply`]; `map` is what `SecUnicodeMapFile` loads, for `urlDecodeUni`.
    pub fn apply_with(self, input: &[u8], map: Option<&UnicodeMap>, out: &mut Vec<u8>) -> bool {
        let Some(first) = Transformation::SCANS[self as usize].find(input) else {
            return false;
        };
        let start = out.len();
        let (clean, rest) = input.split_at(first);
        match self {
            Transformation::Base64Decode => base64::decode(input, out),
            Transformation::Base64DecodeExt => base64::decode_ext(input, out),
            Transformation::Base64Encode => base64::encode(input, out),
            Transformation::CmdLine => cmd_line::cmd_line(clean, rest, out),
            Transformation::CompressWhitespace => whitespace::compress(clean, rest, out),
            Transformation::CssDecode => css_decode::css_decode(clean, rest, out),
            Transformation::EscapeSeqDecode => escape_seq_decode::escape_seq_decode(clean, rest, out),
            Transformation::HexDecode => hex::decode(input, out),
            Transformation::HexEncode => hex::encode(input, out),
            Transformation::HtmlEntityDecode => html_entity_decode::html_entity_decode(clean, rest, out),
            Transformation::JsDecode => js_decode::js_decode(clean, rest, out),
            Transformation::Length => length::length(input, out),
            Transformation::Lowercase => case::lower(clean, rest, out),
            Transformation::Md5 => digest::md5(input, out),
            Transformation::NormalizePath => normalize_path::normalize(input, false, out),
            Transformation::NormalizePathWin => normalize_path::normalize(input, true, out),
            Transformation::ParityEven7bit => parity::even(clean, rest, out),
            Transformation::ParityOdd7bit => parity::odd(clean, rest, out),
            Transformation::ParityZero7bit => parity::zero(clean, rest, out),
            Transformation::RemoveComments => comments::remove(input, out),
            Transformation::RemoveCommentsChar => comments::remove_char(input, out),
            Transformation::RemoveNulls => nulls::remove(clean, rest, out),
            Transformation::RemoveWhitespace => whitespace::remove(clean, rest, out),
            Transformation::ReplaceComments => comments::replace(input, out),
            Transformation::ReplaceNulls => nulls::replace(clean, rest, out),
            Transformation::Sha1 => digest::sha1(input, out),
            Transformation::SqlHexDecode => hex::sql_decode(input, out),
            Transformation::Trim => trim::trim(input, out),
            Transformation::TrimLeft => trim::trim_left(input, out),
            Transformation::TrimRight => trim::trim_right(input, out),
            Transformation::Uppercase => case::upper(clean, rest, out),
            Transformation::UrlDecode => {
                url::decode(clean, rest, out);
            }
            Transformation::UrlDecodeUni => url::decode_uni(clean, rest, map, out),
            Transformation::UrlEncode => url::encode(clean, rest, out),
            Transformation::Utf8ToUnicode => utf8_to_unicode::utf8_to_unicode(clean, rest, out),
        }
        let acted = out.get(start..) != Some(input);
        if !acted {
            out.truncate(start);
        }
        acted
    }
}

impl std::fmt::Display for Transformation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_shorter_base64_decodes_to_as_much() {
        for decode in [Transformation::Base64Decode, Transformation::Base64DecodeExt] {
            for length in 1..40 {
                let made = |letters: usize| {
                    let mut out = Vec::new();
                    decode.apply(&b"QUJD".repeat(20)[..letters], &mut out);
                    out.len()
                };
                let needed = decode.input_length_min(length);
                assert!(made(needed) >= length && made(needed - 1) < length, "{decode} {length}");
            }
        }
    }
}
