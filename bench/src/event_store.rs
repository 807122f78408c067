//! Rates of the event store, writing and answering: `event-store-bench --folder DIR --events 10000000`.
//!
//! Events are distinct, each keeps a request of 1 KB, and none are coalesced. The rate is given for the time
//! of the clock and for the CPU time of the writing thread; queries run on what was written, with the filters
//! of a list.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Parser;
use cpu_time::ThreadTime;
use portcullis_bench::Random;
use portcullis_event::{Action, Event, Header, KeptRequest, Timestamp};
use portcullis_event_store::{
    FacetRequest, HistogramRequest, PageRequest, Store, StoreSettings, Tallies, Writer,
};
use portcullis_query::Field;

/// Measures the event store.
#[derive(Debug, Parser)]
struct Args {
    /// Folder of the store; must not exist yet
    #[arg(long)]
    folder: PathBuf,
    /// Events that are written
    #[arg(long, default_value_t = 1_000_000)]
    events: u64,
    /// GiB on disk beyond which the oldest segments are dropped
    #[arg(long, default_value_t = 200)]
    keep_gib: u64,
    /// Times that each query runs
    #[arg(long, default_value_t = 20)]
    rounds: usize,
}

/// 2026-11-26T00:00:00Z.
const BEGIN: u64 = 1_795_651_200_000;
/// The events spread over so many milliseconds.
const SPAN: u64 = 24 * 3_600_000 - 60_000;

const FILTERS: [(&str, &str); 10] = [
    ("newest", ""),
    ("site", "site = site-7"),
    ("an hour", "time >= \"2026-11-26T10:00:00Z\" and time < \"2026-11-26T11:00:00Z\""),
    ("class", "class = ldap"),
    ("rule", "rule = 942199"),
    ("network", "client in 10.77.0.0/16"),
    ("path", "path ^= \"/area-3/page-11\""),
    ("status", "status = 502"),
    ("request id", "id = event-4242"),
    ("text", "text ~ \"needle-31337\""),
];

/// What the console compares two periods by.
const COUNTED: [Field; 7] =
    [Field::Rule, Field::Class, Field::Client, Field::Path, Field::Status, Field::Country, Field::Control];

fn main() {
    let args = Args::parse();
    let settings = StoreSettings { keep_bytes: args.keep_gib << 30, ..StoreSettings::new(&args.folder) };
    let mut writer = match Writer::open(settings, false) {
        Ok(writer) => writer,
        Err(error) => return eprintln!("{}: {error}", args.folder.display()),
    };
    let tallies = Tallies::default();
    let mut random = Random::new(1);
    let mut request = KeptRequest { bytes: vec![0; 1024], omitted: 0 };
    let (mut making, mut last) = (Duration::ZERO, Instant::now());
    let (wall, cpu) = (Instant::now(), ThreadTime::now());
    for number in 0..args.events {
        let made = ThreadTime::now();
        let now = BEGIN + number * SPAN / args.events.max(1);
        let event = event(number, now, &mut random);
        fill(&mut request.bytes, &mut random);
        making += made.elapsed();
        tallies.own().event(&event);
        if writer.add(&event, Some(&request)) || last.elapsed() >= Writer::COMMIT_AFTER {
            last = Instant::now();
            writer.count(tallies.take());
            if let Err(error) = writer.commit(now) {
                return eprintln!("{error}");
            }
        }
    }
    writer.count(tallies.take());
    if let Err(error) = writer.commit(BEGIN + SPAN) {
        return eprintln!("{error}");
    }
    let (wall, cpu) = (wall.elapsed() - making, cpu.elapsed() - making);
    drop(writer);
    let rate = |time: Duration| args.events as f64 / time.as_secs_f64();
    println!("events/s: {:.0} (clock), {:.0} (CPU of the writer)", rate(wall), rate(cpu));
    println!("bytes/event: {:.0}, memory: {} MB", bytes(&args.folder) as f64 / args.events as f64, memory());
    let store = Store::new(&args.folder);
    for (name, filter) in FILTERS {
        let Ok(filter) = portcullis_query::parse(filter, BEGIN + SPAN) else { return eprintln!("{name}") };
        let patience = Duration::from_secs(600);
        let request = PageRequest { filter: &filter, before: None, limit: 50, patience };
        let mut found = 0;
        let times = timed(args.rounds, || found = store.page(&request).map_or(0, |page| page.events.len()));
        println!("{name:12} {found:3} events, {times}");
        let over_time = HistogramRequest { filter: &filter, steps: 96, now_ms: BEGIN + SPAN, patience };
        let mut steps = 0;
        let times =
            timed(args.rounds, || steps = store.histogram(&over_time).map_or(0, |found| found.steps.len()));
        println!("{:12} {steps:3} steps, {times}", "  over time");
        let counted = FacetRequest { filter: &filter, fields: &COUNTED, top: 1000, patience };
        let mut values = 0;
        let times = timed(args.rounds, || {
            values = store
                .facets(&counted)
                .map_or(0, |found| found.fields.iter().map(|field| field.values.len()).sum());
        });
        println!("{:12} {values:3} values, {times}", "  counted");
    }
    let day = BEGIN / 1000..(BEGIN + SPAN) / 1000 + 60;
    let mut sites = 0;
    let times =
        timed(args.rounds, || sites = store.overview(day.clone(), None).map_or(0, |all| all.items.len()));
    println!("{:12} {sites:3} sites, {times}", "overview");
}

