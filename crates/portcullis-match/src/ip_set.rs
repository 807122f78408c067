//! `@ipMatch`, `@ipMatchFromFile`, lists of clients: is the address in one of these networks?

use std::fmt;
use std::net::IpAddr;

use crate::ranges::Ranges;

/// A set of IPv4 and IPv6 networks.
///
/// Kept as sorted, disjoint address ranges: 8 bytes for one of IPv4, 32 for one of IPv6, and up to 512 KB of
/// slots for each family. A look-up among a million spread ones takes some tens of nanoseconds. An IPv4
/// address and its IPv4-mapped IPv6 form (`::ffff:192.0.2.1`) are the same address.
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
    v4: Ranges<u32>,
    /// Those of IPv4 are not looked for here, though ranges may cover them.
    v6: Ranges<u128>,
}

/// An error in a list of networks, with its place.
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

/// `::ffff:0.0.0.0` and `::ffff:255.255.255.255`.
const MAPPED: (u128, u128) = (0xffff << 32, 0xffff << 32 | u32::MAX as u128);

impl IpSet {
    /// Reads networks between commas: an address, or an address with the length of its prefix (`10.0.0.0/8`).
    /// Bits behind the prefix are ignored. Blanks around a network and empty items are allowed.
    pub fn parse(text: &str) -> Result<IpSet, IpSetError> {
        let mut ranges = Vec::new();
        let mut offset = 0;
        for item in text.split(',') {
            push_network(&mut ranges, item, offset)?;
            offset += item.len() + 1;
        }
        Ok(IpSet::of_ranges(ranges))
    }

    /// Reads a file: a network or a range (`192.0.2.1-192.0.2.9`) per line; what follows `#` or `;` is a
    /// comment.
    pub fn parse_file(text: &str) -> Result<IpSet, IpSetError> {
        let mut ranges = Vec::new();
        let mut offset = 0;
        for line in text.split('\n') {
            let item = line.split(['#', ';']).next().unwrap_or_default();
            match item.split_once('-') {
                Some((first, last)) => ranges.push(parse_range(item, first, last, offset)?),
                None => push_network(&mut ranges, item, offset)?,
            }
            offset += line.len() + 1;
        }
        Ok(IpSet::of_ranges(ranges))
    }

    /// True if a network of the set has `address`.
    pub fn contains(&self, address: IpAddr) -> bool {
        match address.to_canonical() {
            IpAddr::V4(v4) => self.v4.contains(v4.to_bits()),
            IpAddr::V6(v6) => self.v6.contains(v6.to_bits()),
        }
    }

    /// True if no network was given.
    pub fn is_empty(&self) -> bool {
        self.ranges() == 0
    }

    /// Disjoint ranges of addresses that the networks come to.
    pub fn ranges(&self) -> usize {
        self.v4.len() + self.v6.len()
    }

    /// The share of the addresses of a network that are in the set, 0 to 1.
    pub fn share_of(&self, network: IpAddr, prefix: u8) -> f64 {
        let (start, end) = range(network, prefix.into());
        let length = |start: u128, end: u128| (end - start) as f64 + 1.0;
        let part = |range: (u128, u128)| {
            let (first, last) = (range.0.max(start), range.1.min(end));
            if first > last { 0.0 } else { length(first, last) }
        };
        let mapped = |value: u32| to_value(IpAddr::V4(value.into()));
        let found: f64 = match network {
            IpAddr::V4(_) => self.v4.iter().map(|(first, last)| part((mapped(first), mapped(last)))).sum(),
            IpAddr::V6(_) => self.v6.iter().map(part).sum(),
        };
        found / length(start, end)
    }

