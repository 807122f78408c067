//! The PROXY protocol, versions 1 and 2: how a load balancer tells who connected to it. Sans-IO.
//!
//! The header comes before anything else on the connection, once. Read it only from peers that are trusted to
//! send it: anyone else could claim any address.
//!
//! ```
//! use portcullis_http::proxy_protocol::{self, Command};
//!
//! let input = b"PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\nGET / HTTP/1.1\r\n";
//! let header = proxy_protocol::parse(input, 4096)?.expect("a whole header");
//! assert_eq!(header.source(), Some("192.0.2.1:56324".parse().unwrap()));
//! assert_eq!(&input[header.len..], b"GET / HTTP/1.1\r\n");
//! # Ok::<(), proxy_protocol::Error>(())
//! ```

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The longest version 1 line, with its line end.
const V1_BYTES_MAX: usize = 107;
const V2_SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
const V2_FIXED: usize = 16;

/// A PROXY header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Bytes of the input it took.
    pub len: usize,
    /// The command of the sender.
    pub command: Command,
    /// Type-length-value fields of version 2, in the order sent.
    pub extras: Vec<Extra>,
}

/// The command of a [`Header`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// A connection of the sender's own, such as a health check: take the addresses of the socket.
    Local,
    /// A relayed connection whose addresses are not IP addresses, or not known: take those of the socket.
    Unknown,
    /// A relayed connection.
    Proxy {
        /// The address that connected to the sender.
        source: SocketAddr,
        /// The address that it connected to.
        destination: SocketAddr,
    },
}

/// A type-length-value field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extra {
    /// The type: 0x01 ALPN, 0x02 host name (SNI), 0x05 unique id, 0x20 TLS, and others.
    pub kind: u8,
    /// The value.
    pub value: Vec<u8>,
}

impl Header {
    /// The address of the client, if the sender knows it.
    pub fn source(&self) -> Option<SocketAddr> {
        match self.command {
            Command::Proxy { source, .. } => Some(source),
            Command::Local | Command::Unknown => None,
        }
    }
}

/// The reason why a connection does not begin with a PROXY header. It is to be closed without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// Neither version's signature.
    NotProxyProtocol,
    /// A version 1 line that is too long, or not as the protocol says.
    MalformedLine,
    /// A version 2 header whose version, command, family or length is not as the protocol says.
    MalformedHeader,
    /// A version 2 header longer than the caller's limit.
    TooLong,
}

impl Error {
    /// The name used in logs and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Error::NotProxyProtocol => "not-proxy-protocol",
            Error::MalformedLine => "malformed-line",
            Error::MalformedHeader => "malformed-header",
            Error::TooLong => "too-long",
        }
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Error::NotProxyProtocol => "the connection does not begin with a PROXY header",
            Error::MalformedLine => "the PROXY line is malformed",
            Error::MalformedHeader => "the PROXY version 2 header is malformed",
            Error::TooLong => "the PROXY header exceeds its limit",
        })
    }
}

impl std::error::Error for Error {}

/// Looks for a header at the start of `buf`; `None` if more bytes are needed. `bytes_max` limits version 2
/// headers (4,096 is ample; the format allows 65,551); version 1 lines have their own limit of 107 bytes.
pub fn parse(buf: &[u8], bytes_max: usize) -> Result<Option<Header>, Error> {
    let starts = |signature: &[u8]| {
        let known = buf.len().min(signature.len());
        buf[..known] == signature[..known]
    };
    if starts(V2_SIGNATURE) {
        parse_v2(buf, bytes_max)
    } else if starts(b"PROXY ") {
        parse_v1(buf)
    } else {
        Err(Error::NotProxyProtocol)
    }
}

fn parse_v1(buf: &[u8]) -> Result<Option<Header>, Error> {
    let window = &buf[..buf.len().min(V1_BYTES_MAX)];
    let Some(feed) = memchr::memchr(b'\n', window) else {
        return if window.len() == V1_BYTES_MAX { Err(Error::MalformedLine) } else { Ok(None) };
    };
    let line = window[..feed].strip_suffix(b"\r").ok_or(Error::MalformedLine)?;
    let line = std::str::from_utf8(line).map_err(|_| Error::MalformedLine)?;
    let words: Vec<&str> = line.split(' ').collect();
    let command = match words[..] {
        ["PROXY", "UNKNOWN", ..] => Command::Unknown,
        ["PROXY", family @ ("TCP4" | "TCP6"), source, destination, source_port, destination_port] => {
            Command::Proxy {
                source: v1_address(family, source, source_port)?,
                destination: v1_address(family, destination, destination_port)?,
            }
        }
        _ => return Err(Error::MalformedLine),
    };
    Ok(Some(Header { len: feed + 1, command, extras: Vec::new() }))
}

