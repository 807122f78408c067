//! Strings of Protocol Buffers messages, without their schema, also in frames of gRPC.

use std::fmt;

use portcullis_lex::protobuf::{Content, Field, Frames, field, web_text};

use crate::decode::{inflate, is_mostly_text, texts};
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

/// The names of the fields of a request's messages, as who declares them calls them.
pub trait MessageNames: fmt::Debug + Send + Sync {
    /// The name of the field to which these numbers lead from the message, or of the innermost one on the way
    /// that is declared: `order.items.note`. None if the first one is not.
    fn name(&self, path: &[u64]) -> Option<String>;

    /// The field to which these numbers lead is declared, and carries messages: its bytes are no text, even
    /// if they look like one.
    fn is_message(&self, path: &[u64]) -> bool;
}

/// The names, where they are declared.
pub(crate) type Names<'n> = Option<&'n dyn MessageNames>;

/// What became of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Read {
    /// It is what its type says, to its end.
    pub is_sound: bool,
    /// Bytes of messages that are compressed in a way that is not undone here.
    pub hidden: u64,
}

/// Calls `emit` with each length-delimited field that is text, and the numbers of the fields that lead to it.
/// A field that is a message, too, is also gone into.
pub(crate) fn strings(
    content_type: &[u8],
    body: &[u8],
    names: Names<'_>,
    emit: &mut dyn FnMut(&[u64], &[u8]),
) -> Read {
    let is =
        |name: &[u8]| content_type.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
    if is(b"application/grpc-web-text") {
        let (decoded, is_sound) = web_text(body);
        let read = frames(&decoded, names, emit);
        // Some servers take frames as they are under this name, too.
        let as_sent = if is_sound { read } else { frames(body, names, emit) };
        return if as_sent.is_sound { as_sent } else { read };
    }
    match is(b"application/grpc") {
        true => frames(body, names, emit),
        false => Read { is_sound: message(body, names, emit), hidden: 0 },
    }
}

/// Frames of gRPC, each with a message.
fn frames(body: &[u8], names: Names<'_>, emit: &mut dyn FnMut(&[u64], &[u8])) -> Read {
    let (mut frames, mut is_sound, mut room) = (Frames::new(body), true, INFLATED_BYTES_MAX);
    let mut hidden = 0;
    for frame in frames.by_ref() {
        is_sound &= frame.is_whole;
        if frame.flags == 0 {
            is_sound &= message(frame.message, names, emit);
            continue;
        }
        let (inflated, is_all) = inflate(frame.message, room).unwrap_or_default();
        room -= (inflated.len() as u64).min(room);
        is_sound &= message(&inflated, names, emit) && is_all;
        if frame.flags & 1 == 1 && !is_all {
            hidden += frame.message.len() as u64;
        }
    }
    Read { is_sound: is_sound && frames.rest().is_empty(), hidden }
}

/// False if something in it is no field.
fn message(body: &[u8], names: Names<'_>, emit: &mut dyn FnMut(&[u64], &[u8])) -> bool {
    // Ends of the messages that are open, innermost last, and the fields that are looked at in each; a depth,
    // not the input, bounds them.
    let mut ends = [0usize; PROTOBUF_DEPTH_MAX];
    let mut path = [0u64; PROTOBUF_DEPTH_MAX];
    let mut depth = 1;
    ends[0] = body.len();
    let (mut at, mut is_sound) = (0, true);
    while depth > 0 {
        let end = ends[depth - 1];
        let found = if at < end { field_of(&body[..end], at) } else { None };
        let Some((field, next)) = found else {
            // Bytes that are neither text nor a message are a field's own affair.
            is_sound &= depth > 1 || at >= end;
            at = end;
            depth -= 1;
            continue;
        };
        path[depth - 1] = field.number;
        if let Content::Bytes(content) = field.content {
            let may_nest = depth < PROTOBUF_DEPTH_MAX;
            if may_nest && names.is_some_and(|names| names.is_message(&path[..depth])) && is_message(content)
            {
                ends[depth] = next;
                depth += 1;
                at = next - content.len();
                continue;
            }
            let text = std::str::from_utf8(content).ok();
            let is_text =
                text.is_some_and(|text| !text.chars().any(|c| c.is_control() && !c.is_whitespace()));
            // A byte that no text has makes none of a string that is one otherwise.
            let is_near = !is_text && is_near_text(content);
            if is_text || is_near {
                emit(&path[..depth], content);
            }
            if !is_text && may_nest && is_message(content) {
                ends[depth] = next;
                depth += 1;
                at = next - content.len();
                continue;
            }
            if !is_text && !is_near {
                texts(content, &mut |text| emit(&path[..depth], text));
            }
        }
        at = next;
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
        let Some((_, next)) = field_of(content, at) else { return false };
        at = next;
    }
    at > 0
}

