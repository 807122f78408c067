//! Accounts of processor time by client network, and the refusal of the most expensive ones while workers are
//! late.
//!
//! A network's account is what its requests have cost lately, in microseconds; it decays by half in 1.4
//! seconds. Kept in a [`Table`] as the time at which the account will have decayed to nothing, so a full set
//! of the table forgets the network that costs least, and no account needs to be looked after.
//!
//! A worker is late if it comes to its chores after their time, for work of its own: what it waits for other
//! programs does not count. While one is later than `limits.overload_lag` time after time, the networks
//! together are to cost less by the same part, and each of them may cost as much as any other: those that
//! cost less than that fair share keep all of it, and requests of those beyond it are refused before anything
//! is inspected. So neither one attacker nor many small ones can take from a network what they have
//! themselves.
//!
//! Nobody is refused for what nobody is charged with: if all accounts together make less than a quarter of a
//! core, something else keeps the workers, and refusing those who have the largest of small accounts would
//! not help. A network that takes less than a hundredth of a core is never refused, nor is one that takes
//! less than a quarter of it with requests that are all cheap: many visitors behind one address are not what
//! an overload of a hundred networks with a few expensive messages each is about.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use portcullis_access::{Key, Table};
use portcullis_config::Limits;
use portcullis_event::{Control, ControlKind};
use portcullis_metrics::{Counter, Gauge, Registry, catalogue};

use crate::access::{ControlDecision, Denial, EventLimit};
use crate::beside::LARGE_BYTES_MIN;
use crate::network::NetworkKey;
use crate::timer::TICK;

/// In which an account falls to the e-th part, in nanoseconds: an account is about the last two seconds.
const DECAY_NS: f64 = 2e9;
/// Networks that have an account, 16 bytes each.
const NETWORKS_MAX: usize = 16 << 10;
/// Beside its inspection: what reading, forwarding and answering a request costs, about.
const REQUEST_US: f64 = 20.0;
/// The approximate cost of a TLS handshake.
const HANDSHAKE_US: f64 = 300.0;
/// Networks that cost less than this part of a core are never refused.
const SHARE_MIN: f64 = 0.01;
/// Nor those that cost less than this part of a core if all their requests are cheap: each that is refused
/// costs about as much as it saves.
const CHEAP_SHARE_MIN: f64 = 0.25;
/// If all networks together cost less than this part of a core, it is not for them that workers are late.
const EXPLAINED_MIN: f64 = 0.25;
/// An account of one core.
const CORE: f64 = DECAY_NS / 1e3;
/// An inspection that takes more of a processor is expensive.
const EXPENSIVE: Duration = Duration::from_millis(2);
const EXPENSIVE_FOR: Duration = Duration::from_secs(10);
/// Networks that are known for it.
const EXPENSIVE_MAX: usize = 4 << 10;
/// Messages of this size leave the workers while one is late, and those of networks whose short messages are
/// expensive. Shorter ones stay: most requests are, and none of them takes more than about a millisecond.
const SHORT_BYTES_MIN: u64 = 512;
/// By how much an account may grow again with each tick without a late worker.
const RISE: f64 = 1.05;
/// No account is too large.
const UNLIMITED: u64 = u64::MAX;

/// The accounts, and what is done about them.
pub(crate) struct Overload {
    accounts: Table,
    /// Until when a network is known for expensive inspections. Its keys are those of the accounts.
    expensive: Table,
    /// The same for short messages.
    expensive_when_short: Table,
    /// The last of all these times.
    expensive_until: AtomicU64,
    /// The largest account whose requests are served, in microseconds.
    account_max: AtomicU64,
    /// Beyond it there is no limit: all cores.
    account_top: f64,
    /// The largest lag of a worker, in nanoseconds.
    lag_max: AtomicU64,
    /// By worker: how late it was, in nanoseconds.
    lags: Vec<AtomicU64>,
    /// The time at which `account_max` may change next.
    next: AtomicU64,
    events: EventLimit,
    refused: Counter,
    overloaded: Gauge,
}

