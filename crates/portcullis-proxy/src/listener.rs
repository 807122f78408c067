//! Listening sockets: each worker has its own for every address (SO_REUSEPORT), and the kernel spreads connections.
//!
//! Sockets may also come from elsewhere: from systemd, which bound one for each address, or from the process that this one
//! takes over from. A socket that is shared is never closed while a connection waits in it, so none is lost.

use std::io;
use std::net::{SocketAddr, TcpListener};

use socket2::{Domain, Protocol, Socket, Type};

/// Connections that wait to be accepted.
pub(crate) const BACKLOG: i32 = 4096;

/// The sockets of one listener: all of them, and which each worker serves.
pub(crate) struct Sockets {
    pub(crate) address: SocketAddr,
    pub(crate) all: Vec<TcpListener>,
    by_worker: Vec<Vec<TcpListener>>,
}

impl Sockets {
    /// Those of `inherited` that are bound to `address`; if there are none, one is bound for each worker. Port 0 is
    /// settled by the first, so that all share it.
    pub(crate) fn open(
        address: SocketAddr,
        workers: usize,
        inherited: &mut Vec<TcpListener>,
    ) -> io::Result<Sockets> {
        let is_it = |socket: &mut TcpListener| socket.local_addr().is_ok_and(|own| own == address);
        let mut all: Vec<TcpListener> = inherited.extract_if(.., is_it).collect();
        for socket in &all {
            socket.set_nonblocking(true)?;
        }
        if all.is_empty() {
            all = bind(address, workers)?;
        }
        // Every socket must be served by somebody, and every worker must serve one.
        let mut by_worker: Vec<Vec<TcpListener>> = (0..workers).map(|_| Vec::new()).collect();
        for number in 0..workers.max(all.len()) {
            by_worker[number % workers].push(all[number % all.len()].try_clone()?);
        }
        Ok(Sockets { address: all[0].local_addr()?, all, by_worker })
    }

    /// Those that a worker is to serve.
    pub(crate) fn of_worker(&mut self, number: usize) -> Vec<TcpListener> {
        std::mem::take(&mut self.by_worker[number])
    }
}

/// What one worker serves of a listener.
pub(crate) struct WorkerSockets {
    pub(crate) tcp: Vec<TcpListener>,
    /// For HTTP/3.
    #[cfg(feature = "http3")]
    pub(crate) udp: Option<std::net::UdpSocket>,
}

/// A socket for HTTP/3 of each worker. The kernel gives all datagrams of a client to the same one, as long as its address stays.
#[cfg(feature = "http3")]
pub(crate) fn bind_udp(address: SocketAddr) -> io::Result<std::net::UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_reuse_port(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}

fn bind(address: SocketAddr, workers: usize) -> io::Result<Vec<TcpListener>> {
    let mut sockets: Vec<TcpListener> = Vec::with_capacity(workers);
    for _ in 0..workers {
        let address = match sockets.first() {
            Some(first) => first.local_addr()?,
            None => address,
        };
        sockets.push(bind_one(address)?);
    }
    Ok(sockets)
}

fn bind_one(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_socket_is_served_and_every_worker_serves() {
        let any = "127.0.0.1:0".parse().unwrap();
        for (count, workers, expected) in
            [(1, 3, [1, 1, 1]), (3, 3, [1, 1, 1]), (4, 2, [2, 2, 0]), (2, 3, [1, 1, 1])]
        {
            let mut given = bind(any, count).unwrap();
            let address = given[0].local_addr().unwrap();
            given.push(TcpListener::bind(any).unwrap());
            let mut sockets = Sockets::open(address, workers, &mut given).unwrap();
            assert_eq!((sockets.all.len(), given.len()), (count, 1), "another address stays");
            let served: Vec<usize> = (0..workers).map(|number| sockets.of_worker(number).len()).collect();
            assert_eq!(served, expected[..workers]);
        }
    }
}
