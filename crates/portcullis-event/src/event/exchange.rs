//! Who asked whom for what, and what was answered.

use std::borrow::Cow;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::wire;
use crate::{BlindSpot, IntegrationKind};

/// The peer that sent the request.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Client {
    /// Its address: from the socket, or from a forwarding header when the peer is trusted.
    pub addr: String,
    /// Its port; 0 when a forwarding header did not say.
    pub port: u16,
    /// Its country, two letters of ISO 3166-1, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub country: Option<String>,
    /// The number of its autonomous system, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asn: Option<u32>,
    /// The socket's address, where it is not `addr`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// The forwarding chain as received, first hop first, at most
    /// [`limits::FORWARDED_FOR_MAX`](crate::limits::FORWARDED_FOR_MAX) entries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forwarded_for: Vec<String>,
}

impl From<SocketAddr> for Client {
    fn from(addr: SocketAddr) -> Client {
        Client { addr: addr.ip().to_string(), port: addr.port(), ..Client::default() }
    }
}

/// The local address at which the request arrived, and the host that it named.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Server {
    /// Local address.
    pub addr: String,
    /// Local port.
    pub port: u16,
    /// The host that the client named.
    pub host: String,
    /// True if the connection was TLS.
    pub tls: bool,
}

/// The request as it was sent.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Request {
    /// Method.
    pub method: String,
    /// Request target, as received (then redacted).
    pub target: String,
    /// `HTTP/1.1` and the like.
    pub protocol: String,
    /// Selected headers, in the order received.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<Header>,
    /// Size of the head in bytes.
    pub head_bytes: u64,
    /// Size of the body in bytes, without chunk framing.
    pub body_bytes: u64,
    /// Fields that came behind the body and were dropped.
    #[serde(default, skip_serializing_if = "wire::is_zero")]
    pub trailers_dropped: u32,
    /// The anomalies of its head, which was accepted all the same, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub oddities: Vec<Cow<'static, str>>,
    /// The error of the body's parser, for rules: the text of `REQBODY_ERROR_MSG`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_error: Option<String>,
}

/// A header line that an event shows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Header {
    /// Name as received.
    pub name: String,
    /// Value.
    pub value: String,
}

/// The response as it was sent.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Response {
    /// Status sent to the client; absent if the connection ended without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Size of the body in bytes.
    pub body_bytes: u64,
}

/// The way by which another server asked for a verdict, and what it did not show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Integration {
    /// The protocol.
    pub kind: IntegrationKind,
    /// The parts of the exchange that were not shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blind_spots: Vec<BlindSpot>,
}
