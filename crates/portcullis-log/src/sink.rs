use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use portcullis_event::{Event, modsecurity_lines};
use portcullis_metrics::{Counter, EnumCounters, Registry, catalogue};

use crate::DropReason;
use crate::file::{LogFile, Rotation};

/// The format of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One JSON object a line; the schema is that of portcullis-event.
    JsonLines,
    /// One line per match, as ModSecurity 2 writes them to Apache's error log. Events without matches write
    /// nothing.
    ModSecurity,
    /// One line of ArcSight CEF.
    Cef,
    /// One OCSF object a line.
    Ocsf,
}

/// The version of the product, which CEF and OCSF name.
const VERSION: &str = env!("CARGO_PKG_VERSION");

impl Format {
    fn write(self, event: &Event, out: &mut Vec<u8>) {
        match self {
            Format::JsonLines => event.write_json_line(out),
            Format::ModSecurity => out.extend_from_slice(modsecurity_lines(event).as_bytes()),
            Format::Cef => event.write_cef_line(VERSION, out),
            Format::Ocsf => event.write_ocsf_line(VERSION, out),
        }
    }
}

/// The destination of events.
pub enum Target {
    /// A file, appended to.
    File {
        /// Its path; the directory has to exist.
        path: PathBuf,
        /// Bounds its size.
        rotation: Option<Rotation>,
    },
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// Anything else; for embedding and for tests.
    Writer(Box<dyn Write + Send>),
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::File { path, rotation } => {
                f.debug_struct("File").field("path", path).field("rotation", rotation).finish()
            }
            Target::Stdout => f.write_str("Stdout"),
            Target::Stderr => f.write_str("Stderr"),
            Target::Writer(_) => f.write_str("Writer"),
        }
    }
}

/// One sink.
#[derive(Debug)]
pub struct SinkConfig {
    /// Label value in metrics: `json`, `modsecurity`.
    pub name: String,
    /// The format.
    pub format: Format,
    /// The destination.
    pub target: Target,
}

impl SinkConfig {
    /// A file without a size limit.
    pub fn file(name: &str, format: Format, path: impl AsRef<Path>) -> SinkConfig {
        let target = Target::File { path: path.as_ref().to_path_buf(), rotation: None };
        SinkConfig { name: name.to_owned(), format, target }
    }
}

/// The reason why an event log cannot start.
#[derive(Debug)]
pub enum StartError {
    /// A sink's file cannot be opened.
    Open {
        /// The file.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// The system gives us no thread.
    Thread(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Open { path, error } => {
                write!(f, "cannot open the log {}: {error}", path.display())
            }
            StartError::Thread(error) => write!(f, "cannot start the writer of a log: {error}"),
        }
    }
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StartError::Open { error, .. } | StartError::Thread(error) => Some(error),
        }
    }
}

/// A batch goes out when it has this many bytes, or when the queue is empty.
pub(crate) const BATCH_BYTES: usize = 256 << 10;

/// Between two complaints about one sink.
const REPORT_PAUSE: Duration = Duration::from_secs(60);

/// A file or stream with what waits to be written to it.
pub struct Sink {
    name: String,
    format: Format,
    output: Output,
    /// Serialised events of this batch, and where each of them ends.
    batch: Vec<u8>,
    ends: Vec<usize>,
    /// The rest of an event of which a part was written.
    unfinished: Vec<u8>,
    reported: Option<Instant>,
    written: Counter,
    dropped: EnumCounters,
}

enum Output {
    File(LogFile),
    Stream(Box<dyn Write + Send>),
}

impl Sink {
    /// A sink of events.
    pub(crate) fn of_events(config: SinkConfig, registry: &Registry) -> Result<Sink, StartError> {
        let written = registry.counter(&catalogue::EVENTS_WRITTEN, &[&config.name]);
        let dropped = registry.enum_counters(&catalogue::EVENTS_DROPPED, &[&config.name], DropReason::NAMES);
        Sink::open(config, written, dropped)
    }

