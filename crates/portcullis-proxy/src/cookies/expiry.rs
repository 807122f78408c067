//! Cookies for which a client is refused again and again, and that its browser would send for ever: a refusal
//! expires them.
//!
//! Only the sender's own answer does, for a name that the request has once: of two cookies of a name one may
//! be the user's session, and the other one added by an attacker who wants to end that. Cookies of a
//! parent domain are those of its other hosts, too, and stay.

use std::hash::{BuildHasher as _, RandomState};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

/// The refusal of a client for a cookie that expires it.
const REFUSALS: u8 = 3;
/// Refusals are forgotten after this time without one.
const MILLIS: u64 = 3_600_000;
/// Clients and cookies that are remembered; then those of the longest time ago are forgotten.
const COUNTS_MAX: usize = 4_096;
/// Counts of which a new one replaces one.
const WAYS: usize = 4;
/// Longer ones are not those of a cookie that a browser keeps for long.
const NAME_BYTES_MAX: usize = 256;
const PATH_BYTES_MAX: usize = 256;

/// The refusals of a site's clients.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    keys: RandomState,
    /// Empty until there is one.
    counts: Mutex<Vec<Count>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    key: u64,
    /// The last refusal, in milliseconds since 1970.
    last: u64,
    refusals: u8,
}

impl Refusals {
    /// Counts a refusal; true if it is the one that expires the cookie.
    pub(super) fn note(&self, client: IpAddr, (name, value): (&[u8], &[u8]), now: u64) -> bool {
        let key = self.keys.hash_one((client, name, value));
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.resize(COUNTS_MAX, Count::default());
        let at = key as usize % (COUNTS_MAX / WAYS) * WAYS;
        let ways = &mut counts[at..at + WAYS];
        let is_fresh = |count: &Count| count.key == key && now.abs_diff(count.last) < MILLIS;
        let oldest = (0..WAYS).min_by_key(|way| ways[*way].last);
        let known = (0..WAYS).find(|way| is_fresh(&ways[*way]));
        let Some(way) = known.or(oldest) else { return false };
        let before = if known.is_some() { ways[way].refusals } else { 0 };
        ways[way] = Count { key, last: now, refusals: before.saturating_add(1) };
        ways[way].refusals == REFUSALS
    }
}

/// The cookie of these `Cookie` fields that a location in a message, such as `prefs` or `prefs.next`, belongs
/// to: its name and value. None if it cannot be expired: it is not there once, or its name cannot be written.
pub(super) fn cookie_of<'h>(
    fields: impl Iterator<Item = &'h [u8]>,
    place: &[u8],
) -> Option<(&'h [u8], &'h [u8])> {
    let pieces = fields.flat_map(|field| field.split(|b| *b == b';')).map(<[u8]>::trim_ascii);
    let pairs: Vec<(&[u8], &[u8])> = pieces
        .map(|piece| {
            let equals = piece.iter().position(|b| *b == b'=').unwrap_or(piece.len());
            (&piece[..equals], piece.get(equals + 1..).unwrap_or_default())
        })
        .collect();
    let is_in = |name: &[u8]| match place.strip_prefix(name) {
        Some(rest) => rest.first().is_none_or(|b| matches!(b, b'.' | b'[')),
        None => false,
    };
    let longest = pairs.iter().filter(|(name, _)| is_in(name)).max_by_key(|(name, _)| name.len())?;
    let is_once = pairs.iter().filter(|(name, _)| name.eq_ignore_ascii_case(longest.0)).count() == 1;
    let is_writable =
        (1..=NAME_BYTES_MAX).contains(&longest.0.len()) && longest.0.iter().all(|b| is_token(*b));
    (is_once && is_writable).then_some(*longest)
}

/// The values of `Set-Cookie` that expire a cookie of this name, wherever this host has set it for `path`.
/// None where a browser would not take them.
pub(super) fn fields(name: &[u8], host: &[u8], path: &[u8], is_secure: bool) -> Vec<Vec<u8>> {
    let has_prefix =
        |prefix: &[u8]| name.get(..prefix.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(prefix));
    let is_of_host = has_prefix(b"__Host-");
    if !is_secure && (is_of_host || has_prefix(b"__Secure-")) {
        return Vec::new();
    }
    let domain = domain(host).filter(|_| !is_of_host);
    let paths = if is_of_host { vec![&b"/"[..]] } else { paths(path) };
    let mut fields = Vec::new();
    for domain in [None].into_iter().chain(domain.map(Some)) {
        for &path in &paths {
            let mut field = [name, b"=; Max-Age=0; Path=", path].concat();
            if let Some(domain) = domain {
                field.extend_from_slice(b"; Domain=");
                field.extend_from_slice(domain);
            }
            if is_secure {
                field.extend_from_slice(b"; Secure");
            }
            fields.push(field);
        }
    }
    fields
}

/// The name in `Host` without its port; none for an address, which cookies have no domain of.
fn domain(host: &[u8]) -> Option<&[u8]> {
    let name = host.split(|b| *b == b':').next()?;
    let is_plain = name.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.'));
    let last = name.rsplit(|b| *b == b'.').next()?;
    let is_name = name.contains(&b'.') && last.iter().any(u8::is_ascii_alphabetic);
    (is_plain && is_name).then_some(name)
}

