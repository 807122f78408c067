//! Replays labelled requests through the detectors in process and counts what they say: `portcullis evaluate PATH...`.
//!
//! ```text
//! files ──sample──> labelled samples ──replay──> blocked? score, findings ──report──> tables, lists of what went wrong
//! ```
//!
//! What can be read, by file name and content:
//! - `.jsonl`: lines with `p` or `b64` (a value, and `src`), lines with `method`, `uri`, `headers`, `body` or `body_b64`, lines
//!   with `raw` (an HTTP request as text), lines with `payload` (zones of a request with what goes there). A line may have a
//!   `label` of its own, `attack` or `benign`.
//! - files with one raw HTTP request: `.black` is an attack, `.white` is benign; other names only with `--label`.
//! - folders with such files, however deep.
//!
//! The label of a `.jsonl` file is `--label`, or comes from a folder called `benign` in its path; all others are attacks.

mod replay;
mod report;
mod sample;

use std::fmt;
use std::path::PathBuf;

use portcullis_semantic::Level;

pub use sample::Label;

/// What to evaluate and what to show.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// JSON-lines files, raw requests, or folders with them
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// How sure a finding must be to block
    #[arg(long, value_enum, default_value_t = LevelArg::Balanced)]
    pub level: LevelArg,
    /// Take everything as attack or benign, whatever the names say
    #[arg(long, value_enum)]
    pub label: Option<Label>,
    /// Count only this class of findings
    #[arg(long, value_name = "CLASS")]
    pub class: Option<String>,
    /// Show up to this many missed attacks and wrongly flagged requests of each set
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub show: usize,
    /// Show each set's rows by source, family or tier
    #[arg(long)]
    pub by_source: bool,
    /// Where a bare value is placed: a query parameter, unless the file is named for headers or query strings
    #[arg(long, value_enum, default_value_t = PlaceArg::Query)]
    pub place: PlaceArg,
    /// Write the features of every value to this file, for training
    #[arg(long, value_name = "FILE")]
    pub features: Option<PathBuf>,
}

/// `--level`
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LevelArg {
    /// Few false alarms
    Balanced,
    /// More attacks, more false alarms
    Strict,
}

impl From<LevelArg> for Level {
    fn from(level: LevelArg) -> Level {
        match level {
            LevelArg::Balanced => Level::Balanced,
            LevelArg::Strict => Level::Strict,
        }
    }
}

/// `--place`
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum PlaceArg {
    /// A query parameter's value
    Query,
    /// A form field's value
    Form,
    /// A string in a JSON body
    Json,
    /// A header's value
    Header,
    /// A cookie's value
    Cookie,
    /// A segment of the path, percent-encoded
    Path,
}

/// Why an evaluation cannot be made.
#[derive(Debug)]
pub enum EvaluateError {
    /// A file or folder cannot be read or written.
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A line is not what its file promises.
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// Why.
        message: String,
    },
    /// Neither the path nor `--label` says what the requests are.
    NoLabel(PathBuf),
    /// No sample in this path.
    Empty(PathBuf),
    /// There is no class of that name.
    Class(String),
}

impl fmt::Display for EvaluateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EvaluateError::Io { path, source } => write!(f, "{}: {source}", path.display()),
            EvaluateError::Line { path, line, message } => write!(f, "{}:{line}: {message}", path.display()),
            EvaluateError::NoLabel(path) => {
                write!(f, "{}: attack or benign? Name it .black or .white, or give --label", path.display())
            }
            EvaluateError::Empty(path) => write!(f, "{}: no request or value found there", path.display()),
            EvaluateError::Class(name) => write!(f, "there is no class called `{name}`"),
        }
    }
}

impl std::error::Error for EvaluateError {}

/// Evaluates, and gives the report.
pub fn run(args: &Args) -> Result<String, EvaluateError> {
    let class = match &args.class {
        None => None,
        Some(name) => Some(
            portcullis_semantic::Class::from_name(name).ok_or_else(|| EvaluateError::Class(name.clone()))?,
        ),
    };
    let mut report = report::Report::new(args, class);
    let mut replay = replay::Replay::new(args.level.into(), class);
    for path in &args.paths {
        for set in sample::read(path, args.label, args.place)? {
            for sample in &set.samples {
                let outcome = replay.run(sample);
                report.count(&set.name, sample, &outcome);
            }
        }
    }
    report.finish()
}
