//! Wall time, by criterion: `cargo bench -p portcullis-bench` (`-- get` for the cases with that in their
//! name). Compares with the last run.

use std::path::Path;

use criterion::{Criterion, Throughput};
use portcullis_bench::{CASES, Engine, Mode, Prepared, policy};
use portcullis_load::load;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    exchanges(&mut criterion);
    plan(&mut criterion);
    criterion.final_summary();
}

fn exchanges(criterion: &mut Criterion) {
    let mut engine = Engine::new(&crs(1)).unwrap_or_else(|error| panic!("{error}"));
    let mut group = criterion.benchmark_group("exchange");
    // The long ones say nothing that the shorter ones do not, and take long.
    for case in CASES.iter().filter(|case| !case.name.ends_with("1m")) {
        let messages: Vec<Prepared> = case.messages(1).map(Prepared::new).collect();
        messages.iter().for_each(|message| case.check(Mode::Crs, engine.exchange(message)));
        let mut next = messages.iter().cycle();
        let bytes = messages.iter().map(Prepared::bytes).sum::<usize>() / messages.len();
        group.throughput(Throughput::Bytes(bytes as u64));
        group.bench_function(case.name, |bencher| {
            bencher.iter(|| next.next().map(|message| engine.exchange(message)));
        });
    }
}

fn plan(criterion: &mut Criterion) {
    let policy = crs(1);
    criterion
        .bench_function("plan_build", |bencher| bencher.iter(|| load(&policy).map(|loaded| loaded.plan)));
}

/// Fetched by `make crs`; criterion runs in the folder of the package.
fn crs(paranoia: u8) -> portcullis_config::Policy {
    policy(Mode::Crs, &Path::new(env!("CARGO_MANIFEST_DIR")).join("../.portcullis/crs"), paranoia)
}
