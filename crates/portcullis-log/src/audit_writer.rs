//! The thread that writes audit records and debug lines.

use std::io::{self, Write as _};
use std::sync::atomic::Ordering::*;
use std::sync::mpsc::Sender;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use md5::{Digest as _, Md5};
use portcullis_audit::{Record, file_name, index_line};
use portcullis_metrics::{Counter, EnumCounters, Registry, catalogue};

use crate::DropReason;
use crate::audit::{Item, Shared, SharedFile, Target, What};

/// As in the event writer.
const LINGER: Duration = Duration::from_millis(5);
/// Items written before the writer looks whether it should reopen its files.
const ROUND_MAX: usize = 1024;
/// Between two complaints.
const REPORT_PAUSE: Duration = Duration::from_secs(60);

pub(crate) struct Writer {
    shared: Arc<Shared>,
    buffer: Vec<u8>,
    reported: Option<Instant>,
    boundaries: Boundaries,
    written: [Counter; 2],
    dropped: [EnumCounters; 2],
    removed: Counter,
}

/// Index of the arrays above, and label.
const AUDIT: usize = 0;
const DEBUG: usize = 1;
const LOGS: [&str; 2] = ["audit", "debug"];

impl Writer {
    pub(crate) fn new(shared: Arc<Shared>, registry: &Registry) -> Writer {
        Writer {
            shared,
            buffer: Vec::new(),
            reported: None,
            boundaries: Boundaries::new(),
            written: LOGS.map(|log| registry.counter(&catalogue::AUDIT_WRITTEN, &[log])),
            dropped: LOGS
                .map(|log| registry.enum_counters(&catalogue::AUDIT_DROPPED, &[log], DropReason::NAMES)),
            removed: registry.counter(&catalogue::AUDIT_FILES_REMOVED, &[]),
        }
    }

    pub(crate) fn run(mut self, finished: &Sender<()>) {
        loop {
            if self.shared.reopen.swap(false, AcqRel) {
                let errors = self.shared.reopen_files();
                if let Some(error) = errors.first() {
                    self.report(error);
                }
            }
            // Read before the queue is drained: what was submitted before the stop is then written.
            let stop = self.shared.stop.load(Acquire);
            let shared = Arc::clone(&self.shared);
            match self.drain() {
                0 if stop => break,
                0 => shared.queue.wait(|| !shared.stop.load(Acquire) && !shared.reopen.load(Acquire)),
                n if n < ROUND_MAX && !stop => std::thread::park_timeout(LINGER),
                _ => {}
            }
        }
        let _ = finished.send(());
    }

    fn drain(&mut self) -> usize {
        let mut n = 0;
        while n < ROUND_MAX
            && let Some(item) = self.shared.queue.pop()
        {
            n += 1;
            let Item { target, what } = *item;
            let (log, result) = match what {
                What::Record(record) => (AUDIT, self.record(&target, &record)),
                What::Debug(lines) => (DEBUG, debug(&target, lines.as_bytes())),
            };
            match result {
                Ok(()) => self.written[log].inc(),
                Err(error) => {
                    self.dropped[log].add(DropReason::of(&error) as usize, 1);
                    self.report(&error);
                }
            }
        }
        n
    }

    fn record(&mut self, target: &Target, record: &Record) -> io::Result<()> {
        self.buffer.clear();
        self.buffer.shrink_to(1 << 20);
        let boundary = self.boundaries.next();
        target.format.write(record, &boundary, &mut self.buffer);
        let Some(log) = &target.log else { return Ok(()) };
        let Some(store) = &target.store else {
            if target.format.is_native() {
                self.buffer.push(b'\n');
            }
            return append(log, &self.buffer);
        };
        let name = file_name(record);
        let removed = store.lock().unwrap_or_else(PoisonError::into_inner).write(&name, &self.buffer)?;
        self.removed.add(removed);
        let line = index_line(record, &name, self.buffer.len(), &Md5::digest(&self.buffer));
        append(log, line.as_bytes())?;
        target.log2.as_ref().map_or(Ok(()), |log| append(log, line.as_bytes()))
    }

    /// Tells on standard error that records are lost, at most once in [`REPORT_PAUSE`].
    fn report(&mut self, error: &io::Error) {
        if self.reported.is_some_and(|at| at.elapsed() < REPORT_PAUSE) {
            return;
        }
        self.reported = Some(Instant::now());
        let _ = writeln!(
            io::stderr(),
            "portcullis: the audit log fails: {error}; lost records are counted, it is tried again"
        );
    }
}

/// Boundaries of records, which a client cannot foresee: a counter, mixed with a number by chance.
#[derive(Debug)]
pub(crate) struct Boundaries(u64);

impl Boundaries {
    pub(crate) fn new() -> Boundaries {
        Boundaries(std::hash::BuildHasher::hash_one(&std::collections::hash_map::RandomState::new(), 0u8))
    }

    /// Eight hexadecimal digits.
    pub(crate) fn next(&mut self) -> String {
        // The finaliser of splitmix64: every step of the counter changes about half of the bits.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        format!("{:08x}", (mixed ^ (mixed >> 31)) as u32)
    }
}

fn debug(target: &Target, lines: &[u8]) -> io::Result<()> {
    target.debug_log.as_ref().map_or(Ok(()), |log| append(log, lines))
}

/// Adds a record to a file, whole or not at all: what was written of it is taken back when the rest cannot
/// be.
fn append(file: &SharedFile, bytes: &[u8]) -> io::Result<()> {
    let mut file = file.lock();
    file.make_room(bytes.len())?;
    let before = file.bytes();
    let result = file.write_all(bytes);
    if result.is_err() {
        file.cut(before);
    }
    result
}
