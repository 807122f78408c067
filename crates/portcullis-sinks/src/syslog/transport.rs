//! Connections to receivers of syslog. Each step of one ends in time.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _, UdpSocket};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fmt, net};

use portcullis_config::{Endpoint, SyslogAddress};
use portcullis_fetch::Authorities;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};

/// Reads of what a receiver sends, at one look whether it closed. Receivers of syslog send nothing but what
/// TLS needs.
const READS_MAX: usize = 16;

/// The way to a receiver.
pub(super) struct Transport {
    address: Address,
    timeout: Duration,
}

enum Address {
    Tcp(Endpoint),
    Tls(Endpoint, Arc<ClientConfig>, ServerName<'static>),
    Udp(Endpoint),
    Unix(PathBuf),
    UnixStream(PathBuf),
}

impl Transport {
    /// Errors: authorities that cannot be read.
    pub(super) fn new(address: &SyslogAddress, timeout: Duration, name: &str) -> io::Result<Transport> {
        let address = match address {
            SyslogAddress::Tcp(endpoint) => Address::Tcp(endpoint.clone()),
            SyslogAddress::Udp(endpoint) => Address::Udp(endpoint.clone()),
            SyslogAddress::Unix(path) => Address::Unix(path.clone()),
            SyslogAddress::UnixStream(path) => Address::UnixStream(path.clone()),
            SyslogAddress::Tls(endpoint, ca) => {
                let roots = Authorities::load(ca.as_deref(), &format!("ca of the sink {name}"));
                let roots = roots.map_err(io::Error::other)?.store();
                let provider = Arc::new(rustls::crypto::ring::default_provider());
                let config = ClientConfig::builder_with_provider(provider)
                    .with_safe_default_protocol_versions()
                    .map_err(io::Error::other)?
                    .with_root_certificates(roots)
                    .with_no_client_auth();
                let server = ServerName::try_from(endpoint.host.clone()).map_err(io::Error::other)?;
                Address::Tls(endpoint.clone(), Arc::new(config), server)
            }
        };
        Ok(Transport { address, timeout })
    }

    pub(super) fn is_stream(&self) -> bool {
        !matches!(self.address, Address::Udp(_) | Address::Unix(_))
    }

    pub(super) fn connect(&self) -> io::Result<Connection> {
        let deadline = Instant::now() + self.timeout;
        let link = match &self.address {
            Address::Tcp(endpoint) => Link::Tcp(tcp(endpoint, deadline)?),
            Address::Tls(endpoint, config, server) => {
                let socket = tcp(endpoint, deadline)?;
                let client =
                    ClientConnection::new(Arc::clone(config), server.clone()).map_err(io::Error::other)?;
                let mut tls = Box::new(client);
                while tls.is_handshaking() {
                    tls.complete_io(&mut Timed { socket: &socket, deadline }).map_err(late)?;
                }
                Link::Tls(socket, tls)
            }
            Address::Udp(endpoint) => Link::Udp(udp(endpoint)?),
            Address::Unix(path) => {
                let socket = UnixDatagram::unbound()?;
                socket.connect(path)?;
                Link::Unix(socket)
            }
            Address::UnixStream(path) => Link::UnixStream(UnixStream::connect(path)?),
        };
        Ok(Connection { link, timeout: self.timeout })
    }
}

/// As in the configuration.
impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.address {
            Address::Tcp(endpoint) => write!(f, "tcp://{endpoint}"),
            Address::Tls(endpoint, ..) => write!(f, "tls://{endpoint}"),
            Address::Udp(endpoint) => write!(f, "udp://{endpoint}"),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
            Address::UnixStream(path) => write!(f, "unix-stream:{}", path.display()),
        }
    }
}

/// An open connection. After an error it is not used any more.
pub(super) struct Connection {
    link: Link,
    timeout: Duration,
}

enum Link {
    Tcp(TcpStream),
    Tls(TcpStream, Box<ClientConnection>),
    Udp(UdpSocket),
    Unix(UnixDatagram),
    UnixStream(UnixStream),
}

