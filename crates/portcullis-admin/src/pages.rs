//! Request in, answer out; no sockets here.

use std::borrow::Cow;

use portcullis_http::h1::{ClientConnection, RequestHead, write_answer};
use portcullis_metrics::{CONTENT_TYPE, Registry};

/// What `/readyz` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// Send traffic.
    Ready,
    /// Send none, for this reason: `starting`, `draining`.
    NotReady(Cow<'static, str>),
}

const TEXT: &str = "text/plain; charset=utf-8";

/// Appends the answer to `head`.
pub(crate) fn answer(
    head: &RequestHead,
    registry: &Registry,
    health: impl Fn() -> Health,
    connection: ClientConnection,
    out: &mut Vec<u8>,
) {
    let is_head = head.method() == b"HEAD";
    let mut send = |status: u16, media_type: &str, allow: bool, body: &str| {
        let mut fields: Vec<(&str, &[u8])> =
            vec![("Content-Type", media_type.as_bytes()), ("Cache-Control", b"no-store")];
        if allow {
            fields.push(("Allow", b"GET, HEAD"));
        }
        write_answer(status, &fields, body.as_bytes(), connection, is_head, out);
    };
    let path = head.path();
    if !matches!(path, b"/metrics" | b"/healthz" | b"/readyz") {
        return send(404, TEXT, false, "not found; there are /metrics, /healthz and /readyz\n");
    }
    if !is_head && head.method() != b"GET" {
        return send(405, TEXT, true, "only GET and HEAD\n");
    }
    match path {
        b"/metrics" => send(200, CONTENT_TYPE, false, &registry.render()),
        b"/healthz" => send(200, TEXT, false, "ok\n"),
        _ => match health() {
            Health::Ready => send(200, TEXT, false, "ready\n"),
            Health::NotReady(reason) => send(503, TEXT, false, &format!("not ready: {reason}\n")),
        },
    }
}

/// Appends the answer to something that is not a request.
pub(crate) fn refuse(status: u16, explanation: &str, out: &mut Vec<u8>) {
    let fields: [(&str, &[u8]); 1] = [("Content-Type", TEXT.as_bytes())];
    write_answer(status, &fields, format!("{explanation}\n").as_bytes(), ClientConnection::Close, false, out);
}
