//! Events, clocks, files and readers that mean harm: the store stays truthful and bounded.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use portcullis_event::{AccessRecord, Action, Coverage, Event, Header, Timestamp};
use portcullis_event_store::{Recorder, Store, Tallies, Writer};
use portcullis_log::QueueLimits;
use portcullis_metrics::Registry;
use portcullis_query::{Comparison, Field, Filter, Kind, Network, Operator, Value, parse};
use proptest::prelude::*;

use crate::common::*;

/// Pieces of what clients send: quotes, escapes, control characters, letters of one and more bytes.
const PIECES: &[&str] = &[
    "",
    "a",
    "A",
    "/",
    "//",
    "?",
    "\"",
    "\\",
    "\\u0000",
    "\0",
    "\n",
    "\u{1b}[2J",
    "é",
    "É",
    "K",
    "ß",
    "😀",
    "abcd",
    "ABCD",
    "\u{7f}",
];
const ADDRESSES: &[&str] = &[
    "192.0.2.1",
    "192.0.2.200",
    "::ffff:192.0.2.1",
    "2001:db8::1",
    "2001:db8:1::1",
    "::1",
    "",
    "no address",
    "\0",
];
const NETWORKS: &[&str] = &[
    "192.0.2.1",
    "192.0.2.0/24",
    "192.0.0.0/12",
    "0.0.0.0/0",
    "::/0",
    "2001:db8::/32",
    "2001:db8::/47",
    "::ffff:192.0.2.1",
    "::1",
];
const NUMBERS: &[u64] = &[0, 1, 200, 404, 65_535, 1 << 32, i64::MAX as u64, u64::MAX - 1];

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(PIECES), 0..5).prop_map(|pieces| pieces.concat())
}

fn hostile_event() -> impl Strategy<Value = Event> {
    let texts = prop::collection::vec(text(), 11);
    let numbers = (prop::sample::select(NUMBERS), prop::sample::select(NUMBERS), 0u64..4, 1u64..3);
    let address = prop::sample::select(ADDRESSES);
    (texts, numbers, address, prop::option::of(0u16..600), 0..Action::NAMES.len()).prop_map(
        |(texts, (duration, asn, time, count), address, status, action)| {
            let [id, site, route, method, host, path, agent, country, reason, trials @ ..] = &texts[..]
            else {
                return Event::new("", Timestamp::from_epoch_millis(0));
            };
            // Before and after the year 2200 as well.
            let time = [0, NOW, NOW + 1, 7_300_000_000_000][time as usize];
            let mut event = Event::new(id.as_str(), Timestamp::from_epoch_millis(time));
            event.site = Arc::from(site.as_str());
            event.route = Arc::from(route.as_str());
            event.request.method.clone_from(method);
            event.server.host.clone_from(host);
            event.request.target = format!("/{path}");
            let name = "User-Agent".to_owned();
            event.request.headers.push(Header { name, value: agent.clone() });
            event.client.country = (!country.is_empty()).then(|| country.clone());
            event.client.asn = u32::try_from(asn).ok();
            event.client.addr = address.to_owned();
            event.response.status = status;
            event.duration_us = duration;
            event.count = count;
            event.verdict.action = [Action::Pass, Action::Deny, Action::Detect][action % 3];
            event.verdict.reason.clone_from(reason);
            event.trials = trials.iter().filter(|id| !id.is_empty()).cloned().collect();
            event
        },
    )
}

fn values(field: Field, operator: Operator) -> BoxedStrategy<Vec<Value>> {
    let count = if operator == Operator::In { 1..5usize } else { 1..2 };
    let one = match field.kind() {
        Kind::Time => prop::sample::select(vec![0, NOW - 1, NOW, NOW + 1, 7_300_000_000_000])
            .prop_map(|time| Value::Time(Timestamp::from_epoch_millis(time)))
            .boxed(),
        Kind::Number => prop::sample::select(NUMBERS).prop_map(Value::Number).boxed(),
        Kind::OneOf(words) => {
            prop::sample::select(words).prop_map(|word| Value::Text(word.to_owned())).boxed()
        }
        Kind::Address => prop::sample::select(NETWORKS)
            .prop_map(|network| Value::Network(Network::parse(network).unwrap()))
            .boxed(),
        Kind::Word if field == Field::Path => text().prop_map(|text| Value::Text(format!("/{text}"))).boxed(),
        Kind::Word | Kind::Text => text().prop_map(Value::Text).boxed(),
    };
    prop::collection::vec(one, count).boxed()
}