impl Overload {
    pub(crate) fn new(workers: usize, limits: &Limits, registry: &Registry) -> Self {
        let overload = Overload {
            accounts: Table::new(NETWORKS_MAX),
            expensive: Table::new(EXPENSIVE_MAX),
            expensive_when_short: Table::new(EXPENSIVE_MAX),
            expensive_until: AtomicU64::new(0),
            account_max: AtomicU64::new(UNLIMITED),
            account_top: CORE * workers as f64,
            lag_max: AtomicU64::new(0),
            lags: (0..workers).map(|_| AtomicU64::new(0)).collect(),
            next: AtomicU64::new(0),
            events: EventLimit::new(registry),
            refused: registry.counter(&catalogue::OVERLOAD_REFUSED, &[]),
            overloaded: registry.gauge(&catalogue::OVERLOADED, &[]),
        };
        overload.resize(limits);
        overload
    }

    /// Takes other settings.
    pub(crate) fn resize(&self, limits: &Limits) {
        let lag = u64::try_from(limits.overload_lag_max.as_nanos()).unwrap_or(u64::MAX);
        self.lag_max.store(lag, Relaxed);
    }

    /// The key of a network's account.
    pub(crate) fn key(&self, network: NetworkKey) -> Key {
        self.accounts.key([network.bytes().as_slice()])
    }

    /// Adds a request to an account, and the part of its inspection that is not there yet.
    pub(crate) fn charge_request(&self, key: Key, inspection: Duration, now: u64) {
        self.charge(key, micros(inspection) + REQUEST_US, now);
        self.note(&self.expensive, key, inspection, now);
    }

    /// Adds a part of an inspection.
    pub(crate) fn charge_inspection(&self, key: Key, took: Duration, now: u64) {
        self.charge(key, micros(took), now);
        self.note(&self.expensive, key, took, now);
    }

    /// Takes note of what a whole request of `bytes`, head and body, cost to inspect.
    pub(crate) fn note_request(&self, key: Key, bytes: u64, cost: Duration, now: u64) {
        if bytes < LARGE_BYTES_MIN {
            self.note(&self.expensive_when_short, key, cost, now);
        }
    }

    fn note(&self, table: &Table, key: Key, cost: Duration, now: u64) {
        if cost >= EXPENSIVE {
            let until = now + EXPENSIVE_FOR.as_nanos() as u64;
            table.update(key, now, |_| Some(until));
            self.expensive_until.fetch_max(until, Relaxed);
        }
    }

    /// Adds a TLS handshake.
    pub(crate) fn charge_handshake(&self, key: Key, now: u64) {
        self.charge(key, HANDSHAKE_US, now);
    }

    fn charge(&self, key: Key, micros: f64, now: u64) {
        self.accounts.update(key, now, |time| Some(time_of(account_at(time, now) + micros, now)));
    }

    /// The recent cost of the network, in microseconds.
    pub(crate) fn account(&self, key: Key, now: u64) -> u64 {
        self.accounts.get(key, now).map_or(0, |time| account_at(time, now) as u64)
    }

    /// From which size on messages of the network are inspected beside the workers: inspecting a shorter one
    /// costs less than handing it over and back, whatever the network.
    pub(crate) fn large_from(&self, key: Key, now: u64) -> u64 {
        match self.is_overloaded() || self.is_in(&self.expensive_when_short, key, now) {
            true => SHORT_BYTES_MIN,
            false => LARGE_BYTES_MIN,
        }
    }

