//! The wire format of Protocol Buffers, and what stands around messages on their way: frames of gRPC, and the
//! text form of gRPC-Web.
//!
//! A message is fields one after the other; each begins with its number and the form of its content. What a
//! field means its message's declaration says, of which this knows nothing.
//!
//! ```
//! use portcullis_lex::protobuf::{Content, field};
//!
//! let message = b"\x08\x96\x01\x12\x02hi";
//! let (first, next) = field(message, 0).unwrap();
//! assert_eq!((first.number, first.content), (1, Content::Varint(150)));
//! let (second, end) = field(message, next).unwrap();
//! assert_eq!((second.number, second.content), (2, Content::Bytes(b"hi")));
//! assert_eq!(field(message, end), None);
//! ```

use crate::base64;

/// The largest number of a field.
pub const NUMBER_MAX: u64 = (1 << 29) - 1;

/// A field of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'m> {
    /// Its number. Zero, and numbers above [`NUMBER_MAX`], no message declares.
    pub number: u64,
    /// Its value.
    pub content: Content<'m>,
}

/// The content of a field, in its form on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content<'m> {
    /// A whole number in up to ten bytes.
    Varint(u64),
    /// Eight bytes.
    Fixed64(u64),
    /// As many bytes as their length in front of them says.
    Bytes(&'m [u8]),
    /// Four bytes.
    Fixed32(u32),
    /// The beginning or the end of a group, whose fields follow or precede.
    Group,
}

impl Content<'_> {
    /// The form, in words.
    pub fn title(&self) -> &'static str {
        match self {
            Content::Varint(_) => "a variable-length number",
            Content::Fixed64(_) => "eight bytes",
            Content::Bytes(_) => "bytes with their length",
            Content::Fixed32(_) => "four bytes",
            Content::Group => "a group",
        }
    }
}

/// The field that begins at `at`, and where the next one does; none if there is no whole field.
pub fn field(message: &[u8], at: usize) -> Option<(Field<'_>, usize)> {
    let (key, next) = varint(message, at)?;
    let fixed = |len: usize| Some((message.get(next..next.checked_add(len)?)?, next + len));
    let (content, end) = match key & 7 {
        0 => {
            let (value, end) = varint(message, next)?;
            (Content::Varint(value), end)
        }
        1 => {
            let (bytes, end) = fixed(8)?;
            (Content::Fixed64(u64::from_le_bytes(bytes.try_into().ok()?)), end)
        }
        2 => {
            let (len, from) = varint(message, next)?;
            let end = from.checked_add(usize::try_from(len).ok()?)?;
            (Content::Bytes(message.get(from..end)?), end)
        }
        3 | 4 => (Content::Group, next),
        5 => {
            let (bytes, end) = fixed(4)?;
            (Content::Fixed32(u32::from_le_bytes(bytes.try_into().ok()?)), end)
        }
        _ => return None,
    };
    Some((Field { number: key >> 3, content }, end))
}

/// The number that begins at `at`, and where it ends. Bits beyond the 64th are dropped.
pub fn varint(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let mut value = 0u64;
    for (index, &b) in bytes.get(at..)?.iter().take(10).enumerate() {
        value |= u64::from(b & 0x7F) << (7 * index);
        if b & 0x80 == 0 {
            return Some((value, at + index + 1));
        }
    }
    None
}

/// A frame of gRPC: a byte of flags, the length of a message in four bytes, the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'b> {
    /// The flags: 1 says that the message is compressed. gRPC-Web has 128 at trailers, Connect 2 at the end
    /// of a stream.
    pub flags: u8,
    /// The message, as far as it is there.
    pub message: &'b [u8],
    /// It is there to its end.
    pub is_whole: bool,
}

/// The frames of a body.
#[derive(Clone, Copy, Debug)]
pub struct Frames<'b> {
    rest: &'b [u8],
}

impl<'b> Frames<'b> {
    /// Those of `body`.
    pub fn new(body: &'b [u8]) -> Frames<'b> {
        Frames { rest: body }
    }

    /// The bytes that are no frame yet: once the last frame was read, what is too short for one.
    pub fn rest(&self) -> &'b [u8] {
        self.rest
    }
}

impl<'b> Iterator for Frames<'b> {
    type Item = Frame<'b>;

    fn next(&mut self) -> Option<Frame<'b>> {
        let &[flags, a, b, c, d, ref tail @ ..] = self.rest else { return None };
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        let (message, rest) = tail.split_at(length.min(tail.len()));
        self.rest = rest;
        Some(Frame { flags, message, is_whole: message.len() == length })
    }
}

/// The bytes of a body of gRPC-Web in its text form: Base64 in pieces, each with its padding, one behind the
/// other. False if something else is in it.
pub fn web_text(body: &[u8]) -> (Vec<u8>, bool) {
    let mut out = Vec::with_capacity(body.len() / 4 * 3);
    let (mut bits, mut count, mut is_sound) = (0u32, 0, true);
    // Ends a piece: what is left of its last four letters is one byte, or two.
    let end = |out: &mut Vec<u8>, bits: u32, count: i32| match count {
        2 => out.push((bits >> 4) as u8),
        3 => out.extend_from_slice(&(bits >> 2).to_be_bytes()[2..]),
        _ => {}
    };
    for &byte in body {
        match base64::value(byte) {
            Some(value) => {
                (bits, count) = (bits << 6 | value, count + 1);
                if count == 4 {
                    out.extend_from_slice(&bits.to_be_bytes()[1..]);
                    (bits, count) = (0, 0);
                }
            }
            None if byte == b'=' => {
                end(&mut out, bits, count);
                (bits, count) = (0, 0);
            }
            None => is_sound &= byte.is_ascii_whitespace(),
        }
    }
    end(&mut out, bits, count);
    (out, is_sound)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the bytes are, fields and frames rise to the end and stay inside.
    #[test]
    fn any_bytes() {
        for seed in 0..=255u8 {
            let body: Vec<u8> =
                (0..64u8).map(|i| i.wrapping_mul(seed).wrapping_add(seed >> 1) ^ (i >> 2)).collect();
            for start in 0..=body.len() + 1 {
                let mut at = start;
                while let Some((_, next)) = field(&body, at) {
                    assert!(at < next && next <= body.len());
                    at = next;
                }
            }
            let mut frames = Frames::new(&body);
            let read: usize = frames.by_ref().map(|frame| 5 + frame.message.len()).sum();
            assert_eq!(read + frames.rest().len(), body.len());
        }
    }

    #[test]
    fn numbers() {
        assert_eq!(varint(b"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01", 0), Some((u64::MAX, 10)));
        assert_eq!(varint(b"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01", 0), None, "too long");
        assert_eq!(varint(b"\x80", 0), None);
        assert_eq!(field(b"\x0A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01x", 0), None, "a length beyond all");
        assert_eq!(field(b"\x0B", 0).map(|(field, _)| field.content), Some(Content::Group));
        assert_eq!(field(b"\x0E", 0), None, "no such form");
    }

    #[test]
    fn frames() {
        let mut frames = Frames::new(b"\0\0\0\0\x02ab\x01\0\0\0\x05cd");
        assert_eq!(frames.next(), Some(Frame { flags: 0, message: b"ab", is_whole: true }));
        assert_eq!(frames.next(), Some(Frame { flags: 1, message: b"cd", is_whole: false }));
        assert_eq!((frames.next(), frames.rest()), (None, &b""[..]));
        assert_eq!(Frames::new(b"\0\0\0").rest(), b"\0\0\0");
    }
}