    /// Networks by an address and the length of the prefix, which is cut to that of the address.
    pub fn of_networks(networks: impl IntoIterator<Item = (IpAddr, u8)>) -> IpSet {
        let ranges = networks.into_iter().map(|(address, prefix)| range(address, prefix.into()));
        IpSet::of_ranges(ranges.collect())
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
        let mapped = |&(start, end): &(u128, u128)| {
            let (start, end) = (start.max(MAPPED.0), end.min(MAPPED.1));
            // The low half of a mapped address is the address.
            (start <= end).then_some((start as u32, end as u32))
        };
        let v6 = merged.iter().copied().filter(|range| range.0 < MAPPED.0 || range.1 > MAPPED.1);
        IpSet { v4: Ranges::new(merged.iter().filter_map(mapped)), v6: Ranges::new(v6) }
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
    ranges.push(range(address, prefix));
    Ok(())
}

/// The range from an address to another of its family.
fn parse_range(item: &str, first: &str, last: &str, offset: usize) -> Result<(u128, u128), IpSetError> {
    let offset = offset + (item.len() - item.trim_start().len());
    let wrong = |message: String| IpSetError { offset, message };
    let parse = |text: &str| {
        let address = text.trim().parse::<IpAddr>();
        address.map_err(|_| wrong(format!("`{}` is not an IP address", text.trim())))
    };
    let (first, last) = (parse(first)?, parse(last)?);
    if first.is_ipv4() != last.is_ipv4() {
        return Err(wrong(format!("`{}` begins and ends in different families", item.trim())));
    }
    let (start, end) = (to_value(first), to_value(last));
    if start > end {
        return Err(wrong(format!("`{}` ends before it begins", item.trim())));
    }
    Ok((start, end))
}

fn range(address: IpAddr, prefix: u32) -> (u128, u128) {
    let width: u32 = if address.is_ipv4() { 32 } else { 128 };
    let host = 1u128.checked_shl(width.saturating_sub(prefix)).map_or(u128::MAX, |size| size - 1);
    let value = to_value(address);
    (value & !host, value | host)
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
    fn both_families_in_one_network() {
        check("::/0", &["::", "::fffe:ffff:ffff", "0.0.0.0", "255.255.255.255", "::1:0:0:0"], &[]);
        check("::ffff:0:0/95", &["192.0.2.1", "::fffe:192.0.2.1"], &["::1", "::1:0:0:0"]);
        assert_eq!(IpSet::parse("192.0.2.1,192.0.2.2,192.0.2.4,::1").unwrap().ranges(), 3);
        assert!(IpSet::parse("").unwrap().is_empty());
        let networks = [("192.0.2.1".parse().unwrap(), 24), ("::1".parse().unwrap(), 128)];
        assert_eq!(IpSet::of_networks(networks), IpSet::parse("192.0.2.0/24,::1").unwrap());
    }

    #[test]
    fn shares() {
        let set = IpSet::parse("10.0.0.0/8,2000::/4,fe80::/10").unwrap();
        let share = |network: &str, prefix| set.share_of(network.parse().unwrap(), prefix);
        assert_eq!(
            (share("0.0.0.0", 0), share("10.0.0.0", 7), share("10.1.0.0", 16)),
            (1.0 / 256.0, 0.5, 1.0)
        );
        assert_eq!(
            (share("2000::", 3), share("::", 0), share("192.0.2.0", 24)),
            (0.5, 1.0 / 16.0 + 1.0 / 1024.0, 0.0)
        );
    }

    #[test]
    fn neighbours_merge() {
        let set = IpSet::parse("10.0.0.0/9,10.128.0.0/9,10.3.0.0/16").unwrap();
        assert_eq!(set, IpSet::parse("10.0.0.0/8").unwrap());
    }

    #[test]
    fn files() {
        let set = IpSet::parse_file("# office\r\n192.0.2.0/24 ; SBL1\r\n\n2001:db8::/32 # home\n").unwrap();
        assert!(set.contains("192.0.2.9".parse().unwrap()));
        assert_eq!(IpSet::parse_file("# x\n\n10.0.0.0/8\nbad").unwrap_err().offset, 16);
    }

    #[test]
    fn ranges_in_files() {
        let set = IpSet::parse_file("192.0.2.1 - 192.0.2.9 # x\n2001:db8::1-2001:db8::2\n10.0.0.1-10.0.0.1")
            .unwrap();
        let has = |address: &str| set.contains(address.parse().unwrap());
        assert!(has("192.0.2.1") && has("192.0.2.9") && has("2001:db8::2") && has("10.0.0.1"));
        assert!(!has("192.0.2.0") && !has("192.0.2.10") && !has("2001:db8::3") && !has("10.0.0.2"));
        let wrong = |text: &str| IpSet::parse_file(text).unwrap_err().message;
        assert_eq!(wrong("192.0.2.9-192.0.2.1"), "`192.0.2.9-192.0.2.1` ends before it begins");
        assert_eq!(wrong("192.0.2.9-::1"), "`192.0.2.9-::1` begins and ends in different families");
        assert_eq!(wrong("192.0.2.9-"), "`` is not an IP address");
        assert_eq!(wrong("192.0.2.0/24-192.0.3.0"), "`192.0.2.0/24` is not an IP address");
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
