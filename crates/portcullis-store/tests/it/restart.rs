//! Recovery of a store: after an orderly end, after a crash, from a damaged file, and when its folder cannot
//! be used.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use portcullis_engine::{Change, Collections, RecordId, Sum, Value, VariableChange};
use portcullis_metrics::Registry;
use portcullis_store::{Limits, Options, Store, StoreMetrics};
use portcullis_testkit::wait::until;

/// A store, what it said, and its metrics.
struct Opened {
    store: Store,
    said: Arc<Mutex<Vec<String>>>,
    registry: Arc<Registry>,
}

fn open(folder: &Path) -> Opened {
    open_with(folder, Limits::default())
}

fn open_with(folder: &Path, limits: Limits) -> Opened {
    let said = Arc::new(Mutex::new(Vec::new()));
    let registry = Registry::new();
    let hear = Arc::clone(&said);
    let options = Options { limits, folder: Some(folder.to_path_buf()), ..Options::default() };
    let say = Arc::new(move |line: &str| hear.lock().unwrap().push(line.to_owned()));
    Opened { store: Store::open(options, StoreMetrics::new(&registry), say), said, registry }
}

impl Opened {
    fn said(&self) -> String {
        self.said.lock().unwrap().join("\n")
    }

    fn shows(&self, line: &str) -> bool {
        self.registry.render().lines().any(|shown| shown == line)
    }
}

fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64
}

fn count(store: &Store, key: &str) {
    let add = Change::Add(Sum { delta: 1, decay: 0, seen: 0, value: 1 });
    store.save(
        RecordId { name: b"ip", key: key.as_bytes() },
        3600,
        now(),
        &[VariableChange { variable: b"n", change: add }],
    );
}

fn counted(store: &Store, key: &str) -> Option<i64> {
    let mut number = None;
    store.load(RecordId { name: b"ip", key: key.as_bytes() }, now(), &mut |name, value| {
        if name == b"n" {
            number = Some(value.to_int());
        }
    });
    number
}

#[test]
fn an_orderly_end_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for round in 1..=3 {
        let opened = open(folder.path());
        for key in 0..500 {
            count(&opened.store, &key.to_string());
            assert_eq!(counted(&opened.store, &key.to_string()), Some(round));
        }
        assert_eq!(opened.said(), "");
    }
}

#[test]
fn a_crash_loses_what_was_not_written_and_a_torn_end() {
    let folder = tempfile::tempdir().unwrap();
    let crashed = tempfile::tempdir().unwrap();
    let opened = open(folder.path());
    let (from, to) = (folder.path().join("collections.log"), crashed.path().join("collections.log"));
    for key in 0..100 {
        count(&opened.store, &key.to_string());
    }
    let written = || fs::metadata(&from).unwrap().len();
    until(|| written() > 4_000);
    let before = written();
    count(&opened.store, "last");
    until(|| written() > before);
    // The file after a crash in the middle of a write.
    let bytes = fs::read(&from).unwrap();
    fs::write(&to, &bytes[..bytes.len() - 5]).unwrap();
    let after = open(crashed.path());
    assert_eq!(counted(&after.store, "42"), Some(1));
    assert_eq!(counted(&after.store, "last"), None);
    assert!(after.said().contains("torn bytes at the end are lost"), "{}", after.said());
    assert!(!after.shows("portcullis_store_lost_bytes_total 0"));
    // The next start finds a clean file.
    count(&after.store, "42");
    drop(after);
    let again = open(crashed.path());
    assert_eq!((counted(&again.store, "42"), again.said()), (Some(2), String::new()));
}

#[test]
fn damage_in_the_middle_costs_what_it_hit() {
    let folder = tempfile::tempdir().unwrap();
    drop({
        let opened = open(folder.path());
        (0..100).for_each(|key| count(&opened.store, &key.to_string()));
        opened
    });
    let path = folder.path().join("collections.log");
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 30].fill(0xff);
    fs::write(&path, bytes).unwrap();
    let opened = open(folder.path());
    let left = (0..100).filter(|key: &i32| counted(&opened.store, &key.to_string()).is_some()).count();
    assert!((97..100).contains(&left), "{left}");
    assert!(opened.said().contains("kept as collections.damaged"), "{}", opened.said());
    assert!(folder.path().join("collections.damaged").is_file());
}

