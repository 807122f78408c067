//! Faults under load; see `portcullis_proof::chaos`. Exits 0 if every assertion held, 1 if not, 2 if it could
//! not run.

use std::process::ExitCode;

use clap::Parser;
use portcullis_proof::chaos::{Options, run};

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("chaos: {error}");
            ExitCode::from(2)
        }
    }
}
