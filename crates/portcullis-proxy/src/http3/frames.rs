//! Checks the frames of a client before the library reads them.
//!
//! `h3` trusts more than it should. It collects a frame other than DATA until it is whole, however long it
//! says it is. Of two pseudo-headers of a name it takes the later one, wherever it stands. A DATA frame
//! without content ends a body for it, and so does one that is cut off, with a panic behind it. With each
//! look for a frame it reads more of the stream, and goes through all that it has, so that small frames fill
//! the memory. Here each stream is cut into heads and payloads of frames, and the library gets one of these
//! at a time, without the frames that mean nothing. Field sections use no dynamic table (the library offers
//! none), so names can be read from the bytes (RFC 9204, section 4.5).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::{Buf, Bytes};

const DATA: u64 = 0;
const HEADERS: u64 = 1;
/// Length of other frames, such as SETTINGS, which the library collects as well.
const OTHER_BYTES_MAX: u64 = 16 << 10;
/// The control stream among those of one direction.
const CONTROL: u64 = 0;

/// Why a stream does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Broken {
    /// A frame is longer than its limit, or a connection has too much of field sections unfinished.
    TooLong,
    /// A field section is not that of a request.
    Malformed,
    /// The stream ended within a frame.
    CutOff,
}

/// Bytes of field sections that a connection may have unfinished.
#[derive(Debug)]
pub(super) struct Unfinished {
    bytes: AtomicU64,
    max: u64,
}

impl Unfinished {
    pub(super) fn new(max: u64) -> Arc<Unfinished> {
        Arc::new(Unfinished { bytes: AtomicU64::new(0), max })
    }
}

/// Reads the frames of one stream.
pub(super) struct Frames {
    at: At,
    /// Bytes that came and have not been gone through.
    input: Bytes,
    /// The number that is being read.
    number: u64,
    number_left: u32,
    /// The head of a frame, two numbers of at most eight bytes, as it came.
    head: Vec<u8>,
    /// The field section that is being read.
    block: Vec<u8>,
    blocks: u32,
    block_bytes_max: u64,
    unfinished: Arc<Unfinished>,
}

#[derive(Clone, Copy, Debug)]
enum At {
    /// The type of a stream of one direction.
    StreamType,
    Type,
    Length {
        kind: u64,
    },
    Payload {
        kind: u64,
        left: u64,
    },
    /// A stream without frames, or one that the library does not read.
    Rest,
}

impl Frames {
    /// Reads the stream of a request, whose field sections may have `block_bytes_max` each.
    pub(super) fn request(block_bytes_max: u64, unfinished: &Arc<Unfinished>) -> Frames {
        Frames::begin(At::Type, block_bytes_max, unfinished)
    }

    /// Reads a stream of one direction.
    pub(super) fn one_way(unfinished: &Arc<Unfinished>) -> Frames {
        Frames::begin(At::StreamType, OTHER_BYTES_MAX, unfinished)
    }

    fn begin(at: At, block_bytes_max: u64, unfinished: &Arc<Unfinished>) -> Frames {
        Frames {
            at,
            input: Bytes::new(),
            number: 0,
            number_left: 0,
            head: Vec::new(),
            block: Vec::new(),
            blocks: 0,
            block_bytes_max,
            unfinished: Arc::clone(unfinished),
        }
    }

    /// Takes what came. All of what came before has been gone through: [`next`](Frames::next) gave none.
    pub(super) fn push(&mut self, input: Bytes) {
        debug_assert!(self.input.is_empty());
        self.input = input;
    }

    /// The next piece for the library; none if more of the stream is needed.
    pub(super) fn next(&mut self) -> Result<Option<Bytes>, Broken> {
        while let Some(&first) = self.input.first() {
            match self.at {
                At::Rest => return Ok(Some(std::mem::take(&mut self.input))),
                At::Payload { kind, left } => {
                    let count = usize::try_from(left).unwrap_or(usize::MAX).min(self.input.len());
                    let piece = self.input.split_to(count);
                    if kind == HEADERS {
                        self.keep(&piece)?;
                    }
                    self.payload(kind, left - count as u64)?;
                    if is_known(kind) {
                        return Ok(Some(piece));
                    }
                }
                At::StreamType | At::Type | At::Length { .. } => {
                    self.input.advance(1);
                    self.head.push(first);
                    if let Some(number) = self.number(first)
                        && let Some(head) = self.numbered(number)?
                    {
                        return Ok(Some(head));
                    }
                }
            }
        }
        Ok(None)
    }

