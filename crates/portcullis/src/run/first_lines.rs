//! The first lines of a start: where it listens, how to see a block, how to get the console.

use std::net::{IpAddr, SocketAddr};

use portcullis_config::{Config, Engine};

use super::settings::Args;
use crate::terminal::{Colour, Paint};

/// A request that every mode stops.
pub const ATTACK: &str = "/?q=1%27%20OR%201=1--%20-";

/// Reports that requests are served. `console` is where the console is, if there is one.
pub fn report(args: &Args, config: &Config, addresses: &[SocketAddr], console: Option<&str>) {
    let paint = Paint::of_stderr();
    let strong = |text: &str| paint.text(Colour::Strong, text);
    for address in addresses {
        eprintln!("portcullis: listening on {}", strong(&address.to_string()));
    }
    if let (true, Some(address)) = (args.has_flags(), addresses.first()) {
        eprintln!("portcullis: {}", see_a_block(config, *address, strong));
    }
    match console {
        Some(text) => eprintln!("{text}"),
        None if args.has_flags() => {
            eprintln!(
                "portcullis: to get the web console, add {} and open the link that it prints",
                strong("--console")
            );
        }
        None => {}
    }
}

fn see_a_block(config: &Config, address: SocketAddr, strong: impl Fn(&str) -> String) -> String {
    let Some(policy) = config.policies.first() else {
        return "requests pass without inspection: mode off".to_owned();
    };
    let what = match policy.engine {
        Some(Engine::DetectionOnly) => "a request that is reported, and passes",
        _ => "a request that is blocked",
    };
    let command = format!("curl -i 'http://{}{ATTACK}'", local(address));
    format!("{what}: {}; {} shows why", strong(&command), strong("portcullis events"))
}

/// The address at which this machine reaches a listener.
pub fn local(address: SocketAddr) -> String {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => format!("127.0.0.1:{}", address.port()),
        IpAddr::V6(ip) if ip.is_unspecified() => format!("[::1]:{}", address.port()),
        IpAddr::V4(_) | IpAddr::V6(_) => address.to_string(),
    }
}
