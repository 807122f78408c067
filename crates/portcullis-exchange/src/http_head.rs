//! The head of a request as the `http` crate has it, as rules see it.
//!
//! It becomes the head that the same request over HTTP/1 would have, by way of the same checks.

use std::borrow::Cow;

use http::header::HeaderValue;
use http::uri::Scheme;
use http::{HeaderMap, Method, Uri, request};
use portcullis_http::h1::{Limits, Parsed, RequestParts, assemble_request};
use portcullis_http::message::{BodyFraming, Refusal, Version};

/// The head of a request. `ended`: it has no body. `websocket_key`: it asks for a WebSocket by extended
/// CONNECT, which has no key; the handshake over HTTP/1 would have this one.
pub fn request_head(parts: &request::Parts, ended: bool, websocket_key: Option<&str>) -> Parsed {
    let version = version(parts.version);
    let method = if websocket_key.is_some() { &Method::GET } else { &parts.method };
    let authority = parts.uri.authority().map(|authority| authority.as_str());
    // Over HTTP/1 a whole URL in the place of the target is what the client wrote there.
    let is_whole = version < Version::Http2 && parts.uri.scheme().is_some();
    let target: Cow<'_, str> = match parts.uri.path_and_query() {
        Some(_) if is_whole => parts.uri.to_string().into(),
        Some(target) if *method != Method::CONNECT => target.as_str().into(),
        _ => authority.unwrap_or_default().into(),
    };
    let mut fields: Vec<(&[u8], &[u8])> = Vec::with_capacity(parts.headers.len() + 4);
    let mut hosts: Vec<&[u8]> = parts.headers.get_all("host").iter().map(HeaderValue::as_bytes).collect();
    if let Some(authority) = authority.map(str::as_bytes).filter(|_| version >= Version::Http2) {
        fields.push((b"host", authority));
        // One that says the same is no second one.
        if hosts.len() == 1 && hosts[0].eq_ignore_ascii_case(authority) {
            hosts.clear();
        }
    }
    let cookies = if version < Version::Http2 { None } else { joined_cookies(&parts.headers) };
    fields.extend(hosts.into_iter().map(|host| (&b"host"[..], host)));
    if let Some(key) = websocket_key {
        fields.push((b"upgrade", b"websocket"));
        fields.push((b"connection", b"Upgrade"));
        fields.push((b"sec-websocket-key", key.as_bytes()));
    }
    let mut cookies_written = false;
    for (name, value) in &parts.headers {
        match (name.as_str(), &cookies) {
            ("host", _) => {}
            ("cookie", Some(cookies)) => {
                if !std::mem::replace(&mut cookies_written, true) {
                    fields.push((b"cookie", cookies));
                }
            }
            (name, _) => fields.push((name.as_bytes(), value.as_bytes())),
        }
    }
    let uri = &parts.uri;
    let framing = framing(&parts.headers, ended, websocket_key.is_some());
    let parts = RequestParts {
        method: method.as_str().as_bytes(),
        target: target.as_bytes(),
        version,
        framing,
        websocket: websocket_key.is_some(),
        fields: &fields,
    };
    let parsed = assemble_request(&parts, &Limits::default());
    match parsed {
        Parsed::Head(partial) if version >= Version::Http2 && !is_of_the_web(uri) => {
            Parsed::Refused { partial, refusal: Refusal::InvalidScheme }
        }
        parsed @ (Parsed::NeedMore | Parsed::Head(_) | Parsed::Refused { .. }) => parsed,
    }
}

/// True if the URI has no scheme or one that we serve (RFC 9110, section 4.2).
fn is_of_the_web(uri: &Uri) -> bool {
    uri.scheme().is_none_or(|scheme| *scheme == Scheme::HTTP || *scheme == Scheme::HTTPS)
}

fn version(version: http::Version) -> Version {
    match version {
        http::Version::HTTP_3 => Version::Http3,
        http::Version::HTTP_2 => Version::Http2,
        http::Version::HTTP_10 => Version::Http10,
        http::Version::HTTP_09 => Version::Http09,
        _ => Version::Http11,
    }
}

fn framing(headers: &HeaderMap, ended: bool, websocket: bool) -> BodyFraming {
    let length = headers.get("content-length").and_then(|value| value.to_str().ok()?.parse().ok());
    match length {
        _ if websocket => BodyFraming::None,
        Some(0) if ended => BodyFraming::Length(0),
        _ if ended => BodyFraming::None,
        Some(length) => BodyFraming::Length(length),
        None => BodyFraming::Chunked,
    }
}

/// Clients may cut `Cookie` into crumbs; they are put together again (RFC 9113, section 8.2.3).
fn joined_cookies(headers: &HeaderMap) -> Option<Cow<'_, [u8]>> {
    let mut crumbs = headers.get_all("cookie").iter().map(HeaderValue::as_bytes);
    let first = crumbs.next()?;
    let rest: Vec<&[u8]> = crumbs.collect();
    if rest.is_empty() {
        return Some(Cow::Borrowed(first));
    }
    let mut joined = first.to_vec();
    for crumb in rest {
        joined.extend_from_slice(b"; ");
        joined.extend_from_slice(crumb);
    }
    Some(Cow::Owned(joined))
}

#[cfg(test)]
mod tests {
    use portcullis_http::message::RequestHead;

    use super::*;

    fn head(request: request::Builder, ended: bool) -> Result<RequestHead, Refusal> {
        let (parts, ()) = request.body(()).unwrap().into_parts();
        match request_head(&parts, ended, None) {
            Parsed::Head(head) => Ok(head),
            Parsed::Refused { refusal, .. } => Err(refusal),
            Parsed::NeedMore => panic!("it is all there"),
        }
    }

    fn get(uri: &str) -> request::Builder {
        http::Request::builder().uri(uri)
    }

    #[test]
    fn over_http1_the_target_and_the_fields_are_those_that_came() {
        let request = get("/a?b=%3Cc").header("Host", "shop.example").header("cookie", "a=1");
        let head = head(request.header("cookie", "b=2"), true).unwrap();
        assert_eq!(head.line(), b"GET /a?b=%3Cc HTTP/1.1");
        let fields: Vec<_> = head.fields().collect();
        let expected: [(&[u8], &[u8]); 3] =
            [(b"host", b"shop.example"), (b"cookie", b"a=1"), (b"cookie", b"b=2")];
        assert_eq!((&fields[..], head.version()), (&expected[..], Version::Http11));
    }

    #[test]
    fn a_whole_url_over_http1_stays_one() {
        let head = head(get("http://shop.example/a?b").header("host", "shop.example"), true).unwrap();
        assert_eq!(head.line(), b"GET http://shop.example/a?b HTTP/1.1");
        assert_eq!(head.host(), b"shop.example");
    }

    #[test]
    fn what_is_refused_over_http1() {
        assert_eq!(head(get("/"), true).unwrap_err(), Refusal::MissingHost);
        let two = get("/").header("host", "a").header("host", "b");
        assert_eq!(head(two, true).unwrap_err(), Refusal::DuplicateHost);
        let connect = get("a:80").method("CONNECT").header("host", "a:80");
        assert_eq!(head(connect, true).unwrap_err(), Refusal::ConnectNotSupported);
    }
}
