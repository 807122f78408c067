//! Referers that repeat an attack: a browser sends the address of a page with each picture and style of it.
//!
//! One attack makes one offence, so points are counted by address, for each client: a Referer that repeats
//! one which the client itself has asked for gives only what exceeds the points that the address gave before.
//! One that it has not asked for, or not for a minute, was made up, and counts in full. So does what comes
//! after a few hundred repeats, as no page has that many parts.

use std::hash::{BuildHasher as _, Hash as _, Hasher as _, RandomState};
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use portcullis_event::Event;
use portcullis_http::message::RequestHead;

/// Places that an address may have.
const WAYS: usize = 4;
/// Sets of places at most: 256 KiB.
const SETS_MAX: usize = 2048;
/// An address is forgotten when so many nanoseconds pass without a request for it, or from it.
const KEPT: u64 = 60_000_000_000;
/// Requests that may repeat an address.
const REPEATS_MAX: u32 = 256;

/// The address of a page, as the request for it and the Referer of others name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address<'r> {
    host: &'r [u8],
    /// With the query.
    path: &'r [u8],
}

/// The place of an attack, as far as bans go by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight<'r> {
    /// The request for this address, maybe in it.
    Page(Address<'r>),
    /// Nowhere but in the Referer, which names this address of the host that is asked.
    Echo(Address<'r>),
}

/// Addresses that clients asked for in the last minute with requests in which something was found.
pub(crate) struct Echoes {
    sets: Box<[Mutex<[Slot; WAYS]>]>,
    hasher: RandomState,
}

#[derive(Clone, Copy)]
struct Slot {
    /// The client and the address.
    key: u64,
    until: u64,
    /// The most points that a request gave for it.
    points: u32,
    /// Repeats that are left.
    left: u32,
}

const FREE: Slot = Slot { key: 0, until: 0, points: 0, left: 0 };

impl<'r> Address<'r> {
    /// The address that is asked for.
    pub(crate) fn asked(head: &'r RequestHead) -> Option<Address<'r>> {
        let host = head.host();
        (!host.is_empty()).then(|| Address { host, path: head.path_and_query() })
    }

    /// The address that the Referer names, if it is one of the host that is asked. Browsers leave the
    /// fragment out, so that one with a fragment was made up.
    fn of_referer(head: &'r RequestHead) -> Option<Address<'r>> {
        let mut referers = head.header("referer");
        let (Some(referer), None) = (referers.next(), referers.next()) else { return None };
        let rest = referer.strip_prefix(b"https://").or_else(|| referer.strip_prefix(b"http://"))?;
        let (host, path) = rest.split_at(rest.iter().position(|b| matches!(b, b'/' | b'?'))?);
        let is_own = !host.is_empty() && host.eq_ignore_ascii_case(head.host()) && !path.contains(&b'#');
        is_own.then_some(Address { host, path })
    }
}

impl<'r> Sight<'r> {
    /// None where nothing was found, or only in the Referer of another host's page.
    pub(crate) fn of(event: &Event, head: &'r RequestHead) -> Option<Sight<'r>> {
        if event.findings.is_empty() && event.matches.is_empty() {
            return None;
        }
        match event.is_only_in_referer(head.target()) {
            true => Address::of_referer(head).map(Sight::Echo),
            false => Sight::asked(head),
        }
    }

    /// Of a request without a Referer in which something was found.
    pub(crate) fn asked(head: &'r RequestHead) -> Option<Sight<'r>> {
        Address::asked(head).map(Sight::Page)
    }
}

impl Echoes {
    /// For a table of bans with room for so many clients.
    pub(crate) fn new(clients: usize) -> Echoes {
        let sets = (clients / 32).clamp(16, SETS_MAX).next_power_of_two();
        let sets = std::iter::repeat_with(|| Mutex::new([FREE; WAYS])).take(sets).collect();
        Echoes { sets, hasher: RandomState::new() }
    }

    /// A client asks for an address, and gets `points` for it. Points allow it further repeats; a request
    /// that gives none does not, or repeats of an address that is only reported would have no end.
    pub(crate) fn page(&self, client: IpAddr, address: Address<'_>, points: u32, now: u64) {
        let key = self.key(client, address);
        let mut set = self.set(key);
        let known = set.iter().position(|slot| slot.key == key && slot.until > now);
        let at = known.or_else(|| (0..WAYS).min_by_key(|at| set[*at].until)).unwrap_or(0);
        let slot = &mut set[at];
        if known.is_none() {
            *slot = Slot { key, left: REPEATS_MAX, ..FREE };
        } else if points > 0 {
            slot.left = REPEATS_MAX;
        }
        slot.until = now.saturating_add(KEPT);
        slot.points = slot.points.max(points);
    }

    /// The part of the points that counts for a request that repeats an address.
    pub(crate) fn repeat(&self, client: IpAddr, address: Address<'_>, points: u32, now: u64) -> u32 {
        let key = self.key(client, address);
        let mut set = self.set(key);
        let known = set.iter_mut().find(|slot| slot.key == key && slot.until > now && slot.left > 0);
        let Some(slot) = known else { return points };
        slot.left -= 1;
        slot.until = now.saturating_add(KEPT);
        let more = points.saturating_sub(slot.points);
        slot.points = slot.points.max(points);
        more
    }

    fn key(&self, client: IpAddr, address: Address<'_>) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        client.hash(&mut hasher);
        address.host.iter().for_each(|byte| hasher.write_u8(byte.to_ascii_lowercase()));
        address.path.hash(&mut hasher);
        hasher.finish()
    }

    fn set(&self, key: u64) -> MutexGuard<'_, [Slot; WAYS]> {
        self.sets[key as usize & (self.sets.len() - 1)].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
    const ATTACK: Address<'_> = Address { host: b"a", path: b"/?q=attack" };

    #[test]
    fn an_address_counts_once_if_the_client_asked_for_it() {
        let echoes = Echoes::new(65536);
        assert_eq!(echoes.repeat(CLIENT, ATTACK, 10, 1), 10, "made up");
        assert_eq!(echoes.repeat(CLIENT, ATTACK, 10, 1), 10, "and again");
        echoes.page(CLIENT, ATTACK, 0, 1);
        let upper = Address { host: b"A", ..ATTACK };
        assert_eq!(echoes.repeat(CLIENT, upper, 10, 2), 10, "more than the page gave");
        assert_eq!(echoes.repeat(CLIENT, ATTACK, 10, 3), 0);
        assert_eq!(echoes.repeat(CLIENT, ATTACK, 15, 4), 5);
        let other = IpAddr::from([192, 0, 2, 1]);
        assert_eq!(echoes.repeat(other, ATTACK, 10, 5), 10);
        assert_eq!(echoes.repeat(CLIENT, Address { path: b"/?q=attack2", ..ATTACK }, 10, 5), 10);
        assert_eq!(echoes.repeat(CLIENT, ATTACK, 10, 3 + KEPT), 0, "a repeat renews it");
        assert_eq!(echoes.repeat(CLIENT, ATTACK, 10, 3 + 2 * KEPT), 10, "a minute without one ends it");
    }

    /// Nobody buys more than some repeats with the points of one address, however often it is asked for.
    #[test]
    fn repeats_are_bounded() {
        let echoes = Echoes::new(65536);
        echoes.page(CLIENT, ATTACK, 10, 1);
        let excused = |echoes: &Echoes| {
            (0..1000)
                .filter(|_| {
                    echoes.page(CLIENT, ATTACK, 0, 2);
                    echoes.repeat(CLIENT, ATTACK, 10, 2) == 0
                })
                .count()
        };
        assert_eq!((excused(&echoes), excused(&echoes)), (REPEATS_MAX as usize, 0));
        echoes.page(CLIENT, ATTACK, 10, 2);
        assert_eq!(excused(&echoes), REPEATS_MAX as usize);
    }

    #[test]
    fn memory_is_bounded() {
        let echoes = Echoes::new(65536);
        assert_eq!(echoes.sets.len(), SETS_MAX);
        assert!(size_of::<Mutex<[Slot; WAYS]>>() <= 128);
        for number in 0..100_000u32 {
            echoes.page(number.to_be_bytes().into(), ATTACK, 10, 1);
        }
        assert_eq!(echoes.repeat(99_999u32.to_be_bytes().into(), ATTACK, 10, 2), 0, "the newest are kept");
    }
}