    pub(crate) fn open(
        config: SinkConfig,
        written: Counter,
        dropped: EnumCounters,
    ) -> Result<Sink, StartError> {
        let output = match config.target {
            Target::File { path, rotation } => match LogFile::open(&path, rotation) {
                Ok(file) => Output::File(file),
                Err(error) => return Err(StartError::Open { path, error }),
            },
            Target::Stdout => Output::Stream(Box::new(io::stdout())),
            Target::Stderr => Output::Stream(Box::new(io::stderr())),
            Target::Writer(writer) => Output::Stream(writer),
        };
        Ok(Sink {
            written,
            dropped,
            name: config.name,
            format: config.format,
            output,
            batch: Vec::with_capacity(BATCH_BYTES + (64 << 10)),
            ends: Vec::new(),
            unfinished: Vec::new(),
            reported: None,
        })
    }

    /// Adds an event to the batch. True if the batch should go out now.
    pub(crate) fn add(&mut self, event: &Event) -> bool {
        let format = self.format;
        self.add_with(|batch| format.write(event, batch))
    }

    /// Adds what `write` appends to the batch. True if the batch should go out now.
    pub(crate) fn add_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> bool {
        let before = self.batch.len();
        write(&mut self.batch);
        if self.batch.len() > before {
            self.ends.push(self.batch.len());
        }
        self.batch.len() >= BATCH_BYTES
    }

    /// Writes the batch. Entries that cannot be written are counted and lost.
    pub(crate) fn flush(&mut self) {
        if self.ends.is_empty() {
            return;
        }
        let result = self.write_batch();
        self.report(result.as_ref().err());
        if let Err(error) = result {
            self.dropped.add(DropReason::of(&error) as usize, self.ends.len() as u64);
        }
        self.batch.clear();
        self.batch.shrink_to(4 * BATCH_BYTES);
        self.ends.clear();
    }

    /// Writes as much as the output takes; events that are out, whole or begun, leave `ends` and count as
    /// written.
    fn write_batch(&mut self) -> io::Result<()> {
        let rotated = match &mut self.output {
            Output::File(file) if self.unfinished.is_empty() => file.make_room(self.batch.len()),
            Output::File(_) | Output::Stream(_) => Ok(()),
        };
        let output: &mut dyn Write = match &mut self.output {
            Output::File(file) => file,
            Output::Stream(stream) => stream,
        };
        let (n, result) = write_some(output, &self.unfinished);
        self.unfinished.drain(..n);
        result?;
        let (n, result) = write_some(output, &self.batch);
        let result = result.and_then(|()| output.flush());
        let whole = self.ends.partition_point(|&end| end <= n);
        let start = if whole == 0 { 0 } else { self.ends[whole - 1] };
        let begun = usize::from(start < n);
        if begun == 1 {
            self.unfinished.extend_from_slice(&self.batch[n..self.ends[whole]]);
        }
        self.ends.drain(..whole + begun);
        self.written.add((whole + begun) as u64);
        // A file that cannot be put aside grows beyond its limit rather than lose events; this is logged for
        // the operator.
        result.and(rotated)
    }

    /// Opens the file again at its path.
    pub(crate) fn reopen(&mut self) {
        if let Output::File(file) = &mut self.output {
            let result = file.reopen();
            if result.is_ok() {
                self.unfinished.clear();
            }
            self.report(result.err().as_ref());
        }
    }

    /// Tells on standard error that the sink fails, at most once in [`REPORT_PAUSE`].
    fn report(&mut self, error: Option<&io::Error>) {
        let Some(error) = error else { return };
        if self.reported.is_some_and(|at| at.elapsed() < REPORT_PAUSE) {
            return;
        }
        self.reported = Some(Instant::now());
        let place = match &self.output {
            Output::File(file) => format!(" ({})", file.path().display()),
            Output::Stream(_) => String::new(),
        };
        // Standard error may be the very thing that fails.
        let _ = writeln!(
            io::stderr(),
            "portcullis: the log {}{place} fails: {error}; what is lost is counted, it is tried again",
            self.name
        );
    }
}

/// Writes until all is out or an error comes. Returns how much is out.
fn write_some(output: &mut dyn Write, bytes: &[u8]) -> (usize, io::Result<()>) {
    let mut n = 0;
    while n < bytes.len() {
        match output.write(&bytes[n..]) {
            Ok(0) => return (n, Err(io::ErrorKind::WriteZero.into())),
            Ok(more) => n += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (n, Err(error)),
        }
    }
    (n, Ok(()))
}
