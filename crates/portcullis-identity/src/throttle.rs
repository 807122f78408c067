//! Limits on attempts of passwords.
//!
//! Failures are counted for an account at a network, for a network, and for an account. Each has some free;
//! after these the time to wait doubles with each failure, to a quarter of an hour. Failures are forgotten
//! after an hour without one.
//!
//! A lock-out must not be a way to keep an administrator out. So the counts of a network and of an account do
//! not apply where that user has logged in before: there only the account's own failures at this network
//! count.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};

/// Failures without a wait: of an account at a network.
const FREE_PAIR: u32 = 5;
/// Of a network.
const FREE_NETWORK: u32 = 20;
/// Of an account, at all networks that it is not known at.
const FREE_ACCOUNT: u32 = 20;
/// The longest wait.
const WAIT_S_MAX: u64 = 900;
/// Failures are forgotten when the last is older than this.
const FORGET_S: u64 = 3600;
/// Entries of a table. When it is full, the one that matters least goes.
const ENTRIES_MAX: usize = 4096;

/// Decision on an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It may; it counts as a failure until [`Throttle::succeeded`].
    Try,
    /// Not before so many seconds have passed.
    Wait(u64),
}

/// The failures of the last hour, in bounded memory.
#[derive(Debug, Default)]
pub struct Throttle {
    pairs: Table<(String, IpAddr)>,
    networks: Table<IpAddr>,
    accounts: Table<String>,
}

impl Throttle {
    /// The part of an address that stands for one client: a host of IPv6 has 64 bits to itself.
    pub fn network(address: IpAddr) -> IpAddr {
        match address.to_canonical() {
            IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX))),
            v4 => v4,
        }
    }

    /// Decides if a password of an account may be tried from a network. `is_known`: the account has logged in
    /// there.
    pub fn begin(&mut self, account: &str, network: IpAddr, is_known: bool, now: u64) -> Decision {
        let pair = (account.to_owned(), network);
        let mut wait = self.pairs.wait(&pair, FREE_PAIR, now);
        if !is_known {
            wait = wait.max(self.networks.wait(&network, FREE_NETWORK, now));
            wait = wait.max(self.accounts.wait(&pair.0, FREE_ACCOUNT, now));
        }
        if wait > 0 {
            return Decision::Wait(wait);
        }
        // Counted beforehand: attempts at the same time do not slip through together.
        if !is_known {
            self.networks.add(network, now);
            self.accounts.add(account.to_owned(), now);
        }
        self.pairs.add(pair, now);
        Decision::Try
    }

    /// Takes back what `begin` counted: the password was not tried, or was right and something else was
    /// missing.
    pub fn withdraw(&mut self, account: &str, network: IpAddr, is_known: bool) {
        self.pairs.subtract(&(account.to_owned(), network));
        if !is_known {
            self.networks.subtract(&network);
            self.accounts.subtract(&account.to_owned());
        }
    }

    /// Takes back what `begin` counted, and what failed before it at this network.
    pub fn succeeded(&mut self, account: &str, network: IpAddr, is_known: bool) {
        self.withdraw(account, network, is_known);
        self.pairs.remove(&(account.to_owned(), network));
    }
}

#[derive(Clone, Copy, Debug)]
struct Failures {
    count: u32,
    last: u64,
}

#[derive(Debug)]
struct Table<K>(HashMap<K, Failures>);

impl<K> Default for Table<K> {
    fn default() -> Table<K> {
        Table(HashMap::new())
    }
}

impl<K: Hash + Eq + Clone> Table<K> {
    fn wait(&self, key: &K, free: u32, now: u64) -> u64 {
        let Some(failures) = self.0.get(key).filter(|failures| now < failures.last + FORGET_S) else {
            return 0;
        };
        if failures.count < free {
            return 0;
        }
        let wait = 1_u64.checked_shl((failures.count - free).min(20)).unwrap_or(WAIT_S_MAX).min(WAIT_S_MAX);
        (failures.last + wait).saturating_sub(now)
    }

    fn add(&mut self, key: K, now: u64) {
        if self.0.len() >= ENTRIES_MAX && !self.0.contains_key(&key) {
            self.0.retain(|_, failures| now < failures.last + FORGET_S);
        }
        if self.0.len() >= ENTRIES_MAX && !self.0.contains_key(&key) {
            // A client that tries many names must not cause a much-tried one to be forgotten.
            let least = self.0.iter().min_by_key(|(_, failures)| (failures.count, failures.last));
            if let Some(key) = least.map(|(key, _)| key.clone()) {
                self.0.remove(&key);
            }
        }
        let failures = self.0.entry(key).or_insert(Failures { count: 0, last: now });
        if now >= failures.last + FORGET_S {
            failures.count = 0;
        }
        *failures = Failures { count: failures.count.saturating_add(1), last: now };
    }

