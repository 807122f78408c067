//! `protocol` of an upstream: what its endpoints are spoken to in.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::mistakes::Mistakes;
use crate::spanned::Spanned;

/// What endpoints are spoken to in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Raw {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2 over TLS.
    H2,
    /// HTTP/2 without TLS, with prior knowledge.
    H2c,
    /// What the endpoint chooses in the TLS handshake.
    Auto,
}

/// The protocol that endpoints are spoken to in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UpstreamProtocol {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2, over TLS where the endpoints have it.
    Http2,
    /// The protocol that the endpoint chooses in the TLS handshake.
    Auto,
}

/// `tls`: the endpoints are spoken to over TLS.
pub(crate) fn check(mistakes: &mut Mistakes<'_>, raw: Option<Spanned<Raw>>, tls: bool) -> UpstreamProtocol {
    let Some(raw) = raw else { return UpstreamProtocol::default() };
    let (protocol, hint) = match (raw.value, tls) {
        (Raw::Http1, _) => (UpstreamProtocol::Http1, None),
        (Raw::H2, true) | (Raw::H2c, false) => (UpstreamProtocol::Http2, None),
        (Raw::Auto, true) => (UpstreamProtocol::Auto, None),
        (Raw::H2, false) => (UpstreamProtocol::Http2, Some("`h2` is over TLS; write `h2c` or `https://`")),
        (Raw::H2c, true) => (UpstreamProtocol::Http2, Some("`h2c` is without TLS; write `h2` or `http://`")),
        (Raw::Auto, false) => (
            UpstreamProtocol::Auto,
            Some("without TLS no protocol can be negotiated; write `h2c` or `http1`"),
        ),
    };
    if let Some(hint) = hint {
        let message = "this protocol does not fit the endpoints".to_string();
        mistakes.wrong_with_hint(raw.span, message, hint.to_string());
    }
    protocol
}