#[test]
fn a_foreign_file_is_kept_and_not_read() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("collections.log"), "mailbox of somebody").unwrap();
    let opened = open(folder.path());
    count(&opened.store, "a");
    assert!(opened.said().contains("is not a file of collections"), "{}", opened.said());
    assert_eq!(fs::read(folder.path().join("collections.damaged")).unwrap(), b"mailbox of somebody");
    drop(opened);
    assert_eq!(counted(&open(folder.path()).store, "a"), Some(1));
}

#[test]
fn a_folder_that_comes_later_is_used_then() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("data");
    fs::write(&folder, "in the way").unwrap();
    let opened = open(&folder);
    count(&opened.store, "a");
    assert_eq!(counted(&opened.store, "a"), Some(1));
    assert!(opened.said().contains("they stay in memory"), "{}", opened.said());
    assert!(!opened.shows("portcullis_store_persist_errors_total 0"));
    fs::remove_file(&folder).unwrap();
    until(|| opened.said().contains("written to disk again"));
    drop(opened);
    assert_eq!(counted(&open(&folder).store, "a"), Some(1));
}

#[test]
fn two_processes_do_not_write_to_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let first = open(folder.path());
    count(&first.store, "a");
    let second = open(folder.path());
    assert!(second.said().contains("another process"), "{}", second.said());
    drop(first);
    until(|| second.said().contains("written to disk again"));
    assert_eq!(counted(&second.store, "a"), Some(1), "what the first one left is read then");
}

#[test]
fn limits_hold_and_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { records_max: 128, ..Limits::default() };
    let opened = open_with(folder.path(), limits);
    for key in 0..2_000 {
        count(&opened.store, &key.to_string());
        // One that is in use stays.
        count(&opened.store, "busy");
    }
    assert_eq!(counted(&opened.store, "busy"), Some(2_000));
    until(|| {
        let text = opened.registry.render();
        let line = text.lines().find_map(|line| line.strip_prefix("portcullis_store_records "));
        line.is_some_and(|records| (100..=128).contains(&records.parse::<u32>().unwrap()))
    });
    assert!(!opened.shows("portcullis_store_evicted_total 0"));

    let limits = Limits { bytes_max: 64 << 10, record_bytes_max: 1 << 10, ..Limits::default() };
    let opened = open_with(tempfile::tempdir().unwrap().path(), limits);
    let long = vec![b'x'; 700];
    for key in 0..2_000 {
        for variable in [b"a", b"b"] {
            let update = VariableChange { variable, change: Change::Set(Value::Text(&long)) };
            let key = format!("{key}");
            opened.store.save(RecordId { name: b"ip", key: key.as_bytes() }, 60, now(), &[update]);
        }
    }
    assert!(opened.shows("portcullis_store_changes_dropped_total 2000"), "{}", opened.registry.render());
    until(|| {
        let text = opened.registry.render();
        let line = text.lines().find_map(|line| line.strip_prefix("portcullis_store_bytes "));
        line.is_some_and(|bytes| (1..=130 << 10).contains(&bytes.parse::<u32>().unwrap()))
    });
}

#[test]
fn threads_at_once_lose_no_count() {
    let folder = tempfile::tempdir().unwrap();
    let opened = Arc::new(open(folder.path()));
    let workers: Vec<_> = (0..4)
        .map(|_| {
            let opened = Arc::clone(&opened);
            std::thread::spawn(move || (0..20_000).for_each(|n| count(&opened.store, &(n % 7).to_string())))
        })
        .collect();
    workers.into_iter().for_each(|worker| worker.join().unwrap());
    let sum: i64 = (0..7).filter_map(|key: i32| counted(&opened.store, &key.to_string())).sum();
    assert_eq!(sum, 80_000);
}
