//! Endpoint addresses, and the defaults of a group.

use std::time::Duration;

use crate::checked::{Endpoint, Upstream};

impl Upstream {
    /// A plain group with the default timeouts.
    pub(crate) fn new(name: String, endpoints: Vec<Endpoint>) -> Self {
        Upstream {
            name,
            endpoints,
            tls: None,
            connect_timeout: Duration::from_secs(5),
            read_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(60),
            idle_timeout: Duration::from_secs(60),
            idle_connections_max: 64,
        }
    }
}

impl Upstream {
    /// The endpoint with this address, if the group has it and speaks that scheme. Names compare in any ASCII case.
    pub fn endpoint_at(&self, https: bool, host: &str, port: u16) -> Option<usize> {
        let is_it = |endpoint: &Endpoint| endpoint.port == port && endpoint.host.eq_ignore_ascii_case(host);
        self.endpoints.iter().position(is_it).filter(|_| self.tls.is_some() == https)
    }
}

/// Reads `http://host[:port]` or `https://host[:port]`; the flag says whether it is TLS. A path is refused: requests
/// keep the path the client asked for.
pub(crate) fn parse_url(text: &str) -> Result<(Endpoint, bool), String> {
    let (rest, is_tls) = match (text.strip_prefix("http://"), text.strip_prefix("https://")) {
        (Some(rest), _) => (rest, false),
        (_, Some(rest)) => (rest, true),
        _ => return Err(format!("`{text}` does not begin with http:// or https://")),
    };
    let rest = rest.strip_suffix('/').unwrap_or(rest);
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
    let port = match port {
        None => 80 + 363 * u16::from(is_tls),
        Some(port) => port.parse().ok().filter(|port| *port > 0).ok_or_else(wrong_port)?,
    };
    Ok((Endpoint { host: host.to_string(), port }, is_tls))
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
            let expected = (Endpoint { host: host.to_string(), port }, tls);
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
