//! Addresses of clients, and networks.

use std::net::IpAddr;

/// The source of client addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientAddress {
    /// Networks of trusted proxies.
    pub trusted_proxies: Vec<Network>,
    /// The header to read.
    pub header: Option<AddressHeader>,
    /// Headers that only a proxy may send are forwarded from all clients.
    pub passes_identity_headers: bool,
    /// The `X-Request-Id` of a trusted proxy is the id of its request.
    pub keeps_request_ids: bool,
}

impl ClientAddress {
    /// Returns true if this peer is a trusted proxy. A v4 address that arrives v6-mapped counts as
    /// v4.
    pub fn trusts(&self, peer: IpAddr) -> bool {
        self.trusted_proxies.iter().any(|network| network.contains(peer))
    }
}

/// Headers that name the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressHeader {
    /// `X-Forwarded-For`.
    XForwardedFor,
    /// `Forwarded`, RFC 7239.
    Forwarded,
}

/// An address block such as `10.0.0.0/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network {
    pub(crate) address: IpAddr,
    pub(crate) prefix: u8,
}

impl Network {
    /// An address in it.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Bits that its addresses agree in.
    pub fn prefix(&self) -> u8 {
        self.prefix
    }

    /// Returns true if the address lies in it.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.prefix)).unwrap_or(0);
                u32::from(network) & mask == u32::from(address) & mask
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.prefix)).unwrap_or(0);
                u128::from(network) & mask == u128::from(address) & mask
            }
            _ => false,
        }
    }
}

impl std::str::FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr =
            address.parse().map_err(|_| format!("`{text}` is not an address or a network"))?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            None => bits,
            Some(prefix) => prefix
                .parse()
                .ok()
                .filter(|prefix| *prefix <= bits)
                .ok_or_else(|| format!("the prefix of `{text}` is not a number from 0 to {bits}"))?,
        };
        Ok(Network { address, prefix })
    }
}
