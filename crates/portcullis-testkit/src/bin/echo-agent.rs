//! The inspection agent of the tests as a program: `echo-agent SOCKET`; see `portcullis_testkit::agent`.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(socket) = std::env::args_os().nth(1) else {
        eprintln!("usage: echo-agent SOCKET");
        return ExitCode::from(2);
    };
    match portcullis_testkit::agent::serve(Path::new(&socket)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("echo-agent: {}: {error}", Path::new(&socket).display());
            ExitCode::from(1)
        }
    }
}