    /// True if the stream may end here.
    pub(super) fn end(&self) -> Result<(), Broken> {
        match self.at {
            At::Type if self.head.is_empty() => Ok(()),
            At::StreamType | At::Rest => Ok(()),
            At::Type | At::Length { .. } | At::Payload { .. } => Err(Broken::CutOff),
        }
    }

    /// A number of variable length (RFC 9000, section 16), when it is whole.
    fn number(&mut self, byte: u8) -> Option<u64> {
        if self.number_left == 0 {
            (self.number, self.number_left) = (u64::from(byte & 0x3f), 1 << (byte >> 6));
        } else {
            self.number = self.number << 8 | u64::from(byte);
        }
        self.number_left -= 1;
        (self.number_left == 0).then_some(self.number)
    }

    /// The bytes of a complete head that the library gets.
    fn numbered(&mut self, number: u64) -> Result<Option<Bytes>, Broken> {
        let kind = if let At::StreamType = self.at {
            self.at = if number == CONTROL { At::Type } else { At::Rest };
            return Ok(Some(std::mem::take(&mut self.head).into()));
        } else if let At::Length { kind } = self.at {
            kind
        } else {
            self.at = At::Length { kind: number };
            return Ok(None);
        };
        let max = match kind {
            DATA => u64::MAX,
            HEADERS => self.block_bytes_max,
            _ => OTHER_BYTES_MAX,
        };
        if number > max {
            return Err(Broken::TooLong);
        }
        let head = std::mem::take(&mut self.head);
        self.payload(kind, number)?;
        let has_meaning = is_known(kind) && (kind, number) != (DATA, 0);
        Ok(has_meaning.then(|| head.into()))
    }

    /// So much of a frame is still to come.
    fn payload(&mut self, kind: u64, left: u64) -> Result<(), Broken> {
        if left > 0 {
            self.at = At::Payload { kind, left };
            return Ok(());
        }
        self.at = At::Type;
        if kind == HEADERS {
            let valid =
                if self.blocks == 0 { check_request(&self.block) } else { check_trailers(&self.block) };
            self.blocks = self.blocks.saturating_add(1);
            self.forget();
            valid.ok_or(Broken::Malformed)?;
        }
        Ok(())
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        let count = bytes.len() as u64;
        self.block.extend_from_slice(bytes);
        let before = self.unfinished.bytes.fetch_add(count, Relaxed);
        if before.saturating_add(count) > self.unfinished.max { Err(Broken::TooLong) } else { Ok(()) }
    }

    fn forget(&mut self) {
        self.unfinished.bytes.fetch_sub(self.block.len() as u64, Relaxed);
        self.block = Vec::new();
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        self.forget();
    }
}

/// Frames that HTTP/2 and HTTP/3 define (RFC 9114, sections 7.2 and 11.2.1), and that of WebTransport, which
/// has no length: the library answers them. All others have no meaning.
fn is_known(kind: u64) -> bool {
    matches!(kind, 0..=9 | 0xd | 0x41)
}

/// The pseudo-headers of a request, their names in Huffman code, and bits for them.
const PSEUDO: [(&[u8], &[u8], u8); 5] = [
    (b":method", &[0xb9, 0x49, 0x53, 0x39, 0xe4], 1),
    (b":scheme", &[0xb8, 0x82, 0x4e, 0x5a, 0x4b], 2),
    (b":authority", &[0xb8, 0x3b, 0x53, 0x39, 0xec, 0x32, 0x7d, 0x7f], 4),
    (b":path", &[0xb9, 0x58, 0xd3, 0x3f], 8),
    (b":protocol", &[0xb9, 0x5d, 0x87, 0x49, 0xc8, 0x7a, 0x3f], 16),
];
/// The Huffman code of a colon, seven bits.
const COLON: u8 = 0b101_1100;

