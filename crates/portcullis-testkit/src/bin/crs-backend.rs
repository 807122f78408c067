//! The back end of the CRS regression suite on a port: `crs-backend [ADDRESS]`, default 127.0.0.1:9000.

use portcullis_testkit::upstream::{Server, reflector::Reflector};

fn main() -> std::io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:9000".into());
    let reflector = Reflector::default();
    let server = Server::start(address.as_str(), move |request| reflector.answer(request))?;
    println!("crs-backend listens on {}", server.address());
    loop {
        std::thread::park();
    }
}
