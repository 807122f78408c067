//! The pipeline from `submit` to bytes in a file, with sinks that fail, block and come back.

use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use portcullis_event::{Event, RuleEffect, RuleInfo, RuleMatch, Timestamp};
use portcullis_log::{EventLog, Format, QueueLimits, Rotation, SinkConfig, StartError, Target};
use portcullis_metrics::Registry;
use portcullis_types::{Phase, RuleId};

const LONG: Duration = Duration::from_secs(10);

fn event(id: usize) -> Event {
    Event::new(format!("r{id}"), Timestamp::from_epoch_millis(0))
}

fn stream(name: &str, writer: impl Write + Send + 'static) -> SinkConfig {
    SinkConfig { name: name.into(), format: Format::JsonLines, target: Target::Writer(Box::new(writer)) }
}

fn rotating(path: &Path, bytes_max: u64, keep: u32) -> SinkConfig {
    let target = Target::File { path: path.into(), rotation: Some(Rotation { bytes_max, keep }) };
    SinkConfig { name: "json".into(), format: Format::JsonLines, target }
}

/// A sample of the registry, 0 if there is none.
fn value(registry: &Registry, series: &str) -> u64 {
    let text = registry.render();
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.map_or(0, |value| value.parse().expect("a number"))
}

fn dropped(registry: &Registry, sink: &str, reason: &str) -> u64 {
    value(registry, &format!("portcullis_events_dropped_total{{sink=\"{sink}\",reason=\"{reason}\"}}"))
}

fn written(registry: &Registry, sink: &str) -> u64 {
    value(registry, &format!("portcullis_events_written_total{{sink=\"{sink}\"}}"))
}

/// Request ids of the lines, every one of which has to be whole.
fn ids(text: &str) -> Vec<usize> {
    assert!(text.is_empty() || text.ends_with('\n'), "the last line is whole");
    let id = |line: &str| {
        let start = "{\"schema\":1,\"request_id\":\"r";
        let rest = line.strip_prefix(start).unwrap_or_else(|| panic!("torn line: {line}"));
        assert!(rest.ends_with('}'), "torn line: {line}");
        rest[..rest.find('"').expect("an id")].parse().expect("a number")
    };
    text.lines().map(id).collect()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("the sink's file")
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < LONG, "never: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn many_workers_one_file_in_order_of_each() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("events.jsonl");
    let registry = Registry::new();
    let limits = QueueLimits { events_max: 100_000, ..QueueLimits::default() };
    let log = EventLog::new(vec![SinkConfig::file("json", Format::JsonLines, &path)], limits, &registry)
        .expect("the log starts");
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let sender = log.sender();
            scope.spawn(move || (0..5000).for_each(|i| sender.submit(event(worker * 10_000 + i))));
        }
    });
    assert_eq!(log.shutdown(LONG), 0);
    let ids = ids(&read(&path));
    assert_eq!((ids.len(), written(&registry, "json")), (20_000, 20_000));
    for worker in 0..4 {
        let own: Vec<usize> = ids.iter().copied().filter(|id| id / 10_000 == worker).collect();
        assert_eq!(own, (0..5000).map(|i| worker * 10_000 + i).collect::<Vec<_>>());
    }
    assert_eq!(value(&registry, "portcullis_events_queued"), 0);
}

#[test]
fn an_event_is_in_the_file_without_another_to_push_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("events.jsonl");
    let sinks = vec![SinkConfig::file("json", Format::JsonLines, &path)];
    let log = EventLog::new(sinks, QueueLimits::default(), &Registry::new()).expect("the log starts");
    for i in 0..20 {
        log.sender().submit(event(i));
        wait_until("the event is in the file", || ids(&read(&path)).len() == i + 1);
        // Sometimes the writer sleeps, sometimes it lingers.
        std::thread::sleep(Duration::from_millis((i % 3) as u64 * 4));
    }
}

#[test]
fn formats() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("error.log");
    let registry = Registry::new();
    let sinks = vec![SinkConfig::file("modsecurity", Format::ModSecurity, &path)];
    let log = EventLog::new(sinks, QueueLimits::default(), &registry).expect("the log starts");
    let mut matched = event(1);
    for id in [920350, 949110] {
        matched.push_match(RuleMatch {
            rule: Arc::new(RuleInfo {
                rule_id: RuleId(id),
                phase: Phase::RequestHeaders,
                severity: None,
                operator: "rx".into(),
                argument: "x".into(),
                transformations: Box::new([]),
                tags: Box::new([]),
                ver: None,
                rev: None,
                maturity: None,
                accuracy: None,
                file: "rules.conf".into(),
                line: 1,
            }),
            message: String::new(),
            data: String::new(),
            target: "ARGS:a".into(),
            value: String::new(),
            span: None,
            points: 0,
            effect: RuleEffect::None,
        });
    }
    log.sender().submit(matched);
    log.sender().submit(event(2));
    log.shutdown(LONG);
    let text = read(&path);
    assert_eq!(text.lines().count(), 2, "{text}");
    assert!(text.contains("[id \"920350\"]") && text.contains("[id \"949110\"]"));
    assert_eq!(written(&registry, "modsecurity"), 1, "an event without lines is not written");
}