    /// A worker comes to its chores, `lag` late for work of its own. True if this begins or ends an overload.
    pub(crate) fn worker_came(&self, worker: usize, lag: Duration, now: u64) -> bool {
        let lag = u64::try_from(lag.as_nanos()).unwrap_or(u64::MAX);
        let lag_before = self.lags[worker].swap(lag, Relaxed);
        let lag_max = self.lag_max.load(Relaxed);
        let before = self.account_max.load(Relaxed);
        // What keeps a worker once is over when it tells.
        let is_late = lag.min(lag_before) > lag_max;
        let next = self.next.load(Relaxed);
        let is_calm = || self.lags.iter().all(|lag| lag.load(Relaxed) <= lag_max);
        if now < next || !is_late && (before == UNLIMITED || !is_calm()) {
            return false;
        }
        let rest = TICK.as_nanos() as u64 / 2;
        if self.next.compare_exchange(next, now + rest, Relaxed, Relaxed).is_err() {
            return false;
        }
        let known = if before == UNLIMITED { self.account_top } else { before as f64 };
        let after = if is_late {
            let part = (lag_max as f64 / lag.min(lag_before) as f64).clamp(0.3, 0.8);
            match self.fair_share(known, part, now) {
                Some(share) => share.clamp(CORE * SHARE_MIN, known) as u64,
                None => return false,
            }
        } else if known * RISE >= self.account_top {
            UNLIMITED
        } else {
            (known * RISE) as u64
        };
        self.set_account_max(before, after)
    }

    /// The cost allowed to each network so that all together, now up to `known` each, cost `part` of what
    /// they do. None if that is too little to be why a worker is late.
    fn fair_share(&self, known: f64, part: f64, now: u64) -> Option<f64> {
        let mut steps = [(0_usize, 0.0_f64); STEPS];
        let (mut networks, mut total) = (0, 0.0);
        for time in self.accounts.times(now) {
            let account = account_at(time, now).min(known);
            let (count, sum) = &mut steps[step_of(account)];
            (*count, *sum) = (*count + 1, *sum + account);
            (networks, total) = (networks + 1, total + account);
        }
        if total < CORE * EXPLAINED_MIN {
            return None;
        }
        // From the lightest on: these keep what they have, and all others have the same.
        let mut left = total * part;
        for (step, (count, sum)) in steps.iter().enumerate() {
            let share = left / networks as f64;
            if step_of(share) <= step {
                return Some(share);
            }
            (networks, left) = (networks - count, left - sum);
        }
        None
    }

    fn set_account_max(&self, before: u64, after: u64) -> bool {
        if before == after || self.account_max.compare_exchange(before, after, Relaxed, Relaxed).is_err() {
            return false;
        }
        self.overloaded.set((after != UNLIMITED).into());
        (before == UNLIMITED) != (after == UNLIMITED)
    }

    /// A worker was late only lately.
    pub(crate) fn is_overloaded(&self) -> bool {
        self.account_max.load(Relaxed) != UNLIMITED
    }

    /// True if the network has cost too much lately for more of it to be taken.
    pub(crate) fn is_too_much(&self, key: Key, now: u64) -> bool {
        let most = self.account_max.load(Relaxed);
        if most == UNLIMITED {
            return false;
        }
        let account = self.account(key, now);
        account > most && (self.is_in(&self.expensive, key, now) || account as f64 > CORE * CHEAP_SHARE_MIN)
    }

    /// The network is known for expensive inspections.
    fn is_in(&self, table: &Table, key: Key, now: u64) -> bool {
        self.expensive_until.load(Relaxed) > now && table.get(key, now).is_some()
    }

    /// Counts what is refused for that.
    pub(crate) fn count_refused(&self) {
        self.refused.inc();
    }

    /// The refusal of a request, and the decision for its event.
    pub(crate) fn refuse(&self, retry_after_seconds: u32, now: u64) -> (ControlDecision, Denial) {
        self.count_refused();
        let decision = ControlDecision {
            control: Control { by: ControlKind::Overload, name: Arc::from("limits.overload_lag") },
            reason: "The process has too much to do, and this client network takes the most of it".to_owned(),
            in_event: self.events.admits(now),
        };
        let denial = Denial {
            status: 503,
            text: Some("There is too much to do at this moment. Please try again later."),
            fields: vec![("Retry-After", retry_after_seconds.to_string())],
        };
        (decision, denial)
    }
}

/// Accounts within an eighth of an octave count as equal.
const STEPS: usize = 512;

fn step_of(account: f64) -> usize {
    ((account.max(1.0).log2() * 8.0) as usize).min(STEPS - 1)
}

fn micros(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}

