use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::checked::Network;

/// Which clients may ask. `bypass` wins over `allow`, `allow` over `deny`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// They are let in without inspection and rate limits.
    pub bypass: Clients,
    /// They are let in whatever `deny` says.
    pub allow: Clients,
    /// They are refused.
    pub deny: Clients,
    /// All others are refused, too.
    pub deny_others: bool,
    /// What happens to who is to be refused.
    pub action: RefuseAction,
    /// The status they are answered with.
    pub status: u16,
}

/// A set of clients.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clients {
    /// By address.
    pub networks: Vec<Network>,
    /// Files with an address or network in each line.
    pub files: Vec<PathBuf>,
}

/// A rate limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// Its name, unique in its site: letters, digits, `-`, `_`, `.`.
    pub name: String,
    /// What has a bucket of its own; empty: one bucket for all.
    pub key: Vec<KeyPart>,
    /// Requests in each `per`, at least 1.
    pub rate: u32,
    /// The time for them.
    pub per: Duration,
    /// Requests at once, at least 1.
    pub burst: u32,
    /// Methods that are counted; empty: all.
    pub methods: Vec<String>,
    /// Clients that are not counted.
    pub except: Vec<Network>,
    /// Which addresses are one client.
    pub prefixes: Prefixes,
    /// What happens to a request that comes too early.
    pub action: RefuseAction,
    /// The status it is answered with.
    pub status: u16,
    /// Buckets at one time.
    pub keys_max: usize,
}

/// Something of a request that tells it from others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyPart {
    /// The client's address, cut to [`RateLimit::prefixes`].
    Client,
    /// The path as a server resolves it.
    Path,
    /// The value of a header.
    Header(String),
    /// The value of a cookie.
    Cookie(String),
}

/// What happens to a request that is to be refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefuseAction {
    /// It is refused.
    Block,
    /// It goes on, counted and with an event.
    Log,
}

/// Bits in which the addresses of one client agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefixes {
    /// 1 to 32.
    pub ipv4: u8,
    /// 1 to 128.
    pub ipv6: u8,
}

impl Default for Prefixes {
    fn default() -> Self {
        Prefixes { ipv4: 32, ipv6: 64 }
    }
}

impl Prefixes {
    /// The first address of the network that the client is taken for. A v4 address that arrives v6-mapped counts as v4.
    pub fn network(self, address: IpAddr) -> IpAddr {
        match address.to_canonical() {
            IpAddr::V4(v4) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.ipv4)).unwrap_or(0);
                IpAddr::V4((v4.to_bits() & mask).into())
            }
            IpAddr::V6(v6) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.ipv6)).unwrap_or(0);
                IpAddr::V6((v6.to_bits() & mask).into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_of_clients() {
        let check = |ipv4, ipv6, address: &str, network: &str| {
            let found = Prefixes { ipv4, ipv6 }.network(address.parse().unwrap());
            assert_eq!(found, network.parse::<IpAddr>().unwrap(), "{address}");
        };
        check(32, 64, "192.0.2.77", "192.0.2.77");
        check(24, 64, "192.0.2.77", "192.0.2.0");
        check(24, 64, "::ffff:192.0.2.77", "192.0.2.0");
        check(32, 64, "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::");
        check(32, 128, "2001:db8::1", "2001:db8::1");
        check(1, 1, "255.0.0.1", "128.0.0.0");
    }
}
