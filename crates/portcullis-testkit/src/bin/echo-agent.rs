//! The inspection agent of the tests as a program; see `portcullis_testkit::agent`.

use std::process::ExitCode;

use clap::Parser;
use portcullis_testkit::agent::{self, Options};

fn main() -> ExitCode {
    let options = Options::parse();
    match agent::serve(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("echo-agent: {}: {error}", options.address);
            ExitCode::from(1)
        }
    }
}
