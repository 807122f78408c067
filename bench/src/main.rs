//! Times and counts what inspecting one exchange costs: see docs/performance.md.
//!
//! Times are CPU time of the thread, which survives a machine that others use, too.

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

use std::alloc::System;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Parser;
use cpu_time::ThreadTime;
use portcullis_config::Policy;
use portcullis_engine::Plan;
use portcullis_load::{LoadError, Patterns, PlanCache, PlanCacheError, Used, load_sharing};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

use portcullis_bench::{
    CASES, Case, Engine, Goal, Knows, Message, Mode, Prepared, Search, TEXTS, ZeroLine, policy,
};

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
    /// What the site knows of its requests: nothing, fields (learned), api (declared, for get and json_1k).
    #[arg(long, default_value = "nothing")]
    site: Knows,
    /// Writes the line of each event, too.
    #[arg(long)]
    events: bool,
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
    /// Runs the reference evaluator, too, for as long.
    #[arg(long)]
    reference: bool,
    /// Writes the messages to this folder instead, for other engines.
    #[arg(long, value_name = "DIR")]
    export: Option<PathBuf>,
    /// Seed of the random values.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only builds the plan, this often, and prints the shortest time.
    #[arg(long)]
    plan_builds: Option<usize>,
    /// With --plan-builds: takes what this file knows; it is written if it is not there.
    #[arg(long, requires = "plan_builds")]
    plan_cache: Option<PathBuf>,
    /// Searches for the message that costs most per byte instead, so many seconds.
    #[arg(long)]
    worst: Option<f64>,
    /// Shows how the cost of this text grows with its length instead, repeated in each place of a request.
    #[arg(long, value_name = "TEXT")]
    growth: Option<String>,
    /// With --growth and --worst: only the places whose names contain this, such as `json`.
    #[arg(long, default_value = "")]
    place: String,
    /// With --worst: bytes of text of the messages that are searched among.
    #[arg(long, default_value_t = 4096, requires = "worst")]
    worst_bytes: usize,
    /// With --worst: what is searched for.
    #[arg(long, default_value = "byte", requires = "worst")]
    worst_per: Goal,
    /// Sends these files of benign requests (as of `portcullis evaluate`) or texts instead, and prints what
    /// they need at most.
    #[arg(long, value_name = "PATH", num_args = 1..)]
    honest: Vec<PathBuf>,
    /// With --honest: bodies go as gzip.
    #[arg(long, requires = "honest")]
    gzip: bool,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = Options::parse();
    if options.list {
        options.mode.cases().for_each(|case| println!("{}", case.name));
        return Ok(());
    }
    if let Some(folder) = &options.export {
        return export(folder, options.seed).map_err(Into::into);
    }
    let policy = policy(options.mode, &options.crs, options.paranoia);
    if let Some(builds) = options.plan_builds {
        return plan_builds(&policy, builds, options.plan_cache.as_deref());
    }
    let mut engine = Engine::of_site(&policy, options.site)?;
    if options.events {
        engine.write_events();
    }
    if let Some(seconds) = options.worst {
        // A message may hold pieces of the CRS, whatever inspects it.
        let plan =
            portcullis_load::load(&portcullis_bench::policy(Mode::Crs, &options.crs, options.paranoia))?.plan;
        let time = Duration::from_secs_f64(seconds);
        let (bytes, seed, goal) = (options.worst_bytes, options.seed, options.worst_per);
        let search = Search { time, bytes, seed, goal, place: &options.place };
        portcullis_bench::search(&mut engine, &plan, search);
        return Ok(());
    }
    if !options.honest.is_empty() {
        return portcullis_bench::honest(&mut engine, &options.honest, options.gzip);
    }
    if let Some(unit) = &options.growth {
        portcullis_bench::growth(&mut engine, unit, &options.place);
        return Ok(());
    }
    let zero = options.reference.then(|| ZeroLine::new(&policy)).transpose()?;
    println!(
        "{:<18} {:>9} {:>12} {:>12} {:>9} {:>10} {:>12} {:>8}{}",
        "case",
        "bytes",
        "us (median)",
        "us (best)",
        "MB/s",
        "allocs",
        "alloc bytes",
        "of work",
        if zero.is_some() { "  reference us   times" } else { "" }
    );
    let mut ran = 0;
    let is_name = options.mode.cases().any(|case| case.name == options.only);
    let wanted =
        |case: &&Case| if is_name { case.name == options.only } else { case.name.contains(&options.only) };
    for case in options.mode.cases().filter(wanted) {
        run(&mut engine, zero.as_ref(), case, &options);
        ran += 1;
    }
    if ran == 0 { Err(format!("no case has {:?} in its name", options.only).into()) } else { Ok(()) }
}

