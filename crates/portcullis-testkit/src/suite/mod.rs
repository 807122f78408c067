//! The CRS regression suite through the real proxy.
//!
//! ```text
//!   crs-tests/*.yaml > stages, each with a loopback address of its own
//!                         |  raw bytes, several connections at a time
//!   [target] portcullis run ... > reflector        (or any server: --target, --log)
//!                         |  error log in ModSecurity's form, event file
//!   [evidence] by client address > [ftw] judge > [report] table, reasons, "N passed, M failed"
//! ```
//!
//! go-ftw brackets each request with marker requests to find its lines in the log, one request at a time.
//! Here each stage comes from its own address in 127.1.0.0/16 and the lines name the client, so stages may
//! run side by side and the log is read once, after the proxy has written everything and stopped.
//!
//! Three things that would let a broken run pass are failures of the run itself: a count of tests other
//! than the expected one, events that were dropped, and an event file that names other rules than the log.

mod evidence;
mod expected;
mod replay;
mod report;
mod target;

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::ftw::{self, Suite};
use crate::{TestkitError, crs};

pub use expected::Expected;
pub use target::Profile;

/// What to run, and against what.
#[derive(Clone, Debug, clap::Parser)]
#[command(
    name = "crs-suite",
    about = "Replays the CRS regression tests through Portcullis and judges the results."
)]
pub struct Options {
    /// Another CRS than the pinned one: a release as it was extracted.
    #[arg(long, value_name = "DIR")]
    pub crs: Option<PathBuf>,
    /// Its regression tests, if they are not in tests/regression/tests there.
    #[arg(long, value_name = "DIR")]
    pub tests: Option<PathBuf>,
    /// Only tests whose name begins so: `942` or `920100-4`.
    #[arg(long, default_value = "", value_name = "PREFIX")]
    pub filter: String,
    /// HTTP profile of the proxy.
    #[arg(long, value_enum, default_value_t = Profile::Apache)]
    pub profile: Profile,
    /// File of known misses, `NAME: reason` a line. The run succeeds if exactly these fail.
    #[arg(long, value_name = "FILE")]
    pub expected_failures: Option<PathBuf>,
    /// Writes the names of the failed tests with their reasons to a file.
    #[arg(long, value_name = "FILE")]
    pub list_failures: Option<PathBuf>,
    /// Writes the rules that logged for each stage to a file, to compare one engine with another.
    #[arg(long, value_name = "FILE")]
    pub list_ids: Option<PathBuf>,
    /// Fails unless exactly so many tests ran (before any filter: were read).
    #[arg(long, value_name = "N")]
    pub count: Option<usize>,
    /// Stages in flight.
    #[arg(long, default_value_t = 8, value_name = "N")]
    pub connections: usize,
    /// Worker threads of the proxy.
    #[arg(long, default_value_t = 2, value_name = "N")]
    pub workers: usize,
    /// Seconds to wait for a response.
    #[arg(long, default_value_t = 10, value_name = "S")]
    pub timeout: u64,
    /// Keeps the proxy's files here instead of in a temporary folder.
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// A server that runs already, instead of starting Portcullis. Needs `--log`.
    #[arg(long, value_name = "ADDRESS", requires = "log")]
    pub target: Option<SocketAddr>,
    /// The error log of that server.
    #[arg(long, value_name = "FILE", requires = "target")]
    pub log: Option<PathBuf>,
}

impl Options {
    fn rules(&self) -> Result<PathBuf, TestkitError> {
        self.crs.clone().map_or_else(crs::rules, crs::rules_in)
    }

    fn tests(&self) -> Result<PathBuf, TestkitError> {
        let of_release = || self.crs.as_ref().map(|crs| crs.join(crs::TESTS_IN_RELEASE));
        self.tests.clone().or_else(of_release).map_or_else(crs::tests, crs::tests_in)
    }
}

/// Runs the suite and prints the report. True if the outcome is the expected one.
pub fn run(options: &Options) -> Result<bool, TestkitError> {
    let suite = ftw::read_folder(&options.tests()?)?;
    let read = suite.counts();
    println!("read {} tests, {} stages in {} files", read.0, read.1, suite.files.len());
    for path in &suite.empty {
        println!("no test in {}", path.display());
    }
    let expected = match &options.expected_failures {
        Some(path) => Expected::read(path)?,
        None => Expected::default(),
    };
    let plan = replay::plan(&suite, &options.filter)?;
    if plan.is_empty() {
        return Err(TestkitError::Run(format!("no test begins with `{}`", options.filter)));
    }
    let target = target::Target::start(options)?;
    let outcomes = replay::run(&plan, target.address(), options);
    let traces = target.finish()?;
    let log = evidence::read(&traces)?;
    let failures = report::judge(&plan, &outcomes, &log);
    report::print(&plan, &failures, options)?;
    if let Some(path) = &options.list_ids {
        report::write_ids(&plan, &outcomes, &log, path)?;
    }

    let mut good = true;
    let unreadable: Vec<String> = suite.unreadable.iter().map(|error| format!("not run: {error}")).collect();
    for trouble in log.troubles.iter().chain(&unreadable).chain(&count_trouble(options, &suite)) {
        println!("TROUBLE {trouble}");
        good = false;
    }
    let names = plan.iter().map(|case| case.test.name());
    for line in expected.differences(names, failures.iter().map(|failure| failure.name.as_str())) {
        println!("{line}");
        good = false;
    }
    println!("{} passed, {} failed", plan.len() - failures.len(), failures.len());
    Ok(good)
}

fn count_trouble(options: &Options, suite: &Suite) -> Option<String> {
    let count = suite.counts().0;
    let want = options.count.filter(|&want| want != count)?;
    Some(format!("expected {want} tests in the suite, read {count}"))
}
