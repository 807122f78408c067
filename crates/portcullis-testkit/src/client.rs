//! A raw HTTP/1 client: writes the bytes it is given and reads what comes back, with a deadline. It does not
//! repair, follow or retry anything.

use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};

/// Bytes of a response that are kept; the rest is read and dropped.
pub const RESPONSE_BYTES_MAX: usize = 1 << 20;
/// Bytes of a response head.
const HEAD_BYTES_MAX: usize = 256 << 10;

/// A response as received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Status of the first head, which may be an interim one (1xx).
    pub status: u16,
    /// First head and what followed it, at most [`RESPONSE_BYTES_MAX`].
    pub raw: Vec<u8>,
    /// True if the body ended as its framing said: all of its length, or its last chunk. A body that ends
    /// with the connection is whole.
    pub whole: bool,
}

impl Exchange {
    /// First value of a header field of the first head, trimmed.
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        let end = head_end(&self.raw).unwrap_or(self.raw.len());
        header_values(&self.raw[..end], name).next()
    }

    /// Returns the bytes after the first head, transfer coding included.
    pub fn after_head(&self) -> &[u8] {
        head_end(&self.raw).map_or(&[], |end| &self.raw[end..])
    }
}

/// The reason why there is no response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No connection.
    Connect(String),
    /// Nothing, or only a part of a head, within the time limit.
    TimedOut,
    /// Closed or reset before the first byte of a response.
    Closed,
    /// Another error of the connection.
    Read(String),
    /// Something came that is not an HTTP/1 response head.
    NotHttp(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Connect(error) => write!(f, "no connection: {error}"),
            Failure::TimedOut => f.write_str("timed out"),
            Failure::Closed => f.write_str("connection closed without a response"),
            Failure::Read(error) => write!(f, "cannot read: {error}"),
            Failure::NotHttp(start) => write!(f, "not an HTTP response: {start:?}"),
        }
    }
}

/// Sends `request` over a connection of its own, from `source` if given, and reads the response to its end.
pub fn exchange(
    target: SocketAddr,
    source: Option<IpAddr>,
    request: &[u8],
    limit: Duration,
) -> Result<Exchange, Failure> {
    Connection::open(target, source, limit)?.exchange(request, limit)
}

/// The connection: a TCP stream, or TLS over one.
pub trait Wire: Read + Write + Send {
    /// Sets the longest time that a read may wait.
    fn set_read_timeout(&self, limit: Duration) -> std::io::Result<()>;
}

impl Wire for TcpStream {
    fn set_read_timeout(&self, limit: Duration) -> std::io::Result<()> {
        TcpStream::set_read_timeout(self, Some(limit))
    }
}

/// The end of a response.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// As its framing says; another request may follow.
    Kept,
    /// As its framing says, and no request may follow.
    Closed,
    /// Before its end.
    Broken,
}

/// A TCP connection to `target`, from `source` if given; `limit` is for connecting and for each write.
pub fn connect(target: SocketAddr, source: Option<IpAddr>, limit: Duration) -> Result<TcpStream, Failure> {
    let connect = || {
        let socket = Socket::new(Domain::for_address(target), Type::STREAM, None)?;
        if let Some(source) = source {
            socket.bind(&SocketAddr::new(source, 0).into())?;
        }
        socket.connect_timeout(&target.into(), limit)?;
        let stream = TcpStream::from(socket);
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(limit))?;
        Ok::<_, std::io::Error>(stream)
    };
    connect().map_err(|error| Failure::Connect(error.to_string()))
}

/// A connection that may carry several requests.
pub struct Connection {
    stream: Box<dyn Wire>,
    /// Bytes read and not yet used.
    buffer: Vec<u8>,
    reusable: bool,
}

impl Connection {
    /// Connects to `target`, from `source` if given.
    pub fn open(target: SocketAddr, source: Option<IpAddr>, limit: Duration) -> Result<Self, Failure> {
        Ok(Connection::over(Box::new(connect(target, source, limit)?)))
    }

    /// A connection that is open already.
    pub fn over(stream: Box<dyn Wire>) -> Self {
        Connection { stream, buffer: Vec::new(), reusable: true }
    }

    /// Returns true if another request may follow on this connection.
    pub fn reusable(&self) -> bool {
        self.reusable
    }

