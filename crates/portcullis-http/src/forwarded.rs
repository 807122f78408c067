//! Client addresses behind proxies: `X-Forwarded-For` and `Forwarded` (RFC 7239).
//!
//! Each proxy adds the address it got the request from at the right end. So the list is walked from the
//! right, starting with the peer of the socket, as long as the address that made an entry is trusted. What
//! stands left of the first untrusted address was written by that client and means nothing.
//!
//! ```
//! use portcullis_http::forwarded;
//!
//! let trusted = |ip: std::net::IpAddr| ip.to_string().starts_with("10.");
//! let peer = "10.0.0.1".parse().unwrap();
//! let client = forwarded::x_forwarded_for([&b"6.6.6.6, 192.0.2.7, 10.0.0.2"[..]], peer, trusted);
//! assert_eq!(client.to_string(), "192.0.2.7");
//! ```

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// The most entries that are walked. Longer chains of trusted proxies do not exist; what is left is not
/// looked at.
const HOPS_MAX: usize = 64;

/// The client's address by the `X-Forwarded-For` fields `values`, in the order received. `peer` is the
/// socket's peer; `trusted` tells whose entries count. An entry that is no address ends the walk: the last
/// trusted address is the client.
pub fn x_forwarded_for<'a, I>(values: I, peer: IpAddr, trusted: impl Fn(IpAddr) -> bool) -> IpAddr
where
    I: IntoIterator<Item = &'a [u8]>,
    I::IntoIter: DoubleEndedIterator,
{
    let entries = values.into_iter().rev().flat_map(|value| value.rsplit(|&b| b == b','));
    walk(entries.map(parse_node), peer, trusted)
}

/// The client's address by the `Forwarded` fields `values`, like [`x_forwarded_for`]. A field that does not
/// follow the grammar ends the walk, as do `unknown` and names beginning with `_`.
pub fn forwarded<'a, I>(values: I, peer: IpAddr, trusted: impl Fn(IpAddr) -> bool) -> IpAddr
where
    I: IntoIterator<Item = &'a [u8]>,
    I::IntoIter: DoubleEndedIterator,
{
    let entries = values.into_iter().rev().flat_map(|value| {
        let elements = forwarded_for(value).unwrap_or_else(|| vec![None]);
        elements.into_iter().rev()
    });
    walk(entries, peer, trusted)
}

fn walk(
    entries: impl Iterator<Item = Option<IpAddr>>,
    peer: IpAddr,
    trusted: impl Fn(IpAddr) -> bool,
) -> IpAddr {
    let mut client = peer.to_canonical();
    for entry in entries.take(HOPS_MAX) {
        if !trusted(client) {
            break;
        }
        match entry {
            Some(address) => client = address,
            None => break,
        }
    }
    client
}

/// An address as proxies write it: bare, with a port, in brackets. IPv4 in IPv6 form becomes IPv4.
pub fn parse_node(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text.trim_ascii()).ok()?;
    let ip = match text.strip_prefix('[') {
        Some(rest) => {
            let (inside, port) = rest.split_once(']')?;
            let plain =
                port.is_empty() || port.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok());
            IpAddr::V6(inside.parse::<Ipv6Addr>().ok().filter(|_| plain)?)
        }
        None => match text.parse::<IpAddr>() {
            Ok(ip) => ip,
            Err(_) => text.parse::<SocketAddr>().ok()?.ip(),
        },
    };
    Some(ip.to_canonical())
}

