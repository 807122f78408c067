use std::net::{Ipv4Addr, Ipv6Addr};

/// The longest host that is read.
pub const HOST_BYTES_MAX: usize = 128;

/// A host and its port.
#[derive(Clone, Copy, Debug)]
pub struct Host {
    name: [u8; HOST_BYTES_MAX],
    len: usize,
    /// The address, if the host is one.
    pub address: Option<Address>,
    /// The port, if one is given.
    pub port: Option<u16>,
    /// Letters or digits that are not ASCII stand for ASCII ones.
    pub is_disguised: bool,
}

/// An address, and how it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address {
    /// Four numbers, or one of the notations that C libraries and browsers take: `is_odd`.
    V4 {
        /// The address.
        address: Ipv4Addr,
        /// Octal, hexadecimal, fewer than four numbers, or too large ones.
        is_odd: bool,
    },
    /// IPv6.
    V6(Ipv6Addr),
}

impl Address {
    /// The IPv4 address that it is or holds (mapped, compatible, NAT64, 6to4).
    pub fn to_v4(self) -> Option<Ipv4Addr> {
        match self {
            Address::V4 { address, .. } => Some(address),
            Address::V6(address) => {
                let parts = address.segments();
                let low = || {
                    let [a, b] = parts[6].to_be_bytes();
                    let [c, d] = parts[7].to_be_bytes();
                    Ipv4Addr::new(a, b, c, d)
                };
                match parts {
                    [0, 0, 0, 0, 0, 0xFFFF, _, _] | [0x64, 0xFF9B, 0, 0, 0, 0, _, _] => Some(low()),
                    [0, 0, 0, 0, 0, 0, high, _] if high != 0 => Some(low()),
                    [0x2002, high, lower, ..] => {
                        let ([a, b], [c, d]) = (high.to_be_bytes(), lower.to_be_bytes());
                        Some(Ipv4Addr::new(a, b, c, d))
                    }
                    _ => None,
                }
            }
        }
    }
}

impl Host {
    /// Reads `host:port`. Percent escapes are decoded, letters become lower case, a last dot goes.
    pub fn read(text: &[u8]) -> Host {
        let mut host =
            Host { name: [0; HOST_BYTES_MAX], len: 0, address: None, port: None, is_disguised: false };
        let (name, port) = split_port(text);
        host.port = port;
        host.fill(name);
        while host.name().ends_with(b".") {
            host.len -= 1;
        }
        host.address = match host.name() {
            [b'[', inner @ .., b']'] => v6(inner),
            name => v4(name),
        };
        host
    }

    /// The name, lower case.
    pub fn name(&self) -> &[u8] {
        &self.name[..self.len]
    }

    fn push(&mut self, b: u8) {
        if self.len < HOST_BYTES_MAX && !matches!(b, b'\t' | b'\n' | b'\r') {
            self.name[self.len] = b.to_ascii_lowercase();
            self.len += 1;
        }
    }

    fn fill(&mut self, mut rest: &[u8]) {
        while let Some((&first, tail)) = rest.split_first() {
            let hex = |b: u8| (b as char).to_digit(16).map(|digit| digit as u8);
            match rest {
                [b'%', a, b, after @ ..] if let (Some(a), Some(b)) = (hex(*a), hex(*b)) => {
                    self.push(a << 4 | b);
                    rest = after;
                    continue;
                }
                [0xC2, 0xAD, after @ ..] => {
                    self.is_disguised = true;
                    rest = after;
                    continue;
                }
                [a @ 0xE0..=0xEF, b @ 0x80..=0xBF, c @ 0x80..=0xBF, after @ ..] => {
                    let code = u32::from(a & 15) << 12 | u32::from(b & 63) << 6 | u32::from(c & 63);
                    if let Some((one, two)) = plain(code) {
                        self.push(one);
                        two.into_iter().for_each(|two| self.push(two));
                        self.is_disguised = true;
                        rest = after;
                        continue;
                    }
                }
                _ => {}
            }
            self.push(first);
            rest = tail;
        }
    }
}

/// The ASCII that IDNA maps a character to: enclosed and full-width letters and digits, and dots.
fn plain(code: u32) -> Option<(u8, Option<u8>)> {
    let one = |b: u32| Some((b as u8, None));
    match code {
        0x2460..=0x2468 => one(code - 0x2460 + u32::from(b'1')),
        0x2469..=0x2472 => Some((b'1', Some((code - 0x2469) as u8 + b'0'))),
        0x24EA | 0x24FF => one(u32::from(b'0')),
        0x24B6..=0x24CF => one(code - 0x24B6 + u32::from(b'a')),
        0x24D0..=0x24E9 => one(code - 0x24D0 + u32::from(b'a')),
        0x3002 | 0xFF61 | 0xFF0E => one(u32::from(b'.')),
        0xFF10..=0xFF19 => one(code - 0xFF10 + u32::from(b'0')),
        0xFF21..=0xFF3A => one(code - 0xFF21 + u32::from(b'a')),
        0xFF41..=0xFF5A => one(code - 0xFF41 + u32::from(b'a')),
        0x2080..=0x2089 => one(code - 0x2080 + u32::from(b'0')),
        0x2070 | 0x2074..=0x2079 => one(code - 0x2070 + u32::from(b'0')),
        _ => None,
    }
}

fn split_port(text: &[u8]) -> (&[u8], Option<u16>) {
    let close = memchr::memchr(b']', text).map_or(0, |at| at + 1);
    let Some(colon) = memchr::memchr(b':', &text[close..]).map(|at| at + close) else { return (text, None) };
    let digits = text[colon + 1..].iter().take(6).take_while(|b| b.is_ascii_digit());
    let port = digits.fold(0u32, |port, b| port * 10 + u32::from(b - b'0'));
    (&text[..colon], u16::try_from(port).ok().filter(|port| *port > 0))
}

fn v6(text: &[u8]) -> Option<Address> {
    let text = &text[..memchr::memchr(b'%', text).unwrap_or(text.len())];
    std::str::from_utf8(text).ok()?.parse().ok().map(Address::V6)
}

/// An address in any notation that `inet_aton` takes; numbers that are too large wrap, as some readers do.
fn v4(text: &[u8]) -> Option<Address> {
    let mut parts = [0u64; 4];
    let mut count = 0;
    let mut is_odd = false;
    for part in text.split(|&b| b == b'.') {
        let (value, is_decimal) = number(part)?;
        is_odd |= !is_decimal;
        *parts.get_mut(count)? = value;
        count += 1;
    }
    is_odd |= count < 4 || parts.iter().any(|&part| part > 255);
    let last = *parts.get(count.checked_sub(1)?)?;
    let mut address = last & (u64::MAX >> (24 + 8 * count));
    for (index, part) in parts[..count - 1].iter().enumerate() {
        address |= (part & 0xFF) << (24 - 8 * index);
    }
    Some(Address::V4 { address: Ipv4Addr::from(address as u32), is_odd })
}

/// A number, and whether it is plain decimal.
fn number(text: &[u8]) -> Option<(u64, bool)> {
    let (digits, radix) = match text {
        [b'0', b'x', digits @ ..] => (digits, 16),
        [b'0', digits @ ..] if !digits.is_empty() => (digits, 8),
        digits => (digits, 10),
    };
    if digits.is_empty() && radix != 16 || digits.len() > 24 {
        return None;
    }
    let value = digits.iter().try_fold(0u64, |value, &b| {
        let digit = (b as char).to_digit(radix)?;
        Some(value.wrapping_mul(u64::from(radix)).wrapping_add(u64::from(digit)))
    })?;
    Some((value, radix == 10))
}
