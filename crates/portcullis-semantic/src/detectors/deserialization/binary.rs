//! Streams that begin with a mark, as they are, in hexadecimal, or in Base64.

use portcullis_types::Span;

use super::types::{Language, Types};
use super::{DOTNET_STREAM, JAVA_STREAM, MARSHAL_GADGET, MARSHAL_OBJECT};
use crate::Found;

/// Bytes of a stream that are decoded to see what it begins with.
const HEAD_BYTES_MAX: usize = 768;

pub(super) fn detect(types: &Types, text: &[u8], found: &mut Found<'_>) {
    let lead = text.iter().take_while(|b| b.is_ascii_whitespace() || matches!(b, b'"' | b'\'')).count();
    let body = &text[lead..];
    stream(types, body, found);
    // Latin-1 bytes that were taken for characters and written as UTF-8.
    if body.starts_with(b"\xC2\xAC\xC3\xAD\0\x05") {
        found.add(JAVA_STREAM, Span::new(lead, text.len().min(lead + 32)));
    }
    let mut head = [0; HEAD_BYTES_MAX];
    // After a name of its own: `HexAsciiSerializedMap:aced0005...`, `{"data":"rO0AB...`.
    for mark in [&b"aced0005"[..], b"ACED0005", b"rO0AB"] {
        let Some(at) = memchr::memmem::find(body, mark).filter(|at| *at > 0) else { continue };
        let stands_alone = !body[at - 1].is_ascii_alphanumeric();
        let after = &body[at + mark.len()..];
        if stands_alone && after.len() >= 8 && after[..8].iter().all(u8::is_ascii_alphanumeric) {
            found.add(JAVA_STREAM, Span::new(lead + at, lead + at + mark.len()));
        }
    }
    if is_hex(body) {
        let len = hex(body, &mut head);
        stream(types, &head[..len], found);
    }
    // Base64 may stand after a name: `session=rO0AB...`, `Bearer rO0AB...`.
    let from = match body.iter().take(48).rposition(|b| matches!(b, b'=' | b' ' | b',' | b':')) {
        Some(at) if body.len() > at + 12 => at + 1,
        _ => 0,
    };
    for start in [0, from] {
        let body = &body[start..];
        if is_marked(body) {
            let len = base64(body, &mut head);
            stream(types, &head[..len], found);
        }
        if from == 0 {
            break;
        }
    }
}

/// True if `text` begins as a stream in hexadecimal or Base64 does.
pub(super) fn begins_stream(text: &[u8]) -> bool {
    is_hex(text) || is_marked(text)
}

fn is_hex(text: &[u8]) -> bool {
    text.len() >= 12 && text[..8].eq_ignore_ascii_case(b"aced0005")
}

/// True if Base64 begins as that of a stream does.
fn is_marked(text: &[u8]) -> bool {
    const MARKS: [&[u8]; 6] = [b"rO0AB", b"AAEAAAD/", b"/wEy", b"_wEy", b"BAh", b"BAg"];
    MARKS.iter().any(|mark| text.starts_with(mark))
}

fn stream(types: &Types, bytes: &[u8], found: &mut Found<'_>) {
    let span = Span::new(0, bytes.len().min(48));
    match bytes {
        [0xAC, 0xED, 0x00, 0x05, code, ..] if (0x70..=0x7E).contains(code) => found.add(JAVA_STREAM, span),
        [0x00, 0x01, 0x00, 0x00, 0x00, 0xFF, 0xFF, 0xFF, 0xFF, 0x01, ..] => found.add(DOTNET_STREAM, span),
        // LosFormatter: a version, then an object of BinaryFormatter.
        [0xFF, 0x01, 0x32, ..] => found.add(DOTNET_STREAM, span),
        [0x04, 0x08, kind @ (b'o' | b'e' | b'U' | b'u' | b'C' | b'c' | b'S'), b':', len, rest @ ..] => {
            let name = &rest[..rest.len().min(usize::from(len.wrapping_sub(5)))];
            let is_name = name.first().is_some_and(u8::is_ascii_uppercase)
                && name.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b':' | b'_'));
            if is_name && (*kind != b'S') {
                found.add(MARSHAL_OBJECT, span);
                // Sessions are hashes; an object at the beginning is the sender's choice.
                if *kind == b'o' || types.has(Language::Ruby, name) {
                    found.add(MARSHAL_GADGET, span);
                }
            }
        }
        [0x04, 0x08, b'[' | b'{' | b'I', rest @ ..] => {
            // An object further in.
            let gadget = memchr::memmem::find_iter(rest, b"o:").take(8).any(|at| {
                let name = &rest[at + 3
                    ..rest
                        .len()
                        .min(at + 3 + usize::from(rest.get(at + 2).copied().unwrap_or(0).wrapping_sub(5)))];
                !name.is_empty() && types.has(Language::Ruby, name)
            }) || memchr::memmem::find(rest, b"Gem::").is_some();
            if gadget {
                found.add(MARSHAL_OBJECT, span);
                found.add(MARSHAL_GADGET, span);
            }
        }
        _ => {}
    }
}

/// Decodes pairs of hexadecimal digits; gives the number of bytes.
fn hex(text: &[u8], out: &mut [u8]) -> usize {
    let digit = |b: u8| (b as char).to_digit(16);
    let mut len = 0;
    for (pair, place) in text.chunks_exact(2).zip(out) {
        let (Some(high), Some(low)) = (digit(pair[0]), digit(pair[1])) else { break };
        *place = (high << 4 | low) as u8;
        len += 1;
    }
    len
}

/// Decodes Base64 of either alphabet; gives the number of bytes.
fn base64(text: &[u8], out: &mut [u8]) -> usize {
    let (mut bits, mut have, mut len) = (0u32, 0u32, 0);
    for &b in text {
        let value = match b {
            b'A'..=b'Z' => b - b'A',
            b'a'..=b'z' => b - b'a' + 26,
            b'0'..=b'9' => b - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            b'\r' | b'\n' => continue,
            _ => break,
        };
        bits = bits << 6 | u32::from(value);
        have += 6;
        if have >= 8 {
            have -= 8;
            let Some(place) = out.get_mut(len) else { break };
            *place = (bits >> have) as u8;
            len += 1;
        }
    }
    len
}