/// The `for` of each element of a `Forwarded` value (`None` where there is none, or it is no address), left
/// to right. `None` if the value does not follow the grammar.
fn forwarded_for(value: &[u8]) -> Option<Vec<Option<IpAddr>>> {
    let mut elements = vec![None];
    let mut rest = value;
    loop {
        rest = rest.trim_ascii_start();
        match rest {
            [] => return Some(elements),
            [b',', after @ ..] => {
                elements.push(None);
                rest = after;
            }
            [b';', after @ ..] => rest = after,
            _ => {
                let equals =
                    rest.iter().position(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_')))?;
                let (name, after) = rest.split_at(equals);
                let (node, after) = pair_value(after.strip_prefix(b"=")?)?;
                if name.eq_ignore_ascii_case(b"for") {
                    *elements.last_mut()? = parse_node(node);
                }
                rest = after.trim_ascii_start();
                if !matches!(rest.first(), None | Some(b',' | b';')) {
                    return None;
                }
            }
        }
    }
}

/// A token or a quoted string without escapes (nothing that is written there needs one), and what follows it.
fn pair_value(text: &[u8]) -> Option<(&[u8], &[u8])> {
    match text {
        [b'"', inside @ ..] => {
            let end = memchr::memchr2(b'"', b'\\', inside)?;
            (inside[end] == b'"').then(|| (&inside[..end], &inside[end + 1..]))
        }
        _ => {
            let end = text
                .iter()
                .position(|b| matches!(b, b',' | b';' | b' ' | b'\t' | b'"'))
                .unwrap_or(text.len());
            Some(text.split_at(end))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trusted(ip: IpAddr) -> bool {
        matches!(ip, IpAddr::V4(v4) if v4.octets()[0] == 10) || ip == IpAddr::V6(Ipv6Addr::LOCALHOST)
    }

    #[track_caller]
    fn check(values: &[&str], peer: &str, expected: &str) {
        let fields: Vec<&[u8]> = values.iter().map(|value| value.as_bytes()).collect();
        let client = x_forwarded_for(fields, peer.parse().unwrap(), trusted);
        assert_eq!(client, expected.parse::<IpAddr>().unwrap(), "{values:?}");
    }

    #[track_caller]
    fn check_forwarded(values: &[&str], expected: &str) {
        let fields: Vec<&[u8]> = values.iter().map(|value| value.as_bytes()).collect();
        let client = forwarded(fields, "10.0.0.1".parse().unwrap(), trusted);
        assert_eq!(client, expected.parse::<IpAddr>().unwrap(), "{values:?}");
    }

    #[test]
    fn the_list_is_walked_from_the_right() {
        check(&[], "10.0.0.1", "10.0.0.1");
        check(&["1.1.1.1"], "2.2.2.2", "2.2.2.2");
        check(&["1.1.1.1"], "10.0.0.1", "1.1.1.1");
        check(&["6.6.6.6, 1.1.1.1"], "10.0.0.1", "1.1.1.1");
        check(&["6.6.6.6,1.1.1.1 , 10.0.0.9"], "10.0.0.1", "1.1.1.1");
        check(&["6.6.6.6", "1.1.1.1", "10.0.0.9,10.0.0.8"], "::ffff:10.0.0.1", "1.1.1.1");
        check(&["1.1.1.1:4711"], "10.0.0.1", "1.1.1.1");
        check(&["[2001:db8::1]:80, ::1"], "10.0.0.1", "2001:db8::1");
        check(&["2001:db8::1"], "10.0.0.1", "2001:db8::1");
        check(&["::ffff:1.2.3.4"], "10.0.0.1", "1.2.3.4");
        check(&["10.0.0.3, 10.0.0.2"], "10.0.0.1", "10.0.0.3");
        check(&["1.1.1.1, junk, 10.0.0.2"], "10.0.0.1", "10.0.0.2");
        check(&["1.1.1.1,"], "10.0.0.1", "10.0.0.1");
        check(&["[::1"], "10.0.0.1", "10.0.0.1");
        check(&["[2001:db8::1]x"], "10.0.0.1", "10.0.0.1");
        check(&[&format!("1.1.1.1{}", ",10.0.0.2".repeat(100))], "10.0.0.1", "10.0.0.2");
    }

    #[test]
    fn forwarded_elements() {
        check_forwarded(&["for=1.1.1.1"], "1.1.1.1");
        check_forwarded(&["For=\"[2001:db8::1]:4711\""], "2001:db8::1");
        check_forwarded(&["for=6.6.6.6;proto=http, proto=https;for=\"1.1.1.1:80\";by=x"], "1.1.1.1");
        check_forwarded(&["for=6.6.6.6", "for=1.1.1.1, for=10.0.0.2 ; host=\"a,b;c\""], "1.1.1.1");
        check_forwarded(&["for=1.1.1.1, for=unknown"], "10.0.0.1");
        check_forwarded(&["for=1.1.1.1, for=_x"], "10.0.0.1");
        check_forwarded(&["for=1.1.1.1, proto=http"], "10.0.0.1");
        check_forwarded(&["for=6.6.6.6, for=\"1.1.1.1"], "10.0.0.1");
        check_forwarded(&["for=1.1.1.1 x"], "10.0.0.1");
        check_forwarded(&["for"], "10.0.0.1");
        check_forwarded(&["for=\"1.1\\.1.1\""], "10.0.0.1");
    }
}