fn v1_address(family: &str, address: &str, port: &str) -> Result<SocketAddr, Error> {
    let ip = match family {
        "TCP4" => address.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
        _ => address.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
    };
    let plain = port.len() <= 5
        && port.bytes().all(|b| b.is_ascii_digit())
        && (port == "0" || !port.starts_with('0'));
    let port = port.parse::<u16>().ok().filter(|_| plain);
    ip.zip(port).map(SocketAddr::from).ok_or(Error::MalformedLine)
}

fn parse_v2(buf: &[u8], bytes_max: usize) -> Result<Option<Header>, Error> {
    if let Some(&version_command) = buf.get(12)
        && !matches!(version_command, 0x20 | 0x21)
    {
        return Err(Error::MalformedHeader);
    }
    let Some(&[version_command, family, high, low]) =
        buf.get(12..V2_FIXED).and_then(|fixed| fixed.first_chunk())
    else {
        return Ok(None);
    };
    let len = V2_FIXED + usize::from(u16::from_be_bytes([high, low]));
    if len > bytes_max {
        return Err(Error::TooLong);
    }
    let Some(payload) = buf.get(V2_FIXED..len) else {
        return Ok(None);
    };
    if version_command == 0x20 {
        return Ok(Some(Header { len, command: Command::Local, extras: Vec::new() }));
    }
    // High half: address family. Low half: stream or datagram, which makes no difference here.
    let (command, rest) = match family {
        0x11 | 0x12 => v2_addresses(payload, |bytes: &[u8; 4]| IpAddr::V4(Ipv4Addr::from(*bytes)))?,
        0x21 | 0x22 => v2_addresses(payload, |bytes: &[u8; 16]| IpAddr::V6(Ipv6Addr::from(*bytes)))?,
        0x31 | 0x32 => (Command::Unknown, payload.get(216..).ok_or(Error::MalformedHeader)?),
        0x00 => (Command::Unknown, &[][..]),
        _ => return Err(Error::MalformedHeader),
    };
    Ok(Some(Header { len, command, extras: v2_extras(rest)? }))
}

fn v2_addresses<const N: usize>(
    payload: &[u8],
    ip: impl Fn(&[u8; N]) -> IpAddr,
) -> Result<(Command, &[u8]), Error> {
    let parts = payload.split_first_chunk::<N>().and_then(|(source, rest)| {
        let (destination, rest) = rest.split_first_chunk::<N>()?;
        let (ports, rest) = rest.split_first_chunk::<4>()?;
        Some((source, destination, ports, rest))
    });
    let (source, destination, &[s1, s0, d1, d0], rest) = parts.ok_or(Error::MalformedHeader)?;
    let source = SocketAddr::new(ip(source), u16::from_be_bytes([s1, s0]));
    let destination = SocketAddr::new(ip(destination), u16::from_be_bytes([d1, d0]));
    Ok((Command::Proxy { source, destination }, rest))
}

