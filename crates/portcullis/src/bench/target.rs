//! An address on the command line. Load goes to loopback and nowhere else.

use std::net::SocketAddr;
use std::str::FromStr;

/// Something that is served on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// In the table.
    pub name: String,
    /// The address that it listens on.
    pub address: SocketAddr,
}

impl FromStr for Target {
    type Err = String;

    /// `[NAME=]http://ADDRESS:PORT[/]`. The requests are not the caller's choice, so a path is not allowed.
    fn from_str(text: &str) -> Result<Target, String> {
        let (name, url) = match text.split_once('=') {
            Some((name, url)) if !name.contains('/') => (Some(name), url),
            _ => (None, text),
        };
        let Some(rest) = url.strip_prefix("http://") else {
            return Err("must begin with http://; targets are measured without TLS".into());
        };
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        if authority.contains('/') {
            return Err("has a path; the requests of --traffic have their own".into());
        }
        let authority = authority.replace("localhost", "127.0.0.1");
        let with_port = authority.parse().or_else(|_| format!("{authority}:80").parse());
        let Ok(address): Result<SocketAddr, _> = with_port else {
            return Err(format!("`{authority}` is not an address and port, such as 127.0.0.1:8080"));
        };
        if !address.ip().is_loopback() {
            return Err(format!("{address} is not on this machine; load goes to loopback only"));
        }
        Ok(Target { name: name.map_or_else(|| address.to_string(), str::to_owned), address })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_can_be_aimed_at() {
        let target = |text: &str| text.parse::<Target>();
        let named = |name: &str, address: &str| {
            Ok(Target { name: name.to_owned(), address: address.parse().unwrap() })
        };
        assert_eq!(target("http://127.0.0.1:8080"), named("127.0.0.1:8080", "127.0.0.1:8080"));
        assert_eq!(target("nginx=http://localhost:81/"), named("nginx", "127.0.0.1:81"));
        assert_eq!(target("http://[::1]"), named("[::1]:80", "[::1]:80"));
        for bad in [
            "http://192.0.2.1:80",
            "http://example.com",
            "http://0.0.0.0:80",
            "https://127.0.0.1:1",
            "127.0.0.1:80",
            "http://127.0.0.1/a",
            "a=b",
            "",
        ] {
            assert!(target(bad).is_err(), "{bad}");
        }
    }
}
