//! The thread that records: what it counts, and what it tells.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use portcullis_event::{Event, Timestamp};
use portcullis_event_store::{Recorder, SampleHandle, Store, StoreSettings, Writer};
use portcullis_log::QueueLimits;
use portcullis_metrics::Registry;

use crate::common::*;

/// The value of a series in the text that Prometheus reads.
fn metric(registry: &Registry, series: &str) -> f64 {
    let text = registry.render();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("portcullis_{series} ")));
    line.unwrap_or_else(|| panic!("{series}: {text}")).parse().unwrap()
}

/// An event of this second: the recorder goes by the clock, and statistics are looked for around it.
fn event_of_today() -> Event {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
    let mut event = event(1);
    event.time = Timestamp::from_epoch_millis(now);
    event
}

fn until(mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(10));
    }
}

struct Recording {
    registry: Arc<Registry>,
    recorder: Recorder,
    said: Arc<Mutex<Vec<String>>>,
}

fn record(folder: &Path, coalesce_above: u32, limits: QueueLimits) -> Recording {
    let writer = Writer::open(StoreSettings::new(folder), false).unwrap();
    let (registry, said) = (Registry::new(), Arc::new(Mutex::new(Vec::new())));
    let say = {
        let said = Arc::clone(&said);
        Arc::new(move |line: &str| said.lock().unwrap().push(line.to_owned()))
    };
    let recorder = Recorder::start(writer, coalesce_above, limits, &registry, say).unwrap();
    Recording { registry, recorder, said }
}

#[test]
fn every_event_is_stored_counted_in_another_or_counted_as_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let limits = QueueLimits { events_max: 500, ..QueueLimits::default() };
    let Recording { registry, recorder, said } = record(folder.path(), 2, limits);
    let handle = recorder.handle();
    let first = event_of_today();
    let start = first.time.epoch_millis() / 1000;
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let (handle, event) = (handle.clone(), first.clone());
            std::thread::spawn(move || (0..5000).for_each(|_| handle.event(Arc::new(event.clone()), None)))
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    until(|| metric(&registry, "event_store_queued") == 0.0);
    assert_eq!(recorder.shutdown(Duration::from_secs(30)), 0);
    let store = Store::new(folder.path());
    let events = page(&store, "", None, 1000).events;
    let stored: u64 = events.iter().map(|event| event.count).sum();
    let dropped = metric(&registry, "event_store_dropped_total{reason=\"queue_full\"}");
    assert_eq!(stored as f64 + dropped, 20_000.0);
    assert_eq!(metric(&registry, "event_store_written_total"), events.len() as f64);
    let coalesced = metric(&registry, "event_store_coalesced_total");
    let several = events.iter().filter(|event| event.count > 1).count();
    assert!(several > 0);
    assert_eq!(events.len() as f64 + coalesced + dropped, 20_000.0);
    assert!(metric(&registry, "event_store_bytes") >= 0.0);
    // What was dropped from the queue is in the statistics all the same.
    let day = start - 86_400..start + 86_400;
    let counted: u64 = store.overview(day, None).unwrap().items.iter().map(|site| site.rollup.events).sum();
    assert_eq!(counted, 20_000);
    assert_eq!(*said.lock().unwrap(), Vec::<String>::new());
}

#[test]
fn a_store_that_cannot_be_written_to_costs_counted_events_and_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let Recording { registry, recorder, said } = record(folder.path(), 0, QueueLimits::default());
    let handle = recorder.handle();
    handle.event(Arc::new(event_of_today()), None);
    until(|| metric(&registry, "event_store_written_total") == 1.0);
    // Damage in what it is about to write to, as of a disk that fails.
    let segment = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let segment =
        segment.into_iter().find(|path| path.extension().is_some_and(|end| end == "events")).unwrap();
    recorder.shutdown(Duration::from_secs(30));
    fs::write(&segment, vec![7; 100_000]).unwrap();
    let Recording { registry, recorder, said: again } = record(folder.path(), 0, QueueLimits::default());
    recorder.handle().event(Arc::new(event_of_today()), None);
    until(|| metric(&registry, "event_store_written_total") == 1.0);
    until(|| metric(&registry, "event_store_segments_dropped_total{reason=\"damaged\"}") == 1.0);
    until(|| !again.lock().unwrap().is_empty());
    assert!(again.lock().unwrap()[0].contains("was set aside"), "{again:?}");
    // The folder is gone: every commit fails, and that is told once.
    fs::remove_dir_all(folder.path()).unwrap();
    recorder.handle().event(Arc::new(event_of_today()), None);
    std::thread::sleep(Duration::from_millis(700));
    recorder.shutdown(Duration::from_secs(30));
    assert!(again.lock().unwrap().len() <= 2, "{again:?}");
    assert_eq!(*said.lock().unwrap(), Vec::<String>::new());
}

