//! How long questions to a ClickHouse take: `figures URL EVENTS [USER PASSWORD]` writes so many events by the
//! sink, over the day that ends now and ten sites, into an empty server, and asks each question fifty times.
//! With no events it asks of those that are there.
#![allow(clippy::unwrap_used, reason = "ends with what is wrong")]

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use portcullis_clickhouse::Database;
use portcullis_config::{Config, Format};
use portcullis_event::{Action, Event, Header, Timestamp};
use portcullis_event_store::{EventSource, FacetRequest, PageRequest};
use portcullis_metrics::Registry;
use portcullis_query::{Field, parse};
use portcullis_sinks::Sinks;
use portcullis_types::Class;

const DAY_MS: u64 = 86_400_000;
const CHUNK: u64 = 50_000;
const TIMES: usize = 50;
const PATIENCE: Duration = Duration::from_secs(60);

const FILTERS: &[&str] = &[
    "",
    "site = shop3",
    "site = shop3 and time >= -14h and time < -13h",
    "class = sqli and verdict = deny",
    "client in 192.0.2.0/24",
    "path ^= /item/77",
    "status = 500",
    "rule = 1",
    "id = 1b1c0de000077777",
    "\"needle 77777 in a haystack\" and time >= -24h and time < -18h",
];

fn event(number: u64, of: u64, now: u64) -> Event {
    let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 16;
    let time = now - DAY_MS + number * DAY_MS / of;
    let mut event = Event::new(format!("1b1c0de{number:09}"), Timestamp::from_epoch_millis(time));
    event.site = Arc::from(format!("shop{}", mixed % 10));
    event.client.addr = format!("192.{}.{}.{}", mixed % 7, mixed % 250, mixed % 251);
    event.request.method = "GET".to_owned();
    event.request.target = format!("/item/{}/view?q={mixed:x}", mixed % 5000);
    event.request.headers =
        vec![Header { name: "User-Agent".into(), value: "Mozilla/5.0 (X11; Linux)".into() }];
    event.response.status =
        Some([200, 403, 404][(mixed % 3) as usize]).map(|s| if mixed % 1000 == 7 { 500 } else { s });
    event.verdict.action = [Action::Pass, Action::Deny, Action::Detect][(mixed % 3) as usize];
    event.verdict.class = Some(Class::ALL[(mixed % Class::ALL.len() as u64) as usize]);
    event.verdict.reason = format!("needle {number} in a haystack, {}", "evidence ".repeat(40));
    event
}

fn write(config: &Config, events: u64, now: u64) {
    let begin = Instant::now();
    for first in (0..events).step_by(CHUNK as usize) {
        let sinks =
            Sinks::start(&config.event_sinks, &Registry::new(), |line: &str| eprintln!("{line}")).unwrap();
        (first..events.min(first + CHUNK))
            .for_each(|number| sinks.sender().submit(&Arc::new(event(number, events, now))));
        assert_eq!(sinks.shutdown(PATIENCE), 0);
    }
    println!("written {events} in {:.1} s", begin.elapsed().as_secs_f64());
}

/// Milliseconds: the median, and that of the 95th percentile.
fn timed(mut ask: impl FnMut() -> usize) -> (f64, f64, usize) {
    let mut found = 0;
    let mut times: Vec<f64> = (0..TIMES)
        .map(|_| {
            let begin = Instant::now();
            found = ask();
            begin.elapsed().as_secs_f64() * 1000.0
        })
        .collect();
    times.sort_by(f64::total_cmp);
    (times[TIMES / 2], times[TIMES * 95 / 100], found)
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, url, events, login @ ..] = &*arguments else { panic!("figures URL EVENTS [USER PASSWORD]") };
    let events: u64 = events.parse().unwrap();
    let login = match login {
        [user, password] => format!("user = {user:?}\npassword = {password:?}\n"),
        _ => String::new(),
    };
    let document = format!(
        "listeners = [{{ address = \"127.0.0.1:0\" }}]\nsites = [{{ name = \"s\", hosts = [\"*\"], upstream = \"u\" }}]\n\
         upstreams = {{ u = {{ endpoints = [\"http://127.0.0.1:1\"] }} }}\n\
         [[events.sinks]]\nkind = \"clickhouse\"\nurl = {url:?}\n{login}create = true\nqueue = 100000\nqueue_memory = \"1GiB\"\nbatch = 10000\n\
         [events.read_from]\nkind = \"clickhouse\"\nurl = {url:?}\n{login}timeout = \"60s\"\n"
    );
    let config =
        Config::parse(&document, Format::Toml, "figures.toml").unwrap_or_else(|error| panic!("{error}"));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
    write(&config, events, now);
    let database = Database::new(config.event_database.as_ref().unwrap(), &Registry::new()).unwrap();
    for text in FILTERS {
        let filter = parse(text, now).unwrap();
        let request = PageRequest { filter: &filter, before: None, limit: 50, patience: PATIENCE };
        let (half, most, found) = timed(|| database.page(&request).unwrap().events.len());
        println!("{half:8.1} ms p50 {most:8.1} ms p95  {found:3} events  {text}");
    }
    let fields = [Field::Verdict, Field::Site, Field::Class, Field::Rule, Field::Client, Field::Path];
    for text in ["site = shop3 and time >= -14h and time < -13h", "", "class = sqli"] {
        let filter = parse(text, now).unwrap();
        let request = FacetRequest { filter: &filter, fields: &fields, top: 10, patience: PATIENCE };
        let (half, most, total) = timed(|| database.facets(&request).unwrap().total as usize);
        println!("{half:8.1} ms p50 {most:8.1} ms p95  counts of six fields, {total} requests: {text}");
    }
}
