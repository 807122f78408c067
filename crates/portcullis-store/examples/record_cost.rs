//! Benchmark of a transaction's record operations:
//! `cargo run --release -p portcullis-store --example record_cost`.
//!
//! Each line is the time of one call, the map filled with 100,000 records, clients taken at random.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use portcullis_engine::{Change, Collections, RecordId, Sum, VariableChange};
use portcullis_store::{Options, Store, StoreMetrics};

const RECORDS: u64 = 100_000;
const CALLS: u64 = 2_000_000;
const NOW: i64 = 1_700_000_000;

fn main() {
    let folder = std::env::temp_dir().join(format!("portcullis-record-cost-{}", std::process::id()));
    run("memory only", Options::default());
    run("with a folder", Options { folder: Some(folder.clone()), ..Options::default() });
    let _ = std::fs::remove_dir_all(folder);
}

fn run(name: &str, options: Options) {
    let store =
        Arc::new(Store::open(options, StoreMetrics::default(), Arc::new(|line: &str| eprintln!("{line}"))));
    // Far in the future, so that nothing expires meanwhile.
    let add = Change::Add(Sum { delta: 1, decay: 0, seen: 0, value: 1 });
    let updates = [VariableChange { variable: b"hits", change: add }];
    let save = |key: &str| {
        let id = RecordId { name: b"ip", key: key.as_bytes() };
        store.save(id, 1 << 32, NOW, &updates);
    };
    let load = |key: &str| {
        let id = RecordId { name: b"ip", key: key.as_bytes() };
        black_box(store.load(id, NOW, &mut |name, value| {
            black_box((name, value));
        }))
    };
    let keys: Vec<String> =
        (0..RECORDS).map(|n| format!("10.{}.{}.{}", n >> 16, n >> 8 & 255, n & 255)).collect();
    keys.iter().for_each(|key| save(key));
    let pick = |n: u64| keys[(n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as usize % keys.len()].as_str();

    let time = |what: &str, threads: u64, call: &(dyn Fn(u64) + Sync)| {
        let began = Instant::now();
        std::thread::scope(|scope| {
            for thread in 0..threads {
                scope.spawn(move || (0..CALLS / threads).for_each(|n| call(n * threads + thread)));
            }
        });
        let nanoseconds = began.elapsed().as_nanos() as u64 * threads / CALLS;
        println!("{name:14} {what:28} {threads} thread(s) {nanoseconds:6} ns");
    };
    for threads in [1, 2] {
        time("read a record", threads, &|n| {
            load(pick(n));
        });
        time("count in a record", threads, &|n| save(pick(n)));
        time("read and count", threads, &|n| {
            load(pick(n));
            save(pick(n));
        });
        time("count in one and the same", threads, &|_| save(&keys[0]));
    }
}
