//! The CRS regression suite; see `portcullis_testkit::suite`. Exits 0 if the outcome is the expected one, 1
//! if not, 2 if the suite could not run.

use std::process::ExitCode;

use clap::Parser;
use portcullis_testkit::suite::{Options, run};

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("crs-suite: {error}");
            ExitCode::from(2)
        }
    }
}
