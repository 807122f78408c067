//! From the bytes of an XML document to UTF-8 text.
//!
//! The encoding is taken from a byte order mark, from the shape of the first bytes, or from the XML
//! declaration. UTF-8, UTF-16, ISO-8859-1, US-ASCII and windows-1252 are decoded; everything else (UTF-7,
//! UTF-32, EBCDIC, ...) is refused, because an application's library may well decode it and then read
//! something we did not see.

use crate::body::XmlError as Error;
use memchr::{memchr, memchr_iter, memmem};

/// The XML declaration must end within this many bytes.
const DECLARATION_BYTES_MAX: usize = 1_024;

#[derive(Debug)]
pub(super) struct Decoder {
    encoding: Option<Encoding>,
    /// Start of the document while the encoding is not known; later the bytes of a character cut by a chunk
    /// border.
    held: Vec<u8>,
    /// Decoded text, reused.
    text: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    Utf8,
    Utf16 {
        big_endian: bool,
    },
    /// One byte, one character.
    Single {
        windows: bool,
    },
    Ascii,
}

impl Decoder {
    /// Bytes of memory that it holds of what it has taken.
    pub(super) fn held_bytes(&self) -> usize {
        self.held.capacity() + self.text.capacity()
    }

    pub(super) fn new() -> Self {
        Decoder { encoding: None, held: Vec::new(), text: Vec::new() }
    }

    /// Decodes the next bytes and hands the text to `take`, cut at character borders, up to the first bad
    /// character.
    pub(super) fn feed(
        &mut self,
        chunk: &[u8],
        at_end: bool,
        take: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let encoding = match self.encoding {
            Some(encoding) => encoding,
            None => {
                self.held.extend_from_slice(chunk);
                let Some((encoding, mark)) = sniff(&self.held, at_end)? else { return Ok(()) };
                self.encoding = Some(encoding);
                let start = std::mem::take(&mut self.held);
                return self.decode(encoding, &start[mark..], at_end, take);
            }
        };
        self.decode(encoding, chunk, at_end, take)
    }

    fn decode(
        &mut self,
        encoding: Encoding,
        bytes: &[u8],
        at_end: bool,
        take: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        match encoding {
            Encoding::Utf8 => self.utf8(bytes, take)?,
            Encoding::Utf16 { big_endian } => self.utf16(bytes, big_endian, take)?,
            Encoding::Single { windows } => {
                self.text.clear();
                for &byte in bytes {
                    let character = if windows { windows_1252(byte) } else { byte as char };
                    self.text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                }
                allowed(&self.text, take)?;
            }
            Encoding::Ascii => {
                let end = bytes.iter().position(|b| !b.is_ascii()).unwrap_or(bytes.len());
                allowed(&bytes[..end], take)?;
                if end < bytes.len() {
                    return Err(Error::Character);
                }
            }
        }
        if at_end && !self.held.is_empty() { Err(Error::Character) } else { Ok(()) }
    }

    fn utf8(
        &mut self,
        mut bytes: &[u8],
        take: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        // Complete the character that the last chunk cut.
        while !self.held.is_empty() && !bytes.is_empty() {
            self.held.push(bytes[0]);
            bytes = &bytes[1..];
            match std::str::from_utf8(&self.held) {
                Ok(_) => {
                    let character = std::mem::take(&mut self.held);
                    allowed(&character, take)?;
                }
                Err(error) if error.error_len().is_none() => {}
                Err(_) => return Err(Error::Character),
            }
        }
        match std::str::from_utf8(bytes) {
            Ok(_) => allowed(bytes, take),
            Err(error) => {
                let (good, rest) = bytes.split_at(error.valid_up_to());
                allowed(good, take)?;
                match error.error_len() {
                    None => self.held.extend_from_slice(rest),
                    Some(_) => return Err(Error::Character),
                }
                Ok(())
            }
        }
    }

    fn utf16(
        &mut self,
        bytes: &[u8],
        big_endian: bool,
        take: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut all = std::mem::take(&mut self.held);
        all.extend_from_slice(bytes);
        let (units, odd) = all.as_chunks::<2>();
        let unit =
            |pair: &[u8; 2]| if big_endian { u16::from_be_bytes(*pair) } else { u16::from_le_bytes(*pair) };
        let cut = units.last().is_some_and(|pair| (0xD800..0xDC00).contains(&unit(pair)));
        let (complete, rest) = units.split_at(units.len() - cut as usize);
        self.held = [rest.as_flattened(), odd].concat();
        self.text.clear();
        let mut good = Ok(());
        for character in char::decode_utf16(complete.iter().map(unit)) {
            match character {
                Ok(character) => self.text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
                Err(_) => {
                    good = Err(Error::Character);
                    break;
                }
            }
        }
        allowed(&self.text, take)?;
        good
    }
}