fn timed(rounds: usize, mut work: impl FnMut()) -> String {
    let mut times: Vec<Duration> = Vec::with_capacity(rounds);
    for _ in 0..rounds.max(1) {
        let begin = Instant::now();
        work();
        times.push(begin.elapsed());
    }
    times.sort();
    let ms = |at: usize| times.get(at).map_or(0.0, |time| time.as_secs_f64() * 1000.0);
    format!("median {:.1} ms, p95 {:.1} ms", ms(times.len() / 2), ms(times.len() * 95 / 100))
}

fn event(number: u64, now: u64, random: &mut Random) -> Event {
    let mut event = Event::new(format!("event-{number}"), Timestamp::from_epoch_millis(now));
    let at = random.below(1 << 31) as u64;
    event.site = format!("site-{}", at % 10).into();
    event.route = format!("route-{}", at / 10 % 5).into();
    event.client.addr = format!("10.{}.{}.{}", at / 7 % 256, at / 11 % 256, at / 13 % 256);
    event.client.country = Some(["DE", "US", "FR", "JP", "BR"][(at % 5) as usize].to_owned());
    event.server.host = "shop.example".to_owned();
    event.request.method = ["GET", "POST"][(at % 2) as usize].to_owned();
    let needle = if number % 100_000 == 31_337 { "&n=needle-31337" } else { "" };
    event.request.target = format!("/area-{}/page-{}?q=1'+union+select+{at}{needle}", at % 20, at / 20 % 500);
    event.request.headers =
        vec![Header { name: "User-Agent".to_owned(), value: format!("scanner/{}", at % 300) }];
    event.response.status = Some([403, 200, 404, 502][(at % 40 / 13) as usize]);
    event.duration_us = at % 100_000;
    event.verdict.action = [Action::Deny, Action::Detect][(at % 3 / 2) as usize];
    let class = portcullis_types::Class::ALL[(at / 3) as usize % portcullis_types::Class::ALL.len()];
    event.verdict.class = Some(class);
    event.verdict.reason =
        format!("{} in query:q: the result of another SELECT is added by UNION", class.name());
    event
}

/// Text that packs about as well as requests do.
fn fill(request: &mut [u8], random: &mut Random) {
    const WORDS: [&[u8]; 8] = [
        b"Accept: ",
        b"text/html",
        b"\r\nCookie: a=",
        b"application/",
        b"id=",
        b"&token=",
        b"0123",
        b"Host: ",
    ];
    let mut at = 0;
    while at < request.len() {
        let number = (random.below(1 << 31) as u64) << 31 | random.below(1 << 31) as u64;
        let digits = number.to_le_bytes().map(|byte| b'a' + byte % 26);
        for part in [WORDS[(number % 8) as usize], &digits[..]] {
            let length = part.len().min(request.len() - at);
            request[at..at + length].copy_from_slice(&part[..length]);
            at += length;
        }
    }
}

fn bytes(folder: &std::path::Path) -> u64 {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(|file| file.metadata().ok()).map(|meta| meta.len()).sum()
}

/// The most memory that this process had, in MB.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok()).unwrap_or(0) / 1024
}