    /// Sends `request` and reads its response, interim ones included, to the end.
    pub fn exchange(&mut self, request: &[u8], limit: Duration) -> Result<Exchange, Failure> {
        let deadline = Instant::now() + limit;
        self.reusable = false;
        // A peer may refuse and close while we still write; its answer is what counts.
        let _ = self.stream.write_all(request);
        let mut status = None;
        let mut raw = Vec::new();
        loop {
            let (this, head) = match (self.head(deadline), status) {
                (Ok(head), _) => head,
                (Err(failure), None) => return Err(failure),
                (Err(_), Some(status)) => return Ok(Exchange { status, raw, whole: false }),
            };
            let first = *status.get_or_insert(this);
            raw.extend_from_slice(&head);
            if (100..200).contains(&this) && this != 101 {
                continue;
            }
            let end = self.body(request, this, &head, &mut raw, deadline);
            self.reusable = end == End::Kept;
            return Ok(Exchange { status: first, raw, whole: end != End::Broken });
        }
    }

    fn head(&mut self, deadline: Instant) -> Result<(u16, Vec<u8>), Failure> {
        loop {
            if let Some(end) = head_end(&self.buffer) {
                let head: Vec<u8> = self.buffer.drain(..end).collect();
                return match status(&head) {
                    Some(status) => Ok((status, head)),
                    None => Err(not_http(&head)),
                };
            }
            if self.buffer.len() > HEAD_BYTES_MAX {
                return Err(not_http(&self.buffer));
            }
            match self.fill(deadline) {
                Ok(0) if self.buffer.is_empty() => return Err(Failure::Closed),
                Ok(0) => return Err(not_http(&self.buffer)),
                Ok(_) => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    return Err(if self.buffer.is_empty() {
                        Failure::TimedOut
                    } else {
                        not_http(&self.buffer)
                    });
                }
                Err(error) if matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => {
                    return Err(Failure::Closed);
                }
                Err(error) => return Err(Failure::Read(error.to_string())),
            }
        }
    }

    /// Reads the body.
    fn body(
        &mut self,
        request: &[u8],
        status: u16,
        head: &[u8],
        raw: &mut Vec<u8>,
        deadline: Instant,
    ) -> End {
        let after = |whole: bool, keep: bool| match (whole, keep) {
            (false, _) => End::Broken,
            (true, true) => End::Kept,
            (true, false) => End::Closed,
        };
        let keep = keeps_alive(head);
        if request.starts_with(b"HEAD ") || matches!(status, 101 | 204 | 304) {
            return after(true, keep && status != 101);
        }
        if header_values(head, "transfer-encoding")
            .any(|value| value.to_ascii_lowercase().ends_with(b"chunked"))
        {
            return after(self.chunks(raw, deadline), keep);
        }
        match header_values(head, "content-length").next().and_then(decimal) {
            Some(length) => after(self.take(length, raw, deadline), keep),
            None => {
                while self.take(1, raw, deadline) {}
                End::Closed
            }
        }
    }

    fn chunks(&mut self, raw: &mut Vec<u8>, deadline: Instant) -> bool {
        loop {
            let Some(line) = self.line(raw, deadline) else { return false };
            let digits: Vec<u8> = line.iter().copied().take_while(u8::is_ascii_hexdigit).collect();
            let text = String::from_utf8(digits).unwrap_or_default();
            match u64::from_str_radix(&text, 16) {
                Ok(0) => loop {
                    match self.line(raw, deadline) {
                        Some(trailer) if trailer.is_empty() => return true,
                        Some(_) => {}
                        None => return false,
                    }
                },
                Ok(length) if self.take(length.saturating_add(2), raw, deadline) => {}
                _ => return false,
            }
        }
    }

    /// Moves one line to `raw`; returns it without its end.
    fn line(&mut self, raw: &mut Vec<u8>, deadline: Instant) -> Option<Vec<u8>> {
        loop {
            if let Some(at) = self.buffer.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=at).collect();
                keep(raw, &line);
                return Some(line.trim_ascii_end().to_vec());
            }
            if self.buffer.len() > HEAD_BYTES_MAX || self.fill(deadline).ok()? == 0 {
                return None;
            }
        }
    }

    /// Moves `count` bytes to `raw`. False if fewer came.
    fn take(&mut self, mut count: u64, raw: &mut Vec<u8>, deadline: Instant) -> bool {
        while count > 0 {
            if self.buffer.is_empty() && !matches!(self.fill(deadline), Ok(1..)) {
                return false;
            }
            let part = self.buffer.len().min(usize::try_from(count).unwrap_or(usize::MAX));
            keep(raw, &self.buffer[..part]);
            self.buffer.drain(..part);
            count -= part as u64;
        }
        true
    }

    fn fill(&mut self, deadline: Instant) -> std::io::Result<usize> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(left)?;
        let mut part = [0; 16 << 10];
        let count = loop {
            match self.stream.read(&mut part) {
                // A read with a time limit is not begun again after a signal to any thread (signal(7)).
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                done => break done?,
            }
        };
        self.buffer.extend_from_slice(&part[..count]);
        Ok(count)
    }
}