type Opened = (PlanCache, Option<PlanCacheError>);

/// A name of its own, for scripts/bench-counts.sh.
#[inline(never)]
fn load_cached(
    policy: &Policy,
    cache: Option<&Path>,
) -> Result<(Arc<Plan>, Option<Opened>, Used), LoadError> {
    let patterns = Patterns::default();
    let opened = cache.map(|path| PlanCache::open(path, &patterns));
    let plan = load_sharing(policy, &patterns)?.plan;
    Ok((plan, opened, patterns.used()))
}

fn plan_builds(
    policy: &Policy,
    builds: usize,
    cache: Option<&Path>,
) -> Result<(), Box<dyn std::error::Error>> {
    let build = || load_cached(policy, cache);
    if let (_, Some((cache, error)), used) = build()? {
        error.map_or(Ok(()), Err)?;
        let (asked, written) = (used.regexes.len() + used.words.len(), cache.keep(&used)?);
        println!("plan cache: {} of {asked} known{}", used.known, if written { ", written" } else { "" });
    }
    let (mut ready, mut prepared) = (Duration::MAX, Duration::MAX);
    if builds == 0 {
        return Ok(());
    }
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

fn run(engine: &mut Engine, zero: Option<&ZeroLine>, case: &Case, options: &Options) {
    let messages: Vec<Prepared> = case.messages(options.seed).map(Prepared::new).collect();
    engine.teach(&messages);
    if let Some(iterations) = options.iterations {
        for at in 0..iterations {
            case.check(options.mode, engine.exchange(&messages[at % messages.len()]));
            if at % messages.len() == 0 {
                engine.forget_taught();
            }
        }
        return;
    }
    // Every variant must have the verdict that is claimed; this also warms up what is built lazily.
    for message in &messages {
        case.check(options.mode, engine.exchange(message));
    }
    let region = Region::new(ALLOCATOR);
    for message in &messages {
        engine.exchange(message);
    }
    let allocated = region.change();
    let mut work = (0, 0);
    for message in &messages {
        let (done, allowed) = engine.exchange(message).work;
        work = if done * work.1 > work.0 * allowed || work.1 == 0 { (done, allowed) } else { work };
    }
    let mut batches = Vec::new();
    let started = Instant::now();
    let end = Duration::from_secs_f64(options.seconds);
    while started.elapsed() < end || batches.is_empty() {
        let begin = ThreadTime::now();
        for message in &messages {
            engine.exchange(message);
        }
        batches.push(begin.elapsed().as_secs_f64() * 1e6 / messages.len() as f64);
        engine.forget_taught();
    }
    batches.sort_unstable_by(f64::total_cmp);
    let bytes = messages.iter().map(Prepared::bytes).sum::<usize>() / messages.len();
    let median = batches[batches.len() / 2];
    let zero = zero
        .map(|zero| zero_line(zero, case, options))
        .map_or_else(String::new, |micros| format!("  {micros:>12.0} {:>7.0}", micros / median));
    println!(
        "{:<18} {:>9} {:>12.2} {:>12.2} {:>9.1} {:>10.1} {:>12} {:>7.1}%{zero}",
        case.name,
        bytes,
        median,
        batches[0],
        bytes as f64 / median,
        allocated.allocations as f64 / messages.len() as f64,
        allocated.bytes_allocated / messages.len(),
        work.0 as f64 * 100.0 / work.1 as f64
    );
}

/// CPU microseconds of an exchange, the mean of as many as fit into the time, at least one.
fn zero_line(zero: &ZeroLine, case: &Case, options: &Options) -> f64 {
    let requests: Vec<_> = case.messages(options.seed).map(|message| message.for_reference()).collect();
    let (started, begin) = (Instant::now(), ThreadTime::now());
    let mut ran = 0;
    while ran == 0 || started.elapsed().as_secs_f64() < options.seconds {
        let blocked = zero.blocks(&requests[ran % requests.len()]);
        assert_eq!(blocked, case.blocked, "{}: the reference disagrees", case.name);
        ran += 1;
    }
    begin.elapsed().as_secs_f64() * 1e6 / ran as f64
}

fn export(folder: &Path, seed: u64) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    for case in CASES.iter().chain(TEXTS) {
        for (number, Message { head, body, response }) in case.messages(seed).enumerate() {
            let path = |kind| folder.join(format!("{}.{number}.{kind}", case.name));
            std::fs::write(path("request"), [head, body].concat())?;
            if let Some(body) = response {
                std::fs::write(
                    path("response"),
                    [Message::response_head(&body).into_bytes(), body].concat(),
                )?;
            }
        }
    }
    Ok(())
}
