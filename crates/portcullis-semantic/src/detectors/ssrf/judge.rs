//! Classification of addresses, host names, schemes, ports and paths.

use std::net::Ipv4Addr;

use portcullis_lex::url::{Address, Host, Url};

use super::{LOOPBACK, METADATA, PRIVATE, SCHEME, SCHEME_RARE};
use crate::KindId;

pub(super) fn v4_kind(address: Ipv4Addr) -> Option<KindId> {
    match address.octets() {
        // What a cloud's machine asks of the host that it runs on: keys, names, time; nobody else is there.
        [169, 254, 169 | 170, _] | [168, 63, 129, 16] | [100, 100, 100, 200] | [192, 0, 0, 192] => {
            Some(METADATA)
        }
        [127 | 0, ..] => Some(LOOPBACK),
        // RFC 1918, 3927, 6598, 6890, 2544, and what RFC 1112 keeps for later.
        [10, ..]
        | [172, 16..=31, ..]
        | [192, 168, ..]
        | [169, 254, ..]
        | [100, 64..=127, ..]
        | [192, 0, 0, _]
        | [198, 18 | 19, ..]
        | [240..=255, ..] => Some(PRIVATE),
        _ => None,
    }
}

pub(super) fn v6_kind(address: Address) -> Option<KindId> {
    let Address::V6(address) = address else { return None };
    match address.segments() {
        // Of Amazon, Google and Oracle.
        [0xFD00, 0xEC2, ..] | [0xFD20, 0xCE, 0, 0, 0, 0, 0, 0x254] | [0xFD00, 0xC1, ..] => Some(METADATA),
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => Some(LOOPBACK),
        [0xFC00..=0xFDFF, ..] | [0xFE80..=0xFEBF, ..] => Some(PRIVATE),
        _ => None,
    }
}

/// Four numbers in a row among the labels of a name, or joined by hyphens in one of them.
pub(super) fn embedded(name: &[u8]) -> Option<Ipv4Addr> {
    let (mut octets, mut count) = ([0u8; 4], 0);
    let mut parts = name.split(|b| matches!(b, b'.' | b'-')).peekable();
    while let Some(part) = parts.next() {
        let is_number = (1..=3).contains(&part.len()) && part.iter().all(u8::is_ascii_digit);
        let value = part.iter().take(3).fold(0u32, |value, b| value * 10 + u32::from(b.wrapping_sub(b'0')));
        match u8::try_from(value) {
            Ok(octet) if is_number => {
                octets[count] = octet;
                count += 1;
            }
            _ => count = 0,
        }
        if count == 4 {
            // Something must follow: the numbers alone are an address.
            parts.peek()?;
            return Some(Ipv4Addr::from(octets));
        }
    }
    None
}

/// A number with a dot in it and a unit, a name or another number behind a slash: an identifier of a document
/// (DOI), a price per hour, a version. C libraries take two or three numbers for an address, too; that of the
/// machine itself, `127.1`, is no price.
pub(super) fn is_number(host: &[u8], tail: &[u8]) -> bool {
    const DIGITS_MAX: usize = 9;
    let is_plain =
        |part: &[u8]| (1..=DIGITS_MAX).contains(&part.len()) && part.iter().all(u8::is_ascii_digit);
    // `010.1`: eight times that.
    let is_octal = host.first() == Some(&b'0') && !host.starts_with(b"0.");
    let mut parts = host.split(|b| *b == b'.');
    let is_own = parts.clone().next() == Some(b"127");
    let count = parts.clone().count();
    // `0.0.0/x`: the address that stands for all of the machine's.
    let is_zero = host.iter().all(|b| matches!(b, b'0' | b'.'));
    (2..=3).contains(&count)
        && !is_own
        && !is_octal
        && !is_zero
        && parts.all(is_plain)
        && tail.strip_prefix(b"/").is_some_and(|unit| unit.first().is_some_and(u8::is_ascii_alphanumeric))
}

/// A local host is written as nobody who wants to be understood writes it: a last dot, capital letters within
/// the name, more or fewer slashes than two.
pub(super) fn is_oddly_written(text: &[u8], url: &Url, host: &[u8]) -> bool {
    let rest = &text[url.scheme.end as usize..url.span.end as usize];
    let slashes = rest.iter().skip(1).take_while(|b| matches!(b, b'/' | b'\\')).count();
    let name = &host[..memchr::memrchr(b':', host).unwrap_or(host.len())];
    slashes > 2 || name.ends_with(b".") || name.iter().skip(1).any(u8::is_ascii_uppercase)
}

/// A name without a domain, as hosts of a private network have.
pub(super) fn is_short(name: &[u8]) -> bool {
    name.len() >= 3
        && name[0].is_ascii_alphabetic()
        && name.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
}

