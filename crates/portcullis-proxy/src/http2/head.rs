//! Heads from and to HTTP/2.
//!
//! A request becomes the head that the same request over HTTP/1 would have, by way of the same checks, so
//! whatever is forwarded as HTTP/1 later cannot be read as something else. An answer is composed once, as
//! HTTP/1, and its head is taken apart here: what is added, replaced and left out is the same over both.

use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri, request};
use portcullis_exchange::request_head;
use portcullis_http::h1::Parsed;

/// The head of a request. `ended`: it has no body. `key`: for the handshake of a WebSocket that is asked for
/// by extended CONNECT, which has none.
pub(crate) fn request(parts: &request::Parts, ended: bool, key: impl FnOnce() -> String) -> Parsed {
    let protocol = parts.extensions.get::<h2::ext::Protocol>();
    let key = protocol.filter(|protocol| protocol.as_str() == "websocket").map(|_| key());
    request_head(parts, ended, key.as_deref())
}

/// A `Sec-WebSocket-Key`: sixteen bytes in Base64.
pub(crate) fn websocket_key(secret: [u8; 16]) -> String {
    let mut key: String = secret.iter().flat_map(|byte| [byte >> 4, byte & 15]).take(21).map(digit).collect();
    // The last sign has two bits of the sixteenth byte.
    key.push_str("A==");
    key
}

fn digit(nibble: u8) -> char {
    char::from_digit(u32::from(nibble), 16).unwrap_or_default()
}

/// An answer's head that was composed as HTTP/1, as HTTP/2 has it, and where its body begins. 101, which
/// HTTP/2 does not know, becomes the 200 of extended CONNECT. None if it is no head; our own always are.
pub(crate) fn response(composed: &[u8]) -> Option<(Response<()>, usize)> {
    let end = composed.windows(4).position(|four| four == b"\r\n\r\n")?;
    let mut lines = composed[..end].split(|byte| *byte == b'\n').map(|line| line.trim_ascii_end());
    let status = StatusCode::from_bytes(lines.next()?.get(9..12)?).ok()?;
    let switching = status == StatusCode::SWITCHING_PROTOCOLS;
    let mut response = Response::new(());
    *response.status_mut() = if switching { StatusCode::OK } else { status };
    let headers = response.headers_mut();
    for line in lines {
        let colon = line.iter().position(|byte| *byte == b':')?;
        append(headers, &line[..colon], line[colon + 1..].trim_ascii())?;
    }
    if switching {
        headers.remove("sec-websocket-accept");
    }
    Some((response, end + 4))
}

/// A request's head that was composed as HTTP/1, as HTTP/2 has it. `trailers`: they are welcome. `websocket`:
/// it is the handshake of one, which becomes an extended CONNECT. None if its target is not one that HTTP/2
/// can carry.
pub(crate) fn outgoing(composed: &[u8], https: bool, trailers: bool, websocket: bool) -> Option<Request<()>> {
    let end = composed.windows(4).position(|four| four == b"\r\n\r\n")?;
    let mut lines = composed[..end].split(|byte| *byte == b'\n').map(|line| line.trim_ascii_end());
    let line = lines.next()?.strip_suffix(b" HTTP/1.1")?;
    let space = line.iter().position(|byte| *byte == b' ')?;
    let (mut headers, mut host) = (HeaderMap::new(), None);
    for line in lines {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        match name.eq_ignore_ascii_case(b"host") {
            // We write one.
            true => host = Some(value),
            false => append(&mut headers, name, value)?,
        }
    }
    if trailers {
        headers.insert("te", HeaderValue::from_static("trailers"));
    }
    let uri = Uri::builder().scheme(if https { "https" } else { "http" });
    let uri = uri.authority(host?).path_and_query(&line[space + 1..]).build().ok()?;
    // The library would leave a fragment out.
    let as_written = uri.path_and_query()?.as_str().as_bytes() == &line[space + 1..];
    let mut request = Request::new(());
    *request.method_mut() = Method::from_bytes(&line[..space]).ok()?;
    *request.uri_mut() = uri;
    *request.headers_mut() = headers;
    if websocket {
        *request.method_mut() = Method::CONNECT;
        request.headers_mut().remove("sec-websocket-key");
        request.extensions_mut().insert(h2::ext::Protocol::from_static("websocket"));
    }
    as_written.then_some(request)
}

/// Fields as HTTP/2 has them: those that belong to an HTTP/1 connection are left out. None if one of them is
/// no field.
pub(crate) fn fields<'f>(fields: impl Iterator<Item = (&'f [u8], &'f [u8])>) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        append(&mut headers, name, value)?;
    }
    Some(headers)
}

