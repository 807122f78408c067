//! Hours of load; see `portcullis_proof::soak`. Exits 0 if nothing was lost and nothing drifts, 1 if not, 2
//! if it could not run.

use std::process::ExitCode;

use clap::Parser;
use portcullis_proof::soak::{Options, run};

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("soak: {error}");
            ExitCode::from(2)
        }
    }
}
