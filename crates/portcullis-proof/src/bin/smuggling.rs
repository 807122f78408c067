//! Framing variants through us to other servers; see `portcullis_proof::smuggling`. Exits 0 if no back end
//! disagreed, 1 if not, 2 if it could not run.

use std::process::ExitCode;

use clap::Parser;
use portcullis_proof::smuggling::{Options, run};

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("smuggling: {error}");
            ExitCode::from(2)
        }
    }
}
