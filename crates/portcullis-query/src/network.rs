use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A network in CIDR form. IPv4 addresses that are mapped into IPv6 count as IPv4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    prefix: u8,
}

impl Network {
    /// The network of `address` with so many leading bits; none if there are too many.
    pub fn new(address: IpAddr, prefix: u8) -> Option<Network> {
        let address = address.to_canonical();
        let bits = if address.is_ipv4() { 32 } else { 128 };
        (prefix <= bits).then(|| Network { address: masked(address, prefix), prefix })
    }

    /// `192.0.2.0/24`, or an address alone, which is the network of itself.
    pub fn parse(text: &str) -> Option<Network> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix.parse().ok()?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let all = if address.to_canonical().is_ipv4() { 32 } else { 128 };
        Network::new(address, prefix.unwrap_or(all))
    }

    /// True if the address is in it.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.address.is_ipv4() && masked(address, self.prefix) == self.address
    }

    /// Its first address.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// The number of its leading bits.
    pub fn prefix(&self) -> u8 {
        self.prefix
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

fn masked(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
            Ipv4Addr::from_bits(v4.to_bits() & mask).into()
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
            Ipv6Addr::from_bits(v6.to_bits() & mask).into()
        }
    }
}
