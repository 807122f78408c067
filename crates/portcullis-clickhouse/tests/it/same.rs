//! One table of questions, asked of the event store and of ClickHouse about the same events: both answer what
//! a look at each event answers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use portcullis_clickhouse::Database;
use portcullis_event::{Event, Timestamp};
use portcullis_event_store::{
    EventSource, FacetRequest, Facets, HistogramRequest, OldestRequest, PageRequest, QueryError, Store,
    StoreSettings, Writer,
};
use portcullis_metrics::Registry;
use portcullis_query::{Field, Filter, parse};
use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::{Config, TestRunner};

use crate::events::{NOW, event, filter};
use crate::server::{ClickHouse, asked, start};

const EVENTS: u64 = 200;
const PATIENCE: Duration = Duration::from_secs(30);

/// The same events in memory, in a store and in ClickHouse.
struct Both {
    events: Arc<Vec<Event>>,
    store: Store,
    database: Database,
    registry: Arc<Registry>,
    _server: ClickHouse,
    _folder: tempfile::TempDir,
}

impl Both {
    fn new() -> Option<Both> {
        let server = start()?;
        let mut runner = TestRunner::deterministic();
        let events: Vec<Event> =
            (0..EVENTS).map(|number| event(number).new_tree(&mut runner).unwrap().current()).collect();
        let folder = tempfile::tempdir().unwrap();
        let mut writer = Writer::open(StoreSettings::new(folder.path()), false).unwrap();
        for event in &events {
            if writer.add(event, None) {
                writer.commit(NOW).unwrap();
            }
        }
        writer.commit(NOW).unwrap();
        server.write(&events);
        let registry = Registry::new();
        let (database, store) = (server.database(&registry), Store::new(folder.path()));
        Some(Both { events: Arc::new(events), store, database, registry, _server: server, _folder: folder })
    }

