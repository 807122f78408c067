//! Addresses of sites: `shop.example`, `http://shop.example:8080`, `:443`.

use super::Options;
use crate::text;

/// An address of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// `*` for every host.
    pub host: String,
    pub port: u16,
    pub tls: bool,
    /// Caddy would give it a certificate of an authority of its own.
    pub local: bool,
}

/// Reads an address; `None` if it cannot be said here.
pub(crate) fn parse(text: &str, options: &Options) -> Option<Address> {
    let text = text.trim_end_matches(',');
    let (scheme, rest) = text.split_once("://").map_or((None, text), |(scheme, rest)| (Some(scheme), rest));
    if rest.contains(['/', '{']) {
        return None;
    }
    let (host, port) = match rest.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => {
            (host, Some(port.parse::<u16>().ok().filter(|port| *port > 0)?))
        }
        _ => (rest, None),
    };
    let host = match host {
        "" | "*" => "*".to_owned(),
        host if text::is_host(host) => host.to_ascii_lowercase(),
        _ => return None,
    };
    let tls = match (scheme, port) {
        (Some("http"), _) => false,
        (Some("https"), _) => true,
        (Some(_), _) => return None,
        (None, Some(port)) if port == options.http_port => false,
        (None, Some(port)) if port == options.https_port => true,
        // A name is served over TLS on any port.
        (None, _) => host != "*",
    };
    let port = port.unwrap_or(if tls { options.https_port } else { options.http_port });
    let local = host == "localhost"
        || [".localhost", ".local", ".internal", ".home.arpa", ".test"].iter().any(|end| host.ends_with(end))
        || host.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok();
    Some(Address { host, port, tls, local })
}