impl Connection {
    /// Writes all bytes within the time limit; how many are out, and the error that stopped it.
    pub(super) fn write(&mut self, bytes: &[u8]) -> (usize, io::Result<()>) {
        let deadline = Instant::now() + self.timeout;
        match &mut self.link {
            Link::Tcp(socket) => write_all(bytes, |rest| Timed { socket, deadline }.write(rest)),
            Link::UnixStream(socket) => write_all(bytes, |rest| {
                socket.set_write_timeout(Some(left(deadline)?))?;
                socket.write(rest)
            }),
            Link::Tls(socket, tls) => write_all(bytes, |rest| {
                let taken = tls.writer().write(rest)?;
                while tls.wants_write() {
                    tls.write_tls(&mut Timed { socket, deadline })?;
                }
                Ok(taken)
            }),
            Link::Udp(socket) => datagram(bytes, socket.send(bytes)),
            Link::Unix(socket) => {
                let result = left(deadline).and_then(|left| socket.set_write_timeout(Some(left)));
                datagram(bytes, result.and_then(|()| socket.send(bytes)))
            }
        }
    }

    /// True if the other side closed the connection or broke it. What it sent is thrown away.
    pub(super) fn is_closed(&mut self) -> bool {
        let result = match &mut self.link {
            Link::Tcp(socket) => {
                drained(socket, TcpStream::set_nonblocking, |socket| socket.read(&mut [0; 4096]))
            }
            Link::UnixStream(socket) => {
                drained(socket, UnixStream::set_nonblocking, |socket| socket.read(&mut [0; 4096]))
            }
            Link::Tls(socket, tls) => drained(socket, TcpStream::set_nonblocking, |socket| {
                let count = tls.read_tls(socket)?;
                let state = tls.process_new_packets().map_err(io::Error::other)?;
                let mut thrown_away = vec![0; state.plaintext_bytes_to_read()];
                tls.reader().read_exact(&mut thrown_away)?;
                Ok(if state.peer_has_closed() { 0 } else { count })
            }),
            Link::Udp(_) | Link::Unix(_) => Ok(false),
        };
        result.unwrap_or(true)
    }
}

/// True if a read finds the end. The socket blocks again afterwards.
fn drained<S>(
    socket: &mut S,
    set_nonblocking: impl Fn(&S, bool) -> io::Result<()>,
    mut read: impl FnMut(&mut S) -> io::Result<usize>,
) -> io::Result<bool> {
    set_nonblocking(socket, true)?;
    let mut result = Ok(false);
    for _ in 0..READS_MAX {
        match read(socket) {
            Ok(0) => result = Ok(true),
            Ok(_) => continue,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => result = Err(error),
        }
        break;
    }
    set_nonblocking(socket, false)?;
    result
}

fn write_all(bytes: &[u8], mut write: impl FnMut(&[u8]) -> io::Result<usize>) -> (usize, io::Result<()>) {
    let mut out = 0;
    while out < bytes.len() {
        match write(&bytes[out..]) {
            Ok(0) => return (out, Err(io::ErrorKind::WriteZero.into())),
            Ok(count) => out += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (out, Err(late(error))),
        }
    }
    (out, Ok(()))
}

/// A datagram goes as a whole, or not at all.
fn datagram(bytes: &[u8], result: io::Result<usize>) -> (usize, io::Result<()>) {
    match result {
        Ok(_) => (bytes.len(), Ok(())),
        Err(error) => (0, Err(late(error))),
    }
}

/// Connects to one of the addresses of a name.
fn tcp(endpoint: &Endpoint, deadline: Instant) -> io::Result<TcpStream> {
    let mut failed = io::Error::other("the host has no address");
    for address in (&*endpoint.host, endpoint.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, left(deadline)?) {
            Ok(socket) => {
                socket.set_nodelay(true)?;
                return Ok(socket);
            }
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

fn udp(endpoint: &Endpoint) -> io::Result<UdpSocket> {
    let address = (&*endpoint.host, endpoint.port).to_socket_addrs()?.next();
    let address = address.ok_or_else(|| io::Error::other("the host has no address"))?;
    let any: SocketAddr = match address {
        SocketAddr::V4(_) => (net::Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (net::Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(address)?;
    Ok(socket)
}

/// A socket whose reads and writes end at a deadline, however few bytes each brings.
struct Timed<'s> {
    socket: &'s TcpStream,
    deadline: Instant,
}

impl io::Read for Timed<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.socket.set_read_timeout(Some(left(self.deadline)?))?;
        self.socket.read(into)
    }
}

impl io::Write for Timed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.set_write_timeout(Some(left(self.deadline)?))?;
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn left(deadline: Instant) -> io::Result<Duration> {
    match deadline.saturating_duration_since(Instant::now()) {
        Duration::ZERO => Err(io::ErrorKind::TimedOut.into()),
        left => Ok(left),
    }
}

/// The system says that it would have to wait.
fn late(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::WouldBlock { io::ErrorKind::TimedOut.into() } else { error }
}
