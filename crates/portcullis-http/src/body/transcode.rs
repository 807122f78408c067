//! Character sets in which the same bytes are another text than ASCII: to UTF-8.
//!
//! UTF-7 (RFC 2152), UTF-16 and UTF-32 in both byte orders, and two EBCDIC code pages. Servers that honour
//! the `charset` of a body decode them before they look for names and values, so that not even a `&` or a
//! boundary is where the bytes have one. Bytes that cannot be decoded become U+FFFD, as decoders have it.

/// A character set that is decoded here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreign {
    /// UTF-7.
    Utf7,
    /// UTF-16; `None`: by its mark, or by the zero byte of its first character, or little-endian as browsers
    /// and .NET have it.
    Utf16(Option<Order>),
    /// UTF-32; likewise.
    Utf32(Option<Order>),
    /// EBCDIC, code page 37 or 500.
    Ebcdic(Page),
}

/// The byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The low one.
    Little,
    /// The high one.
    Big,
}

/// An EBCDIC code page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    /// IBM037, of the United States; IBM1140 is the same with a euro sign.
    Ibm037,
    /// IBM500, international; IBM1148 is the same with a euro sign.
    Ibm500,
}

impl Foreign {
    /// By its label in a header field, in any case.
    pub fn from_label(label: &[u8]) -> Option<Foreign> {
        let name: Vec<u8> =
            label.iter().filter(|byte| !b"-_".contains(byte)).map(u8::to_ascii_lowercase).collect();
        // ibm037, ibm-037, cp037, ccsid37 and the like; the zero is often left out.
        let digits =
            [&b"ibm"[..], b"cp", b"ccsid", b"ebcdiccp", b"csibm"].iter().find_map(|p| name.strip_prefix(*p));
        let number = digits.and_then(|digits| std::str::from_utf8(digits).ok()?.parse::<u16>().ok());
        Some(match (name.as_slice(), number) {
            (b"utf7" | b"unicode11utf7" | b"csunicode11utf7" | b"csutf7" | b"xunicode20utf7", _) => {
                Foreign::Utf7
            }
            (b"utf16" | b"unicode" | b"ucs2" | b"iso10646ucs2" | b"csunicode" | b"csutf16", _) => {
                Foreign::Utf16(None)
            }
            (b"utf16le" | b"unicodelittle" | b"csutf16le", _) => Foreign::Utf16(Some(Order::Little)),
            (b"utf16be" | b"unicodefffe" | b"unicodebig" | b"csutf16be", _) => {
                Foreign::Utf16(Some(Order::Big))
            }
            (b"utf32" | b"ucs4" | b"iso10646ucs4" | b"csutf32", _) => Foreign::Utf32(None),
            (b"utf32le" | b"csutf32le", _) => Foreign::Utf32(Some(Order::Little)),
            (b"utf32be" | b"csutf32be", _) => Foreign::Utf32(Some(Order::Big)),
            (b"ebcdiccpus" | b"ebcdiccpca" | b"ebcdiccpwt" | b"ebcdiccpnl", _) | (_, Some(37 | 1140)) => {
                Foreign::Ebcdic(Page::Ibm037)
            }
            (b"ebcdiccpbe" | b"ebcdiccpch", _) | (_, Some(500 | 1148)) => Foreign::Ebcdic(Page::Ibm500),
            _ => return None,
        })
    }

    /// All of `bytes` as UTF-8.
    pub fn decode(self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        let mut transcoder = Transcoder::new(self);
        transcoder.feed(bytes, &mut out);
        transcoder.finish(&mut out);
        out
    }
}

/// Decodes in pieces, wherever they are cut.
#[derive(Debug)]
pub struct Transcoder {
    from: Foreign,
    /// Bytes of a unit that is not whole.
    held: [u8; 4],
    held_bytes: usize,
    started: bool,
    /// The first half of a character in UTF-16.
    high: Option<u16>,
    /// UTF-7 between `+` and `-`: bits that make no unit yet, and how many; whether a letter has come.
    base64: Option<(u32, u32, bool)>,
}

impl Transcoder {
    /// From the beginning of a text.
    pub fn new(from: Foreign) -> Transcoder {
        Transcoder { from, held: [0; 4], held_bytes: 0, started: false, high: None, base64: None }
    }

    /// Decodes the next bytes to the end of `out`.
    pub fn feed(&mut self, chunk: &[u8], out: &mut Vec<u8>) {
        let size = match self.from {
            Foreign::Utf7 => return chunk.iter().for_each(|&byte| self.utf7(byte, out)),
            Foreign::Ebcdic(page) => return chunk.iter().for_each(|&byte| put(ebcdic(page, byte), out)),
            Foreign::Utf16(_) => 2,
            Foreign::Utf32(_) => 4,
        };
        for &byte in chunk {
            self.held[self.held_bytes] = byte;
            self.held_bytes += 1;
            if self.held_bytes == size {
                self.held_bytes = 0;
                self.unit(size, out);
            }
        }
    }