/// Hands over the text up to the first character that XML forbids.
fn allowed(text: &[u8], take: &mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
    let control = text.iter().position(|&b| b < 0x20 && !matches!(b, b'\t' | b'\n' | b'\r'));
    let end = control.unwrap_or(text.len());
    // U+FFFE and U+FFFF.
    let end = memchr_iter(0xEF, &text[..end])
        .find(|&at| matches!(text.get(at + 1..at + 3), Some([0xBF, 0xBE | 0xBF])))
        .unwrap_or(end);
    if end > 0 {
        take(&text[..end])?;
    }
    if end < text.len() { Err(Error::Character) } else { Ok(()) }
}

/// The encoding and the length of the byte order mark, once `start` tells; `None` if more bytes are needed.
fn sniff(start: &[u8], at_end: bool) -> Result<Option<(Encoding, usize)>, Error> {
    let little = Encoding::Utf16 { big_endian: false };
    let big = Encoding::Utf16 { big_endian: true };
    match start {
        [0xFF, 0xFE, 0, 0, ..] | [0, 0, ..] | [b'<', 0, 0, 0, ..] => return Err(Error::Encoding),
        // EBCDIC's "<?xm"
        [0x4C, 0x6F, 0xA7, 0x94, ..] => return Err(Error::Encoding),
        [0xFF, 0xFE, _, _, ..] => return Ok(Some((little, 2))),
        [b'<', 0, _, _, ..] => return Ok(Some((little, 0))),
        [0xFE, 0xFF, ..] => return Ok(Some((big, 2))),
        [0, b'<', ..] => return Ok(Some((big, 0))),
        [0xEF, 0xBB, 0xBF, ..] => return Ok(Some((Encoding::Utf8, 3))),
        _ => {}
    }
    if let Some(rest) = start.strip_prefix(b"<?xml")
        && (rest.is_empty() || rest[0].is_ascii_whitespace())
    {
        let window = &rest[..rest.len().min(DECLARATION_BYTES_MAX)];
        return match memmem::find(window, b"?>") {
            Some(end) => Ok(Some((declared(&rest[..end])?, 0))),
            None if rest.len() >= DECLARATION_BYTES_MAX => Err(Error::Markup),
            None if at_end => Ok(Some((Encoding::Utf8, 0))),
            None => Ok(None),
        };
    }
    let marks: [&[u8]; 6] =
        [b"<?xml", b"\xFF\xFE\0\0", b"\0\0", b"\xEF\xBB\xBF", b"\xFE\xFF", b"\x4C\x6F\xA7\x94"];
    let undecided =
        marks.iter().any(|mark| mark.starts_with(start)) || matches!(start, [b'<', 0, ..] | [0xFF, 0xFE, _]);
    Ok((at_end || !undecided).then_some((Encoding::Utf8, 0)))
}

/// The encoding an XML declaration names, from the text between `<?xml` and `?>`.
fn declared(declaration: &[u8]) -> Result<Encoding, Error> {
    let Some(at) = memmem::find(declaration, b"encoding") else { return Ok(Encoding::Utf8) };
    let rest = declaration[at + b"encoding".len()..].trim_ascii_start();
    let rest = rest.strip_prefix(b"=").ok_or(Error::Markup)?.trim_ascii_start();
    let (quote, rest) = rest.split_first().ok_or(Error::Markup)?;
    let end = memchr(*quote, rest).ok_or(Error::Markup)?;
    match rest[..end].to_ascii_lowercase().as_slice() {
        b"utf-8" | b"utf8" => Ok(Encoding::Utf8),
        b"us-ascii" | b"ascii" => Ok(Encoding::Ascii),
        b"iso-8859-1" | b"latin1" | b"iso8859-1" | b"iso-latin-1" => Ok(Encoding::Single { windows: false }),
        b"windows-1252" | b"cp1252" => Ok(Encoding::Single { windows: true }),
        _ => Err(Error::Encoding),
    }
}

/// The character of a byte in windows-1252; the five unassigned bytes are the C1 controls, as in WHATWG
/// Encoding.
fn windows_1252(byte: u8) -> char {
    const HIGH: [char; 32] = [
        '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}',
        '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
    ];
    match byte {
        0x80..0xA0 => HIGH[byte as usize - 0x80],
        _ => byte as char,
    }
}