fn v2_extras(mut rest: &[u8]) -> Result<Vec<Extra>, Error> {
    let mut extras = Vec::new();
    while !rest.is_empty() {
        let (&[kind, high, low], after) = rest.split_first_chunk::<3>().ok_or(Error::MalformedHeader)?;
        let len = usize::from(u16::from_be_bytes([high, low]));
        let (value, after) = after.split_at_checked(len).ok_or(Error::MalformedHeader)?;
        extras.push(Extra { kind, value: value.to_vec() });
        rest = after;
    }
    Ok(extras)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy(source: &str, destination: &str) -> Command {
        Command::Proxy { source: source.parse().unwrap(), destination: destination.parse().unwrap() }
    }

    /// Parses `input` and every beginning of it: a beginning needs more or fails in the same way.
    #[track_caller]
    fn check(input: &[u8], expected: Result<(Command, usize), Error>) {
        let outcome = parse(input, 256).map(|header| header.expect("whole"));
        assert_eq!(outcome.as_ref().map(|header| (header.command, header.len)).map_err(|e| *e), expected);
        for cut in 0..input.len() {
            match parse(&input[..cut], 256) {
                Ok(None) => {}
                early => assert_eq!(early.map(Option::unwrap), outcome, "at {cut}"),
            }
        }
    }

    fn v2(version_command: u8, family: u8, payload: &[u8]) -> Vec<u8> {
        let mut out = V2_SIGNATURE.to_vec();
        out.extend([version_command, family]);
        out.extend((payload.len() as u16).to_be_bytes());
        out.extend(payload);
        out
    }

    #[test]
    fn version_1() {
        let ok = |command: Command, text: &str, rest: usize| {
            check(text.as_bytes(), Ok((command, text.len() - rest)))
        };
        ok(proxy("1.2.3.4:5", "6.7.8.9:65535"), "PROXY TCP4 1.2.3.4 6.7.8.9 5 65535\r\nGET", 3);
        ok(proxy("[::1]:0", "[2001:db8::2]:443"), "PROXY TCP6 ::1 2001:db8::2 0 443\r\n", 0);
        ok(Command::Unknown, "PROXY UNKNOWN\r\n", 0);
        ok(Command::Unknown, "PROXY UNKNOWN ff:: ff:: 1 2\r\n", 0);
        for text in [
            "PROXY TCP4 1.2.3.4 6.7.8.9 5 65536\r\n",
            "PROXY TCP4 1.2.3.4 6.7.8.9 05 6\r\n",
            "PROXY TCP4 1.2.3.4 6.7.8.9 +5 6\r\n",
            "PROXY TCP4 1.2.3.4 6.7.8.9 5\r\n",
            "PROXY TCP4  1.2.3.4 6.7.8.9 5 6\r\n",
            "PROXY TCP4 ::1 ::1 5 6\r\n",
            "PROXY TCP6 1.2.3.4 6.7.8.9 5 6\r\n",
            "PROXY TCP4 1.2.3.4 6.7.8.9 5 6\n",
            "PROXY \r\n",
        ] {
            check(text.as_bytes(), Err(Error::MalformedLine));
        }
        check(format!("PROXY UNKNOWN {}\r\n", "x".repeat(100)).as_bytes(), Err(Error::MalformedLine));
        check(b"GET / HTTP/1.1\r\n", Err(Error::NotProxyProtocol));
        check(b"\r\nGET", Err(Error::NotProxyProtocol));
    }

    #[test]
    fn version_2() {
        let v4 = [1, 2, 3, 4, 5, 6, 7, 8, 0, 9, 1, 187];
        check(&v2(0x21, 0x11, &v4), Ok((proxy("1.2.3.4:9", "5.6.7.8:443"), 28)));
        let mut v6 = [0u8; 36];
        (v6[15], v6[31], v6[33], v6[35]) = (1, 2, 3, 4);
        check(&v2(0x21, 0x21, &v6), Ok((proxy("[::1]:3", "[::2]:4"), 52)));
        check(&v2(0x20, 0x00, &[]), Ok((Command::Local, 16)));
        check(&v2(0x20, 0x11, &v4), Ok((Command::Local, 28)));
        check(&v2(0x21, 0x00, &[7; 5]), Ok((Command::Unknown, 21)));
        check(&v2(0x21, 0x31, &[0; 216]), Ok((Command::Unknown, 232)));
        check(&v2(0x21, 0x11, &v4[..11]), Err(Error::MalformedHeader));
        check(&v2(0x21, 0x41, &v4), Err(Error::MalformedHeader));
        check(&v2(0x31, 0x11, &v4), Err(Error::MalformedHeader));
        check(&v2(0x22, 0x11, &v4), Err(Error::MalformedHeader));
        check(&v2(0x21, 0x11, &[0; 241]), Err(Error::TooLong));
    }

    #[test]
    fn extras() {
        let mut payload = vec![1, 2, 3, 4, 5, 6, 7, 8, 0, 9, 1, 187];
        payload.extend([0x02, 0, 3, b'a', b'.', b'b', 0x05, 0, 0]);
        let header = parse(&v2(0x21, 0x11, &payload), 256).unwrap().unwrap();
        let expected = [Extra { kind: 2, value: b"a.b".to_vec() }, Extra { kind: 5, value: Vec::new() }];
        assert_eq!(header.extras, expected);
        payload.push(1);
        check(&v2(0x21, 0x11, &payload), Err(Error::MalformedHeader));
        payload.extend([0, 9, 0]);
        check(&v2(0x21, 0x11, &payload), Err(Error::MalformedHeader));
    }
}