/// The field at `at`. Groups are so rare that bytes which look like one are something else.
fn field_of(message: &[u8], at: usize) -> Option<(Field<'_>, usize)> {
    field(message, at).filter(|(field, _)| field.content != Content::Group)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(content_type: &str, body: &[u8]) -> Vec<String> {
        let mut found = Vec::new();
        strings(content_type.as_bytes(), body, None, &mut |_, text| {
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

    /// Each string comes with the numbers of the fields that lead to it.
    #[test]
    fn paths() {
        let mut found = Vec::new();
        let body = b"\x12\x01a\x1A\x0A\x08\x01\x2A\x06\x12\x01b\x12\x01c\x12\x01d";
        strings(b"application/proto", body, None, &mut |path, text| {
            found.push((path.to_vec(), text.to_vec()))
        });
        let expected = [(vec![2], "a"), (vec![3, 5, 2], "b"), (vec![3, 5, 2], "c"), (vec![2], "d")];
        assert_eq!(found, expected.map(|(path, text)| (path, text.as_bytes().to_vec())));
    }

    /// Names of a message `{ 1: text, 2: itself }`.
    #[derive(Debug)]
    struct Nested;

    impl MessageNames for Nested {
        fn name(&self, path: &[u64]) -> Option<String> {
            Some(format!("{path:?}"))
        }

        fn is_message(&self, path: &[u64]) -> bool {
            path.iter().all(|number| *number == 2)
        }
    }

    /// A message that may be a text is none where it is declared; what is none after all is looked at as it
    /// is.
    #[test]
    fn declared_messages() {
        let all = |names: Names<'_>, body: &[u8]| {
            let mut found = Vec::new();
            strings(b"application/proto", body, names, &mut |path, text| {
                found.push((path.to_vec(), String::from_utf8_lossy(text).into_owned()));
            });
            found
        };
        let of = |path: &[u64], text: &str| (path.to_vec(), text.to_owned());
        let inner = b"\x12\x0C\x0A\x0A0123456789";
        assert_eq!(all(None, inner), [of(&[2], "\n\n0123456789")]);
        assert_eq!(all(Some(&Nested), inner), [of(&[2, 1], "0123456789")]);
        assert_eq!(all(Some(&Nested), b"\x12\x05hello"), [of(&[2], "hello")], "no message");
        assert_eq!(all(Some(&Nested), b"\x0A\x02\x0A\x00"), all(None, b"\x0A\x02\x0A\x00"), "a text");
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

    /// Messages that are compressed in another way than is undone here are counted, whatever stands beside
    /// them.
    #[test]
    fn compressed_otherwise() {
        let hidden = |body: &[u8]| strings(b"application/grpc", body, None, &mut |_, _| {}).hidden;
        let snappy = b"\x01\0\0\0\x06\x04\x0C\x0A\x02hi";
        assert_eq!(hidden(snappy), 6);
        assert_eq!(hidden(&[&b"\0\0\0\0\x04\x0A\x02hi"[..], snappy, snappy].concat()), 12);
        assert_eq!(hidden(b"\0\0\0\0\x04\x0A\x02hi"), 0);
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        std::io::Write::write_all(&mut packer, b"\x0A\x02hi").unwrap();
        let packed = packer.finish().unwrap();
        let framed = |packed: &[u8]| [&[1, 0, 0, 0, packed.len() as u8], packed].concat();
        assert_eq!(hidden(&framed(&packed)), 0);
        let cut = &packed[..packed.len() - 9];
        assert_eq!(hidden(&framed(cut)), cut.len() as u64, "a part of it");
    }

    /// Receivers such as gRPC for Go join the members of gzip: a text is found in whichever it stands, also
    /// cut in two by them.
    #[test]
    fn members_of_gzip() {
        let gzip = |data: &[u8]| {
            let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
            std::io::Write::write_all(&mut packer, data).unwrap();
            packer.finish().unwrap()
        };
        let body = b"\x0A\x02hi\x12\x07testing";
        for at in 0..body.len() {
            let packed = [gzip(&body[..at]), gzip(b""), gzip(&body[at..])].concat();
            let framed = [&[1, 0, 0, 0, packed.len() as u8], packed.as_slice()].concat();
            let found = all("application/grpc", &framed);
            assert!(found.iter().any(|text| text == "testing"), "{at}: {found:?}");
        }
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
