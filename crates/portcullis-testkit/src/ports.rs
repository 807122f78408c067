//! Addresses for servers that a test starts.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Mutex;

use socket2::{Domain, Protocol, Socket, Type};

use crate::TestkitError;

/// Sockets that hold the addresses this process was given. They are bound and never listen.
static HELD: Mutex<Vec<Socket>> = Mutex::new(Vec::new());

/// An address on loopback for a server that sets SO_REUSEADDR, as servers do. It is the caller's until this
/// process ends: no other process is given it, and a connection to it is refused until that server listens.
///
/// A probe that listens, and is closed to make room for the server, keeps neither promise. Another process
/// may draw the same port meanwhile. And a child that another thread starts at that moment has a copy of the
/// probe until it calls exec(2): the address then accepts connections that no server handles, and the first
/// request is closed without an answer.
pub fn free_address() -> Result<SocketAddr, TestkitError> {
    let hold = || {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
        // Without SO_REUSEADDR, so that the system gives a free port; with it from then on, for
        // the server.
        socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())?;
        socket.set_reuse_address(true)?;
        let address = socket.local_addr()?.as_socket();
        Ok::<_, std::io::Error>((socket, address))
    };
    match hold() {
        Ok((socket, Some(address))) => {
            HELD.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(socket);
            Ok(address)
        }
        Ok((_, None)) => Err(TestkitError::Run("no free port: not an address of IPv4".to_owned())),
        Err(error) => Err(TestkitError::Run(format!("no free port: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::net::{TcpListener, TcpStream};
    use std::process::Command;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// Ends the threads of a test, when it fails as well.
    struct Stop<'a>(&'a AtomicBool);

    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    /// While other threads start children, a drawn address refuses connections, and its server can listen.
    #[test]
    fn a_drawn_address_is_served_by_its_server_only() {
        let (stop, mut seen) = (AtomicBool::new(false), HashSet::new());
        std::thread::scope(|scope| {
            let _stop = Stop(&stop);
            for _ in 0..3 {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        Command::new("true").status().unwrap();
                    }
                });
            }
            for _ in 0..400 {
                let address = free_address().unwrap();
                assert!(TcpStream::connect(address).is_err(), "{address} accepted before anybody listened");
                // Once only: a child may have a copy of this server's socket for a moment, too.
                let server = TcpListener::bind(address).unwrap();
                assert!(TcpStream::connect(address).is_ok());
                drop(server);
                assert!(seen.insert(address), "{address} was given twice");
            }
        });
    }

    #[test]
    fn who_asks_for_a_port_of_their_own_does_not_get_a_held_one() {
        let address = free_address().unwrap();
        let other = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        assert!(other.bind(&address.into()).is_err());
    }
}
