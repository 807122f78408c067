use std::collections::HashSet;

use portcullis_event::Event;
use portcullis_event_store::{Store, Writer};
use proptest::prelude::*;

use crate::common::*;

const EVENTS: u64 = 2500;

fn all(test: impl Fn(&Event) -> bool) -> Vec<String> {
    (0..EVENTS).rev().map(event).filter(|event| test(event)).map(|event| event.request_id).collect()
}

fn is_in(event: &Event, network: &str) -> bool {
    portcullis_query::Network::parse(network).unwrap().contains(event.client.addr.parse().unwrap())
}

/// Whatever the sizes of commits and pages are, a filter finds what a look at each event finds, newest first.
#[test]
fn a_filter_finds_what_a_look_at_each_event_finds() {
    for every in [1, 7, 400, u64::MAX] {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = Writer::open(settings(folder.path()), false).unwrap();
        write(&mut writer, 0..EVENTS, every);
        let store = Store::new(folder.path());
        let check = |filter: &str, expected: Vec<String>| {
            for limit in [37, 1000] {
                assert_eq!(ids(&store, filter, limit), expected, "{filter}, a commit each {every}");
            }
        };
        check("", all(|_| true));
        check("site = shop", all(|e| &*e.site == "shop"));
        check("site = SHOP", Vec::new());
        check("method = post", all(|e| e.request.method == "POST"));
        check("status = 403", all(|e| e.response.status == Some(403)));
        check("status != 403", all(|e| e.response.status != Some(403)));
        check("not status < 500", all(|e| e.response.status.is_none_or(|status| status >= 500)));
        check("status in (200, 500)", all(|e| matches!(e.response.status, Some(200 | 500))));
        check(
            "verdict = deny and site = blog",
            all(|e| e.verdict.action.name() == "deny" && &*e.site == "blog"),
        );
        check("client in 192.0.3.0/24", all(|e| is_in(e, "192.0.3.0/24")));
        check("client in 192.0.0.0/12", all(|e| is_in(e, "192.0.0.0/12")));
        check("client in 2001:db8:3::/48", all(|e| is_in(e, "2001:db8:3::/48")));
        check("client = 192.0.1.1", all(|e| e.client.addr == "192.0.1.1"));
        check("path ^= /a/7", all(|e| e.request.target.starts_with("/a/7")));
        check("path ^= /a/1/", all(|e| e.request.target.starts_with("/a/1/")));
        check("path = /b/10/item", all(|e| e.request.target.starts_with("/b/10/item?")));
        check("id = r1234", vec!["r1234".to_owned()]);
        check("id = r123", vec!["r123".to_owned()]);
        check("\"union SELECT\"", all(|e| e.verdict.reason.contains("Union Select")));
        check(
            "'\"alert(1)\"' and site = api",
            all(|e| e.verdict.reason.contains("alert(1)") && &*e.site == "api"),
        );
        check("\"x=2345\"", vec!["r2345".to_owned()]);
        check("\"no such text\"", Vec::new());
        let (from, to) = (NOW + 5000, NOW + 6000);
        check(
            "time >= 2026-11-26T00:00:05Z and time < 2026-11-26T00:00:06Z",
            all(|e| (from..to).contains(&e.time.epoch_millis())),
        );
        let found = store.event("r77").unwrap().unwrap();
        assert_eq!((found.request, found.count), (Some(kept(77)), 1));
        assert_eq!(store.event("r7777").unwrap(), None);
    }
}

#[test]
fn new_events_are_told_once_and_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = Writer::open(settings(folder.path()), false).unwrap();
    let store = Store::new(folder.path());
    let filter = portcullis_query::parse("site = shop", NOW).unwrap();
    write(&mut writer, 0..10, 3);
    let newest = store.after(&filter, None, 100).unwrap();
    assert!(newest.events.is_empty() && newest.at_end);
    let mut place = newest.place;
    let (mut told, mut begin) = (Vec::new(), 10);
    for step in [1, 40, 300, 2000, 0, 5] {
        write(&mut writer, begin..begin + step, 17);
        begin += step;
        loop {
            let after = store.after(&filter, place.as_deref(), 64).unwrap();
            assert_eq!(after.skipped, Vec::<String>::new());
            place = after.place;
            told.extend(after.events.iter().map(|event| id(&event.json)));
            if after.at_end {
                break;
            }
        }
    }
    let expected: Vec<String> =
        (10..begin).map(event).filter(|event| &*event.site == "shop").map(|event| event.request_id).collect();
    assert_eq!(told, expected);
    let beginning = store.beginning();
    assert_eq!(id(&store.after(&filter, Some(&beginning), 1).unwrap().events[0].json), "r0");
}

