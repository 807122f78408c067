//! Replays labelled requests and responses in process and counts what is said of them:
//! `portcullis evaluate PATH...`.
//!
//! ```text
//! files ──sample──> labelled samples ──Engine──> blocked? score, findings ──report──> tables, lists of what went wrong
//! ```
//!
//! An [`Engine`] is what is evaluated: the program brings the whole inspection of a policy,
//! [`DetectorsAlone`] is the quick one for those who work on detectors
//! (`cargo run -p portcullis-evaluate --example evaluate -- PATH...`).
//!
//! Readable files, by name and content:
//! - `.jsonl`: lines with `p` or `b64` (a value, and `src`), lines with `method`, `uri`, `headers`, `body` or
//!   `body_b64`, lines with `raw` (an HTTP request or response as text), lines with `payload` (zones of a
//!   request with what goes there). A line with a `status` is a response, `headers` and `body` are its own,
//!   `method` and `uri` those of the request. A line may have a `label` of its own, `attack` or `benign`.
//! - files with one raw HTTP request or response: `.black` is an attack, `.white` is benign; other names only
//!   with `--label`. One of another name that is neither is a list of values, a line each.
//! - folders with such files, however deep.
//!
//! The label of a `.jsonl` file is `--label`, or comes from a folder called `benign` in its path; all others
//! are attacks.

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod detectors;
mod pad;
pub mod padding;
mod report;
mod sample;
pub mod survival;
mod weak;
mod wire;
mod zones;

use std::fmt;
use std::path::{Path, PathBuf};

use std::io::Write as _;
use std::time::Duration;

use portcullis_semantic::Class;

pub use detectors::DetectorsAlone;
pub use sample::{Content, Label};

/// What to evaluate and what to show.
#[derive(Clone, Debug, clap::Args)]
#[group(id = "evaluation")]
pub struct Args {
    /// JSON-lines files, lists of values, raw requests or responses, or folders with them
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Take everything as attack or benign, whatever the names say
    #[arg(long, value_enum)]
    pub label: Option<Label>,
    /// Count only this class of findings
    #[arg(long, value_name = "CLASS")]
    pub class: Option<String>,
    /// Show up to this many missed attacks and wrongly flagged requests of each set
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub show: usize,
    /// Write all missed attacks and wrongly flagged requests to this file
    #[arg(long, value_name = "FILE")]
    pub missed: Option<PathBuf>,
    /// Show each set's rows by source, family or tier
    #[arg(long)]
    pub by_source: bool,
    /// Where a bare value is placed: a query parameter, unless the file is named for headers, query strings
    /// or posts
    #[arg(long, value_enum, default_value_t = PlaceArg::Query)]
    pub place: PlaceArg,
    /// Do not score attacks that this file of criteria calls weakly labelled; they get rows of their own
    #[arg(long, value_name = "FILE")]
    pub weak: Option<PathBuf>,
    /// Take only every Nth sample of each set
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub every: u32,
    /// Also put ordinary text before, behind and around each attack that is a bare value, in fields of
    /// several purposes, and show how many are still detected of those that survive it
    #[arg(long)]
    pub pad: bool,
    /// Bytes of that text, comma separated
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_value = "10,100,512,4096,102400")]
    pub pad_bytes: Vec<usize>,
    /// Write the features of every value to this file, for training
    #[arg(long, value_name = "FILE")]
    pub features: Option<PathBuf>,
}

/// The engine under evaluation.
pub trait Engine {
    /// The description in the report's first line: `mode semantic, level balanced`.
    fn describe(&self) -> String;

    /// The rules that it has, each with its fingerprint.
    fn rules(&self) -> Vec<(u32, u64)> {
        Vec::new()
    }

    /// Returns the outcome for one sample. With a class, only findings of that class block.
    fn run(&mut self, content: &Content, class: Option<Class>) -> Outcome;
}

/// The outcome for a sample.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Blocked as an attack.
    pub blocked: bool,
    /// Refused as a message that cannot be read, or not in one way.
    pub refused: Option<&'static str>,
    /// The class with the highest score, if there are findings.
    pub class: Option<Class>,
    /// Time that it took.
    pub duration: Duration,
    /// The deciding terms: those of the worst value's score, rules with their points.
    pub terms: Vec<(String, f32)>,
    /// The score of the worst value.
    pub points: f32,
    /// The location of the worst value.
    pub at: String,
    /// For each value and class with findings: the features.
    pub rows: Vec<(Class, Vec<String>)>,
    /// For each value and class with findings: where, and the detector's own score less the threshold. Only
    /// of a whole inspection.
    pub scores: Vec<(Class, String, f32)>,
    /// The rules that matched and count in the anomaly score, each as often as it did. Only of a whole
    /// inspection with weighted scoring.
    pub rules: Vec<RuleHit>,
}

/// A match of a rule.
#[derive(Clone, Debug)]
pub struct RuleHit {
    /// The rule.
    pub id: u32,
    /// The fingerprint of its targets and operator.
    pub fingerprint: u64,
    /// The points that it added to the anomaly score.
    pub points: i64,
    /// The kind of field that it is in.
    pub field: &'static str,
    /// The site made the field for what the rule looks for.
    pub is_excused: bool,
    /// The value that matched, the same for all variables that show it.
    pub spot: String,
}

/// `--place`
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum PlaceArg {
    /// The value of a query parameter for searches, `q`
    Query,
    /// The value of a query parameter whose name says nothing, `item`
    Item,
    /// The value of a query parameter for a number, `id`
    Id,
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

/// The reason why an evaluation cannot be made.
#[derive(Debug)]
pub enum EvaluateError {
    /// A file or folder cannot be read or written.
    Io {
        /// The file.
        path: PathBuf,
        /// The error.
        source: std::io::Error,
    },
    /// A line is not what its file promises.
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The error.
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
                write!(
                    f,
                    "{}: not known to be attack or benign: name the file .black or .white, or give --label",
                    path.display()
                )
            }
            EvaluateError::Empty(path) => write!(f, "{}: no request or value found there", path.display()),
            EvaluateError::Class(name) => write!(f, "there is no class called `{name}`"),
        }
    }
}

impl std::error::Error for EvaluateError {}

/// Evaluates `engine`, and gives the report.
pub fn run(args: &Args, engine: &mut dyn Engine) -> Result<String, EvaluateError> {
    let class = match &args.class {
        None => None,
        Some(name) => Some(Class::from_name(name).ok_or_else(|| EvaluateError::Class(name.clone()))?),
    };
    let weak = args.weak.as_deref().map(weak::WeakLabels::read).transpose()?.unwrap_or_default();
    let mut report = report::Report::new(args, class, engine);
    let mut padded = args.pad.then(|| pad::Padded::new(&args.pad_bytes));
    for path in &args.paths {
        for set in sample::read(path, args.label, args.place)? {
            for sample in set.samples.iter().step_by(args.every.max(1) as usize) {
                let outcome = engine.run(&sample.content, class);
                match weak.why(&set.name, sample) {
                    Some(why) => report.count_weak(&set.name, why, sample, &outcome),
                    None => {
                        report.count(&set.name, sample, &outcome);
                        if let Some(padded) = &mut padded {
                            padded.run(&set.name, sample, class, engine, &mut |_, outcome| {
                                report.note_padded(&set.name, sample, outcome);
                            });
                        }
                    }
                }
            }
        }
    }
    report.finish(padded)
}

fn write(path: &Path, text: &str) -> Result<(), EvaluateError> {
    let write = || std::fs::File::create(path)?.write_all(text.as_bytes());
    write().map_err(|source| EvaluateError::Io { path: path.to_owned(), source })
}