/// A name in a head.
enum Name {
    /// A bit of [`PSEUDO`].
    Pseudo(u8),
    Field,
}

/// Each pseudo-header once, and all of them before the fields (RFC 9114, section 4.3).
fn check_request(block: &[u8]) -> Option<()> {
    let (mut seen, mut fields) = (0, false);
    names(block, |name| match name {
        Name::Pseudo(bit) if fields || seen & bit != 0 => None,
        Name::Pseudo(bit) => {
            seen |= bit;
            Some(())
        }
        Name::Field => {
            fields = true;
            Some(())
        }
    })
}

/// There are no pseudo-headers behind a body.
fn check_trailers(block: &[u8]) -> Option<()> {
    names(block, |name| matches!(name, Name::Field).then_some(()))
}

/// Goes through the names of a head. None if `look` says so, if it is no head without a dynamic table, or if
/// a pseudo-header is not one of requests.
fn names(block: &[u8], mut look: impl FnMut(Name) -> Option<()>) -> Option<()> {
    let mut rest = block;
    // Required insert count, and base.
    if integer(&mut rest, 8)? != 0 {
        return None;
    }
    integer(&mut rest, 7)?;
    while let Some(&first) = rest.first() {
        let name = match first {
            // An indexed field of the static table.
            0b1100_0000.. => static_name(integer(&mut rest, 6)?)?,
            // A name of the static table, and a value.
            0b0101_0000..=0b0101_1111 | 0b0111_0000..=0b0111_1111 => {
                let name = static_name(integer(&mut rest, 4)?)?;
                string(&mut rest, 7)?;
                name
            }
            // A name, and a value.
            0b0010_0000..=0b0011_1111 => {
                let (name, is_coded) = string(&mut rest, 3)?;
                string(&mut rest, 7)?;
                spelled_name(name, is_coded)?
            }
            // All others are of the dynamic table.
            _ => return None,
        };
        look(name)?;
    }
    Some(())
}

fn static_name(index: u64) -> Option<Name> {
    Some(match index {
        0 => Name::Pseudo(4),
        1 => Name::Pseudo(8),
        15..=21 => Name::Pseudo(1),
        22 | 23 => Name::Pseudo(2),
        // `:status`
        24..=28 | 63..=71 => return None,
        _ => Name::Field,
    })
}

fn spelled_name(name: &[u8], is_coded: bool) -> Option<Name> {
    let is_pseudo = match (name.first(), is_coded) {
        (Some(first), true) => first >> 1 == COLON,
        (first, _) => first == Some(&b':'),
    };
    if !is_pseudo {
        return Some(Name::Field);
    }
    let known = PSEUDO.iter().find(|(plain, coded, _)| *name == **if is_coded { coded } else { plain });
    known.map(|(_, _, bit)| Name::Pseudo(*bit))
}

