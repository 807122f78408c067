//! Answers of our own to calls of gRPC, whose clients look for `grpc-status` and cannot read a page.

use portcullis_http::message::RequestHead;
use portcullis_types::reason_phrase;

/// The media type in which a call of gRPC is answered; none if `head` is no such call. gRPC-Web, which comes
/// over HTTP/1 too, reads the same fields from the head of an answer without a body.
pub(crate) fn media_type(head: &RequestHead) -> Option<&'static str> {
    let sent = head.header("content-type").next()?.to_ascii_lowercase();
    ["application/grpc", "application/grpc-web", "application/grpc-web-text"].into_iter().find(|known| {
        let rest = sent.strip_prefix(known.as_bytes());
        rest.is_some_and(|rest| rest.first().is_none_or(|byte| matches!(byte, b'+' | b';' | b' ')))
    })
}

/// The fields that tell a call what an HTTP status means: the table of "HTTP to gRPC status code mapping" in
/// gRPC's documentation, and RESOURCE_EXHAUSTED for a message that is too large.
pub(crate) fn fields(status: u16, request_id: &str) -> [(&'static str, String); 2] {
    let code = match status {
        400 => 13,
        401 => 16,
        403 => 7,
        404 => 12,
        413 => 8,
        429 | 502..=504 => 14,
        _ => 2,
    };
    // Nothing of this needs the percent-encoding of `grpc-message`.
    let message = format!("{}; request id {request_id}", reason_phrase(status));
    [("grpc-status", code.to_string()), ("grpc-message", message)]
}

#[cfg(test)]
mod tests {
    use portcullis_http::h1::{Compat, Limits, Parsed, RequestParser};

    use super::*;

    fn kind(media_type: &str) -> Option<&'static str> {
        let text = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Type: {media_type}\r\n\r\n");
        match RequestParser::new(Limits::default(), Compat::Strict).parse(text.as_bytes()) {
            Parsed::Head(head) => super::media_type(&head),
            _ => panic!("a head"),
        }
    }

    #[test]
    fn calls() {
        for (sent, expected) in [
            ("application/grpc", Some("application/grpc")),
            ("application/grpc+proto", Some("application/grpc")),
            ("Application/gRPC; x=y", Some("application/grpc")),
            ("application/grpc-web+proto", Some("application/grpc-web")),
            ("application/grpc-web-text", Some("application/grpc-web-text")),
            ("application/grpcx", None),
            ("text/plain", None),
        ] {
            assert_eq!(kind(sent), expected, "{sent}");
        }
    }

    #[test]
    fn what_a_call_is_told() {
        let code = |status| fields(status, "x")[0].1.clone();
        let told = [400, 401, 403, 404, 413, 429, 500, 503].map(code);
        assert_eq!(told, ["13", "16", "7", "12", "8", "14", "2", "14"]);
        assert_eq!(fields(403, "0a1b")[1].1, "Forbidden; request id 0a1b");
    }
}
