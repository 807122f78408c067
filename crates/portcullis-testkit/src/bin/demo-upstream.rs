//! The demo application on a port: `demo-upstream [ADDRESS]`, default 127.0.0.1:9000.

use portcullis_testkit::upstream::{Server, demo};

fn main() -> std::io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:9000".into());
    let server = Server::start(address.as_str(), demo::answer)?;
    println!("demo-upstream listens on {}", server.address());
    loop {
        std::thread::park();
    }
}