pub(super) fn is_web(scheme: &[u8]) -> bool {
    [&b"http"[..], b"https", b"ws", b"wss", b"ftp"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
}

/// The scheme by which the host is asked: `http` of `git+http`.
pub(super) fn inner_scheme(scheme: &[u8]) -> &[u8] {
    &scheme[memchr::memrchr(b'+', scheme).map_or(0, |at| at + 1)..]
}

/// `http://unix:/var/run/docker.sock:/containers`: clients ask a socket of the machine itself.
pub(super) fn is_socket(text: &[u8], url: &Url) -> bool {
    url.authority.of(text).eq_ignore_ascii_case(b"unix:")
        && text.get(url.authority.end as usize) == Some(&b'/')
}

pub(super) fn is_outer(scheme: &[u8]) -> bool {
    [&b"jar"[..], b"url", b"feed", b"view-source"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
}

pub(super) fn scheme_kind(scheme: &[u8]) -> Option<KindId> {
    let is_one = |list: &[&str]| list.iter().any(|known| scheme.eq_ignore_ascii_case(known.as_bytes()));
    if is_one(&["gopher", "dict", "tftp", "local_file"]) {
        Some(SCHEME)
    } else if is_one(names!("ssrf", "service-schemes")) {
        Some(SCHEME_RARE)
    } else {
        None
    }
}

/// Ports of services that are not for browsers.
pub(super) fn is_service_port(port: u16) -> bool {
    const PORTS: &[u16] = &[
        22, 23, 25, 110, 143, 389, 445, 1433, 1521, 2049, 2181, 2375, 2376, 2379, 3306, 3389, 5432, 5672,
        5900, 5984, 6379, 6443, 8200, 8500, 9092, 9200, 9300, 10250, 11211, 15672, 27017,
    ];
    PORTS.contains(&port)
}

/// Those of them where databases listen, which consoles ask for by address.
pub(super) fn is_database_port(port: u16) -> bool {
    matches!(port, 1433 | 1521 | 3306 | 5432 | 27017)
}

/// Those of them whose service speaks HTTP to applications: search engines, document stores, consoles of
/// queues.
pub(super) fn speaks_http(port: u16) -> bool {
    matches!(port, 5984 | 8500 | 9200 | 15672)
}

/// The URL is all of the value, as a settings page has it: HTTP or a web socket, a host written plainly, no
/// user, no query, and no path or that of an interface or a check.
pub(super) fn is_setting(text: &[u8], url: &Url) -> bool {
    const FIRST: &[&[u8]] = words!("ssrf", "interface-paths");
    const SEGMENTS_MAX: usize = 4;
    let scheme = url.scheme.of(text);
    let is_web =
        [&b"http"[..], b"https", b"ws", b"wss"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    let has_slashes = text[url.scheme.end as usize..].starts_with(b"://");
    let end = url.authority.end as usize;
    let tail = text[end..].trim_ascii_end();
    let authority = url.authority.of(text);
    let is_plain = authority.iter().all(|b| b.is_ascii_alphanumeric() || b".-_:".contains(b));
    let host = Host::read(authority);
    let is_disguised = host.is_disguised || matches!(host.address, Some(Address::V4 { is_odd: true, .. }));
    let mut segments = tail.split(|b| *b == b'/').skip(1).filter(|part| !part.is_empty());
    let is_name = |part: &[u8]| {
        part.len() <= 32
            && part[0] != b'.'
            && part.iter().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(b))
    };
    let is_version = |part: &[u8]| matches!(part, [b'v', digits @ ..] if !digits.is_empty() && digits.iter().all(|b| b.is_ascii_digit() || *b == b'.'));
    let is_first = segments.clone().next().is_none_or(|part| FIRST.contains(&part) || is_version(part));
    is_web
        && has_slashes
        && is_plain
        && !is_disguised
        && !url.has_user
        && !url.is_confused
        && (tail.is_empty() || tail.starts_with(b"/") && !tail.starts_with(b"//"))
        && is_first
        && segments.clone().count() <= SEGMENTS_MAX
        && segments.all(|part| is_name(part) && !is_of_administrators(part))
}

/// Parts of a path that an application shows to its own administrators only.
fn is_of_administrators(part: &[u8]) -> bool {
    const WORDS: &[&[u8]] = words!("ssrf", "administration");
    WORDS.iter().any(|known| part.eq_ignore_ascii_case(known))
}

/// The port that is the scheme's own: it says no more than the scheme.
pub(super) fn is_own_port(scheme: &[u8], port: u16) -> bool {
    const OWN: &[(&[u8], u16)] = &[
        (b"ldap", 389),
        (b"ldaps", 636),
        (b"sftp", 22),
        (b"ssh", 22),
        (b"smtp", 25),
        (b"imap", 143),
        (b"pop3", 110),
        (b"smb", 445),
        (b"telnet", 23),
        (b"redis", 6379),
        (b"rediss", 6379),
        (b"postgres", 5432),
        (b"postgresql", 5432),
        (b"mysql", 3306),
        (b"mariadb", 3306),
        (b"mssql", 1433),
        (b"sqlserver", 1433),
        (b"mongodb", 27017),
        (b"amqp", 5672),
    ];
    OWN.iter().any(|(known, own)| *own == port && scheme.eq_ignore_ascii_case(known))
}

/// Ports that web servers of developers and intranets have.
pub(super) fn is_web_port(port: u16) -> bool {
    matches!(port, 80 | 443 | 3000..=3010 | 4200 | 4321 | 5000 | 5001 | 5173 | 8000..=8010 | 8080..=8090 | 8443 | 8888 | 9000)
}

pub(super) fn is_metadata_path(path: &[u8]) -> bool {
    const PATHS: &[&[u8]] = words!("ssrf", "metadata-paths");
    let is_here = |rest: &[u8], known: &[u8]| {
        rest.get(..known.len()).is_some_and(|part| part.eq_ignore_ascii_case(known))
    };
    memchr::memchr_iter(b'/', path).any(|at| {
        matches!(path.get(at + 1), Some(b'l' | b'L' | b'c' | b'C' | b'm' | b'M' | b'o' | b'O' | b'i' | b'I'))
            && PATHS.iter().any(|known| is_here(&path[at..], known))
    })
}
