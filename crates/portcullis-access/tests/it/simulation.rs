//! Limits in simulated time against the definition, and under threads. A failure names its seed.

use std::collections::HashMap;
use std::time::Duration;

use portcullis_access::{Limiter, Rate, Table};
use portcullis_balance::Random;

const SECOND: u64 = 1_000_000_000;
const SEEDS: u64 = 300;

/// The bucket as a textbook has it: it leaks `requests` in `per`, and holds `burst`. In units of 1 /
/// (requests x ns).
struct Bucket {
    level: u128,
    at: u64,
}

#[test]
fn limits_are_leaky_buckets() {
    for seed in 0..SEEDS {
        let mut random = Random::new(seed);
        // The interval is a whole number of nanoseconds, so that the textbook and the limiter can agree to
        // the last one.
        let interval = 1 + random.below(SECOND);
        let requests = 1 + random.below(50);
        let burst = 1 + random.below(20);
        let rate = Rate::new(requests, Duration::from_nanos(interval * requests), burst);
        let limiter = Limiter::new(rate, 1024);
        let mut model: HashMap<u64, Bucket> = HashMap::new();
        let mut now = 1 + random.below(1000 * SECOND);
        for step in 0..2000 {
            now += match random.below(10) {
                0 => random.below(interval * burst * 2),
                1..4 => 0,
                _ => random.below(interval),
            };
            let client = random.below(4);
            let bucket = model.entry(client).or_insert(Bucket { level: 0, at: now });
            bucket.level = bucket.level.saturating_sub(u128::from(now - bucket.at));
            bucket.at = now;
            let fits = bucket.level + u128::from(interval) <= u128::from(interval * burst);
            let checked = limiter.check(limiter.key([client.to_le_bytes().as_slice()]), now);
            if fits {
                bucket.level += u128::from(interval);
            }
            let free = (u128::from(interval * burst) - bucket.level) / u128::from(interval);
            let wait = (bucket.level + u128::from(interval)).checked_sub(u128::from(interval * burst));
            let context = format!("seed {seed}, step {step}");
            assert_eq!(checked.wait.is_none(), fits, "{context}");
            assert_eq!(u128::from(checked.remaining), free, "{context}");
            if let Some(early) = checked.wait {
                assert_eq!(Some(early.as_nanos()), wait, "{context}");
                // The stated time is true: then, and not a moment earlier.
                let key = limiter.key([client.to_le_bytes().as_slice()]);
                let then = now + early.as_nanos() as u64;
                assert!(limiter.check(key, then - 1).wait.is_some(), "{context}");
            }
            assert!(!checked.evicted, "{context}");
        }
    }
}

#[test]
fn a_flood_of_keys_does_not_give_a_client_his_requests_back() {
    for seed in 0..SEEDS {
        let mut random = Random::new(seed);
        let limiter = Limiter::new(Rate::new(10, Duration::from_secs(10), 10), 64);
        let own = limiter.key([b"attacker".as_slice()]);
        let (mut now, mut admitted, mut evicted) = (SECOND, 0, 0);
        for _ in 0..20_000 {
            now += 1_000_000;
            admitted += u32::from(limiter.check(own, now).wait.is_none());
            // A hundred thousand addresses of the attacker, each used a little.
            let other = random.below(100_000);
            let checked = limiter.check(limiter.key([other.to_le_bytes().as_slice()]), now);
            evicted += u32::from(checked.evicted);
        }
        assert!(evicted > 1000, "seed {seed}: the table was not full");
        assert_eq!(admitted, 10 + 20 - 1, "seed {seed}: in 20 seconds, one a second after a burst of ten");
    }
}

#[test]
fn threads_do_not_get_more_than_one_would() {
    let limiter = Limiter::new(Rate::new(1000, Duration::from_secs(3600), 1000), 4096);
    let keys: Vec<_> = (0..64u8).map(|name| limiter.key([[name].as_slice()])).collect();
    let admitted: usize = std::thread::scope(|scope| {
        let work = |_| {
            scope.spawn(|| {
                let passes = (0..1000).flat_map(|_| &keys);
                passes.filter(|key| limiter.check(**key, SECOND).wait.is_none()).count()
            })
        };
        let threads: Vec<_> = (0..4).map(work).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(admitted, 64 * 1000);
}

#[test]
fn threads_that_fight_for_entries_come_to_an_end() {
    let table = Table::new(8);
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let table = &table;
            scope.spawn(move || {
                let mut random = Random::new(thread);
                for step in 0..50_000 {
                    let key = table.key([random.below(40).to_le_bytes().as_slice()]);
                    let time = table.update(key, step, |time| Some(time.max(step) + 1)).time;
                    assert!(time > step);
                    if random.below(10) == 0 {
                        table.remove(key);
                    }
                }
            });
        }
    });
    assert_eq!(table.capacity(), 8);
}

#[test]
fn a_table_forgets_what_has_passed_and_what_is_taken_away() {
    let table = Table::new(8);
    let key = |name: u8| table.key([[name].as_slice()]);
    for name in 0..8 {
        assert!(!table.update(key(name), 1, |_| Some(100 + u64::from(name))).evicted);
    }
    assert_eq!(table.get(key(3), 50), Some(103));
    assert_eq!(table.get(key(3), 103), None);
    assert!(table.update(key(8), 50, |_| Some(200)).evicted);
    assert_eq!((table.get(key(0), 50), table.get(key(1), 50)), (None, Some(101)), "the first to pass went");
    assert!(!table.update(key(9), 101, |_| Some(200)).evicted, "what has passed is nobody's loss");
    assert!(table.remove(key(7)) && !table.remove(key(7)));
    assert!(!table.update(key(10), 50, |_| Some(200)).evicted);
    assert_eq!(table.get(key(6), 50), Some(106));
}
