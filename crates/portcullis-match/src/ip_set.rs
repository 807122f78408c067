//! `@ipMatch`, `@ipMatchFromFile`: is the address in one of these networks?

use std::fmt;
use std::net::IpAddr;

/// A set of IPv4 and IPv6 networks.
///
/// Kept as sorted, disjoint address ranges, so that a look-up is a binary search whatever the number of networks.
/// An IPv4 address and its IPv4-mapped IPv6 form (`::ffff:192.0.2.1`) are the same address.
///
/// ```
/// use portcullis_match::IpSet;
///
/// let set = IpSet::parse("192.0.2.0/24, 2001:db8::/32,::1").unwrap();
/// assert!(set.contains("192.0.2.77".parse().unwrap()));
/// assert!(!set.contains("192.0.3.1".parse().unwrap()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IpSet {
    /// Inclusive, rising, with a gap between any two.
    ranges: Vec<(u128, u128)>,
}

/// What is wrong with a list of networks, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IpSetError {
    /// Byte offset into the argument.
    pub offset: usize,
    /// One sentence fragment for the operator, without the offset.
    pub message: String,
}

impl fmt::Display for IpSetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at byte {} of the argument)", self.message, self.offset)
    }
}

impl std::error::Error for IpSetError {}

impl IpSet {
    /// Reads networks between commas: an address, or an address with the length of its prefix (`10.0.0.0/8`). Bits
    /// behind the prefix are ignored. Blanks around a network and empty items are allowed.
    pub fn parse(text: &str) -> Result<IpSet, IpSetError> {
        let mut ranges = Vec::new();
        let mut offset = 0;
        for item in text.split(',') {
            push_network(&mut ranges, item, offset)?;
            offset += item.len() + 1;
        }
        Ok(IpSet::of_ranges(ranges))
    }

    /// Reads a file: a network per line; empty lines and lines that begin with `#` are none.
    pub fn parse_file(text: &str) -> Result<IpSet, IpSetError> {
        let mut ranges = Vec::new();
        let mut offset = 0;
        for line in text.split('\n') {
            if !line.trim_start().starts_with('#') {
                push_network(&mut ranges, line, offset)?;
            }
            offset += line.len() + 1;
        }
        Ok(IpSet::of_ranges(ranges))
    }

    /// True if a network of the set has `address`.
    pub fn contains(&self, address: IpAddr) -> bool {
        let value = to_value(address);
        let after = self.ranges.partition_point(|&(start, _)| start <= value);
        after.checked_sub(1).is_some_and(|index| value <= self.ranges[index].1)
    }

    /// True if no network was given.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    fn of_ranges(mut ranges: Vec<(u128, u128)>) -> IpSet {
        ranges.sort_unstable();
        let mut merged: Vec<(u128, u128)> = Vec::with_capacity(ranges.len());
        for (start, end) in ranges {
            match merged.last_mut() {
                Some(last) if start <= last.1.saturating_add(1) => last.1 = last.1.max(end),
                _ => merged.push((start, end)),
            }
        }
        IpSet { ranges: merged }
    }
}

fn push_network(ranges: &mut Vec<(u128, u128)>, item: &str, offset: usize) -> Result<(), IpSetError> {
    let network = item.trim();
    if network.is_empty() {
        return Ok(());
    }
    let offset = offset + (item.len() - item.trim_start().len());
    let (text, prefix) = match network.split_once('/') {
        Some((text, prefix)) => (text, Some(prefix)),
        None => (network, None),
    };
    let Ok(address) = text.parse::<IpAddr>() else {
        return Err(IpSetError { offset, message: format!("`{text}` is not an IP address") });
    };
    let width: u32 = if address.is_ipv4() { 32 } else { 128 };
    let prefix = match prefix {
        None => width,
        Some(digits) => match digits.parse::<u32>() {
            Ok(length) if length <= width && digits.bytes().all(|b| b.is_ascii_digit()) => length,
            _ => {
                let message = format!("`{digits}` is not a prefix length from 0 to {width}");
                return Err(IpSetError { offset: offset + text.len() + 1, message });
            }
        },
    };
    let host = 1u128.checked_shl(width - prefix).map_or(u128::MAX, |size| size - 1);
    let value = to_value(address);
    ranges.push((value & !host, value | host));
    Ok(())
}

/// IPv4 addresses sit where IPv6 has the mapped ones.
fn to_value(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(networks: &str, inside: &[&str], outside: &[&str]) {
        let set = IpSet::parse(networks).unwrap();
        for address in inside {
            assert!(set.contains(address.parse().unwrap()), "{address} in {networks}");
        }
        for address in outside {
            assert!(!set.contains(address.parse().unwrap()), "{address} not in {networks}");
        }
    }

    #[test]
    fn networks() {
        check("127.0.0.1,::1", &["127.0.0.1", "::1"], &["127.0.0.2", "::2", "::", "0.0.0.1"]);
        check("10.1.2.3/8", &["10.0.0.0", "10.255.255.255"], &["9.255.255.255", "11.0.0.0"]);
        check("0.0.0.0/0", &["0.0.0.0", "255.255.255.255"], &["::1", "2001:db8::1"]);
        check("::/0", &["::1", "ffff::", "192.0.2.1"], &[]);
        check("192.0.2.1/32", &["192.0.2.1", "::ffff:192.0.2.1"], &["192.0.2.0", "192.0.2.2"]);
        check(" 10.0.0.0/31 , 10.0.0.2/31,, 10.0.0.1", &["10.0.0.0", "10.0.0.3"], &["10.0.0.4"]);
        check("fe80::/10", &["fe80::1", "febf::1"], &["fec0::1", "fe7f::1"]);
        check("", &[], &["0.0.0.0", "::"]);
    }

    #[test]
    fn neighbours_merge() {
        let set = IpSet::parse("10.0.0.0/9,10.128.0.0/9,10.3.0.0/16").unwrap();
        assert_eq!(set, IpSet::parse("10.0.0.0/8").unwrap());
    }

    #[test]
    fn files() {
        let set = IpSet::parse_file("# office\r\n192.0.2.0/24\r\n\n2001:db8::/32\n").unwrap();
        assert!(set.contains("192.0.2.9".parse().unwrap()));
        assert_eq!(IpSet::parse_file("# x\n\n10.0.0.0/8\nbad").unwrap_err().offset, 16);
    }

    #[test]
    fn errors_point_at_the_culprit() {
        let check = |text: &str, offset: usize| {
            let error = IpSet::parse(text).unwrap_err();
            assert_eq!(error.offset, offset, "{text}: {error}");
        };
        check("300.1.1.1", 0);
        check("10.0.0.1, host", 10);
        check("10.0.0.0/33", 9);
        check("10.0.0.0/+8", 9);
        check("10.0.0.0/", 9);
        check("::1/129", 4);
        check("010.0.0.1", 0);
    }
}
