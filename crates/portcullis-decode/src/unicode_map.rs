//! The table that `SecUnicodeMapFile` loads.

use std::fmt;

/// Best-fit map of a Windows code page: the single byte that a server makes of a character it does not have;
/// `urlDecodeUni` asks it for `%uHHHH`.
///
/// ```
/// use portcullis_decode::{Transformation, UnicodeMap};
///
/// let map = UnicodeMap::parse("20127 (US-ASCII)\n2039:3c 203a:3e", 20127).unwrap();
/// let mut out = Vec::new();
/// Transformation::UrlDecodeUni.apply_with(b"%u2039script%u203a", Some(&map), &mut out);
/// assert_eq!(out, b"<script>");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct UnicodeMap {
    /// Rising, no character twice.
    entries: Vec<(u16, u8)>,
}

/// A map file has no table for the code page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownCodePage(pub u32);

impl fmt::Display for UnknownCodePage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the Unicode map has no code page {}", self.0)
    }
}

impl std::error::Error for UnknownCodePage {}

impl UnicodeMap {
    /// Reads the table of `code_page` from the text of a map file: words between white space, a table being
    /// its number, words without meaning, then entries `HHHH:HH`; it ends at the next word that is no entry.
    /// The four full stops of RFC 3490 are always mapped to `.`, unless the table says otherwise.
    pub fn parse(text: &str, code_page: u32) -> Result<UnicodeMap, UnknownCodePage> {
        let number = code_page.to_string();
        let mut words = text.split_ascii_whitespace().skip_while(|word| **word != number).peekable();
        words.peek().ok_or(UnknownCodePage(code_page))?;
        let table = words.skip_while(|word| !word.contains(':')).map_while(|word| word.split_once(':'));
        let mut entries = vec![(0x3002, b'.'), (0xff61, b'.'), (0xff0e, b'.'), (0x002e, b'.')];
        entries.extend(table.filter_map(|(code, byte)| {
            Some((u16::from_str_radix(code, 16).ok()?, u8::from_str_radix(byte, 16).ok()?))
        }));
        // Of several entries for a character the last one counts: stable sort of the reverse, first kept.
        entries.reverse();
        entries.sort_by_key(|&(code, _)| code);
        entries.dedup_by_key(|&mut (code, _)| code);
        Ok(UnicodeMap { entries })
    }

    /// The byte for a character, if the table has it.
    pub fn get(&self, code: u16) -> Option<u8> {
        let index = self.entries.binary_search_by_key(&code, |&(code, _)| code).ok()?;
        self.entries.get(index).map(|&(_, byte)| byte)
    }
}

impl fmt::Debug for UnicodeMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UnicodeMap({} entries)", self.entries.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "(MAC - Roman)\n\n\n1250  (ANSI - Central Europe)\n00a1:21 00c0:41 \n\n\
        20127 (US-ASCII)\n00a0:20 2039:3c 2039:3d 002e:2c bad: :: \n\n20261 (T.61)\n00a0:ff\n";

    #[test]
    fn the_table_of_one_code_page() {
        let map = UnicodeMap::parse(FILE, 20127).unwrap();
        assert_eq!(map.get(0xa0), Some(0x20));
        assert_eq!(map.get(0x2039), Some(0x3d));
        assert_eq!(map.get(0xa1), None);
        assert_eq!(map.get(0x3002), Some(b'.'));
        assert_eq!(map.get(0x2e), Some(b','));
        assert_eq!(UnicodeMap::parse(FILE, 1250).unwrap().get(0xa1), Some(0x21));
        assert_eq!(UnicodeMap::parse(FILE, 1251), Err(UnknownCodePage(1251)));
        assert_eq!(UnicodeMap::parse("", 1), Err(UnknownCodePage(1)));
    }
}
