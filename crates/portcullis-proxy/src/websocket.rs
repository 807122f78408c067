//! The handshake of WebSocket (RFC 6455, section 4), as HTTP/1 has it. What HTTP/2 has (RFC 8441) becomes
//! that, from clients, and is made of it, to upstreams.

use portcullis_decode::Transformation;
use portcullis_http::message::{RequestHead, ResponseHead};

/// The text that a server appends to the key.
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// WebSocket is the only upgrade that is passed on. Behind any other, HTTP/2 in clear text above all, a
/// client could send requests that nobody inspects.
pub(crate) fn is_asked_for(request: &RequestHead) -> bool {
    request.upgrade().is_some_and(|protocols| protocols.eq_ignore_ascii_case(b"websocket"))
}

/// A 101 answers this handshake: it names no other protocol, and has the digest of the request's key. A
/// server that does not know WebSocket cannot say so by chance, and then what follows would be requests that
/// nobody inspects.
pub(crate) fn is_accepted(request: &RequestHead, answer: &ResponseHead) -> bool {
    let Some(expected) = answer_to(request) else { return false };
    let mut accepted = answer.header("sec-websocket-accept");
    is_asked_for(request)
        && answer.header("upgrade").all(|protocol| protocol.eq_ignore_ascii_case(b"websocket"))
        && accepted.next().is_some_and(|value| value == expected)
        && accepted.next().is_none()
}

/// The answer that a handshake needs; none if it has no key, or two.
pub(crate) fn answer_to(request: &RequestHead) -> Option<Vec<u8>> {
    let mut keys = request.header("sec-websocket-key");
    match (keys.next(), keys.next()) {
        (Some(key), None) => Some(accept(key)),
        _ => None,
    }
}

/// The `Sec-WebSocket-Accept` for a key.
fn accept(key: &[u8]) -> Vec<u8> {
    let (mut digest, mut text) = (Vec::new(), Vec::new());
    Transformation::Sha1.apply(&[key, GUID].concat(), &mut digest);
    Transformation::Base64Encode.apply(&digest, &mut text);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_rfc() {
        assert_eq!(accept(b"dGhlIHNhbXBsZSBub25jZQ=="), b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }
}
