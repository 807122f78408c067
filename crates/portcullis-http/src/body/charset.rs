//! The character sets that a message names, as far as an inspector must care.

use encoding_rs::{Encoding, REPLACEMENT, UTF_8};

use super::transcode;

/// The effect of a character set on text that is inspected byte by byte.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Charset {
    /// Bytes below 0x80 are ASCII wherever they stand: the bytes can be inspected as they are.
    Ascii,
    /// Several bytes to a character, some of them below 0x80, or with escape sequences. Browsers send it, and
    /// it can be decoded.
    MultiByte(&'static Encoding),
    /// The same bytes are another text, and it can be decoded: UTF-7, UTF-16, UTF-32, EBCDIC.
    Transcoded(transcode::Foreign),
    /// The bytes may be another text: the name is unknown here.
    Foreign,
}

impl Charset {
    /// By its label in a header field, in any case. An empty label says nothing.
    pub fn from_label(label: &[u8]) -> Charset {
        let label = label.trim_ascii();
        if label.is_empty() || is_ascii_alias(label) {
            return Charset::Ascii;
        }
        if let Some(foreign) = transcode::Foreign::from_label(label) {
            return Charset::Transcoded(foreign);
        }
        match Encoding::for_label(label) {
            None => Charset::Foreign,
            Some(encoding) if encoding == UTF_8 || encoding.is_single_byte() => Charset::Ascii,
            Some(encoding) if encoding == REPLACEMENT => Charset::Foreign,
            Some(encoding) => Charset::MultiByte(encoding),
        }
    }
}

/// Labels in use that the WHATWG table does not have.
fn is_ascii_alias(label: &[u8]) -> bool {
    let families: [&[u8]; 3] = [b"iso-8859-", b"windows-125", b"cp125"];
    let names: [&[u8]; 5] = [b"utf-8-sig", b"latin-1", b"iso8859-1", b"utf8mb4", b"utf-8-mac"];
    names.iter().any(|name| name.eq_ignore_ascii_case(label))
        || families.iter().any(|family| {
            label.get(..family.len()).is_some_and(|start| start.eq_ignore_ascii_case(family))
                && label[family.len()..].iter().all(u8::is_ascii_digit)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels() {
        for label in ["", "utf-8", "UTF8", " ISO-8859-15 ", "windows-1252", "us-ascii", "koi8-r", "cp1251"] {
            assert_eq!(Charset::from_label(label.as_bytes()), Charset::Ascii, "{label}");
        }
        for label in
            ["gbk", "GB18030", "gb2312", "big5", "Shift_JIS", "x-sjis", "euc-kr", "euc-jp", "iso-2022-jp"]
        {
            let charset = Charset::from_label(label.as_bytes());
            assert!(matches!(charset, Charset::MultiByte(_)), "{label}: {charset:?}");
        }
        for label in ["utf-7", "utf-16", "UTF-16LE", "utf-32", "ibm037", "cp500", "ucs-2", "unicode"] {
            let charset = Charset::from_label(label.as_bytes());
            assert!(matches!(charset, Charset::Transcoded(_)), "{label}: {charset:?}");
        }
        for label in ["ibm850x", "cp1047", "hz-gb-2312", "iso-2022-cn", "rot13"] {
            assert_eq!(Charset::from_label(label.as_bytes()), Charset::Foreign, "{label}");
        }
    }
}
