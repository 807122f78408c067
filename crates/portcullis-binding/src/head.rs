//! Heads of requests and our answers in parts, as other languages pass them.

use std::net::{IpAddr, SocketAddr};

use portcullis_embed::{BodyFraming, Client, Exchange, RequestParts, Version, Waf};

/// The head of a request in parts.
#[derive(Clone, Debug, Default)]
pub struct Head {
    /// The method.
    pub method: Vec<u8>,
    /// Path and query, percent-encoded as they came.
    pub target: Vec<u8>,
    /// `1.0`, `1.1`, `2` or `3`.
    pub version: String,
    /// The header fields.
    pub fields: Vec<(Vec<u8>, Vec<u8>)>,
    /// Address of the client; one that cannot be read counts as unknown, `0.0.0.0`.
    pub client: String,
    /// Its port.
    pub port: u16,
    /// True if the request came over TLS.
    pub tls: bool,
    /// True if there may be a body without a field that announces it, as in HTTP/2.
    pub may_have_body: bool,
}

/// An answer in place of the application's, such as the block page.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The header fields.
    pub fields: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Head {
    /// Begins the exchange: phase 1.
    pub fn begin(&self, waf: &Waf) -> Exchange {
        let fields: Vec<(&[u8], &[u8])> =
            self.fields.iter().map(|(name, value)| (&name[..], &value[..])).collect();
        let version = match self.version.as_str() {
            "3" | "3.0" => Version::Http3,
            "2" | "2.0" => Version::Http2,
            "1.0" => Version::Http10,
            _ => Version::Http11,
        };
        let parts = RequestParts {
            method: &self.method,
            target: &self.target,
            version,
            framing: self.framing(),
            websocket: false,
            fields: &fields,
        };
        let ip = self.client.parse().unwrap_or(IpAddr::from([0, 0, 0, 0]));
        let client = Client::from(SocketAddr::new(ip, self.port));
        waf.begin_parts(&parts, if self.tls { client.by_tls() } else { client })
    }

    fn framing(&self) -> BodyFraming {
        let field = |wanted: &str| {
            let mut fields = self.fields.iter();
            let found = fields.find(|(name, _)| name.eq_ignore_ascii_case(wanted.as_bytes()));
            found.map(|(_, value)| value.as_slice())
        };
        let length = field("content-length").and_then(|value| std::str::from_utf8(value).ok()?.parse().ok());
        match (length, field("transfer-encoding")) {
            (_, Some(_)) => BodyFraming::Chunked,
            (Some(length), None) => BodyFraming::Length(length),
            (None, None) if self.may_have_body => BodyFraming::Chunked,
            (None, None) => BodyFraming::None,
        }
    }
}

impl Answer {
    /// The answer of an exchange, if it has one.
    pub fn of(exchange: &Exchange) -> Option<Answer> {
        let response = exchange.answer()?;
        let (parts, body) = response.into_parts();
        let fields = parts
            .headers
            .iter()
            .filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())));
        Some(Answer { status: parts.status.as_u16(), fields: fields.collect(), body })
    }
}
