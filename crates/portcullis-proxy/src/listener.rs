//! Listening sockets: each worker has its own for every address (SO_REUSEPORT), and the kernel spreads connections.

use std::io;
use std::net::SocketAddr;

use socket2::{Domain, Protocol, Socket, Type};

/// Connections that wait to be accepted.
const BACKLOG: i32 = 4096;

/// One socket for each worker, all on the same address. Port 0 is settled by the first, so that all share it.
pub(crate) fn bind(address: SocketAddr, workers: usize) -> io::Result<Vec<std::net::TcpListener>> {
    let mut sockets: Vec<std::net::TcpListener> = Vec::with_capacity(workers);
    for _ in 0..workers {
        let address = match sockets.first() {
            Some(first) => first.local_addr()?,
            None => address,
        };
        sockets.push(bind_one(address)?);
    }
    Ok(sockets)
}

fn bind_one(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}
