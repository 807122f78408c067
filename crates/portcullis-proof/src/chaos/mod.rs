//! Faults, each under load, each with assertions that fail the run.
//!
//! A scenario starts back ends and a Portcullis of its own, lets clients send requests all the while, breaks
//! something, mends it, and looks at every single answer. Two things hold in all of them, whatever is broken:
//! no attack arrives at a back end, and no POST arrives twice.

mod agents;
mod backends;
mod breaker;
mod case;
mod floods;
mod host;
mod memory;
mod policy;
mod slow;

use std::path::PathBuf;
use std::time::Instant;

use portcullis_testkit::TestkitError;

pub use case::Case;

/// What to run.
#[derive(Debug, clap::Parser)]
pub struct Options {
    /// The scenarios that CI runs, not all; durations are reported, not judged
    #[arg(long)]
    pub quick: bool,
    /// Only scenarios whose name has this in it
    #[arg(long)]
    pub only: Option<String>,
    /// Names and what they do, and nothing else
    #[arg(long)]
    pub list: bool,
    /// Folder for configurations and logs, one for each scenario; by default temporary ones
    #[arg(long)]
    pub keep: Option<PathBuf>,
}

/// One fault.
pub struct Scenario {
    name: &'static str,
    what: &'static str,
    /// True if CI runs it.
    quick: bool,
    run: fn(&mut Case) -> Result<(), TestkitError>,
}

fn scenarios() -> impl Iterator<Item = &'static Scenario> {
    let all = [
        agents::SCENARIOS,
        backends::SCENARIOS,
        breaker::SCENARIOS,
        policy::SCENARIOS,
        host::SCENARIOS,
        slow::SCENARIOS,
        floods::SCENARIOS,
        memory::SCENARIOS,
    ];
    all.into_iter().flatten()
}

/// Runs them one after the other; true if every assertion held.
pub fn run(options: &Options) -> Result<bool, TestkitError> {
    let wanted = |scenario: &&Scenario| {
        (scenario.quick || !options.quick)
            && options.only.as_ref().is_none_or(|part| scenario.name.contains(part.as_str()))
    };
    let chosen: Vec<&Scenario> = scenarios().filter(wanted).collect();
    if options.list {
        chosen.iter().for_each(|scenario| println!("{:<20} {}", scenario.name, scenario.what));
        return Ok(true);
    }
    if chosen.is_empty() {
        return Err(TestkitError::Run("no scenario has such a name; see --list".to_owned()));
    }
    let (mut failed, mut requests) = (0, 0);
    for scenario in &chosen {
        let began = Instant::now();
        let mut case = Case::new(scenario.name, options);
        if let Err(error) = (scenario.run)(&mut case) {
            case.check(false, || format!("could not run: {error}"));
        }
        let held = case.failures().is_empty();
        let (verdict, seconds) = (if held { "ok" } else { "FAILED" }, began.elapsed().as_secs_f64());
        println!(
            "{verdict:<6} {:<20} {seconds:>5.1} s  {:>6} requests  {}",
            scenario.name,
            case.requests(),
            case.figures()
        );
        case.failures().iter().for_each(|failure| println!("       {failure}"));
        failed += usize::from(!held);
        requests += case.requests();
    }
    println!("{} scenarios, {failed} failed, {requests} requests", chosen.len());
    Ok(failed == 0)
}
