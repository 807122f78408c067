//! Roll-ups: sums over minutes, hours, commits, segments and the archive are those of all requests.

use std::net::IpAddr;
use std::time::Duration;

use portcullis_event::{AccessRecord, Action, Coverage, NotInspected, Timestamp};
use portcullis_event_store::{Dimension, Rollup, Store, StoreSettings, Tallies, Writer};

use crate::common::*;

const MINUTE: u64 = 60;
const HOUR: u64 = 3600;
const DAY_MS: u64 = 86_400_000;

/// Counts request number `n`, which ended at `ended_ms`.
fn count(tallies: &Tallies, n: u64, ended_ms: u64) {
    let target = format!("/users/{n}/edit?n={n}");
    let record = AccessRecord {
        time: Timestamp::from_epoch_millis(ended_ms - 3),
        request_id: "r",
        client: IpAddr::from([192, 0, 2, (n % 7) as u8]),
        country: Some("DE"),
        asn: None,
        site: ["shop", "blog"][(n % 2) as usize],
        route: "/",
        method: b"GET",
        host: b"shop.example",
        target: target.as_bytes(),
        protocol: b"HTTP/1.1",
        status: (!n.is_multiple_of(5)).then_some(200),
        request_body_bytes: n,
        body_bytes: 10,
        duration_us: 3000,
        upstream: Some("10.0.0.5:80"),
        trace_id: None,
        verdict: [Action::Pass, Action::Deny][(n % 3 / 2) as usize],
        control: None,
        referer: None,
        user_agent: None,
    };
    let mut coverage = Coverage { bytes_inspected: 100, ..Coverage::default() };
    coverage.not_inspected(NotInspected::OverLimit, n % 2);
    // Every other one is inspected.
    let inspection = n.is_multiple_of(2).then_some(Duration::from_micros(700));
    tallies.own().request(&record, &coverage, inspection);
}

fn whole(store: &Store, range: std::ops::Range<u64>) -> Rollup {
    let mut whole = Rollup::default();
    store.overview(range, None).unwrap().items.iter().for_each(|site| whole.merge(&site.rollup));
    whole
}

#[test]
fn requests_are_counted_over_commits_and_processes() {
    let folder = tempfile::tempdir().unwrap();
    let tallies = Tallies::default();
    let start = NOW / 1000;
    for process in 0..3 {
        let mut writer = Writer::open(settings(folder.path()), false).unwrap();
        for n in process * 1000..(process + 1) * 1000 {
            count(&tallies, n, NOW + n * 5000);
            if n % 50 == 0 {
                writer.count(tallies.take());
                writer.commit(NOW + n * 5000).unwrap();
            }
        }
        tallies.own().event(&event(process));
        writer.count(tallies.take());
        writer.commit(NOW + process * 5_000_000).unwrap();
    }
    let store = Store::new(folder.path());
    // 15,000 s: hours in the middle, minutes at both ends.
    for range in [start..start + 15_000 + MINUTE, start - HOUR..start + 5 * HOUR] {
        let all = whole(&store, range);
        assert_eq!(
            (all.requests, all.events, all.response_bytes, all.bytes_inspected),
            (3000, 3, 30_000, 300_000)
        );
        assert_eq!((all.request_bytes, all.bytes_not_inspected()), ((0..3000).sum::<u64>(), 1500));
        assert_eq!(
            (all.by(Dimension::Status).count("none"), all.by(Dimension::Status).count("200")),
            (600, 2400)
        );
        assert_eq!(
            (all.by(Dimension::Path).count("/users/*/edit"), all.by(Dimension::Verdict).count("deny")),
            (3000, 1000)
        );
        assert_eq!(all.by(Dimension::Client).sorted().iter().map(|entry| entry.count).sum::<u64>(), 3000);
        assert_eq!((all.latency.count(), all.inspection.count()), (3000, 1500));
    }
    assert_eq!(store.overview(start..start + 5 * HOUR, Some("shop")).unwrap().items[0].rollup.requests, 1500);
    // A minute has twelve requests, six for each site.
    let minutes = store.minutes(start + HOUR..start + HOUR + 3 * MINUTE, Some("blog")).unwrap().items;
    assert_eq!(minutes.iter().map(|minute| minute.rollup.requests).collect::<Vec<_>>(), [6, 6, 6]);
    assert_eq!(minutes[0].start, start + HOUR);
    assert_eq!(store.hours(start..start + HOUR, None).unwrap().items.len(), 3);
}

#[test]
fn roll_ups_outlive_the_events_of_their_segment() {
    let folder = tempfile::tempdir().unwrap();
    let keep = Duration::from_secs(3 * 86_400);
    let hours = Duration::from_secs(8 * 86_400);
    let settings = StoreSettings { keep, keep_rollups: hours, ..StoreSettings::new(folder.path()) };
    let tallies = Tallies::default();
    let mut writer = Writer::open(settings, false).unwrap();
    for day in 0..10 {
        let now = NOW + day * DAY_MS;
        for n in 0..100 {
            count(&tallies, n, now + n * 1000);
        }
        writer.add(&event(day), None);
        writer.count(tallies.take());
        (0..20).for_each(|_| drop(writer.commit(now + 100_000).unwrap()));
    }
    let store = Store::new(folder.path());
    assert_eq!(ids(&store, "", 100).len(), 4);
    let day = |day: u64| {
        let start = (NOW + day * DAY_MS) / 1000;
        start..start + 86_400
    };
    let requests: Vec<u64> = (0..10).map(|number| whole(&store, day(number)).requests).collect();
    assert_eq!(requests, [0, 0, 100, 100, 100, 100, 100, 100, 100, 100]);
    let minutes = |number| store.minutes(day(number), None).unwrap().items.len();
    assert_eq!((minutes(3), minutes(9)), (0, 4));
}

#[test]
fn a_segment_that_was_not_deleted_after_its_roll_ups_were_taken_counts_once() {
    let folder = tempfile::tempdir().unwrap();
    let keep = Duration::from_secs(86_400);
    let settings = StoreSettings { keep, ..StoreSettings::new(folder.path()) };
    let tallies = Tallies::default();
    let mut writer = Writer::open(settings.clone(), false).unwrap();
    count(&tallies, 1, NOW);
    writer.count(tallies.take());
    writer.commit(NOW).unwrap();
    drop(writer);
    let segment = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let segment =
        segment.into_iter().find(|path| path.extension().is_some_and(|ending| ending == "events")).unwrap();
    let copy = std::fs::read(&segment).unwrap();
    let store = Store::new(folder.path());
    for _ in 0..3 {
        let mut writer = Writer::open(settings.clone(), false).unwrap();
        writer.add(&event(1), None);
        let committed = writer.commit(NOW + 5 * DAY_MS).unwrap();
        assert_eq!((committed.segments_dropped, committed.notices.len()), (1, 0), "{committed:?}");
        assert!(!segment.exists());
        // The crash: the file is there again.
        std::fs::write(&segment, &copy).unwrap();
        assert_eq!(whole(&store, NOW / 1000..NOW / 1000 + HOUR).requests, 1);
    }
}
