//! Listening sockets: each worker has its own for every address (SO_REUSEPORT), and the kernel spreads
//! connections.
//!
//! Only our own workers share an address. The first socket is bound and listens without SO_REUSEPORT, which
//! fails if another process has the address, even one that would share it; the option is set afterwards, for
//! the other workers.
//!
//! Sockets may also come from elsewhere: from systemd, which bound one for each address, or from the process
//! that this one takes over from. A socket that is shared is never closed while a connection waits in it, so
//! none is lost.

use std::io;
use std::net::{SocketAddr, TcpListener};

use socket2::{Domain, Protocol, SockRef, Socket, Type};

/// Connections that wait to be accepted.
pub(crate) const BACKLOG: i32 = 4096;

/// The value of SO_INCOMING_CPU for a socket that takes connections of all cores.
const ANY_CORE: usize = usize::MAX;

/// Listening sockets that were passed to this process.
#[derive(Default)]
pub struct Inherited {
    /// For listeners on their addresses.
    pub sockets: Vec<TcpListener>,
    /// They come from a running Portcullis, which serves its addresses until this process does: an upgrade.
    pub takes_over: bool,
}

/// Why a socket cannot be bound, and what to do about it.
#[expect(clippy::wildcard_enum_match_arm, reason = "the system's other errors speak for themselves")]
pub fn cannot_listen(address: SocketAddr, error: &io::Error) -> String {
    let why = match error.kind() {
        io::ErrorKind::AddrInUse => format!(
            "the address is in use by another process (`ss -ltnp 'sport = :{}'` shows which): end that process or choose another \
             address; a running Portcullis is replaced without a gap by sending it SIGUSR2",
            address.port()
        ),
        io::ErrorKind::PermissionDenied => "not permitted (ports below 1024 need a privilege)".to_owned(),
        io::ErrorKind::AddrNotAvailable => "this machine does not have that address".to_owned(),
        _ => error.to_string(),
    };
    format!("cannot listen on {address}: {why}")
}

/// The other sockets that may be bound to the same address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// Nobody: that another process has it is an error.
    Exclusive,
    /// Sockets with SO_REUSEPORT of the same user.
    Shared,
}

/// The sockets of one listener: all of them, and which each worker serves.
pub(crate) struct Sockets {
    pub(crate) address: SocketAddr,
    pub(crate) all: Vec<TcpListener>,
    by_worker: Vec<Vec<TcpListener>>,
}

impl Sockets {
    /// Those of `inherited` that are bound to `address`; if there are none, one is bound for each worker.
    /// Port 0 is settled by the first, so that all share it. `sharing` is whether sockets of others may be on
    /// the address already.
    pub(crate) fn open(
        address: SocketAddr,
        workers: usize,
        inherited: &mut Vec<TcpListener>,
        sharing: Sharing,
    ) -> io::Result<Sockets> {
        let is_it = |socket: &mut TcpListener| socket.local_addr().is_ok_and(|own| own == address);
        let mut all: Vec<TcpListener> = inherited.extract_if(.., is_it).collect();
        for socket in &all {
            socket.set_nonblocking(true)?;
        }
        if all.is_empty() {
            all = bind(address, workers, sharing)?;
        }
        // Every socket needs a worker, and every worker a socket.
        let mut by_worker: Vec<Vec<TcpListener>> = (0..workers).map(|_| Vec::new()).collect();
        for number in 0..workers.max(all.len()) {
            by_worker[number % workers].push(all[number % all.len()].try_clone()?);
        }
        Ok(Sockets { address: all[0].local_addr()?, all, by_worker })
    }

    /// Has each worker get the connections whose packets come to its core (SO_INCOMING_CPU, socket(7)); those
    /// of cores without a worker go to any. Linux before 6.2 spreads connections as without it. Without
    /// `cores`, which are by worker, or if workers share sockets, every socket takes all. Tells whether
    /// workers get their own.
    pub(crate) fn steer(&self, cores: Option<&[usize]>) -> io::Result<bool> {
        let cores = cores.filter(|cores| cores.len() <= self.all.len());
        for (index, socket) in self.all.iter().enumerate() {
            let socket = SockRef::from(socket);
            match cores {
                Some(cores) => socket.set_cpu_affinity(cores[index % cores.len()])?,
                // The process that we take over from may have had other settings.
                None if socket.cpu_affinity().is_ok_and(|core| core != ANY_CORE) => {
                    socket.set_cpu_affinity(ANY_CORE)?;
                }
                None => {}
            }
        }
        Ok(cores.is_some())
    }

    /// Those that a worker is to serve.
    pub(crate) fn of_worker(&mut self, number: usize) -> Vec<TcpListener> {
        std::mem::take(&mut self.by_worker[number])
    }
}