    fn sources(&self) -> [(&'static str, &dyn EventSource); 2] {
        [("store", &self.store), ("database", &self.database)]
    }

    /// The ids of events that pass, newest first, by a look at each.
    fn expected(&self, filter: &Filter) -> Vec<String> {
        let passing = self.events.iter().rev().filter(|event| filter.matches(event));
        passing.map(|event| event.request_id.clone()).collect()
    }

    fn check(&self, filter: &Filter, limit: usize) {
        let expected = self.expected(filter);
        for (name, source) in self.sources() {
            assert_eq!(pages(source, filter, limit), expected, "{name}: {filter}");
        }
    }
}

fn id(json: &str) -> String {
    let event: serde_json::Value = serde_json::from_str(json).unwrap();
    event["request_id"].as_str().unwrap().to_owned()
}

/// The ids of all pages.
fn pages(source: &dyn EventSource, filter: &Filter, limit: usize) -> Vec<String> {
    let (mut ids, mut before) = (Vec::new(), None);
    loop {
        let request = PageRequest { filter, before: before.as_deref(), limit, patience: PATIENCE };
        let page = source.page(&request).unwrap_or_else(|error| panic!("{filter}: {error}"));
        assert!(page.complete && page.skipped.is_empty(), "{:?}", page.skipped);
        ids.extend(page.events.iter().map(|event| id(&event.json)));
        match page.next {
            Some(next) => before = Some(next),
            None => return ids,
        }
    }
}

/// The ids of all events, oldest first.
fn oldest(source: &dyn EventSource, filter: &Filter, limit: usize) -> Vec<String> {
    let (mut ids, mut from): (Vec<String>, Option<String>) = (Vec::new(), None);
    loop {
        let request = OldestRequest { filter, from: from.as_deref(), limit, patience: PATIENCE };
        let found = source.oldest(&request).unwrap();
        ids.extend(found.events.iter().map(|event| id(&event.json)));
        if found.at_end {
            return ids;
        }
        from = found.place;
    }
}

/// Without what is in no order: values that occur equally often at the end of the list.
fn facets(source: &dyn EventSource, filter: &Filter, fields: &[Field], top: usize) -> Facets {
    source.facets(&FacetRequest { filter, fields, top, patience: PATIENCE }).unwrap()
}

const TABLE: &[&str] = &[
    "",
    "site = shop",
    "site = SHOP",
    "method = post or method ~ 'a'",
    "status = 403",
    "status != 403",
    "not status < 500",
    "status in (200, 500)",
    "status <= 0 or asn <= 0",
    "verdict = deny and class = sqli",
    "class in (sqli, path) and class != command",
    "not class = sqli",
    "rule = 942100",
    "rule != 942100",
    "rule > 942100",
    "rule in (1, 942190) and not rule = 4294967295",
    "client in 192.0.0.0/22",
    "client in ::/0",
    "client in 0.0.0.0/0",
    "client in ::/64",
    "client = ::ffff:192.0.2.1",
    "client in (2001:db8:1::/48, 192.0.2.0/30)",
    "client != 192.0.2.1",
    "country = '' or country = blog",
    "host ^= \"\"",
    "host ^= \"S\" and not site = shop",
    "path ~ '/' or user_agent ~ \"'\"",
    "user_agent = \"K\" or user_agent = \"\u{212a}\"",
    "upstream ~ \"é\"",
    "control ^= rate_limit: or refusal ^= blog",
    "mode = crs and engine != off",
    "duration_us > 2 and count in (1, 3)",
    "count >= 2",
    "\"union\" or \"SELECT\"",
    "\"\\\\u0001\" or text ~ '\"'",
    "text ~ \"\\\\\"",
    "time < 2026-11-26T00:00:10Z",
    "time >= 2026-11-26T00:00:10.400Z and time <= 2026-11-26T00:00:20Z",
    "time = 2026-11-26T00:00:10.400Z",
    "time != 2026-11-26T00:00:10.400Z and time > 2026-11-26T00:03:50Z",
    "time > 2200-01-01 or time < 1971-01-01",
    "time > 2200-01-01",
];

#[test]
fn both_answer_as_a_look_at_each_event_does() {
    let Some(both) = Both::new() else { return };
    for (number, text) in TABLE.iter().enumerate() {
        let filter = parse(text, NOW).unwrap_or_else(|error| panic!("{text}: {error}"));
        both.check(&filter, 1000);
        let expected: Vec<String> = both.expected(&filter).into_iter().rev().collect();
        for (name, source) in both.sources() {
            assert_eq!(oldest(source, &filter, 100), expected, "{name}: {text}");
        }
        if number % 5 == 0 {
            check_facets(&both, &filter);
        }
        if number % 3 == 0 {
            check_histogram(&both, &filter);
        }
    }
    both.check(&parse("site = shop", NOW).unwrap(), 7);
    check_single_events(&both);
    // Generated ones.
    let mut runner = TestRunner::new_with_rng(Config::default(), TestRunner::deterministic().new_rng());
    for _ in 0..150 {
        let filter = filter(Arc::clone(&both.events)).new_tree(&mut runner).unwrap().current();
        both.check(&filter, 1000);
    }
    assert_eq!((asked(&both.registry, "unavailable"), asked(&both.registry, "late")), (0, 0));
    assert!(asked(&both.registry, "answered") > 400);
}

fn check_facets(both: &Both, filter: &Filter) {
    let fields: Vec<Field> = Field::ALL.iter().copied().filter(|field| Facets::has(*field)).collect();
    for top in [3, 1000] {
        let of = both.sources().map(|(_, source)| facets(source, filter, &fields, top));
        assert_eq!(of[0], of[1], "{filter}");
    }
}

/// Steps of few and of many: the same edges and the same counts, of as many requests as pass.
fn check_histogram(both: &Both, filter: &Filter) {
    for (steps, now_ms) in [(2, NOW), (96, NOW + 400_000), (1000, 0)] {
        let request = HistogramRequest { filter, steps, now_ms, patience: PATIENCE };
        let of = both.sources().map(|(_, source)| source.histogram(&request).unwrap());
        assert_eq!(of[0], of[1], "{filter}");
        let counted: u64 = of[0].steps.iter().flat_map(|step| step.counts).sum();
        let passing: u64 =
            both.events.iter().filter(|event| filter.matches(event)).map(|event| event.count).sum();
        assert_eq!(counted, passing, "{filter}");
    }
}

/// An event is the same text, with its count and the node that wrote it.
fn check_single_events(both: &Both) {
    let by_id: BTreeMap<&str, &Event> = both.events.iter().map(|event| (&*event.request_id, event)).collect();
    for (id, event) in by_id.iter().take(12) {
        for (name, source) in both.sources() {
            let found = source.event(id).unwrap().unwrap_or_else(|| panic!("{name}: {id}"));
            assert_eq!(found.json, event.json_line().trim_end(), "{name}");
            assert_eq!(
                (found.count, found.request, found.node.is_some()),
                (event.count, None, name == "database")
            );
        }
    }
    for id in ["", "r", "r0' OR '1'='1", "%", "\0", "r9999"] {
        for (_, source) in both.sources() {
            assert_eq!(source.event(id).unwrap(), None);
        }
    }
}

/// Events before and behind each edge of the windows that are asked one after another, from the year 1970 on
/// to those of a node whose clock is ahead: none is left out, none is shown twice.
#[test]
fn pages_over_windows_of_time() {
    let Some(server) = start() else { return };
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let reaches = (0..7).map(|window| 60 * 8u64.pow(window));
    let mut times: Vec<u64> = reaches
        .flat_map(|reach| {
            (reach - 2..=reach + 2).flat_map(move |step| [now.saturating_sub(step), now + step])
        })
        .chain([1, 2, 86_400, now])
        .collect();
    times.sort_unstable();
    times.dedup();
    let events: Vec<Event> = times
        .iter()
        .enumerate()
        .map(|(number, time)| {
            let time = Timestamp::from_epoch_millis(time * 1000 + number as u64 % 3 * 400);
            let mut event = Event::new(format!("r{number:03}"), time);
            event.site = Arc::from(if number % 7 == 0 { "rare" } else { "shop" });
            event
        })
        .collect();
    server.write(&events);
    let database = server.database(&Registry::new());
    for text in
        ["", "site = rare", "site = nowhere", "time < 2020-01-01", "time > 2026-01-01 and site = shop"]
    {
        let filter = parse(text, NOW).unwrap();
        let passing = events.iter().filter(|event| filter.matches(event));
        let mut expected: Vec<String> = passing.map(|event| event.request_id.clone()).collect();
        for limit in [1, 10, 1000] {
            assert_eq!(oldest(&database, &filter, limit), expected, "{text} by {limit}");
        }
        expected.reverse();
        for limit in [1, 10, 1000] {
            assert_eq!(pages(&database, &filter, limit), expected, "{text} by {limit}");
        }
    }
}

/// Nodes write events of the same time, twice where an answer was lost, and none is shown twice or left out.
#[test]
fn pages_of_several_nodes() {
    let Some(server) = start() else { return };
    let events: Vec<Event> = (0..40)
        .map(|number| Event::new(format!("r{number:02}"), Timestamp::from_epoch_millis(NOW + number / 20)))
        .collect();
    let expected: Vec<String> = (0..40).rev().map(|number| format!("r{number:02}")).collect();
    server.write(&events[..25]);
    server.write(&events[15..]);
    let filter = Filter::everything();
    let ask = |limit| pages(&server.database(&Registry::new()), &filter, limit);
    for limit in [1, 7, 20, 39, 40, 41] {
        assert_eq!(ask(limit), expected, "{limit}");
    }
    // A console that asks for the next page is not the one that asked for the first.
    let first = PageRequest { filter: &filter, before: None, limit: 10, patience: PATIENCE };
    let next = server.database(&Registry::new()).page(&first).unwrap().next.unwrap();
    server.write(&[Event::new("s", Timestamp::from_epoch_millis(NOW + 5))]);
    let second =
        server.database(&Registry::new()).page(&PageRequest { before: Some(&next), ..first }).unwrap();
    assert_eq!(id(&second.events[0].json), "r29");
    let facets = facets(&server.database(&Registry::new()), &filter, &[], 10);
    assert_eq!(facets.total, 41);
    // Cursors of others.
    for text in [
        "",
        "-",
        "17",
        "17-x",
        "17-6",
        "x-61",
        "-61",
        "17-61-61",
        "17-6\u{e9}",
        "99999999999999999999-61",
        &format!("1-{}", "61".repeat(300)),
    ] {
        let request = PageRequest { filter: &filter, before: Some(text), limit: 1, patience: PATIENCE };
        let error = server.database(&Registry::new()).page(&request).unwrap_err();
        assert!(matches!(error, QueryError::Cursor(_)), "{text}: {error}");
    }
}
