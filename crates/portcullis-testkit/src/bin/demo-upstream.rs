//! The demo application on a port: `demo-upstream [ADDRESS]`, default 127.0.0.1:9000.

use std::process::ExitCode;

use portcullis_testkit::upstream::{Server, demo};

fn main() -> ExitCode {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:9000".into());

    match Server::start(address.as_str(), demo::answer) {
        Ok(server) => {
            println!("demo-upstream listens on {}", server.address());
            loop {
                std::thread::park();
            }
        }
        Err(error) => {
            eprintln!("demo-upstream: cannot listen on {address}: {error}");
            ExitCode::FAILURE
        }
    }
}
