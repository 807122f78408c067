//! Processes that share one file of collections.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use portcullis_engine::{Change, Collections as _, RecordId, Sum, Value, VariableChange};
use portcullis_store::{SharedFile, StoreMetrics};

const NOW: i64 = 1_700_000_000;
const KEYS: usize = 8;

fn open(folder: &Path) -> SharedFile {
    SharedFile::new(folder, StoreMetrics::default(), Arc::new(|line: &str| eprintln!("{line}")))
}

/// The same, and whether it has said something.
fn listened(folder: &Path) -> (SharedFile, impl Fn() -> bool + use<>) {
    let said = Arc::new(AtomicBool::new(false));
    let say = {
        let said = Arc::clone(&said);
        move |line: &str| {
            eprintln!("{line}");
            said.store(true, Ordering::Relaxed);
        }
    };
    let file = SharedFile::new(folder, StoreMetrics::default(), Arc::new(say));
    (file, move || said.load(Ordering::Relaxed))
}

/// On a busy machine the holder of a lock may not run for so long that others wait for it in vain, say so and
/// count alone; then nothing is told of the counts. `look` is false for that, and is had again.
fn until_no_lock_is_waited_for_in_vain(mut look: impl FnMut() -> bool) {
    assert!((0..20).any(|_| look()), "each time a lock was waited for in vain");
}

fn key(number: usize) -> String {
    format!("192.0.2.{}", number % KEYS)
}

/// Counts up a record, by what the transaction saw of it before.
fn add(file: &SharedFile, key: &str) -> i64 {
    let sum = Sum { delta: 1, decay: 0, seen: 0, value: 1 };
    let update = VariableChange { variable: b"n", change: Change::Add(sum) };
    let mut seen = 0;
    file.save_and_load(record(key), 3600, NOW, &[update], &mut |name, value| {
        if name == b"n" {
            seen = value.to_int();
        }
    });
    seen
}

fn record(key: &str) -> RecordId<'_> {
    RecordId { name: b"ip", key: key.as_bytes() }
}

fn sum(file: &SharedFile) -> i64 {
    let mut all = 0;
    for number in 0..KEYS {
        file.load(record(&key(number)), NOW, &mut |name, value: Value<'_>| {
            if name == b"n" {
                all += value.to_int();
            }
        });
    }
    all
}

/// What a process of these tests does: counts up `COUNT` times, and writes a byte after each time.
#[test]
#[ignore = "run by the other tests, in processes of their own"]
fn worker() {
    let file = open(Path::new(&std::env::var_os("FOLDER").unwrap()));
    let count: usize = std::env::var("COUNT").unwrap().parse().unwrap();
    let mut acknowledged =
        std::fs::OpenOptions::new().append(true).open(std::env::var_os("ACK").unwrap()).unwrap();
    for number in 0..count {
        add(&file, &key(number));
        acknowledged.write_all(b".").unwrap();
    }
}

struct Worker {
    process: Child,
    acknowledged: tempfile::NamedTempFile,
}

impl Worker {
    fn start(folder: &Path, count: usize) -> Worker {
        let acknowledged = tempfile::NamedTempFile::new().unwrap();
        let process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "processes::worker", "--ignored", "--nocapture"])
            .env("FOLDER", folder)
            .env("COUNT", count.to_string())
            .env("ACK", acknowledged.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Worker { process, acknowledged }
    }

    fn acknowledged(&self) -> i64 {
        std::fs::metadata(self.acknowledged.path()).unwrap().len() as i64
    }

    /// What it said, when it has ended by itself.
    fn end(&mut self) -> String {
        let mut said = String::new();
        self.process.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(self.process.wait().unwrap().success(), "{said}");
        said
    }
}

#[test]
fn four_processes_and_four_threads_lose_no_count() {
    until_no_lock_is_waited_for_in_vain(count_in_processes_and_threads);
}

fn count_in_processes_and_threads() -> bool {
    let folder = tempfile::tempdir().unwrap();
    let each = 2_000;
    let mut workers: Vec<Worker> = (0..4).map(|_| Worker::start(folder.path(), each)).collect();
    let (file, is_said) = listened(folder.path());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..each).for_each(|number| assert!(add(&file, &key(number)) > 0)));
        }
    });
    let said: Vec<String> = workers.iter_mut().map(Worker::end).collect();
    let is_quiet = !is_said() && said.iter().all(String::is_empty);
    assert!(!is_quiet || sum(&file) == 8 * each as i64, "{} counted", sum(&file));
    is_quiet
}

#[test]
fn no_two_see_the_same_number() {
    until_no_lock_is_waited_for_in_vain(see_numbers);
}

fn see_numbers() -> bool {
    let folder = tempfile::tempdir().unwrap();
    let (files, said): (Vec<SharedFile>, Vec<_>) = (0..4).map(|_| listened(folder.path())).unzip();
    let mut seen: Vec<i64> = std::thread::scope(|scope| {
        let threads: Vec<_> = files
            .iter()
            .map(|file| scope.spawn(|| (0..1_000).map(|_| add(file, "one")).collect::<Vec<i64>>()))
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    seen.sort_unstable();
    let twice: Vec<_> = seen.windows(2).filter(|pair| pair[0] == pair[1]).take(9).collect();
    let is_quiet = said.iter().all(|is_said| !is_said());
    assert!(!is_quiet || seen.iter().copied().eq(1..=4_000), "seen twice: {twice:?}");
    is_quiet
}

#[test]
fn processes_that_are_killed_hold_up_nobody_and_lose_nothing_acknowledged() {
    until_no_lock_is_waited_for_in_vain(count_in_processes_that_are_killed);
}

fn count_in_processes_that_are_killed() -> bool {
    let folder = tempfile::tempdir().unwrap();
    let mut survivor = Worker::start(folder.path(), 10_000);
    let mut killed = 0;
    for round in 0..20 {
        let mut victim = Worker::start(folder.path(), usize::MAX);
        while victim.acknowledged() < 50 + round {
            std::thread::sleep(Duration::from_millis(1));
        }
        victim.process.kill().unwrap();
        victim.process.wait().unwrap();
        killed += victim.acknowledged();
    }
    if !survivor.end().is_empty() {
        return false;
    }
    let file = open(folder.path());
    let (least, sum) = (killed + survivor.acknowledged(), sum(&file));
    // Each of them may have been killed between the count and its acknowledgement.
    assert!((least..=least + 20).contains(&sum), "{least} acknowledged, {sum} counted");
    assert!(add(&file, &key(0)) > 0);
    true
}

#[test]
fn a_stopped_process_does_not_stop_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let mut stopped: Vec<Worker> = (0..3).map(|_| Worker::start(folder.path(), usize::MAX)).collect();
    for worker in &stopped {
        while worker.acknowledged() < 100 {
            std::thread::sleep(Duration::from_millis(1));
        }
        let process = worker.process.id().to_string();
        assert!(Command::new("kill").args(["-STOP", &process]).status().unwrap().success());
    }
    let file = open(folder.path());
    let begin = std::time::Instant::now();
    (0..2_000).for_each(|number| assert!(add(&file, &key(number)) > 0));
    let took = begin.elapsed();
    for worker in &mut stopped {
        worker.process.kill().unwrap();
        worker.process.wait().unwrap();
    }
    // Each may have been stopped with a lock: 250 short waits for it, and a long one a second.
    assert!(took < Duration::from_secs(10), "{took:?}");
}
