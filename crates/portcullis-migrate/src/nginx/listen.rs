//! `listen`: addresses of a server.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use super::Context;
use super::syntax::Directive;

/// An address of a server.
#[derive(Clone, Debug)]
pub(crate) struct Listen {
    pub address: String,
    pub tls: bool,
    pub default: bool,
    pub entry: crate::report::Entry,
}

/// The addresses of a server; without any it listens on port 80.
pub(crate) fn all(items: &[Directive], cx: &mut Context<'_>) -> Vec<Listen> {
    let on = items.iter().any(|item| item.name == "ssl" && item.arg(0) == "on");
    let mut found: Vec<Listen> = Vec::new();
    for item in items.iter().filter(|item| item.name == "listen") {
        let Some(address) = address(item.arg(0)) else {
            let why = match item.arg(0).starts_with("unix:") {
                true => "listeners have addresses, not Unix sockets",
                false => "listeners have an address and a port",
            };
            cx.ledger.left(item.entry, why);
            continue;
        };
        let has = |option: &str| item.args.iter().skip(1).any(|arg| arg == option);
        if has("quic") {
            cx.ledger.left(item.entry, "`http3 = true` of a listener needs a build with `--features http3`");
            continue;
        }
        let address = address.to_string();
        if has("proxy_protocol") {
            cx.proxy_protocol.push((address.clone(), item.entry));
        }
        cx.ledger.taken(item.entry, format!("listener `{address}`"));
        if found.iter().any(|known| known.address == address) {
            continue;
        }
        let default = has("default_server") || has("default");
        found.push(Listen { address, tls: on || has("ssl"), default, entry: item.entry });
    }
    found
}

/// What `listen` says: an address and a port, or one of them.
fn address(text: &str) -> Option<SocketAddr> {
    if let Ok(port) = text.parse::<u16>() {
        return (port > 0).then(|| SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)));
    }
    let any = text.replacen("*:", "0.0.0.0:", 1).replacen("localhost", "127.0.0.1", 1);
    if let Ok(address) = any.parse::<SocketAddr>() {
        return (address.port() > 0).then_some(address);
    }
    if any == "*" {
        return Some(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 80)));
    }
    if let Some(inner) = any.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')) {
        return inner.parse::<Ipv6Addr>().ok().map(|ip| SocketAddr::from((ip, 80)));
    }
    any.parse::<Ipv4Addr>().ok().map(|ip| SocketAddr::from((ip, 80)))
}
