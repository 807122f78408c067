use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use portcullis_access::Code;

use crate::checked::network::Network;

/// Access lists. `bypass` wins over `allow`, `allow` over `deny`.
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
    /// The action on requests that are to be refused.
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
    /// Lists that are kept up to date.
    pub lists: Vec<String>,
    /// By country.
    pub countries: Vec<Code>,
    /// By continent.
    pub continents: Vec<Code>,
    /// By autonomous system.
    pub asns: Vec<u32>,
}

impl Clients {
    /// Returns true if the location of clients has to be known.
    pub fn asks_where(&self) -> bool {
        !(self.countries.is_empty() && self.continents.is_empty() && self.asns.is_empty())
    }
}

/// A rate limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// Its name, unique in its site: letters, digits, `-`, `_`, `.`.
    pub name: String,
    /// The parts of the key that has a bucket of its own; empty: one bucket for all.
    pub key: Vec<KeyPart>,
    /// Requests in each `per`, at least 1.
    pub rate: u32,
    /// The time for them.
    pub per: Duration,
    /// Requests at once, at least 1.
    pub burst: u32,
    /// Methods that are counted; empty: all.
    pub methods: Vec<String>,
    /// Clients that are counted; none: all.
    pub only: Option<Clients>,
    /// Clients that are not counted.
    pub except: Vec<Network>,
    /// The prefix lengths by which addresses count as one client.
    pub prefixes: Prefixes,
    /// The action on a request that comes too early.
    pub action: RefuseAction,
    /// The status it is answered with.
    pub status: u16,
    /// Counted together with other nodes; what happens while they cannot be reached.
    pub shared: Option<Unavailable>,
    /// Buckets at one time.
    pub keys_max: usize,
}

/// The treatment of requests under a shared rate limit while the store is unreachable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// Each node counts for itself.
    Local,
    /// They pass.
    Open,
    /// They are refused.
    Closed,
}

/// The store in which nodes share rate limits.
#[derive(Clone, PartialEq, Eq)]
pub struct LimitStore {
    /// `redis://`, `rediss://` or `memcached://`.
    pub url: String,
    /// Before every key.
    pub prefix: String,
}

impl std::fmt::Debug for LimitStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The URL may have a password.
        f.debug_struct("LimitStore").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

/// Something of a request that tells it from others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyPart {
    /// The key that a rule sets (`ctl:rateLimit`). Requests for which no rule sets one are not counted.
    Rule,
    /// The client's address, cut to [`RateLimit::prefixes`].
    Client,
    /// The path as a server resolves it.
    Path,
    /// The value of a header.
    Header(String),
    /// The value of a cookie.
    Cookie(String),
    /// The country of the client.
    Country,
    /// Its continent.
    Continent,
    /// Its autonomous system.
    Asn,
}

/// The action on a request that is to be refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefuseAction {
    /// It is refused.
    Block,
    /// It passes, counted and with an event.
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
    /// The network that the client is taken for, as a person writes it: an address, or with the length of a
    /// prefix.
    pub fn show(self, address: IpAddr) -> String {
        let network = self.network(address);
        match (network, self) {
            (IpAddr::V4(_), Prefixes { ipv4: 32, .. }) | (IpAddr::V6(_), Prefixes { ipv6: 128, .. }) => {
                network.to_string()
            }
            (IpAddr::V4(_), Prefixes { ipv4: bits, .. }) | (IpAddr::V6(_), Prefixes { ipv6: bits, .. }) => {
                format!("{network}/{bits}")
            }
        }
    }

    /// The first address of the network that the client is taken for. A v4 address that arrives v6-mapped
    /// counts as v4.
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
        let show = |address: &str| Prefixes { ipv4: 32, ipv6: 64 }.show(address.parse().unwrap());
        assert_eq!((show("192.0.2.7"), show("2001:db8::7")), ("192.0.2.7".into(), "2001:db8::/64".into()));
        check(32, 64, "192.0.2.77", "192.0.2.77");
        check(24, 64, "192.0.2.77", "192.0.2.0");
        check(24, 64, "::ffff:192.0.2.77", "192.0.2.0");
        check(32, 64, "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::");
        check(32, 128, "2001:db8::1", "2001:db8::1");
        check(1, 1, "255.0.0.1", "128.0.0.0");
    }
}