fn append(headers: &mut HeaderMap, name: &[u8], value: &[u8]) -> Option<()> {
    let name = HeaderName::from_bytes(name).ok()?;
    let is_of_connection = matches!(
        name.as_str(),
        "connection" | "keep-alive" | "proxy-connection" | "transfer-encoding" | "upgrade"
    );
    if !is_of_connection {
        headers.try_append(name, HeaderValue::from_bytes(value).ok()?).ok()?;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use portcullis_http::message::{BodyFraming, Refusal, RequestHead, Version};

    use super::*;

    fn head(request: request::Builder, ended: bool) -> Result<RequestHead, Refusal> {
        let (parts, ()) = request.version(http::Version::HTTP_2).body(()).unwrap().into_parts();
        match super::request(&parts, ended, || "key".to_string()) {
            Parsed::Head(head) => Ok(head),
            Parsed::Refused { refusal, .. } => Err(refusal),
            Parsed::NeedMore => panic!("it is all there"),
        }
    }

    fn get(uri: &str) -> request::Builder {
        http::Request::builder().uri(uri)
    }

    #[test]
    fn what_rules_see() {
        let request = get("https://shop.example/a?b=%3Cc").header("cookie", "a=1").header("x", "y\u{e9}");
        let head = head(request.header("cookie", "b=2").header("host", "SHOP.example"), true).unwrap();
        assert_eq!(head.line(), b"GET /a?b=%3Cc HTTP/2.0");
        let fields: Vec<_> = head.fields().collect();
        let expected: [(&[u8], &[u8]); 3] =
            [(b"host", b"shop.example"), (b"cookie", b"a=1; b=2"), (b"x", "y\u{e9}".as_bytes())];
        assert_eq!(fields, expected);
        assert_eq!((head.version(), head.framing()), (Version::Http2, BodyFraming::None));
    }

    #[test]
    fn what_is_refused() {
        let refusal = |request: request::Builder| head(request, false).unwrap_err();
        let post = || get("https://a/").method("POST");
        assert_eq!(refusal(get("https://a/").header("host", "b")), Refusal::DuplicateHost);
        let two = get("https://a/").header("host", "a").header("host", "a");
        assert_eq!(refusal(two), Refusal::DuplicateHost);
        assert_eq!(refusal(get("/")), Refusal::MissingHost);
        assert_eq!(
            refusal(post().header("content-length", "1").header("content-length", "1")),
            Refusal::DuplicateContentLength
        );
        assert_eq!(refusal(post().header("content-length", "+1")), Refusal::InvalidContentLength);
        assert_eq!(refusal(post().header("transfer-encoding", "chunked")), Refusal::InvalidTransferEncoding);
        assert_eq!(refusal(get("https://u@a/")), Refusal::InvalidHost);
        assert_eq!(refusal(get("ftp://a/")), Refusal::InvalidScheme);
        assert_eq!(refusal(get("a:80").method("CONNECT")), Refusal::ConnectNotSupported);
    }

    #[test]
    fn bodies() {
        let post = |length: Option<&str>, ended| {
            let request = get("https://a/").method("POST");
            let request =
                length.into_iter().fold(request, |request, length| request.header("content-length", length));
            head(request, ended).unwrap().framing()
        };
        assert_eq!(post(None, true), BodyFraming::None);
        assert_eq!(post(Some("0"), true), BodyFraming::Length(0));
        assert_eq!(post(Some("3"), false), BodyFraming::Length(3));
        assert_eq!(post(None, false), BodyFraming::Chunked);
    }

    #[test]
    fn a_websocket_is_asked_for_as_http1_does() {
        let request = get("https://a/chat").method("CONNECT").header("sec-websocket-version", "13");
        let head = head(request.extension(h2::ext::Protocol::from_static("websocket")), false).unwrap();
        assert_eq!((head.line(), head.framing()), (&b"GET /chat HTTP/2.0"[..], BodyFraming::None));
        assert_eq!(head.upgrade(), Some(&b"websocket"[..]));
        assert_eq!(head.header("sec-websocket-key").collect::<Vec<_>>(), [b"key"]);
    }

    #[test]
    fn requests_to_upstreams() {
        let text = b"POST /a?b HTTP/1.1\r\nHost: a.example:8080\r\nX: y\r\nTransfer-Encoding: chunked\r\nA_B: c\r\n\r\n";
        let request = outgoing(text, true, true, false).unwrap();
        assert_eq!(request.uri().to_string(), "https://a.example:8080/a?b");
        let fields: Vec<_> = request.headers().iter().map(|(n, v)| (n.as_str(), v.as_bytes())).collect();
        let expected: [(&str, &[u8]); 3] = [("x", b"y"), ("a_b", b"c"), ("te", b"trailers")];
        assert_eq!((request.method().as_str(), &fields[..]), ("POST", &expected[..]));
        for target in ["/<", "/a#b", "/a b"] {
            let text = format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
            assert!(outgoing(text.as_bytes(), false, false, false).is_none(), "{target}");
        }
    }

    #[test]
    fn answers() {
        let text =
            b"HTTP/1.1 404 Not Found\r\nA: b\r\nSet-Cookie: c\r\nset-cookie: d\r\nConnection: close\r\n\
                     Transfer-Encoding: chunked\r\n\r\nbody";
        let (head, at) = response(text).unwrap();
        assert_eq!((head.status().as_u16(), &text[at..]), (404, &b"body"[..]));
        let fields: Vec<_> = head.headers().iter().map(|(n, v)| (n.as_str(), v.as_bytes())).collect();
        let expected: [(&str, &[u8]); 3] = [("a", b"b"), ("set-cookie", b"c"), ("set-cookie", b"d")];
        assert_eq!(fields, expected);
        let (head, _) =
            response(b"HTTP/1.1 101 x\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: k\r\n\r\n").unwrap();
        assert_eq!((head.status().as_u16(), head.headers().len()), (200, 0));
    }
}
