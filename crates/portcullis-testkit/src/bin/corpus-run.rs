//! The corpora through the proxy; see `portcullis_testkit::corpus_run`. Exits 0 if nothing broke, 1 if
//! something did, 2 if it could not run.

use std::process::ExitCode;

use clap::Parser;
use portcullis_testkit::corpus_run::{Options, run};

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("corpus-run: {error}");
            ExitCode::from(2)
        }
    }
}