/// The account whose time this is.
fn account_at(time: u64, now: u64) -> f64 {
    if time <= now { 0.0 } else { ((time - now) as f64 / DECAY_NS).exp() }
}

/// The time at which an account will have decayed to a microsecond.
fn time_of(account: f64, now: u64) -> u64 {
    now + (account.max(1.0).ln() * DECAY_NS) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Prefixes;

    const SECOND: u64 = 1_000_000_000;
    const MILLI: Duration = Duration::from_millis(1);

    fn overload(lag: Duration) -> Overload {
        let limits = Limits { overload_lag_max: lag, ..Limits::default() };
        Overload::new(2, &limits, &Registry::new())
    }

    fn key(overload: &Overload, address: &str) -> Key {
        overload.key(Prefixes::new(24, 48).of(address.parse().unwrap()))
    }

    #[test]
    fn an_account_is_what_was_spent_lately() {
        let overload = overload(50 * MILLI);
        let (a, b) = (key(&overload, "192.0.2.1"), key(&overload, "198.51.100.1"));
        let mut now = SECOND;
        // A fifth of a core for ten seconds.
        for _ in 0..1_000 {
            now += 10_000_000;
            overload.charge_inspection(a, 2 * MILLI, now);
        }
        let share = overload.account(a, now) as f64 / CORE;
        assert!((0.19..0.22).contains(&share), "{share}");
        assert_eq!(overload.account(b, now), 0);
        let half = overload.account(a, now + 1_386_294_361);
        assert!((half as f64 / overload.account(a, now) as f64 - 0.5).abs() < 0.01, "{half}");
        assert_eq!(overload.account(a, now + 60 * SECOND), 0);
    }

    #[test]
    fn the_heaviest_are_refused_while_workers_are_late() {
        let overload = overload(50 * MILLI);
        let (heavy, lighter) = (key(&overload, "192.0.2.1"), key(&overload, "198.51.100.1"));
        let light = key(&overload, "203.0.113.1");
        let mut now = SECOND;
        let mut refused_at = [None; 3];
        for tick in 0..60 {
            now += TICK.as_nanos() as u64;
            overload.charge_inspection(heavy, 40 * MILLI, now);
            overload.charge_inspection(lighter, 15 * MILLI, now);
            overload.charge_inspection(light, Duration::from_micros(300), now);
            if tick >= 20 {
                overload.worker_came(tick % 2, 70 * MILLI, now);
            } else {
                assert!(!overload.worker_came(tick % 2, 49 * MILLI, now) && !overload.is_overloaded());
            }
            for (at, key) in refused_at.iter_mut().zip([heavy, lighter, light]) {
                if overload.is_too_much(key, now) {
                    at.get_or_insert(tick);
                }
            }
        }
        let [Some(heavy_at), Some(lighter_at), None] = refused_at else { panic!("{refused_at:?}") };
        assert!(heavy_at < lighter_at && heavy_at < 30, "{refused_at:?}");
        // It is over some seconds after the last late one, and then no account is too large.
        let mut ended = 0;
        for tick in 0..200 {
            now += TICK.as_nanos() as u64;
            overload.charge_inspection(heavy, 40 * MILLI, now);
            ended += u32::from(overload.worker_came(tick % 2, MILLI, now));
        }
        assert!(ended == 1 && !overload.is_overloaded() && !overload.is_too_much(heavy, now));
    }

    #[test]
    fn nobody_is_refused_for_what_no_account_explains() {
        let overload = overload(50 * MILLI);
        let honest = key(&overload, "192.0.2.1");
        let mut now = SECOND;
        for tick in 0..200 {
            now += TICK.as_nanos() as u64;
            // A fifth of a core.
            overload.charge_inspection(honest, 10 * MILLI, now);
            assert!(!overload.worker_came(tick % 2, 300 * MILLI, now) && !overload.is_overloaded());
        }
    }

    #[test]
    fn a_worker_that_is_late_once_refuses_nobody() {
        let overload = overload(50 * MILLI);
        let busy = key(&overload, "192.0.2.1");
        let mut now = SECOND;
        for tick in 0..200 {
            now += TICK.as_nanos() as u64;
            overload.charge_inspection(busy, 45 * MILLI, now);
            let lag = if tick % 2 == 0 { 40 * MILLI } else { Duration::from_secs(2) };
            assert!(!overload.worker_came(0, lag, now) && !overload.is_overloaded(), "{tick}");
        }
    }

    /// Many networks of an attacker that cost less than a benign one take from it no more than what
    /// they have themselves.
    #[test]
    fn many_light_networks_leave_others_their_share() {
        let overload = overload(50 * MILLI);
        let honest = key(&overload, "192.0.2.1");
        let attackers: Vec<Key> =
            (0..400).map(|number| key(&overload, &format!("2001:db8:{number:x}::1"))).collect();
        let mut now = SECOND;
        for tick in 0..200 {
            now += TICK.as_nanos() as u64;
            // A fifth of a core, and twenty cores by all the others, by messages that are expensive.
            for (network, took) in attackers.iter().map(|network| (*network, 5)).chain([(honest, 20)]) {
                if !overload.is_too_much(network, now) {
                    overload.charge_inspection(network, MILLI * took / 2, now);
                }
            }
            overload.worker_came(tick % 2, if tick < 40 { MILLI } else { 100 * MILLI }, now);
        }
        let largest = attackers.iter().map(|network| overload.account(*network, now)).max().unwrap();
        let kept = overload.account(honest, now);
        assert!(overload.is_overloaded() && kept * 10 >= largest * 9, "{kept} and {largest}");
        let share = CORE * SHARE_MIN;
        assert!(largest as f64 <= share * 1.2, "{largest}");
    }

    #[test]
    fn cheap_requests_are_not_refused_for_expensive_ones() {
        let overload = overload(50 * MILLI);
        let honest = key(&overload, "192.0.2.1");
        let attackers: Vec<Key> =
            (0..100).map(|number| key(&overload, &format!("198.51.{number}.1"))).collect();
        let mut now = SECOND;
        let mut refused = 0;
        for tick in 0..100 {
            now += TICK.as_nanos() as u64;
            // A fifth of a core by ten requests, and five cores by all the others.
            for _ in 0..10 {
                overload.charge_request(honest, MILLI, now);
            }
            for network in &attackers {
                match overload.is_too_much(*network, now) {
                    true => refused += 1,
                    false => overload.charge_inspection(*network, MILLI * 5 / 2, now),
                }
            }
            overload.worker_came(tick % 2, 100 * MILLI, now);
            assert!(!overload.is_too_much(honest, now), "{tick}");
        }
        assert!(refused > 1_000, "{refused}");
    }

    #[test]
    fn with_a_long_lag_nobody_is_refused() {
        let overload = overload(Duration::from_secs(3600));
        let heavy = key(&overload, "192.0.2.1");
        overload.charge_inspection(heavy, Duration::from_secs(100), SECOND);
        assert!(!overload.worker_came(0, Duration::from_secs(9), SECOND));
        assert!(!overload.is_too_much(heavy, SECOND));
    }

    #[test]
    fn networks_whose_short_messages_are_expensive_have_more_leave_the_workers() {
        let overload = overload(50 * MILLI);
        let (a, b) = (key(&overload, "192.0.2.1"), key(&overload, "198.51.100.1"));
        let large_from = |key, now| overload.large_from(key, now);
        overload.note_request(a, 3_000, MILLI, SECOND);
        // What a long one costs says nothing of short ones.
        overload.note_request(a, 1 << 20, 30 * MILLI, SECOND);
        overload.charge_inspection(a, 30 * MILLI, SECOND);
        assert_eq!(large_from(a, SECOND), LARGE_BYTES_MIN);
        overload.note_request(a, 3_000, 3 * MILLI, SECOND);
        assert_eq!((large_from(a, SECOND), large_from(b, SECOND)), (SHORT_BYTES_MIN, LARGE_BYTES_MIN));
        assert_eq!(large_from(a, 20 * SECOND), LARGE_BYTES_MIN);
    }
}
