use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use portcullis_event_store::{Notice, OpenError, Store, StoreSettings, Writer};

use crate::common::*;

fn segments(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.retain(|path| path.extension().is_some_and(|ending| ending == "events"));
    found.sort();
    found
}

#[test]
fn one_process_writes_and_a_successor_may_begin_before_it_ends() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = Writer::open(settings(folder.path()), false).unwrap();
    write(&mut first, 0..5, 1);
    assert!(matches!(Writer::open(settings(folder.path()), false), Err(OpenError::InUse)));
    let mut second = Writer::open(settings(folder.path()), true).unwrap();
    write(&mut second, 5..8, 1);
    write(&mut first, 8..10, 1);
    drop(first);
    write(&mut second, 10..12, 1);
    drop(second);
    let mut found = ids(&Store::new(folder.path()), "", 100);
    found.sort_by_key(|id| id[1..].parse::<u64>().unwrap());
    assert_eq!(found, (0..12).map(|number| format!("r{number}")).collect::<Vec<_>>());
    // The folder is free again, and the newest segment is gone on with.
    let before = segments(folder.path()).len();
    write(&mut Writer::open(settings(folder.path()), false).unwrap(), 12..13, 1);
    assert_eq!(segments(folder.path()).len(), before);
}

#[test]
fn a_damaged_segment_is_named_and_the_others_serve() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = Writer::open(settings(folder.path()), false).unwrap();
    write(&mut writer, 0..2000, 100);
    drop(writer);
    let mut writer = Writer::open(settings(folder.path()), false).unwrap();
    // The next day.
    writer.add(&event(5000), None);
    writer.commit(NOW + 90_000_000).unwrap();
    drop(writer);
    let files = segments(folder.path());
    assert_eq!(files.len(), 2);
    let mut file = fs::File::options().write(true).open(&files[0]).unwrap();
    file.seek(SeekFrom::Start(8192)).unwrap();
    file.write_all(&[0xA5; 200_000]).unwrap();
    let page = page(&Store::new(folder.path()), "", None, 10);
    assert_eq!((page.events.len(), page.skipped.len()), (1, 1), "{:?}", page.skipped);
    // No file of SQLite at all, and the one that would be gone on with.
    fs::write(&files[1], b"mailbox of a stranger").unwrap();
    let mut writer = Writer::open(settings(folder.path()), false).unwrap();
    writer.add(&event(6000), None);
    let committed = writer.commit(NOW + 90_000_001).unwrap();
    assert_eq!(committed.written, 1);
    assert!(
        matches!(&committed.notices[..], [Notice::Damaged(text)] if text.contains("renamed to")),
        "{committed:?}"
    );
    assert_eq!(fs::read(files[1].with_extension("damaged")).unwrap(), b"mailbox of a stranger");
    assert_eq!(ids_of_newest(folder.path()), "r6000");
}

fn ids_of_newest(folder: &Path) -> String {
    id(&page(&Store::new(folder), "", None, 1).events[0].json)
}

#[test]
fn old_segments_go_and_the_folder_keeps_to_its_size() {
    let folder = tempfile::tempdir().unwrap();
    let keep = StoreSettings {
        keep: Duration::from_secs(3 * 86_400),
        keep_bytes: StoreSettings::KEEP_BYTES_MIN,
        ..StoreSettings::new(folder.path())
    };
    let mut writer = Writer::open(keep, false).unwrap();
    let day = 86_400_000;
    for number in 0..10 {
        writer.add(&event(number), None);
        writer.commit(NOW + number * day).unwrap();
        for _ in 0..20 {
            writer.commit(NOW + number * day).unwrap();
        }
    }
    assert_eq!(ids(&Store::new(folder.path()), "", 100), ["r9", "r8", "r7", "r6", "r5"]);

    // Requests that do not compress, far more than may be kept.
    let mut random = 1u64;
    let mut dropped = 0;
    for number in 0..1200 {
        let request: Vec<u8> = (0..100_000)
            .map(|_| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (random >> 56) as u8
            })
            .collect();
        let request = portcullis_event::KeptRequest { bytes: request, omitted: 0 };
        if writer.add(&event(number), Some(&request)) {
            dropped += writer.commit(NOW + 10 * day).unwrap().segments_dropped;
            let bytes: u64 = fs::read_dir(folder.path())
                .unwrap()
                .map(|entry| entry.unwrap().metadata().unwrap().len())
                .sum();
            assert!(bytes <= StoreSettings::KEEP_BYTES_MIN, "{bytes}");
        }
    }
    assert!(dropped > 5, "{dropped}");
}

#[test]
fn a_copy_of_a_store_that_is_written_to_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = Writer::open(settings(folder.path()), false).unwrap();
    write(&mut writer, 0..100, 10);
    writer.add(&event(100), None);
    writer.commit(NOW + 90_000_000).unwrap();
    let store = Store::new(folder.path());
    let to = folder.path().join("copy");
    let copied = store.backup(&to).unwrap();
    assert_eq!((copied.segments, copied.skipped), (2, vec![]));
    write(&mut writer, 101..150, 10);
    let copy = Store::new(&to);
    assert_eq!(ids(&copy, "", 1000).len(), 101);
    // The copy is a store like any other.
    write(&mut Writer::open(settings(&to), false).unwrap(), 500..510, 1);
    assert_eq!(ids(&copy, "", 1000).len(), 111);
    let error = store.backup(&to).unwrap_err();
    assert!(error.to_string().contains("not empty"), "{error}");
}