/// A number whose first bits are the last `bits` of a byte (RFC 7541, section 5.1).
fn integer(bytes: &mut &[u8], bits: u32) -> Option<u64> {
    let mask = u8::MAX >> (8 - bits);
    let (&first, mut rest) = bytes.split_first()?;
    let mut number = u64::from(first & mask);
    if first & mask == mask {
        for shift in (0..).step_by(7) {
            let (&byte, behind) = rest.split_first()?;
            rest = behind;
            // More than any length here.
            if shift > 28 {
                return None;
            }
            number += u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
    }
    *bytes = rest;
    Some(number)
}

/// A string whose length begins in the last `bits` of a byte, behind the bit that says whether it is in
/// Huffman code.
fn string<'b>(bytes: &mut &'b [u8], bits: u32) -> Option<(&'b [u8], bool)> {
    let is_coded = bytes.first()? >> bits & 1 == 1;
    let length = usize::try_from(integer(bytes, bits)?).ok()?;
    let (text, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some((text, is_coded))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GET: [u8; 2] = [0b1100_0000 | 17, 0b1100_0000 | 23];
    const PATH: u8 = 0b1100_0001;

    fn block(lines: &[&[u8]]) -> Vec<u8> {
        [&[0, 0][..], &lines.concat()].concat()
    }

    fn spelled(name: &[u8], is_coded: bool) -> Vec<u8> {
        let length = name.len() as u8;
        let first = 0b0010_0000 | u8::from(is_coded) << 3;
        let begin = if length < 7 { vec![first | length] } else { vec![first | 7, length - 7] };
        [&begin[..], name, &[1, b'v']].concat()
    }

    fn frame(kind: u64, payload: &[u8]) -> Vec<u8> {
        let length = payload.len() as u32 | 0x8000_0000;
        [&[kind as u8][..], &length.to_be_bytes(), payload].concat()
    }

    #[test]
    fn names_in_huffman_code_are_those_of_the_table() {
        // RFC 7541, appendix B: the letters of these names.
        let code = |byte: u8| match byte {
            b':' => (0x5c, 7),
            b'a' => (3, 5),
            b'c' => (4, 5),
            b'e' => (5, 5),
            b'i' => (6, 5),
            b'o' => (7, 5),
            b's' => (8, 5),
            b't' => (9, 5),
            b'd' => (0x24, 6),
            b'h' => (0x27, 6),
            b'l' => (0x28, 6),
            b'm' => (0x29, 6),
            b'p' => (0x2b, 6),
            b'r' => (0x2c, 6),
            b'u' => (0x2d, 6),
            b'y' => (0x7a, 7),
            other => panic!("{other}"),
        };
        for (plain, coded, _) in PSEUDO {
            let mut bits = String::new();
            for &byte in plain {
                let (code, length): (u32, usize) = code(byte);
                bits += &format!("{code:0length$b}");
            }
            while !bits.len().is_multiple_of(8) {
                bits.push('1');
            }
            let bytes: Vec<u8> = bits
                .as_bytes()
                .chunks(8)
                .map(|byte| u8::from_str_radix(std::str::from_utf8(byte).unwrap(), 2).unwrap())
                .collect();
            assert_eq!(bytes, coded, "{}: {bytes:02x?}", String::from_utf8_lossy(plain));
        }
    }

    #[test]
    fn each_pseudo_header_stands_once_and_first() {
        let field = spelled(b"a", false);
        let good = [
            block(&[&GET, &[PATH], &field, &field]),
            block(&[&GET, &spelled(b":path", false), &spelled(PSEUDO[2].1, true)]),
            block(&[&[0b0101_1111, 0, 3, b'P', b'U', b'T'], &[PATH]]),
        ];
        for block in &good {
            assert_eq!(check_request(block), Some(()), "{block:02x?}");
        }
        let bad = [
            block(&[&GET, &GET]),
            block(&[&GET, &field, &[PATH]]),
            block(&[&GET, &[PATH], &spelled(b":path", false)]),
            block(&[&GET, &[PATH], &spelled(PSEUDO[3].1, true)]),
            block(&[&GET, &spelled(b":nothing", false)]),
            // A name in Huffman code with more padding than there may be.
            block(&[&GET, &spelled(&[PSEUDO[3].1, &[0xff]].concat(), true)]),
            // `:status`, a dynamic table, a number without an end, a text beyond the end.
            block(&[&[0b1100_0000 | 25]]),
            vec![1, 0, 0xc1],
            block(&[&[0b1000_0001]]),
            block(&[&[0b0000_0001]]),
            block(&[&[0xff; 20]]),
            block(&[&[0b0010_0111, 200, b'a']]),
            vec![],
        ];
        for block in &bad {
            assert_eq!(check_request(block), None, "{block:02x?}");
        }
        assert_eq!(check_trailers(&block(&[&field])), Some(()));
        assert_eq!(check_trailers(&block(&[&field, &[PATH]])), None);
    }

    /// The bytes of a stream, and those that the library gets of them.
    type Case = (Vec<u8>, Result<Vec<u8>, Broken>);

    /// The bytes that the library gets of a stream that comes in pieces of `cut` bytes, if it may end there.
    fn read(frames: &mut Frames, bytes: &[u8], cut: usize) -> Result<Vec<u8>, Broken> {
        let mut out = Vec::new();
        for piece in bytes.chunks(cut) {
            frames.push(Bytes::copy_from_slice(piece));
            while let Some(piece) = frames.next()? {
                assert!(!piece.is_empty());
                out.extend_from_slice(&piece);
            }
        }
        frames.end()?;
        Ok(out)
    }

    #[test]
    fn frames_are_as_long_as_they_may_be_wherever_they_are_cut() {
        let head = frame(HEADERS, &block(&[&GET, &[PATH]]));
        let whole = [&head[..], &frame(DATA, &[7; 300]), &frame(HEADERS, &block(&[&spelled(b"t", false)]))];
        let (whole, nothing) = (whole.concat(), frame(0x21, b"nothing"));
        let cases: [Case; 15] = [
            (whole.clone(), Ok(whole.clone())),
            ([&nothing[..], &whole, &[0x21, 0x00], &nothing].concat(), Ok(whole)),
            // DATA without content, also where its numbers are longer than they need to be.
            (
                [&head[..], &[0, 0], &[0x40, 0, 0x80, 0, 0, 0], &frame(DATA, b"a"), &[0, 0]].concat(),
                Ok([&head[..], &frame(DATA, b"a")].concat()),
            ),
            ([0x01, 0xbf, 0xff, 0xff, 0xff].to_vec(), Err(Broken::TooLong)),
            ([0x04, 0xbf, 0xff, 0xff, 0xff].to_vec(), Err(Broken::TooLong)),
            ([0x21, 0xbf, 0xff, 0xff, 0xff].to_vec(), Err(Broken::TooLong)),
            ([0xff; 16].to_vec(), Err(Broken::TooLong)),
            ([&head[..], &head].concat(), Err(Broken::Malformed)),
            (frame(HEADERS, &[]), Err(Broken::Malformed)),
            (
                [&head[..], &[0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]].concat(),
                Err(Broken::CutOff),
            ),
            ([&head[..], &frame(DATA, b"abc")[..6]].concat(), Err(Broken::CutOff)),
            ([&head[..], &[0x00]].concat(), Err(Broken::CutOff)),
            ([&head[..], &[0x80]].concat(), Err(Broken::CutOff)),
            ([&head[..], &nothing[..8]].concat(), Err(Broken::CutOff)),
            (head[..head.len() - 1].to_vec(), Err(Broken::CutOff)),
        ];
        for (bytes, expected) in cases {
            for cut in 1..=bytes.len() {
                let unfinished = Unfinished::new(1 << 16);
                let mut frames = Frames::request(2_000, &unfinished);
                assert_eq!(read(&mut frames, &bytes, cut), expected, "{bytes:02x?} in pieces of {cut}");
                drop(frames);
                assert_eq!(unfinished.bytes.load(Relaxed), 0);
            }
        }
        // The control stream has frames, others nothing that is collected.
        let long = [0x04, 0xbf, 0xff, 0xff, 0xff];
        for (stream, is_read) in [(0x00, true), (0x02, false), (0x21, false)] {
            let bytes = [&[stream][..], &long].concat();
            let expected = if is_read { Err(Broken::TooLong) } else { Ok(bytes.clone()) };
            assert_eq!(read(&mut Frames::one_way(&Unfinished::new(1 << 16)), &bytes, 1), expected);
        }
    }

    /// The library reads a piece for each look that it has: none of them may bring more than one frame.
    #[test]
    fn pieces_end_where_heads_and_payloads_do() {
        let mut frames = Frames::request(2_000, &Unfinished::new(1 << 16));
        frames.push([&frame(HEADERS, &block(&[&GET, &[PATH]]))[..], &[0, 1, b'a'].repeat(3)].concat().into());
        let lengths: Vec<usize> =
            std::iter::from_fn(|| frames.next().unwrap()).map(|piece| piece.len()).collect();
        assert_eq!(lengths, [5, 5, 2, 1, 2, 1, 2, 1]);
    }

    #[test]
    fn unfinished_heads_of_a_connection_count_together() {
        let unfinished = Unfinished::new(5_000);
        let begun = [&[0x01, 0x47, 0x00][..], &[0; 1_000]].concat();
        let mut all: Vec<Frames> = (0..6).map(|_| Frames::request(2_000, &unfinished)).collect();
        let results: Vec<bool> =
            all.iter_mut().map(|frames| read(frames, &begun, begun.len()) == Err(Broken::CutOff)).collect();
        assert_eq!(results, [true, true, true, true, true, false]);
    }
}