/// When there is too much to do, requests are given up before events.
#[test]
fn requests_make_room_for_events() {
    let folder = tempfile::tempdir().unwrap();
    let limits = QueueLimits { events_max: 8, bytes_max: 1 << 20 };
    let Recording { registry, recorder, .. } = record(folder.path(), 0, limits);
    let handle = recorder.handle();
    for number in 0..2000 {
        handle.event(Arc::new(event(number)), Some(Box::new(kept(number))));
    }
    assert_eq!(recorder.shutdown(Duration::from_secs(30)), 0);
    let events = page(&Store::new(folder.path()), "", None, 2000).events;
    let without = events.iter().filter(|event| event.request.is_none()).count() as f64;
    let not_kept = metric(&registry, "event_store_requests_not_kept_total");
    assert!(not_kept > 0.0 && without <= not_kept, "{without} {not_kept}");
    let with = events.iter().filter_map(|stored| Some((stored, stored.request.as_ref()?)));
    let mut count = 0;
    for (stored, request) in with {
        count += 1;
        assert!(stored.json.contains(&format!("\"request_id\":\"r{}\"", request.omitted)), "{}", stored.json);
    }
    assert!(count > 0);
}

/// The sample of a recorder, and the thread that writes it.
fn sample(folder: &Path, events: &Recorder, registry: &Registry) -> (Recorder, SampleHandle) {
    let settings = StoreSettings { keep_bytes: StoreSettings::KEEP_BYTES_MIN, ..StoreSettings::new(folder) };
    let writer = Writer::open(settings, false).unwrap();
    let say = Arc::new(|_: &str| {});
    let recorder = Recorder::start_sample(writer, QueueLimits::default(), registry, say).unwrap();
    let handle = recorder.sample_of(events.handle());
    (recorder, handle)
}

/// A sample gives way to events, whatever is wrong with their store.
#[test]
fn requests_of_the_sample_are_given_up_before_events() {
    let folder = tempfile::tempdir().unwrap();
    let (events, passed) = (folder.path().join("events"), folder.path().join("sample"));
    let limits = QueueLimits { events_max: 64, ..QueueLimits::default() };
    let Recording { registry, recorder, .. } = record(&events, 0, limits);
    let (writes, sample) = sample(&passed, &recorder, &registry);
    let take = |number: u64| sample.request(Arc::new(event(number)), Some(Box::new(kept(number))));
    take(1);
    until(|| metric(&registry, "capture_written_total") == 1.0);
    assert_eq!(metric(&registry, "capture_given_up_total"), 0.0);
    // Nothing of it is counted among events.
    assert_eq!(metric(&registry, "event_store_written_total"), 0.0);
    let flood = recorder.handle();
    for number in 0..20_000 {
        flood.event(Arc::new(event(number)), None);
        take(number);
    }
    let given_up = metric(&registry, "capture_given_up_total");
    assert!(given_up > 0.0);
    recorder.shutdown(Duration::from_secs(30));
    assert_eq!(writes.shutdown(Duration::from_secs(30)), 0);
    let stored = ids(&Store::new(&passed), "", 1000).len() as f64;
    assert!(page(&Store::new(&passed), "", None, 100).events.iter().all(|event| event.request.is_some()));
    let lost = metric(&registry, "capture_dropped_total{reason=\"queue_full\"}")
        + metric(&registry, "capture_dropped_total{reason=\"queue_bytes\"}");
    assert_eq!(stored + lost + metric(&registry, "capture_given_up_total"), 20_001.0);
    assert!(metric(&registry, "capture_queued") == 0.0 && metric(&registry, "capture_bytes") >= 0.0);
    // A segment that is damaged is set aside, as one of events.
    let files = fs::read_dir(&passed).unwrap().map(|entry| entry.unwrap().path());
    for segment in files.filter(|path| path.extension().is_some_and(|end| end == "events")) {
        fs::write(segment, vec![7; 100_000]).unwrap();
    }
    let Recording { registry, recorder, .. } = record(&events, 0, limits);
    let (writes, again) = self::sample(&passed, &recorder, &registry);
    again.request(Arc::new(event_of_today()), None);
    until(|| metric(&registry, "capture_segments_dropped_total{reason=\"damaged\"}") == 1.0);
    writes.shutdown(Duration::from_secs(30));
    recorder.shutdown(Duration::from_secs(30));
}

/// Where events cannot be written the disk is not filled with a sample.
#[test]
fn nothing_is_sampled_while_events_are_lost() {
    let folder = tempfile::tempdir().unwrap();
    let (events, passed) = (folder.path().join("events"), folder.path().join("sample"));
    let Recording { registry, recorder, .. } = record(&events, 0, QueueLimits::default());
    let (writes, sample) = sample(&passed, &recorder, &registry);
    fs::remove_dir_all(&events).unwrap();
    recorder.handle().event(Arc::new(event_of_today()), None);
    until(|| metric(&registry, "event_store_dropped_total{reason=\"write_error\"}") == 1.0);
    until(|| {
        sample.request(Arc::new(event(7)), Some(Box::new(kept(7))));
        metric(&registry, "capture_given_up_total") > 0.0
    });
    recorder.shutdown(Duration::from_secs(30));
    writes.shutdown(Duration::from_secs(30));
}
