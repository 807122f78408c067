//! Schedule of certificate orders: a state machine without clock and chance of its own.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Failure;
use crate::Life;

/// After a failure of one name. With [`FACTOR`] there are five tries in the first hour, which is what Let's
/// Encrypt grants.
const FIRST: Duration = Duration::from_secs(60);
const FACTOR: u32 = 3;
const LONGEST: Duration = Duration::from_secs(6 * 3600);
/// After a failure that is of no name: the authority is down, the disk is full. Trying again costs little.
const FIRST_OF_ALL: Duration = Duration::from_secs(5);
const FACTOR_OF_ALL: u32 = 2;
const LONGEST_OF_ALL: Duration = Duration::from_secs(15 * 60);
/// An authority may want us to wait for longer than we would, but not for ever.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 3600);

/// The time on both clocks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moment {
    /// Seconds since 1970, which may jump.
    pub(super) wall: i64,
    /// Since the process began, which does not.
    pub(super) running: Duration,
}

/// The state of each name.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    names: BTreeMap<String, State>,
    /// Failures of all names in a row.
    all: Holding,
}

#[derive(Debug, Default)]
struct State {
    /// Seconds since 1970; 0 without a certificate.
    renewal: i64,
    holding: Holding,
}

/// Failures in a row, and until when they keep us from trying again.
#[derive(Debug, Default)]
struct Holding {
    failures: u32,
    until: Duration,
}

impl Holding {
    fn fail(
        &mut self,
        now: Duration,
        (first, factor, longest): (Duration, u32, Duration),
        wanted: Duration,
        chance: u32,
    ) {
        let wait = first.saturating_mul(factor.saturating_pow(self.failures)).min(longest);
        // A quarter more or less, so that those who failed together do not come back together.
        let jitter = 0.75 + 0.5 * f64::from(chance) / f64::from(u32::MAX);
        self.failures += 1;
        self.until = now + wait.mul_f64(jitter).max(wanted.min(RETRY_AFTER_MAX));
    }
}

impl Schedule {
    /// Takes on names that are new, with what is known of their certificates, and drops those that are gone.
    pub(super) fn follow(&mut self, names: &[String], mut life: impl FnMut(&str) -> Option<Life>) {
        self.names.retain(|name, _| names.contains(name));
        for name in names {
            self.names.entry(name.clone()).or_insert_with(|| State {
                renewal: life(name).map_or(0, renewal),
                holding: Holding::default(),
            });
        }
    }

    /// The name to order a certificate for: the one whose renewal came first.
    pub(super) fn due(&self, now: Moment) -> Option<&str> {
        let is_due = |state: &State| state.renewal <= now.wall && state.holding.until <= now.running;
        let due = self.names.iter().filter(|(_, state)| is_due(state) && self.all.until <= now.running);
        due.min_by_key(|(_, state)| (state.renewal, state.holding.failures)).map(|(name, _)| name.as_str())
    }

    /// There is a certificate.
    pub(super) fn issued(&mut self, name: &str, life: Life) {
        self.all = Holding::default();
        if let Some(state) = self.names.get_mut(name) {
            *state = State { renewal: renewal(life), holding: Holding::default() };
        }
    }

    /// There is none. `wanted`: how long the authority wants us to wait; `chance`: any number.
    pub(super) fn failed(
        &mut self,
        name: &str,
        failure: &Failure,
        now: Moment,
        wanted: Duration,
        chance: u32,
    ) {
        if failure.of_all {
            self.all.fail(now.running, (FIRST_OF_ALL, FACTOR_OF_ALL, LONGEST_OF_ALL), wanted, chance);
            return;
        }
        self.all = Holding::default();
        if let Some(state) = self.names.get_mut(name) {
            state.holding.fail(now.running, (FIRST, FACTOR, LONGEST), wanted, chance);
        }
    }

    /// Returns the time at which each name is due, in seconds since 1970.
    pub(super) fn next(&self, now: Moment) -> impl Iterator<Item = (&str, i64)> {
        self.names.iter().map(move |(name, state)| {
            let held = self.all.until.max(state.holding.until).saturating_sub(now.running);
            let held = i64::try_from(held.as_millis().div_ceil(1000)).unwrap_or(i64::MAX);
            (name.as_str(), state.renewal.max(now.wall.saturating_add(held)))
        })
    }
}

/// At two thirds of its life.
fn renewal(life: Life) -> i64 {
    let length = life.until.saturating_sub(life.from).max(0);
    // Never 0, which stands for no certificate.
    (life.from + length / 3 * 2 + length % 3 * 2 / 3).max(1)
}

#[cfg(test)]
mod tests {
    use super::super::Kind;
    use super::*;