fn comparison() -> impl Strategy<Value = Filter> {
    use Operator::*;
    let field = prop::sample::select(Field::ALL);
    let pair = field.prop_flat_map(|field| {
        let operators: &[Operator] = match field.kind() {
            Kind::Time => &[Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual],
            Kind::Number => &[Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual, In],
            Kind::OneOf(_) | Kind::Address => &[Equal, NotEqual, In],
            Kind::Word => &[Equal, NotEqual, Prefix, Contains, In],
            Kind::Text => &[Contains],
        };
        (Just(field), prop::sample::select(operators))
    });
    pair.prop_flat_map(|(field, operator)| {
        values(field, operator).prop_map(move |values| Filter::Is(Comparison { field, operator, values }))
    })
}

fn filter() -> impl Strategy<Value = Filter> {
    comparison().prop_recursive(4, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Filter::All),
            prop::collection::vec(inner.clone(), 0..4).prop_map(Filter::Any),
            inner.prop_map(|inner| Filter::Not(Box::new(inner))),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Columns, index and JSON of the store find the events that `Filter::matches` lets pass.
    #[test]
    fn the_store_finds_what_a_filter_matches_in_memory(
        events in prop::collection::vec(hostile_event(), 1..40),
        filters in prop::collection::vec(filter(), 1..60),
        every in 1usize..20,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = Writer::open(settings(folder.path()), false).unwrap();
        for (number, event) in events.iter().enumerate() {
            if writer.add(event, None) || number % every == 0 {
                writer.commit(NOW).unwrap();
            }
        }
        writer.commit(NOW).unwrap();
        let store = Store::new(folder.path());
        for filter in &filters {
            let patience = Duration::from_secs(60);
            let request = portcullis_event_store::PageRequest { filter, before: None, limit: 1000, patience };
            let page = store.page(&request).unwrap();
            prop_assert_eq!(page.skipped, Vec::<String>::new());
            let found: Vec<&str> = page.events.iter().map(|event| &*event.json).collect();
            let passing = events.iter().rev().filter(|event| filter.matches(event));
            let expected: Vec<String> = passing.map(Event::json_line).collect();
            let expected: Vec<&str> = expected.iter().map(|line| line.trim_end_matches('\n')).collect();
            prop_assert_eq!(found, &*expected, "{}", filter);
            let followed = store.after(filter, Some(&store.beginning()), 1000).unwrap();
            prop_assert_eq!(followed.events.len(), expected.len(), "{}", filter);
        }
    }

    /// A file of which any bytes are others: an answer or a segment that is named, within bounds, no panic.
    #[test]
    fn flipped_bytes_of_a_segment_never_panic(
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = Writer::open(settings(folder.path()), false).unwrap();
        let tallies = Tallies::default();
        (0..50).for_each(|n| count(&tallies, n, NOW + n * 1000));
        writer.count(tallies.take());
        write(&mut writer, 0..100, 30);
        drop(writer);
        let path = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let path = path.into_iter().find(|path| path.extension().is_some_and(|e| e == "events")).unwrap();
        let mut bytes = fs::read(&path).unwrap();
        for (at, byte) in flips {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        fs::write(&path, bytes).unwrap();
        let store = Store::new(folder.path());
        for filter in ["", "site = shop", "class = sqli", "\"union\"", "status > 1", "path ^= /a/"] {
            let _ = page(&store, filter, None, 1000);
            let filter = parse(filter, NOW).unwrap();
            let _ = store.after(&filter, Some(&store.beginning()), 1000);
        }
        for rollup in store.minutes(0..u64::MAX, None).unwrap().items {
            let _ = rollup.rollup.latency.quantile(0.99);
        }
        let _ = store.overview(0..u64::MAX, None).unwrap();
        let mut writer = Writer::open(settings(folder.path()), false).unwrap();
        for number in 0..3 {
            writer.add(&event(number), None);
            let _ = writer.commit(NOW + 86_400_000 * 40 * number);
        }
    }
}

fn count(tallies: &Tallies, n: u64, ended_ms: u64) {
    let record = AccessRecord {
        time: Timestamp::from_epoch_millis(ended_ms),
        request_id: "r",
        client: std::net::IpAddr::from([192, 0, 2, n as u8]),
        country: None,
        asn: None,
        site: "shop",
        route: "/",
        method: b"GET",
        host: b"h",
        target: b"/\xff\0",
        protocol: b"HTTP/1.1",
        status: None,
        request_body_bytes: 1,
        body_bytes: 1,
        duration_us: 0,
        upstream: None,
        trace_id: None,
        verdict: Action::Pass,
        control: None,
        referer: None,
        user_agent: None,
    };
    tallies.own().request(&record, &Coverage::default(), None);
}

fn told(store: &Store, place: &mut String, limit: usize) -> Vec<String> {
    let (filter, mut told) = (Filter::everything(), Vec::new());
    loop {
        let after = store.after(&filter, Some(place), limit).unwrap();
        assert_eq!(after.skipped, Vec::<String>::new());
        told.extend(after.events.iter().map(|event| id(&event.json)));
        *place = after.place.unwrap();
        if after.at_end {
            return told;
        }
    }
}

/// A batch that is full exactly where a segment ends must not take the next segments as read.
#[test]
fn no_batch_size_loses_events_at_the_end_of_a_segment() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = Writer::open(settings(folder.path()), false).unwrap();
    for day in 0..28 {
        (day * 10..day * 10 + 10).for_each(|number| assert!(!writer.add(&event(number), None)));
        writer.commit(NOW + day * 86_400_000).unwrap();
    }
    let store = Store::new(folder.path());
    for limit in [1, 3, 5, 10, 20, 1000] {
        let mut place = store.beginning();
        let found = told(&store, &mut place, limit);
        assert!(place.len() < 480, "{place}");
        assert_eq!(found, (0..280).map(|number| format!("r{number}")).collect::<Vec<_>>(), "{limit}");
    }
}