#[test]
fn what_was_set_aside_counts_and_goes_first() {
    let folder = tempfile::tempdir().unwrap();
    let aside = |name: &str, bytes: u64| {
        let path = folder.path().join(name);
        fs::File::create(&path).unwrap().set_len(bytes).unwrap();
        path
    };
    // As large as what may be kept, as old as what may be kept, and neither.
    let large = aside(&format!("{}-a.damaged", NOW - 3_600_000), 60 << 20);
    let old = aside(&format!("{}-b.damaged", NOW - 40 * 86_400_000), 10);
    let small = aside(&format!("{}-c.damaged", NOW - 60_000), 10);
    let keep =
        StoreSettings { keep_bytes: StoreSettings::KEEP_BYTES_MIN, ..StoreSettings::new(folder.path()) };
    let mut writer = Writer::open(keep, false).unwrap();
    write(&mut writer, 0..5, 1);
    let found = [large.exists(), old.exists(), small.exists()];
    assert_eq!((found, ids(&Store::new(folder.path()), "", 10).len()), ([false, false, true], 5));
}

#[test]
fn what_a_failed_commit_loses_is_counted_with_all_that_it_stands_for() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = Writer::open(settings(folder.path()), false).unwrap();
    let mut flood = event(1);
    flood.count = 41;
    writer.add(&flood, None);
    writer.add(&event(2), None);
    assert_eq!(writer.pending(), 42);
    writer.commit(NOW).unwrap();
    assert_eq!(writer.pending(), 0);
}

/// Segments of schema 1 have no outcomes: these are read from their events, and a writer goes on with the
/// file.
#[test]
fn segments_of_the_first_schema_are_read_and_gone_on_with() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = Writer::open(settings(folder.path()), false).unwrap();
    write(&mut writer, 0..60, 20);
    drop(writer);
    let file = segments(folder.path()).remove(0);
    let connection = rusqlite::Connection::open(&file).unwrap();
    connection.execute_batch("DROP TABLE c_outcome; PRAGMA user_version = 1").unwrap();
    drop(connection);
    let store = Store::new(folder.path());
    let blocked = |numbers: std::ops::Range<u64>| {
        let mut ids: Vec<String> =
            numbers.filter(|number| number / 3 % 3 == 1).map(|n| format!("r{n}")).collect();
        ids.reverse();
        ids
    };
    assert_eq!(ids(&store, "outcome = blocked", 7), blocked(0..60));
    assert_eq!(ids(&store, "not outcome in (blocked, noted)", 7).len(), 21, "those that passed");
    let mut writer = Writer::open(settings(folder.path()), false).unwrap();
    write(&mut writer, 60..90, 20);
    assert_eq!(segments(folder.path()), [file]);
    assert_eq!(ids(&store, "outcome = blocked", 7), blocked(0..90));
    assert_eq!(ids(&store, "outcome = noted and site = shop", 7).len(), 10);
}

/// A console that is open when the first event of all is written.
#[test]
fn a_segment_that_is_being_made_is_not_read() {
    const STORES: usize = 12;
    let folder = tempfile::tempdir().unwrap();
    let path = |store: usize| folder.path().join(store.to_string());
    (0..STORES).for_each(|store| fs::create_dir(path(store)).unwrap());
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut looks = 0;
            while !done.load(Ordering::Relaxed) {
                for store in 0..STORES {
                    let page = page(&Store::new(&path(store)), "", None, 10);
                    assert_eq!(page.skipped, Vec::<String>::new());
                    looks += 1;
                }
            }
            looks
        });
        for store in 0..STORES {
            write(&mut Writer::open(settings(&path(store)), false).unwrap(), 0..1, 1);
            assert_eq!(ids(&Store::new(&path(store)), "", 10), ["r0"]);
            let left = fs::read_dir(path(store)).unwrap().map(|entry| entry.unwrap().file_name());
            assert!(!left.into_iter().any(|name| name.to_string_lossy().contains("making")));
        }
        done.store(true, Ordering::Relaxed);
        assert!(reader.join().unwrap() > 0);
    });
}

/// What a process that was killed left while it made a segment goes with the next one that writes; what
/// another one makes now stays.
#[test]
fn what_was_left_unmade_is_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let [left, fresh] = ["0.making-1", "0.making-2"].map(|name| folder.path().join(name));
    for path in [&left, &fresh] {
        fs::write(path, "").unwrap();
    }
    let before = SystemTime::now() - Duration::from_secs(600);
    fs::File::options().write(true).open(&left).unwrap().set_modified(before).unwrap();
    write(&mut Writer::open(settings(folder.path()), false).unwrap(), 0..1, 1);
    assert!(!left.exists() && fresh.exists());
}