#[test]
fn a_page_whose_time_is_up_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = Writer::open(settings(folder.path()), false).unwrap();
    write(&mut writer, 0..50, u64::MAX);
    let filter = portcullis_query::parse("", NOW).unwrap();
    let patience = std::time::Duration::ZERO;
    let request = portcullis_event_store::PageRequest { filter: &filter, before: None, limit: 10, patience };
    let page = Store::new(folder.path()).page(&request).unwrap();
    assert!(!page.complete && page.events.is_empty() && page.next.is_some());
    let store = Store::new(folder.path());
    assert_eq!(crate::common::page(&store, "", page.next.as_deref(), 10).events.len(), 10);
    let wrong = portcullis_event_store::PageRequest { before: Some("x"), ..request };
    assert_eq!(store.page(&wrong).unwrap_err().to_string(), "`x` is no cursor of a page of events");
}

/// Trials have no column: they are found in the event, and nothing that a client sends is taken for one.
#[test]
fn events_are_found_by_their_trials() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = Writer::open(settings(folder.path()), false).unwrap();
    let (tried, other) = ("0123456789abcdef", "fedcba9876543210");
    let lie = format!("\"trials\":[\"{tried}\"]");
    for number in 0..3000 {
        let mut event = event(number);
        match number {
            5 | 2100 => event.trials = vec![other.to_owned(), tried.to_owned()],
            700 => event.trials = vec![other.to_owned()],
            900 => event.request.target = format!("/{lie}"),
            901 => event.verdict.reason = lie.clone(),
            902 => event.client.addr = format!("{lie},"),
            _ => {}
        }
        if writer.add(&event, None) {
            writer.commit(NOW).unwrap();
        }
    }
    writer.commit(NOW).unwrap();
    let store = Store::new(folder.path());
    for (filter, expected) in [
        (format!("trial = {tried}"), &["r2100", "r5"][..]),
        (format!("trial in (x, {other})"), &["r2100", "r700", "r5"]),
        (format!("trial ^= 0123 and not trial != {other}"), &["r2100", "r5"]),
        (format!("trial ~ 3210 and trial != {tried}"), &["r700"]),
        ("trial = 0123".to_owned(), &[]),
    ] {
        assert_eq!(ids(&store, &filter, 2), expected, "{filter}");
    }
    assert_eq!(ids(&store, &format!("trial != {tried}"), 1000).len(), 2998);
}

/// Locations have no column either: they are those of findings and scores, not what a client sends.
#[test]
fn events_are_found_by_the_location_of_findings() {
    use portcullis_event::{FindingOutcome, SemanticScore};
    use portcullis_types::{Class, Place};
    let folder = tempfile::tempdir().unwrap();
    let mut writer = Writer::open(settings(folder.path()), false).unwrap();
    let score = |place, name: &str| SemanticScore {
        class: Class::Field,
        place,
        name: name.to_owned(),
        points: 5.0,
        threshold: 4.0,
        outcome: FindingOutcome::Detected,
    };
    let lie = r#""findings":[{"place":"query","name":"unit_price"}]"#;
    for number in 0..3000 {
        let mut event = event(number);
        match number {
            5 => event.scores.semantic = vec![score(Place::Query, "Unit_Price")],
            700 => event.scores.semantic = vec![score(Place::Form, "unit_price"), score(Place::Path, "")],
            900 => event.request.target = format!("/{lie}"),
            901 => event.verdict.reason = lie.to_owned(),
            2100 => event.scores.semantic = vec![score(Place::Query, "a \"quote\" and \u{202e}")],
            _ => {}
        }
        if writer.add(&event, None) {
            writer.commit(NOW).unwrap();
        }
    }
    writer.commit(NOW).unwrap();
    let store = Store::new(folder.path());
    for (filter, expected) in [
        ("location = query:unit_price", &["r5"][..]),
        ("location in (query:unit_price, path)", &["r700", "r5"]),
        ("location ^= form:", &["r700"]),
        ("location ~ unit_ and location != query:unit_price", &["r700"]),
        ("location = \"query:a \\\"quote\\\" and \u{202e}\"", &["r2100"]),
        ("location = unit_price", &[]),
    ] {
        assert_eq!(ids(&store, filter, 2), expected, "{filter}");
    }
    assert_eq!(ids(&store, "location != query:unit_price", 1000).len(), 2999);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Commits of any sizes: each event is there once, and the newest comes first.
    #[test]
    fn every_event_is_there_once(commits in prop::collection::vec(1u64..200, 1..60), limit in 1usize..300) {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = Writer::open(settings(folder.path()), false).unwrap();
        let mut begin = 0;
        for commit in commits {
            write(&mut writer, begin..begin + commit, u64::MAX);
            begin += commit;
        }
        let found = ids(&Store::new(folder.path()), "", limit);
        prop_assert_eq!(found.iter().collect::<HashSet<_>>().len() as u64, begin);
        let in_order = (0..begin).rev().map(|number| format!("r{number}"));
        prop_assert!(found.iter().cloned().eq(in_order));
    }
}
