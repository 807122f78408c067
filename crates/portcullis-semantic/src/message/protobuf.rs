//! Strings of Protocol Buffers messages, without their schema, also in frames of gRPC.

use crate::decode::{base64_value, inflate, is_mostly_text, texts};
use crate::limits::{INFLATED_BYTES_MAX, PROTOBUF_DEPTH_MAX};

/// True for the media types of Protocol Buffers and gRPC. What a parameter says makes no type.
pub(crate) fn is_type(content_type: &[u8]) -> bool {
    let end = memchr::memchr2(b';', b',', content_type).unwrap_or(content_type.len());
    let media_type = &content_type[..end];
    let has = |word: &[u8]| media_type.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word));
    has(b"application/grpc") && !has(b"+json") || has(b"protobuf") || has(b"application/proto")
}

/// True if `body` may be a text, or begins as JSON or XML does. Their white space and letters are fields to a
/// reader of messages, so that a text may be a sound one, and numbers are shown to nobody.
pub(crate) fn may_be_text(body: &[u8]) -> bool {
    matches!(body.trim_ascii_start().first(), Some(b'{' | b'[' | b'<'))
        || !body.iter().any(|b| b.is_ascii_control() && !b.is_ascii_whitespace())
}

/// Calls `emit` with each length-delimited field that is text. A field that is a message, too, is also gone
/// into. False if the body is not what its type says, to its end.
pub(crate) fn strings(content_type: &[u8], body: &[u8], emit: &mut dyn FnMut(&[u8])) -> bool {
    let is =
        |name: &[u8]| content_type.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
    if is(b"application/grpc-web-text") {
        let (decoded, is_sound) = web_text(body);
        // Some servers take frames as they are under this name, too.
        return if is_sound { frames(&decoded, emit) } else { frames(&decoded, emit) | frames(body, emit) };
    }
    match is(b"application/grpc") {
        true => frames(body, emit),
        false => message(body, emit),
    }
}