fn keep(raw: &mut Vec<u8>, bytes: &[u8]) {
    let room = RESPONSE_BYTES_MAX.saturating_sub(raw.len());
    raw.extend_from_slice(&bytes[..bytes.len().min(room)]);
}

fn not_http(bytes: &[u8]) -> Failure {
    Failure::NotHttp(String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).into_owned())
}

/// Length of the head with its empty line.
pub(crate) fn head_end(bytes: &[u8]) -> Option<usize> {
    let mut line = 0;
    for (at, _) in bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
        if matches!(&bytes[line..at], b"" | b"\r") && line > 0 {
            return Some(at + 1);
        }
        line = at + 1;
    }
    None
}

/// `HTTP/d.d ddd ...`
fn status(head: &[u8]) -> Option<u16> {
    let rest = head.strip_prefix(b"HTTP/")?;
    let [major, b'.', minor, b' ', code @ ..] = rest else { return None };
    let code = code.get(..3)?;
    let ends = matches!(rest.get(7), Some(b' ' | b'\r' | b'\n'));
    (major.is_ascii_digit() && minor.is_ascii_digit() && ends).then(|| decimal(code))?.map(|code| code as u16)
}

pub(crate) fn header_values<'a, 'n>(
    head: &'a [u8],
    name: &'n str,
) -> impl Iterator<Item = &'a [u8]> + use<'a, 'n> {
    head.split(|&byte| byte == b'\n').skip(1).filter_map(move |line| {
        let colon = line.iter().position(|&byte| byte == b':')?;
        line[..colon].eq_ignore_ascii_case(name.as_bytes()).then(|| line[colon + 1..].trim_ascii())
    })
}

pub(crate) fn keeps_alive(head: &[u8]) -> bool {
    let mut words = header_values(head, "connection").flat_map(|value| value.split(|&byte| byte == b','));
    let line = head.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let old = line.starts_with(b"HTTP/1.0") || line.trim_ascii_end().ends_with(b"HTTP/1.0");
    !words.any(|word| word.trim_ascii().eq_ignore_ascii_case(b"close")) && !old
}

pub(crate) fn decimal(text: &[u8]) -> Option<u64> {
    (!text.is_empty() && text.iter().all(u8::is_ascii_digit))
        .then(|| std::str::from_utf8(text).ok()?.parse().ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// Checks the reading of a server's answer to one request.
    #[track_caller]
    fn check(says: &'static [u8], request: &[u8], want: Result<(u16, &[u8], bool), Failure>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, from) = listener.accept().unwrap();
            let mut part = [0; 100];
            let _ = stream.read(&mut part);
            stream.write_all(says).unwrap();
            from.ip()
        });
        let source: IpAddr = "127.1.2.3".parse().unwrap();
        let mut connection = Connection::open(target, Some(source), Duration::from_secs(5)).unwrap();
        let have = connection.exchange(request, Duration::from_secs(5));
        assert_eq!(server.join().unwrap(), source);
        let have = have.as_ref().map(|it| (it.status, it.after_head(), connection.reusable()));
        assert_eq!(have.map_err(Failure::clone), want);
    }

    #[test]
    fn framings() {
        let get = b"GET / HTTP/1.1\r\n\r\n";
        check(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab", get, Ok((200, b"ab", true)));
        check(
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nab",
            get,
            Ok((200, b"ab", false)),
        );
        check(b"HTTP/1.1 200 OK\n\nab", get, Ok((200, b"ab", false)));
        check(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", get, Ok((200, b"ab", false)));
        check(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x\r\nab\r\n0\r\nt: u\r\n\r\n",
            get,
            Ok((200, b"2;x\r\nab\r\n0\r\nt: u\r\n\r\n", true)),
        );
        check(b"HTTP/1.1 204 No\r\n\r\n", get, Ok((204, b"", true)));
        check(b"HTTP/1.1 200\r\nContent-Length: 5\r\n\r\n", b"HEAD / HTTP/1.1\r\n\r\n", Ok((200, b"", true)));
        check(
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
            get,
            Ok((100, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", true)),
        );
    }

    #[test]
    fn no_response() {
        let get = b"GET / HTTP/1.1\r\n\r\n";
        check(b"", get, Err(Failure::Closed));
        check(b"<p>an old body</p>", get, Err(Failure::NotHttp("<p>an old body</p>".into())));
        check(b"HTTP/1.1 2xx\r\n\r\n", get, Err(Failure::NotHttp("HTTP/1.1 2xx\r\n\r\n".into())));
    }
}
