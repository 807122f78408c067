//! Decides if a request names this server by one of its own names.

use std::net::IpAddr;

/// True if a `Host`, with or without a port, is an address, `localhost` or one of `names` (in lower case,
/// without ports).
///
/// A page that a browser on this machine shows could have a name of its own stand for our address (DNS
/// rebinding); then the browser sends that name.
pub fn is_own_name(host: &[u8], names: &[String]) -> bool {
    let Ok(host) = std::str::from_utf8(host) else { return false };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let bare = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost")
        || bare.parse::<IpAddr>().is_ok()
        || names.iter().any(|own| name.eq_ignore_ascii_case(own))
}

#[cfg(test)]
mod tests {
    use super::is_own_name;

    #[test]
    fn addresses_and_names_of_ours() {
        let names = ["waf.internal".to_owned()];
        for host in [
            "127.0.0.1",
            "127.0.0.1:9090",
            "[::1]:9090",
            "[::1]",
            "localhost",
            "LOCALHOST:1",
            "waf.internal",
            "Waf.Internal:8443",
            "192.0.2.1",
        ] {
            assert!(is_own_name(host.as_bytes(), &names), "{host}");
        }
        for host in [
            "",
            ":80",
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "waf.internal.evil",
            "waf.internal:80:80",
            "[127.0.0.1",
            "[[::1]]",
            "localhost:80@evil.example",
            "0x7f.1",
            "localhost:8o",
            "\u{ff11}27.0.0.1",
            "waf.internal.",
        ] {
            assert!(!is_own_name(host.as_bytes(), &names), "{host}");
        }
        assert!(!is_own_name(b"\xff", &names));
    }
}