/// The paths at which a cookie that came with a request for `path` is usually set: all, the first part of
/// it, with a slash and without, and its folder, which is the default.
fn paths(path: &[u8]) -> Vec<&[u8]> {
    let mut paths = vec![&b"/"[..]];
    let is_plain = |b: &u8| b.is_ascii_graphic() && !matches!(b, b';' | b',');
    if path.first() != Some(&b'/') || path.len() > PATH_BYTES_MAX || !path.iter().all(is_plain) {
        return paths;
    }
    let slashes: Vec<usize> = (1..path.len()).filter(|at| path[*at] == b'/').collect();
    let first = slashes.first().copied().unwrap_or(path.len());
    let folder = slashes.last().copied().unwrap_or(0);
    for end in [first, first + 1, folder] {
        match path.get(..end) {
            Some(part) if part.len() > 1 && !paths.contains(&part) => paths.push(part),
            _ => {}
        }
    }
    paths
}

/// RFC 9110, 5.6.2: what a name of a cookie consists of.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const NOW: u64 = 1_700_000_000_000;

    fn client(number: u32) -> IpAddr {
        IpAddr::V4(Ipv4Addr::from_bits(number))
    }

    #[test]
    fn the_third_refusal_expires_a_cookie_once() {
        let refusals = Refusals::default();
        let note = |number, value: &str, now| refusals.note(client(number), (b"a", value.as_bytes()), now);
        let expires: Vec<bool> = (0..6).map(|_| note(1, "x", NOW)).collect();
        assert_eq!(expires, [false, false, true, false, false, false]);
        // Others' refusals, those of other values and those of long ago do not add up.
        for number in 2..9 {
            assert!(!note(number, "x", NOW) && !note(number, "y", NOW) && !note(number, "x", NOW));
        }
        assert!(!note(9, "x", NOW) && !note(9, "x", NOW) && !note(9, "x", NOW + MILLIS));
        // A clock that is set back keeps nothing for ever.
        assert!(
            !note(9, "x", NOW - 9 * MILLIS)
                && !note(9, "x", NOW - 9 * MILLIS)
                && note(9, "x", NOW - 9 * MILLIS)
        );
    }

    #[test]
    fn a_flood_of_refusals_takes_no_more_memory() {
        let refusals = Refusals::default();
        for number in 0..50_000 {
            refusals.note(client(number), (b"a", b"x"), NOW + u64::from(number));
        }
        assert_eq!(refusals.counts.lock().unwrap().len(), COUNTS_MAX);
        let last = (0..3).map(|_| refusals.note(client(7), (b"a", b"x"), NOW + 60_000)).collect::<Vec<_>>();
        assert_eq!(last, [false, false, true]);
    }

    #[test]
    fn only_a_cookie_that_is_there_once_is_expired() {
        for (fields, place, expected) in [
            ("a=1; b=x", "b", Some(("b", "x"))),
            ("prefs={}; a=1", "prefs.next", Some(("prefs", "{}"))),
            ("a=1; a.b=2", "a.b", Some(("a.b", "2"))),
            ("a=1; a=2", "a", None),
            ("a=1; A=2", "a", None),
            ("a=1|a=2", "a", None),
            ("a=1|b=2", "b", Some(("b", "2"))),
            ("a b=1", "a b", None),
            ("a\u{e4}=1", "a\u{e4}", None),
            ("=1", "", None),
            ("ab=1", "a", None),
            ("a=1", "b", None),
            ("", "a", None),
        ] {
            let found = cookie_of(fields.split('|').map(str::as_bytes), place.as_bytes());
            let expected = expected.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
            assert_eq!(found, expected, "{fields}");
        }
    }

    #[test]
    fn a_cookie_is_expired_for_this_host_and_its_usual_paths() {
        let all = |name: &str, host: &str, path: &str, is_secure| {
            let fields = fields(name.as_bytes(), host.as_bytes(), path.as_bytes(), is_secure);
            let text = |field: Vec<u8>| String::from_utf8(field).unwrap().replace("=; Max-Age=0; Path=", "@");
            fields.into_iter().map(text).collect::<Vec<_>>()
        };
        assert_eq!(all("a", "127.0.0.1:8080", "/", false), ["a@/"]);
        assert_eq!(all("a", "[::1]:8080", "/", false), ["a@/"]);
        assert_eq!(all("a", "localhost", "/x", false), ["a@/", "a@/x"]);
        assert_eq!(
            all("a", "www.shop.example:8443", "/app/x/y?z", true),
            [
                "a@/; Secure",
                "a@/app; Secure",
                "a@/app/; Secure",
                "a@/app/x; Secure",
                "a@/; Domain=www.shop.example; Secure",
                "a@/app; Domain=www.shop.example; Secure",
                "a@/app/; Domain=www.shop.example; Secure",
                "a@/app/x; Domain=www.shop.example; Secure",
            ]
        );
        assert_eq!(all("a", "a.example", "/a;b/c", false), ["a@/", "a@/; Domain=a.example"]);
        assert_eq!(all("a", "a.ex;ample", &format!("/{}", "x".repeat(300)), false), ["a@/"]);
        assert_eq!(all("__Host-a", "a.example", "/x/y", true), ["__Host-a@/; Secure"]);
        assert!(all("__host-a", "a.example", "/x/y", false).is_empty());
        assert!(all("__Secure-a", "a.example", "/x/y", false).is_empty());
    }
}
