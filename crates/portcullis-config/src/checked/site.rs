//! Listeners and sites.

use std::net::{IpAddr, SocketAddr};

use crate::access::RateLimit;
use crate::access_log::AccessLog;
use crate::cookies::Cookies;
use crate::host::HostPattern;
use crate::http2::Http2;
use crate::https::Https;
use crate::route::Route;
use crate::tls::ListenerTls;

/// An address to serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Its name, unique.
    pub name: String,
    /// The address that it listens on.
    pub address: SocketAddr,
    /// If it serves TLS.
    pub tls: Option<ListenerTls>,
    /// Trusted peers begin with a PROXY protocol header.
    pub proxy_protocol: bool,
    /// A client of HTTP/1 that ends its side is taken for one that still reads.
    pub half_close: bool,
    /// The strictness of reading HTTP; the same for all its sites, since the host is known only after
    /// reading.
    pub compat: Compat,
    /// HTTP/2 to clients. Limits are those of HTTP/3, too.
    pub http2: Http2,
    /// It speaks HTTP/3, over UDP on the same port.
    pub http3: bool,
    /// Indices into [`Config::sites`](crate::Config::sites) of those it serves, at least one.
    pub sites: Vec<usize>,
}

impl Listener {
    /// Returns true if another socket at `address` would take clients of this one, or could not be bound
    /// beside it.
    pub(crate) fn is_on(&self, address: SocketAddr) -> bool {
        // Without a host an address of IPv6 stands for both families.
        let covers = |all: IpAddr, one: IpAddr| all.is_unspecified() && (all.is_ipv6() || one.is_ipv4());
        let (own, other) = (self.address.ip(), address.ip());
        let is_same_host = own == other || covers(own, other) || covers(other, own);
        address.port() != 0 && self.address.port() == address.port() && is_same_host
    }
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

/// The settings of some hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The name in events and metrics, unique.
    pub name: String,
    /// At least one.
    pub hosts: Vec<HostPattern>,
    /// That clients should come by TLS.
    pub https: Https,
    /// Its cookies.
    pub cookies: Cookies,
    /// At least one, in the order in which they are tried.
    pub routes: Vec<Route>,
    /// Rate limits of all its requests.
    pub rate_limits: Vec<RateLimit>,
    /// Its access log.
    pub access_log: Option<AccessLog>,
    /// The names of the profiles that it takes.
    pub profiles: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_a_host_is_on_all_of_its_port() {
        for (listener, other, expected) in [
            ("127.0.0.1:80", "127.0.0.1:80", true),
            ("0.0.0.0:80", "127.0.0.1:80", true),
            ("127.0.0.1:80", "0.0.0.0:80", true),
            ("[::]:80", "127.0.0.1:80", true),
            ("127.0.0.1:80", "[::]:80", true),
            ("[::]:80", "[::1]:80", true),
            ("0.0.0.0:80", "[::1]:80", false),
            ("127.0.0.1:80", "127.0.0.2:80", false),
            ("0.0.0.0:80", "0.0.0.0:81", false),
            ("0.0.0.0:0", "127.0.0.1:0", false),
        ] {
            let listener = Listener {
                name: String::new(),
                address: listener.parse().expect("an address"),
                tls: None,
                proxy_protocol: false,
                half_close: false,
                compat: Compat::Strict,
                http2: Http2::default(),
                http3: false,
                sites: Vec::new(),
            };
            assert_eq!(listener.is_on(other.parse().expect("an address")), expected, "{listener:?} {other}");
        }
    }
}
