use std::io::{self, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use crate::{Command, Limits, Reply, reply::Reader};

/// A socket with a deadline for whatever is done until there is another.
struct Timed {
    socket: TcpStream,
    deadline: Instant,
}

impl Timed {
    fn left(&self) -> io::Result<Duration> {
        match self.deadline.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(io::Error::new(io::ErrorKind::TimedOut, "the answer did not come in time")),
            left => Ok(left),
        }
    }
}

impl Read for Timed {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.socket.set_read_timeout(Some(self.left()?))?;
        self.socket.read(into).map_err(late)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.set_write_timeout(Some(self.left()?))?;
        self.socket.write(bytes).map_err(late)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

/// The system says that it would have to wait.
fn late(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::WouldBlock {
        io::Error::new(io::ErrorKind::TimedOut, "the answer did not come in time")
    } else {
        error
    }
}

enum Stream {
    Plain(Timed),
    Tls(Box<StreamOwned<ClientConnection, Timed>>),
}

impl Stream {
    fn socket(&mut self) -> &mut Timed {
        match self {
            Stream::Plain(timed) => timed,
            Stream::Tls(tls) => &mut tls.sock,
        }
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(timed) => timed.read(into),
            Stream::Tls(tls) => tls.read(into),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(timed) => timed.write(bytes),
            Stream::Tls(tls) => tls.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Plain(timed) => timed.flush(),
            Stream::Tls(tls) => tls.flush(),
        }
    }
}

/// An open connection. After an error it is not to be used any more.
pub struct Connection {
    stream: BufReader<Stream>,
    limits: Limits,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

impl Connection {
    /// Opens a connection to `host`, with TLS if there are settings and a name for it.
    pub(crate) fn open(
        (host, port): (&str, u16),
        tls: Option<&(Arc<ClientConfig>, ServerName<'static>)>,
        patience: Duration,
        limits: Limits,
    ) -> io::Result<Connection> {
        let deadline = Instant::now() + patience;
        let mut failed = io::Error::other("the host has no address");
        for address in (host, port).to_socket_addrs()? {
            let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            match TcpStream::connect_timeout(&address, left) {
                Ok(socket) => {
                    socket.set_nodelay(true)?;
                    let timed = Timed { socket, deadline };
                    let stream = match tls {
                        None => Stream::Plain(timed),
                        Some((config, name)) => {
                            let client = ClientConnection::new(Arc::clone(config), name.clone());
                            let client = client.map_err(io::Error::other)?;
                            Stream::Tls(Box::new(StreamOwned::new(client, timed)))
                        }
                    };
                    return Ok(Connection { stream: BufReader::new(stream), limits });
                }
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    /// Sends commands and reads an answer for each, within `patience` all together.
    pub fn exchange(&mut self, commands: &[Command], patience: Duration) -> io::Result<Vec<Reply>> {
        let mut bytes = Vec::new();
        commands.iter().for_each(|command| command.write_to(&mut bytes));
        let stream = self.stream.get_mut();
        stream.socket().deadline = Instant::now() + patience;
        stream.write_all(&bytes)?;
        stream.flush()?;
        let mut reader = Reader::new(&mut self.stream, self.limits);
        commands.iter().map(|_| reader.read()).collect()
    }

    /// Sends one command; an answer that says no is an error.
    pub fn ask(&mut self, command: &Command, patience: Duration) -> io::Result<Reply> {
        let replies = self.exchange(std::slice::from_ref(command), patience)?;
        replies.into_iter().next().unwrap_or(Reply::Nil).accepted()
    }
}
