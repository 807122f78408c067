//! What is served, and where.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::access::RateLimit;
use crate::http2::Http2;
use crate::https::Https;
use crate::route::Route;
use crate::tls::ListenerTls;

/// An address to serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Its name, unique.
    pub name: String,
    /// Where it listens.
    pub address: SocketAddr,
    /// If it serves TLS.
    pub tls: Option<ListenerTls>,
    /// Trusted peers begin with a PROXY protocol header.
    pub proxy_protocol: bool,
    /// A client of HTTP/1 that ends its side is taken for one that still reads.
    pub half_close: bool,
    /// How strictly HTTP is read; the same for all its sites, since the host is known only after reading.
    pub compat: Compat,
    /// HTTP/2 to clients. Limits are those of HTTP/3, too.
    pub http2: Http2,
    /// It speaks HTTP/3, over UDP on the same port.
    pub http3: bool,
    /// Indices into [`Config::sites`](crate::Config::sites) of those it serves, at least one.
    pub sites: Vec<usize>,
}

/// HTTP profiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compat {
    /// Refuses what two readers could read differently.
    #[default]
    Strict,
    /// As Apache httpd where that is safe.
    Apache,
}

/// What is served under some hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The name in events and metrics, unique.
    pub name: String,
    /// At least one.
    pub hosts: Vec<HostPattern>,
    /// That clients should come by TLS.
    pub https: Https,
    /// At least one, in the order in which they are tried.
    pub routes: Vec<Route>,
    /// Rate limits of all its requests.
    pub rate_limits: Vec<RateLimit>,
    /// Its access log.
    pub access_log: Option<AccessLog>,
}

/// Which hosts a site serves.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HostPattern {
    /// Every host no other site names.
    Any,
    /// This host; lower case, without port.
    Exact(String),
    /// Every host under this domain, given with its leading dot, lower case.
    Under(String),
}

/// An access log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessLog {
    /// Where it is.
    pub file: PathBuf,
    /// How its lines look.
    pub format: AccessLogFormat,
}

/// How lines of an access log look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessLogFormat {
    /// A JSON object.
    Json,
    /// As Apache's and nginx's `combined`.
    Combined,
}
