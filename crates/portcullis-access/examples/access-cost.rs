//! Benchmark of a check: `access-cost limit|list [CHECKS]` runs the checks and prints the time of one. Under
//! `valgrind --tool=callgrind` two runs with different numbers give the instructions of one.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "it measures"
)]

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

use portcullis_access::{Limiter, Rate};
use portcullis_balance::Random;
use portcullis_match::IpSet;

const ENTRIES: u64 = 1_000_000;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let what = arguments.next().unwrap_or_default();
    let checks: u64 = arguments.next().and_then(|number| number.parse().ok()).unwrap_or(10_000_000);
    let (name, seconds) = match what.as_str() {
        "limit" => ("rate limit, 100,000 clients", limit(checks)),
        "list" => ("address list, 1,000,000 networks", list(checks)),
        _ => return eprintln!("access-cost limit|list [CHECKS]"),
    };
    println!("{name}: {:.1} ns", seconds / checks as f64 * 1e9);
}

fn limit(checks: u64) -> f64 {
    let limiter = Limiter::new(Rate::new(100, Duration::from_secs(1), 200), 200_000);
    let mut random = Random::new(1);
    let start = Instant::now();
    for check in 0..checks {
        let client = Ipv4Addr::from_bits(random.below(100_000) as u32).octets();
        let key = limiter.keying().part(&client).key();
        black_box(limiter.check(key, 1 + check * 100));
    }
    start.elapsed().as_secs_f64()
}

/// Half of the networks and of the look-ups are IPv6.
fn list(checks: u64) -> f64 {
    let mut random = Random::new(1);
    let networks = (0..ENTRIES).map(|number| match number % 2 {
        0 => (IpAddr::V4(Ipv4Addr::from_bits(random.number() as u32)), 30),
        _ => {
            let high = 0x2000 << 112 | u128::from(random.number() >> 4) << 64;
            (IpAddr::V6(Ipv6Addr::from_bits(high)), 56)
        }
    });
    let set = IpSet::of_networks(networks);
    let mut found = 0u64;
    let start = Instant::now();
    for check in 0..checks {
        let number = random.number();
        let address = match check % 2 {
            0 => IpAddr::V4(Ipv4Addr::from_bits(number as u32)),
            _ => IpAddr::V6(Ipv6Addr::from_bits(0x2000 << 112 | u128::from(number >> 4) << 64)),
        };
        found += u64::from(set.contains(black_box(address)));
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("{} ranges, {found} of {checks} found", set.ranges());
    seconds
}