    fn subtract(&mut self, key: &K) {
        if let Some(failures) = self.0.get_mut(key) {
            failures.count = failures.count.saturating_sub(1);
        }
    }

    fn remove(&mut self, key: &K) {
        self.0.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        Throttle::network(text.parse().unwrap())
    }

    /// Attempts from one address in a time; all fail.
    fn tries(
        throttle: &mut Throttle,
        account: &str,
        from: &str,
        known: bool,
        times: std::ops::Range<u64>,
    ) -> usize {
        times.filter(|now| throttle.begin(account, address(from), known, *now) == Decision::Try).count()
    }

    #[test]
    fn waits_double() {
        let mut throttle = Throttle::default();
        assert_eq!(tries(&mut throttle, "admin", "192.0.2.1", false, 1000..1000), 0);
        for _ in 0..5 {
            assert_eq!(throttle.begin("admin", address("192.0.2.1"), false, 1000), Decision::Try);
        }
        assert_eq!(throttle.begin("admin", address("192.0.2.1"), false, 1000), Decision::Wait(1));
        // In a day an attacker has some hundred attempts: the wait does not grow beyond a quarter of an hour.
        let count = tries(&mut throttle, "admin", "192.0.2.1", false, 1001..1001 + 86_400);
        assert!((96..=110).contains(&count), "{count}");
    }

    #[test]
    fn many_addresses_lock_an_account_but_not_where_it_is_known() {
        let mut throttle = Throttle::default();
        let mut count = 0;
        for number in 0..3000_u32 {
            let from = format!("198.51.{}.{}", number / 256, number % 256);
            count += tries(
                &mut throttle,
                "admin",
                &from,
                false,
                1000 + u64::from(number)..1001 + u64::from(number),
            );
        }
        assert!(count < 35, "{count}");
        assert!(matches!(throttle.begin("admin", address("192.0.2.9"), false, 4000), Decision::Wait(_)));
        assert_eq!(throttle.begin("admin", address("192.0.2.9"), true, 4000), Decision::Try);
        // Others are not concerned.
        assert_eq!(throttle.begin("anna", address("192.0.2.9"), false, 4000), Decision::Try);
        // And where it is known there is a limit, too.
        assert!(tries(&mut throttle, "admin", "192.0.2.9", true, 4001..4061) < 11);
    }

    #[test]
    fn many_names_lock_a_network() {
        let mut throttle = Throttle::default();
        let names = (0..1000).filter(|number| {
            throttle.begin(&format!("name{number}"), address("2001:db8::1"), false, 1000) == Decision::Try
        });
        assert_eq!(names.count(), 20);
        // The same host has other addresses.
        assert!(matches!(throttle.begin("x", address("2001:db8::2"), false, 1000), Decision::Wait(_)));
        assert_eq!(throttle.begin("x", address("2001:db8:0:1::2"), false, 1000), Decision::Try);
        assert_eq!(address("::ffff:192.0.2.1"), address("192.0.2.1"));
    }

    #[test]
    fn success_and_time_forget() {
        let mut throttle = Throttle::default();
        for _ in 0..50 {
            assert_eq!(throttle.begin("anna", address("192.0.2.1"), false, 1000), Decision::Try);
            throttle.succeeded("anna", address("192.0.2.1"), false);
        }
        assert_eq!(tries(&mut throttle, "anna", "192.0.2.1", false, 1000..1040), 10);
        assert_eq!(throttle.begin("anna", address("192.0.2.1"), false, 1040 + FORGET_S + 900), Decision::Try);
        assert_eq!(throttle.begin("anna", address("192.0.2.1"), false, 1040 + FORGET_S + 900), Decision::Try);
    }

    /// An attacker with many addresses and names neither fills memory nor makes a much-tried account be
    /// forgotten.
    #[test]
    fn memory_is_bounded() {
        let mut throttle = Throttle::default();
        tries(&mut throttle, "admin", "192.0.2.1", false, 1000..1100);
        for number in 0..20_000_u32 {
            let from = IpAddr::from(number.to_be_bytes());
            throttle.begin(&format!("name{number}"), from, false, 1100);
        }
        for length in [throttle.pairs.0.len(), throttle.networks.0.len(), throttle.accounts.0.len()] {
            assert!(length <= ENTRIES_MAX, "{length}");
        }
        assert!(matches!(throttle.begin("admin", address("192.0.2.1"), false, 1100), Decision::Wait(_)));
    }
}
