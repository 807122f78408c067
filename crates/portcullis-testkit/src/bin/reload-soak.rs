//! Reloads under load; see `portcullis_testkit::reload_soak`. Exits 0 if nothing was lost and memory stayed,
//! 1 if not, 2 if it could not run.

use std::process::ExitCode;

use clap::Parser;
use portcullis_testkit::reload_soak::{Options, run};

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("reload-soak: {error}");
            ExitCode::from(2)
        }
    }
}