    const DAY: i64 = 86_400;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| name.to_string()).collect()
    }

    fn at(seconds: i64) -> Moment {
        Moment { wall: 1_000_000_000 + seconds, running: Duration::from_secs(seconds as u64) }
    }

    fn next(schedule: &Schedule, name: &str, now: Moment) -> i64 {
        schedule.next(now).find(|(known, _)| *known == name).unwrap().1 - at(0).wall
    }

    fn refused() -> Failure {
        Failure::new(Kind::Challenge, "no")
    }

    #[test]
    fn certificates_are_renewed_at_two_thirds_of_their_life() {
        let mut schedule = Schedule::default();
        let life = |days: i64| Life { from: at(0).wall, until: at(0).wall + days * DAY };
        schedule.follow(&names(&["a", "b"]), |name| (name == "a").then(|| life(90)));
        assert_eq!(schedule.due(at(0)), Some("b"), "it has none");
        schedule.issued("b", life(6));
        assert_eq!(schedule.due(at(4 * DAY - 1)), None);
        assert_eq!(schedule.due(at(4 * DAY)), Some("b"));
        assert_eq!((next(&schedule, "a", at(0)), next(&schedule, "b", at(0))), (60 * DAY, 4 * DAY));
        // Overdue names come first.
        assert_eq!(schedule.due(at(70 * DAY)), Some("b"));
        schedule.follow(&names(&["a"]), |_| None);
        assert_eq!(schedule.due(at(70 * DAY)), Some("a"));
        assert_eq!(schedule.next(at(0)).count(), 1);
    }

    #[test]
    fn a_name_that_fails_waits_and_the_others_do_not() {
        let mut schedule = Schedule::default();
        schedule.follow(&names(&["a", "b"]), |_| None);
        let mut now = 0;
        let mut waits = Vec::new();
        for _ in 0..8 {
            schedule.failed("a", &refused(), at(now), Duration::ZERO, u32::MAX / 2);
            assert_eq!(schedule.due(at(now)), Some("b"));
            let then = next(&schedule, "a", at(now));
            waits.push(then - now);
            now = then;
        }
        assert_eq!(waits, [60, 180, 540, 1620, 4860, 14580, 21600, 21600]);
        // The authority's wish counts if it is longer, within reason.
        for (wanted, expected) in [(60, 21600), (30_000, 30_000), (999_999, 86_400)] {
            schedule.failed("a", &refused(), at(now), Duration::from_secs(wanted), u32::MAX / 2);
            assert_eq!(next(&schedule, "a", at(now)) - now, expected);
        }
        let life = Life { from: at(now).wall, until: at(now).wall + 90 * DAY };
        schedule.issued("a", life);
        schedule.failed("a", &refused(), at(now + 60 * DAY), Duration::ZERO, 0);
        assert_eq!(next(&schedule, "a", at(now + 60 * DAY)) - now - 60 * DAY, 45, "from the beginning");
    }

    #[test]
    fn an_authority_that_is_down_is_asked_seldom_and_for_all() {
        let mut schedule = Schedule::default();
        schedule.follow(&names(&["a", "b"]), |_| None);
        let down = Failure::new(Kind::Unreachable, "refused");
        let (mut now, mut tries) = (0, 0);
        while now < 3600 {
            let name = schedule.due(at(now)).unwrap().to_string();
            schedule.failed(&name, &down, at(now), Duration::ZERO, 0);
            assert_eq!(schedule.due(at(now)), None, "the other name waits, too");
            tries += 1;
            now = next(&schedule, &name, at(now));
        }
        assert_eq!(tries, 12);
        assert!(schedule.due(at(now)).is_some());
        schedule.failed("a", &refused(), at(now), Duration::ZERO, 0);
        assert_eq!(schedule.due(at(now)), Some("b"), "it answers again");
    }

    /// An authority that fails at random, over years: no name fails more than five times an hour, and no
    /// certificate expires where two orders in three succeed.
    #[test]
    fn simulated_years() {
        for seed in 1..=20u64 {
            let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mut chance = || {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                (random >> 32) as u32
            };
            let all = names(&["a", "b", "c"]);
            let mut schedule = Schedule::default();
            schedule.follow(&all, |_| None);
            let mut until = BTreeMap::<String, i64>::new();
            let (mut failed, mut issued) = (BTreeMap::<String, Vec<i64>>::new(), 0);
            let mut now = 0;
            while now < 1000 * DAY {
                while let Some(name) = schedule.due(at(now)).map(str::to_string) {
                    match chance() % 9 {
                        0 | 1 => {
                            let of_name = failed.entry(name.clone()).or_default();
                            of_name.push(now);
                            let hour = of_name.iter().filter(|failed| now - **failed < 3600).count();
                            assert!(hour <= 5, "seed {seed}: {name} at {now}");
                            schedule.failed(&name, &refused(), at(now), Duration::ZERO, chance());
                        }
                        2 => {
                            let down = Failure::new(Kind::Unreachable, "down");
                            schedule.failed(&name, &down, at(now), Duration::ZERO, chance());
                        }
                        _ => {
                            let life = Life { from: at(now).wall, until: at(now).wall + 6 * DAY };
                            schedule.issued(&name, life);
                            until.insert(name, now + 6 * DAY);
                            issued += 1;
                        }
                    }
                }
                assert!(until.values().all(|until| *until > now), "seed {seed}: expired at {now}");
                now = all.iter().map(|name| next(&schedule, name, at(now))).min().unwrap().max(now + 1);
            }
            assert!(issued > 700 && failed.len() == all.len(), "seed {seed}: {issued} were issued");
        }
    }
}
