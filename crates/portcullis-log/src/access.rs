//! The access log: lines that workers have made, on their way to files.

use std::path::PathBuf;

use portcullis_metrics::{Registry, catalogue};

use crate::DropReason;
use crate::queue::{Queue, QueueLimits, Weigh};
use crate::sink::{Format, Sink, SinkConfig, StartError};
use crate::writer::{Entry, Log};

/// The access log pipeline.
pub type AccessLog = Log<AccessLine>;

/// A line of an access log, with its line break.
#[derive(Clone, Debug)]
pub struct AccessLine {
    /// The index of its file.
    pub file: usize,
    /// The line.
    pub text: Vec<u8>,
}

impl Weigh for AccessLine {
    fn weight(&self) -> usize {
        size_of::<AccessLine>() + self.text.len()
    }
}

impl Entry for AccessLine {
    fn add_to(&self, number: usize, sink: &mut Sink) -> bool {
        number == self.file && sink.add_with(|batch| batch.extend_from_slice(&self.text))
    }
}

impl AccessLog {
    /// Opens the files, which are not rotated but opened again when asked to, and starts the writer. Without
    /// files there is no thread, and senders are [disabled](crate::Sender::disabled).
    pub fn open(
        files: &[PathBuf],
        limits: QueueLimits,
        registry: &Registry,
    ) -> Result<AccessLog, StartError> {
        if files.is_empty() {
            return Ok(Log::disabled());
        }
        let sink = |path: &PathBuf| {
            let name = path.display().to_string();
            let written = registry.counter(&catalogue::ACCESS_LOG_WRITTEN, &[&name]);
            let dropped = registry.enum_counters(&catalogue::ACCESS_LOG_DROPPED, &[&name], DropReason::NAMES);
            Sink::open(SinkConfig::file("access", Format::JsonLines, path), written, dropped)
        };
        let sinks = files.iter().map(sink).collect::<Result<Vec<_>, _>>()?;
        let queued = registry.gauge(&catalogue::ACCESS_LOG_QUEUED, &[]);
        let dropped = registry.enum_counters(&catalogue::ACCESS_LOG_DROPPED, &["queue"], DropReason::NAMES);
        Log::start("access-log", sinks, Queue::new(limits, queued, dropped))
    }
}