/// The bytes of a body of gRPC-Web in its text form: Base64 in pieces, each with its padding, one behind the
/// other. False if something else is in it.
fn web_text(body: &[u8]) -> (Vec<u8>, bool) {
    let mut out = Vec::with_capacity(body.len() / 4 * 3);
    let (mut bits, mut count, mut is_sound) = (0u32, 0, true);
    // Ends a piece: what is left of its last four letters is one byte, or two.
    let end = |out: &mut Vec<u8>, bits: u32, count: i32| match count {
        2 => out.push((bits >> 4) as u8),
        3 => out.extend_from_slice(&(bits >> 2).to_be_bytes()[2..]),
        _ => {}
    };
    for &byte in body {
        match base64_value(byte) {
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

/// Frames of gRPC, each with a message.
fn frames(body: &[u8], emit: &mut dyn FnMut(&[u8])) -> bool {
    // A frame: one byte (packed or not), the length in four, the message.
    let (mut rest, mut is_sound, mut room) = (body, true, INFLATED_BYTES_MAX);
    while let [packed, a, b, c, d, tail @ ..] = rest {
        let len = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
        let frame = &tail[..len.min(tail.len())];
        is_sound &= frame.len() == len;
        is_sound &= match *packed {
            0 => message(frame, emit),
            _ => match inflate(frame, room) {
                Some((inflated, is_all)) => {
                    room -= (inflated.len() as u64).min(room);
                    message(&inflated, emit) && is_all
                }
                None => false,
            },
        };
        rest = &tail[frame.len()..];
    }
    is_sound && rest.is_empty()
}

/// False if something in it is no field.
fn message(body: &[u8], emit: &mut dyn FnMut(&[u8])) -> bool {
    // Ends of the messages that are open, innermost last; a depth, not the input, bounds it.
    let mut ends = [0usize; PROTOBUF_DEPTH_MAX];
    let mut depth = 1;
    ends[0] = body.len();
    let (mut at, mut is_sound) = (0, true);
    while depth > 0 {
        let end = ends[depth - 1];
        let field = if at < end { field(&body[..end], at) } else { None };
        let Some((from, to, is_bytes)) = field else {
            // Bytes that are neither text nor a message are a field's own affair.
            is_sound &= depth > 1 || at >= end;
            at = end;
            depth -= 1;
            continue;
        };
        if is_bytes {
            let content = &body[from..to];
            let text = std::str::from_utf8(content).ok();
            let is_text =
                text.is_some_and(|text| !text.chars().any(|c| c.is_control() && !c.is_whitespace()));
            // A byte that no text has makes none of a string that is one otherwise.
            let is_near = !is_text && is_near_text(content);
            if is_text || is_near {
                emit(content);
            }
            if !is_text && depth < PROTOBUF_DEPTH_MAX && is_message(content) {
                ends[depth] = to;
                depth += 1;
                at = from;
                continue;
            }
            if !is_text && !is_near {
                texts(content, emit);
            }
        }
        at = to;
    }
    is_sound
}

/// True if all but a few bytes of `content` are text; of a short one, all but one in four.
fn is_near_text(content: &[u8]) -> bool {
    let is_odd = |b: &&u8| !matches!(**b, b'\t' | b'\n' | b'\r' | 0x20..=0x7E);
    is_mostly_text(content)
        || content.len() < 64 && content.iter().filter(is_odd).count() * 4 <= content.len()
}

/// True if `content` is fields from end to end.
fn is_message(content: &[u8]) -> bool {
    let mut at = 0;
    while at < content.len() {
        let Some((_, to, _)) = field(content, at) else { return false };
        at = to;
    }
    at > 0
}

/// The field at `at`: where its content begins and ends, and whether it is length-delimited.
fn field(body: &[u8], at: usize) -> Option<(usize, usize, bool)> {
    let (key, next) = varint(body, at)?;
    let end = |len: usize| next.checked_add(len).filter(|end| *end <= body.len());
    match key & 7 {
        0 => varint(body, next).map(|(_, end)| (next, end, false)),
        1 => Some((next, end(8)?, false)),
        5 => Some((next, end(4)?, false)),
        2 => {
            let (len, from) = varint(body, next)?;
            let to = from.checked_add(usize::try_from(len).ok()?).filter(|to| *to <= body.len())?;
            Some((from, to, true))
        }
        _ => None,
    }
}

fn varint(body: &[u8], at: usize) -> Option<(u64, usize)> {
    let mut value = 0u64;
    for (index, &b) in body.get(at..)?.iter().take(10).enumerate() {
        value |= u64::from(b & 0x7F) << (7 * index);
        if b & 0x80 == 0 {
            return Some((value, at + index + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(content_type: &str, body: &[u8]) -> Vec<String> {
        let mut found = Vec::new();
        strings(content_type.as_bytes(), body, &mut |text| {
            found.push(String::from_utf8_lossy(text).into_owned())
        });
        found
    }

    #[test]
    fn messages() {
        // 1: 150, 2: "testing", 3: message with 1: 1 and 2: "inner", 4: fixed32
        let body = b"\x08\x96\x01\x12\x07testing\x1A\x09\x08\x01\x12\x05inner\x25\x01\x02\x03\x04";
        assert_eq!(all("application/x-protobuf", body), ["testing", "inner"]);
        let framed = [&[0, 0, 0, 0, body.len() as u8][..], body].concat();
        assert_eq!(all("application/grpc+proto", &framed), ["testing", "inner"]);
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        std::io::Write::write_all(&mut packer, body).unwrap();
        let packed = packer.finish().unwrap();
        let framed = [&[1, 0, 0, 0, packed.len() as u8], packed.as_slice()].concat();
        assert_eq!(all("application/grpc", &framed), ["testing", "inner"]);
    }

    /// The text form of gRPC-Web: however it is cut into pieces, it has the strings of the frames.
    #[test]
    fn web_texts() {
        let body = b"\x12\x07testing\x1A\x05inner";
        let framed = [&[0, 0, 0, 0, body.len() as u8][..], body].concat();
        let encode = |bytes: &[u8]| data_encoding::BASE64.encode(bytes);
        for cut in 0..=framed.len() {
            let text = format!("{}{}", encode(&framed[..cut]), encode(&framed[cut..]));
            for kind in ["application/grpc-web-text", "Application/gRPC-Web-Text+proto; a=b"] {
                assert_eq!(all(kind, text.as_bytes()), ["testing", "inner"], "{text}");
            }
            let text =
                format!("{}\r\n{}", encode(&framed[..cut]), encode(&framed[cut..]).trim_end_matches('='));
            assert_eq!(all("application/grpc-web-text", text.as_bytes()), ["testing", "inner"], "{text}");
        }
        assert_eq!(all("application/grpc-web-text", &framed), ["testing", "inner"], "not encoded");
        assert_eq!(all("application/grpc-web+proto", &framed), ["testing", "inner"]);
    }

    #[test]
    fn types() {
        for is in ["application/x-protobuf", "Application/GRPC+proto", "application/protobuf; v=1"] {
            assert!(is_type(is.as_bytes()), "{is}");
        }
        for other in ["application/json; a=protobuf", "text/plain;application/proto", "application/grpc+json"]
        {
            assert!(!is_type(other.as_bytes()), "{other}");
        }
    }

    /// One odd byte in a string, or bytes around it, hide nothing; beyond the depth that is gone into, texts
    /// are found as texts.
    #[test]
    fn strings_that_are_not_quite_text() {
        let payload = b"1'/*\x01*/union/*\xFF*/select 1,2,3 from users";
        let wrap = |content: &[u8]| [&[0x0A, content.len() as u8][..], content].concat();
        let has = |body: &[u8]| {
            all("application/x-protobuf", body).iter().any(|text| text.contains("select 1,2,3"))
        };
        assert!(has(&wrap(payload)));
        assert_eq!(all("application/x-protobuf", &wrap(b"1'\x01or 1=1")).len(), 1);
        assert!(has(&wrap(&[&b"\xFF\x00\x81\x07\xFE\x02"[..], payload, &b"\x90\xFF\x01\x80"[..]].concat())));
        let mut deep = wrap(b"x union select 1,2,3 from users");
        for _ in 0..20 {
            deep = wrap(&deep);
        }
        assert!(has(&deep));
    }

    #[test]
    fn any_bytes() {
        for seed in 0..64u8 {
            let body: Vec<u8> =
                (0..200u8).map(|i| i.wrapping_mul(seed).wrapping_add(seed >> 1) ^ (i >> 2)).collect();
            all("application/grpc", &body);
            all("application/protobuf", &body);
        }
    }
}
