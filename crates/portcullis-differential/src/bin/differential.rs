//! Generated rules and requests through four engines; see `portcullis_differential`. Exits 0 if every
//! difference has a class, 1 if one has none, 2 if it could not run.

use std::process::ExitCode;

use clap::Parser;
use portcullis_differential::{Options, run};

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(summary) => {
            println!("{}", summary.table());
            match summary.problems.is_empty() {
                true => ExitCode::SUCCESS,
                false => ExitCode::from(1),
            }
        }
        Err(error) => {
            eprintln!("differential: {error}");
            ExitCode::from(2)
        }
    }
}
