//! The back end of the CRS regression suite on a port: `crs-backend [ADDRESS]`, default 127.0.0.1:9000.

use std::process::ExitCode;

use portcullis_testkit::upstream::{Server, reflector::Reflector};

fn main() -> ExitCode {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:9000".into());
    let reflector = Reflector::default();
    match Server::start(address.as_str(), move |request| reflector.answer(request)) {
        Ok(server) => {
            println!("crs-backend listens on {}", server.address());
            loop {
                std::thread::park();
            }
        }
        Err(error) => {
            eprintln!("crs-backend: cannot listen on {address}: {error}");
            ExitCode::FAILURE
        }
    }
}
