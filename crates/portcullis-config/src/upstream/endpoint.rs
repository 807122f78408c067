//! An endpoint, and how its address is written.

use std::net::IpAddr;

/// One endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Host name or address, without brackets.
    pub host: String,
    /// The address that the name stands for at present; none: it is not known, or `host` is one.
    pub address: Option<IpAddr>,
    /// Port.
    pub port: u16,
    /// Its share of the requests, at least 1.
    pub weight: u32,
    /// Those of a higher number wait until none of a lower one is available.
    pub priority: u32,
}

impl Endpoint {
    pub(crate) fn new(host: &str, port: u16) -> Self {
        Endpoint { host: host.to_string(), address: None, port, weight: 1, priority: 0 }
    }

    /// Returns true if `host` is a name to be resolved anew, not an address. `localhost` is not: it never
    /// changes (RFC 6761, section 6.3), and which of its addresses a server listens on is found out by
    /// connecting.
    pub fn has_name(&self) -> bool {
        self.host.parse::<IpAddr>().is_err() && !self.host.eq_ignore_ascii_case("localhost")
    }

    /// The destination of connections, as metrics show it: the address of a name, if it is known.
    pub fn place(&self) -> String {
        match self.address {
            Some(address) => std::net::SocketAddr::new(address, self.port).to_string(),
            None => self.to_string(),
        }
    }
}

/// Host and port as in a URL.
impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// Reads `http://host[:port]` or `https://host[:port]`; the flag says whether it is TLS. A path is refused:
/// requests keep the path the client asked for.
pub(crate) fn parse_url(text: &str) -> Result<(Endpoint, bool), String> {
    let (rest, is_tls) = match (text.strip_prefix("http://"), text.strip_prefix("https://")) {
        (Some(rest), _) => (rest, false),
        (_, Some(rest)) => (rest, true),
        _ => return Err(format!("`{text}` does not begin with http:// or https://")),
    };
    let (host, port) = host_and_port(text, rest.strip_suffix('/').unwrap_or(rest))?;
    Ok((Endpoint::new(host, port.unwrap_or(80 + 363 * u16::from(is_tls))), is_tls))
}

/// Reads an endpoint that has to name its port. `rest` is the end of `text`, which messages show.
pub(crate) fn parse_with_port(text: &str, rest: &str) -> Result<Endpoint, String> {
    let (host, port) = host_and_port(text, rest)?;
    let port = port.ok_or_else(|| format!("`{text}` names no port"))?;
    Ok(Endpoint::new(host, port))
}

/// The host and the port of `rest`, the end of `text`, which messages show.
pub(crate) fn host_and_port<'t>(text: &str, rest: &'t str) -> Result<(&'t str, Option<u16>), String> {
    if rest.contains(['/', '?', '#', '@']) {
        return Err(format!("`{text}` has more than a host and a port"));
    }
    let wrong_port = || format!("the port of `{text}` is not a number from 1 to 65535");
    let (host, port) = match rest.strip_prefix('[') {
        Some(inner) => {
            let (host, port) =
                inner.split_once(']').ok_or_else(|| format!("`{text}` lacks the closing bracket"))?;
            if host.parse::<std::net::Ipv6Addr>().is_err() {
                return Err(format!("`{host}` is not an IPv6 address"));
            }
            (host, if port.is_empty() { None } else { Some(port.strip_prefix(':').ok_or_else(wrong_port)?) })
        }
        None => match rest.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (rest, None),
        },
    };
    let is_host = host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte));
    if host.is_empty() || !is_host {
        return Err(format!("`{text}` names no host"));
    }
    let number = |port: &str| port.parse().ok().filter(|port| *port > 0).ok_or_else(wrong_port);
    Ok((host, port.map(number).transpose()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_endpoints() {
        for (text, host, port, tls) in [
            ("http://127.0.0.1:9000", "127.0.0.1", 9000, false),
            ("http://app.internal", "app.internal", 80, false),
            ("https://app.internal/", "app.internal", 443, true),
            ("https://[::1]:8443", "::1", 8443, true),
        ] {
            let expected = (Endpoint::new(host, port), tls);
            assert_eq!(parse_url(text), Ok(expected), "{text}");
        }
        for text in [
            "",
            "app:80",
            "ftp://app",
            "http://",
            "http://a:0",
            "http://a:99999",
            "http://a/b",
            "http://[x]:1",
        ] {
            assert!(parse_url(text).is_err(), "{text}");
        }
    }
}