    /// The text is complete.
    pub fn finish(mut self, out: &mut Vec<u8>) {
        let cut = self.held_bytes > 0;
        if self.high.take().is_some() || cut {
            put(char::REPLACEMENT_CHARACTER, out);
        }
    }

    fn unit(&mut self, size: usize, out: &mut Vec<u8>) {
        let bytes = &self.held[..size];
        let order = match self.from {
            Foreign::Utf16(Some(order)) | Foreign::Utf32(Some(order)) => order,
            Foreign::Utf7 | Foreign::Utf16(_) | Foreign::Utf32(_) | Foreign::Ebcdic(_) => {
                match (bytes[0], bytes[size - 1]) {
                    (0, _) | (0xFE, 0xFF) => Order::Big,
                    _ => Order::Little,
                }
            }
        };
        let value = match order {
            Order::Big => bytes.iter().fold(0, |value, &byte| value << 8 | u32::from(byte)),
            Order::Little => bytes.iter().rev().fold(0, |value, &byte| value << 8 | u32::from(byte)),
        };
        if size == 2 {
            self.from = Foreign::Utf16(Some(order));
        } else {
            self.from = Foreign::Utf32(Some(order));
        }
        let is_mark = value == 0xFEFF && !std::mem::replace(&mut self.started, true);
        match size {
            _ if is_mark => {}
            2 => self.utf16(value as u16, out),
            _ => put(char::from_u32(value).unwrap_or(char::REPLACEMENT_CHARACTER), out),
        }
    }

    fn utf16(&mut self, unit: u16, out: &mut Vec<u8>) {
        match (self.high.take(), unit) {
            (Some(high), 0xDC00..=0xDFFF) => {
                let code = 0x10000 + ((u32::from(high) - 0xD800) << 10) + (u32::from(unit) - 0xDC00);
                return put(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), out);
            }
            (Some(_), _) => put(char::REPLACEMENT_CHARACTER, out),
            (None, _) => {}
        }
        match unit {
            0xD800..=0xDBFF => self.high = Some(unit),
            _ => put(char::from_u32(u32::from(unit)).unwrap_or(char::REPLACEMENT_CHARACTER), out),
        }
    }

    fn utf7(&mut self, byte: u8, out: &mut Vec<u8>) {
        let Some((bits, count, any)) = self.base64 else {
            match byte {
                b'+' => self.base64 = Some((0, 0, false)),
                _ => put(char::from(byte), out),
            }
            return;
        };
        let letter = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => {
                self.base64 = None;
                if self.high.take().is_some() {
                    put(char::REPLACEMENT_CHARACTER, out);
                }
                match byte {
                    b'-' if any => {}
                    b'-' => out.push(b'+'),
                    _ => put(char::from(byte), out),
                }
                return;
            }
        };
        let (bits, count) = (bits << 6 | u32::from(letter), count + 6);
        if count < 16 {
            self.base64 = Some((bits, count, true));
            return;
        }
        let left = count - 16;
        self.base64 = Some((bits & ((1 << left) - 1), left, true));
        self.utf16((bits >> left) as u16, out);
    }
}

fn put(character: char, out: &mut Vec<u8>) {
    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
}

fn ebcdic(page: Page, byte: u8) -> char {
    char::from(match (page, byte) {
        (Page::Ibm500, 0x4A) => b'[',
        (Page::Ibm500, 0x4F) => b'!',
        (Page::Ibm500, 0x5A) => b']',
        (Page::Ibm500, 0x5F) => b'^',
        (Page::Ibm500, 0xB0) => 0xA2,
        (Page::Ibm500, 0xBA) => 0xAC,
        (Page::Ibm500, 0xBB) => b'|',
        _ => IBM037[usize::from(byte)],
    })
}