/// A writer that waits for permission before its first byte.
struct Gate(Receiver<()>, Arc<Mutex<Vec<u8>>>);

impl Write for Gate {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = self.0.recv();
        self.1.lock().expect("no panic").extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_sink_that_blocks_costs_events_but_no_time() {
    let (open, gate) = channel();
    let output = Arc::new(Mutex::new(Vec::new()));
    let registry = Registry::new();
    let limits = QueueLimits { events_max: 10, ..QueueLimits::default() };
    let log = EventLog::new(vec![stream("slow", Gate(gate, output.clone()))], limits, &registry)
        .expect("the log starts");
    log.sender().submit(event(0));
    wait_until("the writer has taken the first", || value(&registry, "portcullis_events_queued") == 0);
    // None waits for the gate, which opens behind them.
    (1..=25).for_each(|i| log.sender().submit(event(i)));
    assert_eq!(dropped(&registry, "queue", "queue_full"), 15);
    assert_eq!(value(&registry, "portcullis_events_queued"), 10);
    drop(open);
    assert_eq!(log.shutdown(LONG), 0);
    let text = String::from_utf8(output.lock().expect("no panic").clone()).expect("UTF-8");
    assert_eq!(ids(&text), (0..=10).collect::<Vec<_>>(), "the newest are dropped");
}

#[test]
fn the_queue_is_bounded_by_bytes() {
    let (open, gate) = channel::<()>();
    let registry = Registry::new();
    let limits = QueueLimits { events_max: 1000, bytes_max: 100_000 };
    let log = EventLog::new(vec![stream("slow", Gate(gate, Arc::default()))], limits, &registry)
        .expect("the log starts");
    let large = |id| {
        let mut event = event(id);
        event.request.target = "x".repeat(40_000);
        event
    };
    log.sender().submit(large(0));
    wait_until("the writer has taken the first", || value(&registry, "portcullis_events_queued") == 0);
    (1..=5).for_each(|i| log.sender().submit(large(i)));
    assert_eq!(dropped(&registry, "queue", "queue_bytes"), 3);
    drop(open);
    assert_eq!(log.shutdown(LONG), 0);
    assert_eq!(written(&registry, "slow"), 3);
}

#[test]
fn shutdown_keeps_its_deadline_and_counts_what_is_left() {
    let (_open, gate) = channel::<()>();
    let registry = Registry::new();
    let log =
        EventLog::new(vec![stream("slow", Gate(gate, Arc::default()))], QueueLimits::default(), &registry)
            .expect("the log starts");
    let late = log.sender();
    late.submit(event(0));
    wait_until("the writer has taken the first", || value(&registry, "portcullis_events_queued") == 0);
    (1..=3).for_each(|i| late.submit(event(i)));
    // The gate stays shut.
    assert_eq!(log.shutdown(Duration::from_millis(50)), 3);
    late.submit(event(4));
    assert_eq!(dropped(&registry, "queue", "shutdown"), 4);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_counted_and_other_sinks_go_on() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("events.jsonl");
    let registry = Registry::new();
    let sinks = vec![
        SinkConfig::file("full", Format::JsonLines, "/dev/full"),
        SinkConfig::file("json", Format::JsonLines, &path),
    ];
    let log = EventLog::new(sinks, QueueLimits::default(), &registry).expect("the log starts");
    (0..100).for_each(|i| log.sender().submit(event(i)));
    assert_eq!(log.shutdown(LONG), 0);
    assert_eq!((dropped(&registry, "full", "disk_full"), written(&registry, "full")), (100, 0));
    assert_eq!((written(&registry, "json"), ids(&read(&path)).len()), (100, 100));
}

/// A disk with moods: writes parts, fails, works. Follows a seed.
struct Moody {
    state: u64,
    output: Arc<Mutex<Vec<u8>>>,
}

impl Write for Moody {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let dice = (self.state >> 33) as usize;
        let n = match dice % 4 {
            0 => return Err(io::Error::from(io::ErrorKind::StorageFull)),
            1 => return Err(io::Error::from(io::ErrorKind::Interrupted)),
            2 => dice / 4 % bytes.len() + 1,
            _ => bytes.len(),
        };
        self.output.lock().expect("no panic").extend_from_slice(&bytes[..n]);
        Ok(n)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn whatever_the_disk_does_lines_are_whole_and_the_books_balance() {
    for seed in 0..50 {
        let output = Arc::new(Mutex::new(Vec::new()));
        let registry = Registry::new();
        let sink = stream("moody", Moody { state: seed, output: output.clone() });
        let log = EventLog::new(vec![sink], QueueLimits::default(), &registry).expect("the log starts");
        for i in 0..300 {
            log.sender().submit(event(i));
            if i % 50 == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        assert_eq!(log.shutdown(LONG), 0, "seed {seed}");
        let (written, dropped) = (written(&registry, "moody"), dropped(&registry, "moody", "disk_full"));
        assert_eq!(written + dropped, 300, "seed {seed}");
        let text = String::from_utf8(output.lock().expect("no panic").clone()).expect("UTF-8");
        // The very last event may have been begun and never finished.
        let whole = &text[..text.rfind('\n').map_or(0, |i| i + 1)];
        let ids = ids(whole);
        assert_eq!(ids.len() as u64 + u64::from(whole.len() < text.len()), written, "seed {seed}");
        assert!(ids.is_sorted(), "seed {seed}");
    }
}

#[test]
fn files_are_opened_again_on_request() {
    let dir = tempfile::tempdir().expect("a directory");
    let (path, moved) = (dir.path().join("events.jsonl"), dir.path().join("moved"));
    let registry = Registry::new();
    let sinks = vec![SinkConfig::file("json", Format::JsonLines, &path)];
    let log = EventLog::new(sinks, QueueLimits::default(), &registry).expect("the log starts");
    log.sender().submit(event(1));
    wait_until("the first is written", || written(&registry, "json") == 1);
    std::fs::rename(&path, &moved).expect("renaming");
    log.sender().submit(event(2));
    wait_until("the second is written", || written(&registry, "json") == 2);
    log.reopen();
    wait_until("the file is there again", || path.exists());
    log.sender().submit(event(3));
    log.shutdown(LONG);
    assert_eq!((ids(&read(&moved)), ids(&read(&path))), (vec![1, 2], vec![3]));
}

#[test]
fn files_are_put_aside_at_their_limit() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("events.jsonl");
    let size = event(10).json_line().len() as u64;
    let registry = Registry::new();
    let log = EventLog::new(vec![rotating(&path, 2 * size, 2)], QueueLimits::default(), &registry)
        .expect("the log starts");
    for i in 10..17 {
        log.sender().submit(event(i));
        wait_until("it is written", || written(&registry, "json") == i as u64 - 9);
    }
    log.shutdown(LONG);
    let aside = |n: u32| dir.path().join(format!("events.jsonl.{n}"));
    assert_eq!(ids(&read(&path)), [16]);
    assert_eq!(ids(&read(&aside(1))), [14, 15]);
    assert_eq!(ids(&read(&aside(2))), [12, 13]);
    assert!(!aside(3).exists());
}

#[test]
fn a_line_left_open_by_a_crash_is_ended() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("events.jsonl");
    std::fs::write(&path, "{\"half").expect("writing");
    let sinks = vec![SinkConfig::file("json", Format::JsonLines, &path)];
    let log = EventLog::new(sinks, QueueLimits::default(), &Registry::new()).expect("the log starts");
    log.sender().submit(event(1));
    log.shutdown(LONG);
    let text = read(&path);
    assert_eq!(ids(text.strip_prefix("{\"half\n").expect("the old line, ended")), [1]);
}

#[test]
fn a_sink_without_a_directory_is_an_error_that_names_it() {
    let sinks = vec![SinkConfig::file("json", Format::JsonLines, "/nonexistent/events.jsonl")];
    let error =
        EventLog::new(sinks, QueueLimits::default(), &Registry::new()).expect_err("no such directory");
    assert!(
        matches!(&error, StartError::Open { path, .. } if path == Path::new("/nonexistent/events.jsonl"))
    );
    assert!(error.to_string().starts_with("cannot open the log /nonexistent/events.jsonl: "), "{error}");
}

#[test]
fn without_sinks_nothing_runs_and_nothing_is_counted() {
    let registry = Registry::new();
    let log = EventLog::new(Vec::new(), QueueLimits::default(), &registry).expect("the log starts");
    assert!(!log.sender().is_enabled());
    log.sender().submit(event(1));
    assert_eq!(log.shutdown(LONG), 0);
    assert_eq!(dropped(&registry, "queue", "shutdown"), 0);
}