/// The sockets of one listener that one worker serves.
pub(crate) struct WorkerSockets {
    pub(crate) tcp: Vec<TcpListener>,
    /// For HTTP/3.
    #[cfg(feature = "http3")]
    pub(crate) udp: Option<std::net::UdpSocket>,
}

/// A socket for HTTP/3 of one worker. The kernel gives all datagrams of a client to the same one, as long as
/// its address stays.
#[cfg(feature = "http3")]
pub(crate) fn bind_udp(address: SocketAddr, sharing: Sharing) -> io::Result<std::net::UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_reuse_port(sharing == Sharing::Shared)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.set_reuse_port(true)?;
    Ok(socket.into())
}

fn bind(address: SocketAddr, workers: usize, sharing: Sharing) -> io::Result<Vec<TcpListener>> {
    let first = bind_one(address, sharing)?;
    let address = first.local_addr()?;
    let others = (1..workers).map(|_| bind_one(address, Sharing::Shared));
    std::iter::once(Ok(first)).chain(others).collect()
}

/// SO_REUSEADDR is for addresses of which only closed connections are left (TIME_WAIT).
fn bind_one(address: SocketAddr, sharing: Sharing) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(sharing == Sharing::Shared)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    // Not before: of two processes that start at the same time both could bind, and only one can listen.
    socket.set_reuse_port(true)?;
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
            let mut given = bind(any, count, Sharing::Exclusive).unwrap();
            let address = given[0].local_addr().unwrap();
            given.push(TcpListener::bind(any).unwrap());
            let mut sockets = Sockets::open(address, workers, &mut given, Sharing::Exclusive).unwrap();
            assert_eq!((sockets.all.len(), given.len()), (count, 1), "another address stays");
            let served: Vec<usize> = (0..workers).map(|number| sockets.of_worker(number).len()).collect();
            assert_eq!(served, expected[..workers]);
        }
    }

    #[test]
    fn an_address_that_is_served_cannot_be_had_again() {
        for any in ["127.0.0.1:0", "0.0.0.0:0", "[::1]:0", "[::]:0"] {
            // A machine may have no IPv6.
            let Ok(first) = bind(any.parse().unwrap(), 2, Sharing::Exclusive) else { continue };
            let address = first[0].local_addr().unwrap();
            let refused = bind(address, 1, Sharing::Exclusive).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::AddrInUse, "{address}");
            let text = cannot_listen(address, &refused);
            assert!(text.contains(&address.to_string()) && text.contains("SIGUSR2"), "{text}");
            let narrow = SocketAddr::from(([127, 0, 0, 1], address.port()));
            if address.ip().is_unspecified() {
                assert!(bind(narrow, 1, Sharing::Exclusive).is_err(), "{narrow} beside {address}");
                assert!(bind(narrow, 1, Sharing::Shared).is_ok(), "of the same document");
            }
            drop(first);
            assert!(bind(address, 1, Sharing::Exclusive).is_ok(), "{address} is free again");
        }
    }

    /// Of many that start at the same time one gets the address.
    #[test]
    fn one_of_those_that_start_together_has_the_address() {
        for _ in 0..50 {
            let free = bind("127.0.0.1:0".parse().unwrap(), 1, Sharing::Exclusive).unwrap();
            let address = free[0].local_addr().unwrap();
            drop(free);
            let start = std::sync::Barrier::new(4);
            let bound: Vec<_> = std::thread::scope(|scope| {
                let race = || {
                    start.wait();
                    bind(address, 2, Sharing::Exclusive)
                };
                let racers: Vec<_> = (0..4).map(|_| scope.spawn(race)).collect();
                racers.into_iter().map(|racer| racer.join().unwrap()).collect()
            });
            let won = bound.iter().filter(|bound| bound.is_ok()).count();
            assert_eq!(won, 1, "{bound:?}");
        }
    }

    #[test]
    fn sockets_are_steered_unless_they_are_shared() {
        let any = "127.0.0.1:0".parse().unwrap();
        let sockets = Sockets::open(any, 2, &mut Vec::new(), Sharing::Exclusive).unwrap();
        let cores = |sockets: &Sockets| {
            let core = |socket| SockRef::from(socket).cpu_affinity().unwrap();
            sockets.all.iter().map(core).collect::<Vec<_>>()
        };
        assert!(sockets.steer(Some(&[0, 1])).unwrap());
        assert_eq!(cores(&sockets), [0, 1]);
        // A successor with one worker more than there are sockets.
        assert!(!sockets.steer(Some(&[0, 1, 2])).unwrap());
        assert_eq!(cores(&sockets), [ANY_CORE, ANY_CORE]);
        assert!(sockets.steer(Some(&[1])).unwrap());
        assert_eq!(cores(&sockets), [1, 1]);
        assert!(!sockets.steer(None).unwrap());
        assert_eq!(cores(&sockets), [ANY_CORE, ANY_CORE]);
    }
}