/// Two processes that write in turns, new segments of both, and a clock that jumps: a reader who follows
/// learns of each event once.
#[test]
fn a_follower_misses_nothing_while_two_processes_write_and_clocks_jump() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path());
    // There is nothing yet.
    fs::create_dir_all(folder.path()).unwrap();
    let mut place = store.after(&Filter::everything(), None, 10).unwrap().place.unwrap();
    let mut first = Writer::open(settings(folder.path()), false).unwrap();
    first.add(&event(0), None);
    first.commit(NOW).unwrap();
    let mut second = Writer::open(settings(folder.path()), true).unwrap();
    let mut found = told(&store, &mut place, 2);
    let year = 365 * 86_400_000;
    let clocks =
        [NOW + 5, NOW + 9, NOW + 86_400_000, NOW + 10, NOW + 20 * year, NOW + 11, NOW + 12, NOW - 86_400_000];
    for (step, clock) in clocks.into_iter().enumerate() {
        let writer = if step % 2 == 0 { &mut second } else { &mut first };
        writer.add(&event(step as u64 + 1), None);
        // Retention is not looked at here: a clock in the future makes all events old.
        writer.commit(clock).unwrap();
        found.extend(told(&store, &mut place, 2));
    }
    found.sort();
    assert_eq!(found, (0..9).map(|number| format!("r{number}")).collect::<Vec<_>>());
}

/// Whatever is queued when the recorder ends is written, and requests that became one event keep their count.
#[test]
fn a_shutdown_writes_the_whole_queue() {
    for coalesce_above in [0, 3] {
        let folder = tempfile::tempdir().unwrap();
        let writer = Writer::open(settings(folder.path()), false).unwrap();
        let limits = QueueLimits { events_max: 20_000, bytes_max: 1 << 30 };
        let registry = Registry::new();
        let recorder =
            Recorder::start(writer, coalesce_above, limits, &registry, Arc::new(|_: &str| {})).unwrap();
        let handle = recorder.handle();
        let one = Arc::new(event(1));
        (0..15_000).for_each(|_| handle.event(Arc::clone(&one), None));
        assert_eq!(recorder.shutdown(Duration::from_secs(60)), 0);
        let store = Store::new(folder.path());
        let (mut sum, mut place) = (0, store.beginning());
        loop {
            let after = store.after(&Filter::everything(), Some(&place), 1000).unwrap();
            sum += after.events.iter().map(|event| event.count).sum::<u64>();
            place = after.place.unwrap();
            if after.at_end {
                break;
            }
        }
        assert_eq!(sum, 15_000, "{coalesce_above}");
    }
}

/// A folder that cannot be written to for days costs roll-ups, which is told, and not memory.
#[test]
fn roll_ups_that_cannot_be_written_are_bounded_and_their_loss_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events");
    let mut writer = Writer::open(settings(&path), false).unwrap();
    let tallies = Tallies::default();
    fs::remove_dir_all(&path).unwrap();
    for minute in 0..1100 {
        count(&tallies, 1, NOW + minute * 60_000);
        writer.count(tallies.take());
        writer.commit(NOW).unwrap_err();
    }
    fs::create_dir(&path).unwrap();
    let committed = writer.commit(NOW).unwrap();
    assert_eq!(committed.notices.len(), 1, "{committed:?}");
    let kept = Store::new(&path).minutes(0..u64::MAX, None).unwrap().items.len();
    assert!(kept < 1024, "{kept}");
}