/// Latin-1 of each byte.
#[rustfmt::skip]
const IBM037: [u8; 256] = [
    0x00, 0x01, 0x02, 0x03, 0x9C, 0x09, 0x86, 0x7F, 0x97, 0x8D, 0x8E, 0x0B, 0x0C, 0x0D, 0x0E, 0x0F,
    0x10, 0x11, 0x12, 0x13, 0x9D, 0x85, 0x08, 0x87, 0x18, 0x19, 0x92, 0x8F, 0x1C, 0x1D, 0x1E, 0x1F,
    0x80, 0x81, 0x82, 0x83, 0x84, 0x0A, 0x17, 0x1B, 0x88, 0x89, 0x8A, 0x8B, 0x8C, 0x05, 0x06, 0x07,
    0x90, 0x91, 0x16, 0x93, 0x94, 0x95, 0x96, 0x04, 0x98, 0x99, 0x9A, 0x9B, 0x14, 0x15, 0x9E, 0x1A,
    0x20, 0xA0, 0xE2, 0xE4, 0xE0, 0xE1, 0xE3, 0xE5, 0xE7, 0xF1, 0xA2, 0x2E, 0x3C, 0x28, 0x2B, 0x7C,
    0x26, 0xE9, 0xEA, 0xEB, 0xE8, 0xED, 0xEE, 0xEF, 0xEC, 0xDF, 0x21, 0x24, 0x2A, 0x29, 0x3B, 0xAC,
    0x2D, 0x2F, 0xC2, 0xC4, 0xC0, 0xC1, 0xC3, 0xC5, 0xC7, 0xD1, 0xA6, 0x2C, 0x25, 0x5F, 0x3E, 0x3F,
    0xF8, 0xC9, 0xCA, 0xCB, 0xC8, 0xCD, 0xCE, 0xCF, 0xCC, 0x60, 0x3A, 0x23, 0x40, 0x27, 0x3D, 0x22,
    0xD8, 0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0xAB, 0xBB, 0xF0, 0xFD, 0xFE, 0xB1,
    0xB0, 0x6A, 0x6B, 0x6C, 0x6D, 0x6E, 0x6F, 0x70, 0x71, 0x72, 0xAA, 0xBA, 0xE6, 0xB8, 0xC6, 0xA4,
    0xB5, 0x7E, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7A, 0xA1, 0xBF, 0xD0, 0xDD, 0xDE, 0xAE,
    0x5E, 0xA3, 0xA5, 0xB7, 0xA9, 0xA7, 0xB6, 0xBC, 0xBD, 0xBE, 0x5B, 0x5D, 0xAF, 0xA8, 0xB4, 0xD7,
    0x7B, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x49, 0xAD, 0xF4, 0xF6, 0xF2, 0xF3, 0xF5,
    0x7D, 0x4A, 0x4B, 0x4C, 0x4D, 0x4E, 0x4F, 0x50, 0x51, 0x52, 0xB9, 0xFB, 0xFC, 0xF9, 0xFA, 0xFF,
    0x5C, 0xF7, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59, 0x5A, 0xB2, 0xD4, 0xD6, 0xD2, 0xD3, 0xD5,
    0x30, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38, 0x39, 0xB3, 0xDB, 0xDC, 0xD9, 0xDA, 0x9F,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(label: &str, bytes: &[u8], want: &str) {
        let from = Foreign::from_label(label.as_bytes()).expect(label);
        assert_eq!(String::from_utf8(from.decode(bytes)).unwrap(), want, "{label} {}", bytes.escape_ascii());
        let (mut out, mut transcoder) = (Vec::new(), Transcoder::new(from));
        bytes.chunks(1).for_each(|byte| transcoder.feed(byte, &mut out));
        transcoder.finish(&mut out);
        assert_eq!(out, want.as_bytes(), "byte by byte");
    }

    #[test]
    fn utf_16_and_32() {
        check("utf-16le", b"a\0<\0", "a<");
        check("UTF-16BE", b"\0a\0<", "a<");
        check("utf-16", b"\xFF\xFEa\0", "a");
        check("utf-16", b"\xFE\xFF\0a", "a");
        check("utf-16", b"a\0b\0", "ab");
        check("utf-16", b"\0a\0b", "ab");
        check("utf-16le", b"\x3D\xD8\x00\xDE!\0", "\u{1F600}!");
        check("utf-16le", b"\x3D\xD8!\0", "\u{FFFD}!");
        check("utf-16le", b"\x00\xDE", "\u{FFFD}");
        check("utf-16le", b"a\0\x3D\xD8", "a\u{FFFD}");
        check("utf-16le", b"a\0b", "a\u{FFFD}");
        check("utf-32le", b"a\0\0\0", "a");
        check("utf-32", b"\0\0\xFE\xFF\0\0\0a", "a");
        check("utf-32", b"\0\0\0a", "a");
        check("utf-32be", b"\0\x01\xF6\0\0\0\xD8\0", "\u{1F600}\u{FFFD}");
    }

    #[test]
    fn utf_7() {
        check("utf-7", b"+ADw-script+AD4-x+-", "<script>x+");
        check("utf-7", b"+ADwAPg.", "<>.");
        check("utf-7", b"1+ACc-or", "1'or");
        check("utf-7", b"+2D3eAA-!", "\u{1F600}!");
        check("utf-7", b"+2D0-!", "\u{FFFD}!");
        check("utf-7", b"a+b", "a");
        check("utf-7", b"\xE9", "\u{e9}");
    }

    #[test]
    fn ebcdic() {
        check("ibm037", b"\x81\x7E\x4C\xA2\x6E\x50\x82\x7E\xF1", "a=<s>&b=1");
        for label in ["IBM-037", "cp037", "cp37", "ibm1140", "ebcdic-cp-us", "CCSID00037"] {
            check(label, b"\x4C", "<");
        }
        check("ibm500", b"\x4A\x5A\x4F", "[]!");
        assert_eq!(Foreign::from_label(b"utf-8"), None);
        assert_eq!(Foreign::from_label(b"ibm850"), None);
        let mut seen = [false; 256];
        IBM037.iter().for_each(|&byte| seen[usize::from(byte)] = true);
        assert!(seen.iter().all(|&seen| seen), "a code page is a permutation");
    }
}
