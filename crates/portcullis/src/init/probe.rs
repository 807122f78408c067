//! Whether something listens at an address.

use std::net::{TcpStream, ToSocketAddrs as _};
use std::sync::mpsc;
use std::time::Duration;

/// For the name look-up and for connecting, each.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Connects and hangs up. The error is for people.
pub fn connects(host: &str, port: u16) -> Result<(), String> {
    let (sender, receiver) = mpsc::channel();
    let host = host.to_owned();
    // The system's resolver has no time limit; a thread that is late is left behind.
    std::thread::spawn(move || sender.send((host.as_str(), port).to_socket_addrs()));
    let late = |_| "its name is not resolved in time".to_owned();
    let found = receiver.recv_timeout(TIMEOUT).map_err(late)?.map_err(|error| error.to_string())?;
    let mut why = "its name has no address".to_owned();
    for address in found.take(4) {
        match TcpStream::connect_timeout(&address, TIMEOUT) {
            Ok(_) => return Ok(()),
            Err(error) => why = error.to_string(),
        }
    }
    Err(why)
}
