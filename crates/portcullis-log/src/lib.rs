//! Bounded event buffer and sinks, and the writer of uploaded files that are kept ([`UploadStore`]).
//!
//! ```text
//!  worker ─┐                              ┌─> JSON lines file
//!  worker ─┼─> EventSender ─> queue ─> writer thread ─> ModSecurity error-log file
//!  worker ─┘   (never waits)              └─> stdout, stderr
//! ```
//!
//! [`EventSender::submit`] costs an atomic push and never waits: not for the queue, not for a disk. Events
//! that do not fit are dropped, newest first, and counted with its reason ([`DropReason`]) in
//! `portcullis_events_dropped_total`. The queue is bounded by number and by bytes ([`QueueLimits`]).
//!
//! One thread takes events out, serialises them and writes each batch with one call per sink. An event is in
//! its file a few milliseconds after `submit` when there is nothing to do, and there are no wake-ups while
//! there are no events. A sink whose disk is full or whose pipe is closed loses events, counted, and is tried
//! again with every batch; a line that was written in part is completed first, so a file never holds half an
//! event before a whole one. A sink that blocks holds up the other sinks, and after that the queue fills and
//! drops; it never holds up a request.
//!
//! Lines of the access log go the same way ([`AccessLog`]), through a queue and a thread of their own, so
//! that they do not push out events.
//!
//! Audit records and the debug log go the same way, through a queue and a thread of their own ([`AuditLog`]):
//! they are larger, and their files are named by rules, so that they come and go with policies.
//!
//! Where the process is another server's, which forks and has none of our threads, [`DirectAudit`] writes
//! audit records and debug lines at the call.
//!
//! Sinks that are no files have threads of their own in other crates. They take the queue alone
//! ([`queue()`]); an event is shared by all queues that hold it.
//!
//! ```
//! use std::time::Duration;
//! use portcullis_event::{Event, Timestamp};
//! use portcullis_log::{EventLog, Format, QueueLimits, SinkConfig};
//! use portcullis_metrics::Registry;
//!
//! let dir = tempfile::tempdir()?;
//! let path = dir.path().join("events.jsonl");
//! let sinks = vec![SinkConfig::file("json", Format::JsonLines, &path)];
//! let log = EventLog::new(sinks, QueueLimits::default(), &Registry::new())?;
//!
//! log.sender().submit(Event::new("r1", Timestamp::from_epoch_millis(0)));
//!
//! let lost = log.shutdown(Duration::from_secs(5));
//! assert_eq!(lost, 0);
//! assert!(std::fs::read_to_string(&path)?.contains("\"request_id\":\"r1\""));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![warn(clippy::wildcard_enum_match_arm)]

mod access;
mod audit;
mod audit_config;
mod audit_writer;
mod direct;
mod file;
mod queue;
mod sink;
mod store;
mod uploads;
mod writer;

pub use access::{AccessLine, AccessLog};
pub use audit::{AuditConfig, AuditLimits, AuditLog, AuditSender};
pub use direct::{DirectAudit, OpenFiles};
pub use file::Rotation;
pub use queue::{EventSender, QueueLimits, Receiver, Sender, Weigh, queue};
pub use sink::{Format, SinkConfig, StartError, Target};
pub use uploads::{DirectUploads, Upload, UploadDrop, UploadError, UploadLimits, UploadSender, UploadStore};
pub use writer::{Entry, EventLog, Log};

/// The reason why an event was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// The queue held [`QueueLimits::events_max`] events.
    QueueFull,
    /// The queue held [`QueueLimits::bytes_max`] bytes.
    QueueBytes,
    /// It was still queued when the shutdown deadline passed, or came after it.
    Shutdown,
    /// No space left on the device, or quota used up.
    DiskFull,
    /// Any other failure to write.
    WriteError,
}

impl DropReason {
    /// Label values of `portcullis_events_dropped_total`, in the order of the variants.
    pub const NAMES: &'static [&'static str] =
        &["queue_full", "queue_bytes", "shutdown", "disk_full", "write_error"];

    /// The reason that a failure to write comes to.
    pub(crate) fn of(error: &std::io::Error) -> DropReason {
        use std::io::ErrorKind::{QuotaExceeded, StorageFull};
        let is_full = matches!(error.kind(), StorageFull | QuotaExceeded);
        if is_full { DropReason::DiskFull } else { DropReason::WriteError }
    }

    /// The label value.
    pub fn name(self) -> &'static str {
        DropReason::NAMES[self as usize]
    }
}
