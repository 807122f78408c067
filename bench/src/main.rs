//! Times and counts what inspecting one exchange costs: see docs/performance.md.
//!
//! Times are CPU time of the thread, which survives a machine that others use, too.

mod cases;
mod exchange;
mod random;

use std::alloc::System;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Parser;
use cpu_time::ThreadTime;
use portcullis_config::Policy;
use portcullis_event::Action;
use portcullis_load::{LoadError, Patterns, PlanCache, load_sharing};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

use cases::{CASES, Case, TEXTS};
use exchange::{Engine, Prepared, policy};
use random::Random;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Runs the cases through the engine on one thread.
#[derive(Parser)]
struct Options {
    /// Folder of the CRS.
    #[arg(long, default_value = ".portcullis/crs")]
    crs: PathBuf,
    /// Paranoia level.
    #[arg(long, default_value_t = 1)]
    paranoia: u8,
    /// What inspects: crs, semantic or both.
    #[arg(long, default_value = "crs")]
    mode: Mode,
    /// Only this case, or those whose names contain this.
    #[arg(long, default_value = "")]
    only: String,
    /// Names the cases and runs none.
    #[arg(long)]
    list: bool,
    /// Seconds for each case.
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Runs each case this often instead and prints no times: for instruction counts.
    #[arg(long)]
    iterations: Option<usize>,
    /// Seed of the random values.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only builds the plan, this often, and prints the shortest time.
    #[arg(long)]
    plan_builds: Option<usize>,
    /// With --plan-builds: takes what this file knows; it is written if it is not there.
    #[arg(long, requires = "plan_builds")]
    plan_cache: Option<PathBuf>,
}

/// What inspects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Mode {
    Crs,
    Semantic,
    Both,
}

impl Mode {
    /// Its cases: the CRS flags texts that speak of code.
    fn cases(self) -> impl Iterator<Item = &'static Case> {
        let texts = if self == Mode::Crs { &[] } else { TEXTS };
        CASES.iter().chain(texts)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = Options::parse();
    if options.list {
        options.mode.cases().for_each(|case| println!("{}", case.name));
        return Ok(());
    }
    let policy = policy(options.mode, &options.crs, options.paranoia);
    if let Some(builds) = options.plan_builds {
        return plan_builds(&policy, builds, options.plan_cache.as_deref());
    }
    let mut engine = Engine::new(&policy)?;
    println!(
        "{:<18} {:>9} {:>12} {:>12} {:>9} {:>10} {:>12}",
        "case", "bytes", "us (median)", "us (best)", "MB/s", "allocs", "alloc bytes"
    );
    let mut ran = 0;
    let is_name = options.mode.cases().any(|case| case.name == options.only);
    let wanted =
        |case: &&Case| if is_name { case.name == options.only } else { case.name.contains(&options.only) };
    for case in options.mode.cases().filter(wanted) {
        run(&mut engine, case, &options);
        ran += 1;
    }
    if ran == 0 { Err(format!("no case has {:?} in its name", options.only).into()) } else { Ok(()) }
}

fn plan_builds(
    policy: &Policy,
    builds: usize,
    cache: Option<&Path>,
) -> Result<(), Box<dyn std::error::Error>> {
    let build = || {
        let patterns = Patterns::default();
        let opened = cache.map(|path| PlanCache::open(path, &patterns));
        let plan = load_sharing(policy, &patterns)?.plan;
        Ok::<_, LoadError>((plan, opened, patterns.used()))
    };
    if let (_, Some((cache, error)), used) = build()? {
        error.map_or(Ok(()), Err)?;
        let (asked, written) = (used.regexes.len() + used.words.len(), cache.keep(&used)?);
        println!("plan cache: {} of {asked} known{}", used.known, if written { ", written" } else { "" });
    }
    let (mut ready, mut prepared) = (Duration::MAX, Duration::MAX);
    for _ in 0..builds {
        let started = ThreadTime::now();
        let (plan, ..) = build()?;
        ready = ready.min(started.elapsed());
        plan.prepare();
        prepared = prepared.min(started.elapsed());
    }
    let [ready, prepared] = [ready, prepared].map(|time| time.as_secs_f64() * 1e3);
    println!("plan build: {ready:.1} ms, with all automata {prepared:.1} ms, best of {builds}");
    Ok(())
}

fn run(engine: &mut Engine, case: &Case, options: &Options) {
    let mut random = Random::new(options.seed);
    let messages: Vec<Prepared> =
        (0..case.variants).map(|_| Prepared::new((case.make)(&mut random))).collect();
    if let Some(iterations) = options.iterations {
        for at in 0..iterations {
            check(case, options.mode, engine.exchange(&messages[at % messages.len()]));
        }
        return;
    }
    // Every variant must have the verdict that is claimed; this also warms up what is built lazily.
    for message in &messages {
        check(case, options.mode, engine.exchange(message));
    }
    let region = Region::new(ALLOCATOR);
    for message in &messages {
        engine.exchange(message);
    }
    let allocated = region.change();
    let mut batches = Vec::new();
    let started = Instant::now();
    let end = Duration::from_secs_f64(options.seconds);
    while started.elapsed() < end || batches.is_empty() {
        let begin = ThreadTime::now();
        for message in &messages {
            engine.exchange(message);
        }
        batches.push(begin.elapsed().as_secs_f64() * 1e6 / messages.len() as f64);
    }
    batches.sort_unstable_by(f64::total_cmp);
    let bytes = messages.iter().map(Prepared::bytes).sum::<usize>() / messages.len();
    let median = batches[batches.len() / 2];
    println!(
        "{:<18} {:>9} {:>12.2} {:>12.2} {:>9.1} {:>10.1} {:>12}",
        case.name,
        bytes,
        median,
        batches[0],
        bytes as f64 / median,
        allocated.allocations as f64 / messages.len() as f64,
        allocated.bytes_allocated / messages.len()
    );
}

fn check(case: &Case, mode: Mode, verdict: exchange::Verdict) {
    let right = match case.blocked {
        true => verdict.action == Action::Deny,
        // Beside the detector, rules may log what they do not like.
        false if mode == Mode::Both => verdict.action != Action::Deny,
        false => verdict.action == Action::Pass && verdict.rules.is_empty(),
    };
    assert!(right, "{}: {verdict:?}", case.name);
}
