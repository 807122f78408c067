//! Bans in simulated time against the definition. A failure names its seed.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use portcullis_access::{Ban, BanPolicy, Bans};
use portcullis_balance::Random;

const SECOND: u64 = 1_000_000_000;
const SEEDS: u64 = 300;

fn client(number: u64) -> IpAddr {
    Ipv4Addr::from_bits(0xc000_0200 + number as u32).into()
}

/// As the documentation has it.
#[derive(Clone, Default)]
struct Model {
    /// The start of the windows, and all points since, with their times.
    began: u64,
    points: Vec<(u64, u64)>,
    until: u64,
    count: u32,
    remembered: u64,
}

#[test]
fn bans_are_as_defined() {
    for seed in 0..SEEDS {
        let mut random = Random::new(seed);
        let score = 1 + random.below(50);
        let window = 1 + random.below(600 * SECOND);
        let first = 1 + random.below(600 * SECOND);
        let longest = first + random.below(7200 * SECOND);
        let memory = random.below(7200 * SECOND);
        let time = Duration::from_nanos;
        let policy = BanPolicy::new(score as u32, time(window), time(first), time(longest), time(memory));
        let bans = Bans::new(1024);
        let mut model: HashMap<u64, Model> = HashMap::new();
        let mut now = 1 + random.below(1000 * SECOND);
        for step in 0..2000 {
            now += match random.below(10) {
                0 => random.below(first * 4),
                1..5 => 0,
                _ => random.below(window / 4 + 2),
            };
            let who = random.below(4);
            let entry = model.entry(who).or_default();
            let context = format!("seed {seed}, step {step}");
            let left = entry.until.checked_sub(now).filter(|left| *left > 0).map(time);
            assert_eq!(bans.left(client(who), now), left, "{context}");
            if random.below(40) == 0 {
                assert_eq!(bans.lift(client(who), now), left.is_some(), "{context}");
                *entry = Model::default();
                continue;
            }
            let points = random.below(score + 2) as u32;
            let offence = bans.offend(&policy, client(who), points, now);
            assert!(!offence.evicted, "{context}");
            if left.is_some() {
                assert_eq!(offence.banned, None, "{context}: banned already");
                continue;
            }
            if points == 0 {
                assert_eq!(offence.banned, None, "{context}");
                continue;
            }
            let last = entry.points.last().map(|(at, _)| (at - entry.began) / window);
            if last.is_none_or(|last| (now - entry.began) / window >= last + 2) {
                (entry.began, entry.points) = (now, Vec::new());
            }
            entry.points.push((now, points.into()));
            let number = |at: u64| (at - entry.began) / window;
            let of = |wanted: u64| -> u64 {
                entry.points.iter().filter(|(at, _)| number(*at) == wanted).map(|(_, points)| points).sum()
            };
            let left = window - (now - entry.began) % window;
            let before = number(now).checked_sub(1).map_or(0, of);
            let level = of(number(now)) + (u128::from(before) * u128::from(left) / u128::from(window)) as u64;
            // The definition, read literally.
            let since = |time: u64| -> u64 {
                let recent = entry.points.iter().filter(|(at, _)| now - at < time);
                recent.map(|(_, points)| points).sum()
            };
            assert!(level <= since(2 * window), "{context}");
            let banned = level >= score;
            assert_eq!(offence.banned.is_some(), banned, "{context}");
            if banned {
                let count = if entry.remembered > now { entry.count + 1 } else { 1 };
                let mut length = first;
                for _ in 1..count {
                    length = (length * 2).min(longest);
                }
                assert_eq!((offence.banned, offence.count), (Some(time(length)), count), "{context}");
                let until = now + length;
                *entry = Model { until, count, remembered: until + memory, ..Model::default() };
            }
        }
        // A table that is told what this one knows continues as it would, whatever its own clock says.
        let other = Bans::new(1024);
        for ban in bans.list(now) {
            other.restore(&ban, 7 * SECOND);
        }
        let sorted = |mut bans: Vec<Ban>| {
            bans.sort_by_key(|ban| ban.client);
            bans
        };
        assert_eq!(sorted(other.list(7 * SECOND)), sorted(bans.list(now)), "seed {seed}");
        for who in 0..4 {
            assert_eq!(other.left(client(who), 7 * SECOND), bans.left(client(who), now), "seed {seed}");
        }
    }
}

#[test]
fn a_flood_of_addresses_does_not_lift_a_ban() {
    let minute = Duration::from_secs(60);
    let policy = BanPolicy::new(10, minute, 60 * minute, 60 * minute, minute);
    for seed in 0..SEEDS {
        let mut random = Random::new(seed);
        let bans = Bans::new(64);
        let mut now = SECOND;
        for _ in 0..2 {
            bans.offend(&policy, client(0), 5, now);
        }
        let mut evicted = 0;
        for _ in 0..5_000 {
            now += 1_000_000;
            let other = 1 + random.below(100_000);
            evicted += u32::from(bans.offend(&policy, client(other), 1, now).evicted);
            assert!(bans.left(client(0), now).is_some(), "seed {seed}");
        }
        assert!(evicted > 1000, "seed {seed}: the table was not full");
        assert_eq!(bans.capacity(), 64);
    }
}

#[test]
fn threads_ban_once() {
    let hour = Duration::from_secs(3600);
    let policy = BanPolicy::new(1000, hour, hour, hour, hour);
    let bans = Bans::new(1024);
    let begun: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let offend = |_: &u32| bans.offend(&policy, client(1), 1, SECOND).banned.is_some();
                    (0..1000).filter(offend).count()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(begun, 1, "4000 points, 1000 for a ban, and those of a banned client do not count");
    assert_eq!(bans.changes(), 1);
}

/// A ban by hand ends no earlier than one that is there, and makes the next ban no longer.
#[test]
fn bans_by_hand_extend_and_are_not_counted() {
    let second = 1_000_000_000;
    let client: IpAddr = "192.0.2.7".parse().unwrap();
    let of = Duration::from_secs;
    let policy = BanPolicy::new(10, of(60), of(100), of(1000), of(3600));
    let bans = Bans::new(64);
    assert!(!bans.impose(client, of(30), second));
    assert_eq!(bans.left(client, second), Some(of(30)));
    assert_eq!(bans.left("192.0.2.8".parse().unwrap(), second), None);
    bans.impose(client, of(5), 2 * second);
    assert_eq!(bans.left(client, 2 * second), Some(of(29)), "a shorter one takes nothing away");
    bans.impose(client, of(50), 2 * second);
    assert_eq!(bans.left(client, 2 * second), Some(of(50)));
    // It is over, and the next one is the first.
    let later = 60 * second;
    assert_eq!(bans.left(client, later), None);
    let offence = bans.offend(&policy, client, 10, later);
    assert_eq!((offence.banned, offence.count), (Some(of(100)), 1));
    // One by hand within it keeps what is known: the next one is the second.
    bans.impose(client, of(1), later + second);
    assert_eq!(bans.left(client, later + second), Some(of(99)));
    let offence = bans.offend(&policy, client, 10, later + 200 * second);
    assert_eq!((offence.banned, offence.count), (Some(of(200)), 2));
    assert!(bans.lift(client, later + 201 * second));
    assert_eq!(bans.left(client, later + 201 * second), None);
    // A full set makes room, and says so.
    let small = Bans::new(1);
    let evicted = (0..9).map(|last| small.impose(IpAddr::from([192, 0, 2, last]), of(60), second));
    assert_eq!(evicted.filter(|evicted| *evicted).count(), 1);
}
