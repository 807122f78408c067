//! A small HTTP/1 server on threads: keep-alive, both body framings, `Expect: 100-continue`, HEAD. Bounded in
//! connections, head, body and idle time. For loopback tests and the demo, not for the open.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::client::{decimal, head_end, header_values, keeps_alive};

const CONNECTIONS_MAX: usize = 1024;
const HEAD_BYTES_MAX: usize = 256 << 10;
const BODY_BYTES_MAX: u64 = 16 << 20;
const IDLE_MAX: Duration = Duration::from_secs(75);
/// A longer body is sent in chunks, as a Go server does that was not told the length.
const LENGTH_SENT_MAX: usize = 2048;

/// A request as received.
#[derive(Debug)]
pub struct Request {
    /// Method.
    pub method: String,
    /// Target as received, lossily as text.
    pub target: String,
    /// Body after transfer decoding.
    pub body: Vec<u8>,
    head: Vec<u8>,
}

impl Request {
    /// First value of a header field.
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        header_values(&self.head, name).next()
    }

    /// Header lines as received, without the request line.
    pub fn header_lines(&self) -> impl Iterator<Item = &[u8]> {
        self.head
            .split(|&byte| byte == b'\n')
            .skip(1)
            .map(<[u8]>::trim_ascii_end)
            .filter(|line| !line.is_empty())
    }

    /// Target up to the first `?`.
    pub fn path(&self) -> &str {
        self.target.split_once('?').map_or(&self.target, |(path, _)| path)
    }

    /// Target from the first `?` on, without it.
    pub fn query(&self) -> &str {
        self.target.split_once('?').map_or("", |(_, query)| query)
    }
}

/// A response to send. `Content-Length` or chunking is the server's business.
#[derive(Debug, Default)]
pub struct Response {
    /// Status code.
    pub status: u16,
    /// Header fields.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Vec<u8>,
}

/// A listening server. Dropped, it takes no more connections.
pub struct Server {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
}

impl Server {
    /// Listens on `address` and answers with `handler`, each connection on a thread of its own.
    pub fn start(
        address: impl ToSocketAddrs,
        handler: impl Fn(&Request) -> Response + Send + Sync + 'static,
    ) -> std::io::Result<Server> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let handler = Arc::new(handler);
        let open = Arc::new(AtomicUsize::new(0));
        std::thread::Builder::new().name("upstream".into()).spawn(move || {
            for stream in listener.incoming().flatten() {
                if stopped.load(Ordering::Acquire) {
                    return;
                }
                if open.fetch_add(1, Ordering::AcqRel) >= CONNECTIONS_MAX {
                    open.fetch_sub(1, Ordering::AcqRel);
                    continue; // dropped: closed
                }
                let (handler, count) = (Arc::clone(&handler), Arc::clone(&open));
                let spawned = std::thread::Builder::new().stack_size(256 << 10).spawn(move || {
                    let _ = serve(stream, handler.as_ref());
                    count.fetch_sub(1, Ordering::AcqRel);
                });
                if spawned.is_err() {
                    open.fetch_sub(1, Ordering::AcqRel);
                }
            }
        })?;
        Ok(Server { address, stop })
    }

    /// Returns the address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_millis(200)); // wakes the accept loop
    }
}

fn serve(mut stream: TcpStream, handler: &dyn Fn(&Request) -> Response) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(IDLE_MAX))?;
    stream.set_write_timeout(Some(IDLE_MAX))?;
    let mut buffer = Vec::new();
    loop {
        let head = match read_head(&mut stream, &mut buffer)? {
            Some(head) => head,
            None => return Ok(()),
        };
        let line = head.split(|&byte| byte == b'\n').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line.trim_ascii_end()).into_owned();
        let mut words = line.split(' ');
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        if !words.next().is_some_and(|version| version.starts_with("HTTP/1.")) {
            return write(&mut stream, &plain(400, "bad request line"), false, false);
        }
        if header_values(&head, "expect").any(|value| value.eq_ignore_ascii_case(b"100-continue")) {
            stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        let body = match read_body(&mut stream, &head, &mut buffer)? {
            Some(body) => body,
            None => return write(&mut stream, &plain(413, "body refused"), false, false),
        };
        let keep = keeps_alive(&head);
        let request = Request { method: method.into(), target: target.into(), body, head };
        let response = handler(&request);
        write(&mut stream, &response, keep, request.method == "HEAD")?;
        if !keep {
            return Ok(());
        }
    }
}

fn plain(status: u16, text: &str) -> Response {
    Response { status, headers: Vec::new(), body: text.into() }
}

fn read_head(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> std::io::Result<Option<Vec<u8>>> {
    loop {
        if let Some(end) = head_end(buffer) {
            return Ok(Some(buffer.drain(..end).collect()));
        }
        if buffer.len() > HEAD_BYTES_MAX || !fill(stream, buffer)? {
            return Ok(None);
        }
    }
}

/// `None` if the body is larger than allowed or wrongly framed.
fn read_body(stream: &mut TcpStream, head: &[u8], buffer: &mut Vec<u8>) -> std::io::Result<Option<Vec<u8>>> {
    let mut body = Vec::new();
    if header_values(head, "transfer-encoding").next().is_none() {
        let length = match header_values(head, "content-length").next() {
            None => Some(0),
            Some(text) => decimal(text).filter(|&length| length <= BODY_BYTES_MAX),
        };
        let Some(length) = length else { return Ok(None) };
        return Ok(take(stream, buffer, length as usize, &mut body)?.then_some(body));
    }
    loop {
        let Some(line) = read_line(stream, buffer)? else { return Ok(None) };
        let digits = line.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii();
        let length = std::str::from_utf8(digits).ok().and_then(|text| u64::from_str_radix(text, 16).ok());
        match length {
            Some(0) => break,
            Some(length) if body.len() as u64 + length <= BODY_BYTES_MAX => {
                if !take(stream, buffer, length as usize, &mut body)? || read_line(stream, buffer)?.is_none()
                {
                    return Ok(None);
                }
            }
            _ => return Ok(None),
        }
    }
    while let Some(trailer) = read_line(stream, buffer)? {
        if trailer.is_empty() {
            return Ok(Some(body));
        }
    }
    Ok(None)
}

fn read_line(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> std::io::Result<Option<Vec<u8>>> {
    loop {
        if let Some(at) = buffer.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = buffer.drain(..=at).collect();
            return Ok(Some(line.trim_ascii_end().to_vec()));
        }
        if buffer.len() > HEAD_BYTES_MAX || !fill(stream, buffer)? {
            return Ok(None);
        }
    }
}

fn take(
    stream: &mut TcpStream,
    buffer: &mut Vec<u8>,
    count: usize,
    out: &mut Vec<u8>,
) -> std::io::Result<bool> {
    let goal = out.len() + count;
    loop {
        let part = buffer.len().min(goal - out.len());
        out.extend(buffer.drain(..part));
        if out.len() == goal {
            return Ok(true);
        }
        if !fill(stream, buffer)? {
            return Ok(false);
        }
    }
}

fn fill(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> std::io::Result<bool> {
    let mut part = [0; 16 << 10];
    let count = stream.read(&mut part)?;
    buffer.extend_from_slice(&part[..count]);
    Ok(count > 0)
}

fn write(stream: &mut TcpStream, response: &Response, keep: bool, head_only: bool) -> std::io::Result<()> {
    let bodiless = matches!(response.status, 100..200 | 204 | 304);
    let mut out = format!("HTTP/1.1 {} {}\r\n", response.status, reason(response.status)).into_bytes();
    for (name, value) in &response.headers {
        out.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    let chunked = response.body.len() > LENGTH_SENT_MAX && !head_only;
    match (bodiless, chunked) {
        (true, _) => {}
        (false, true) => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        (false, false) => {
            out.extend_from_slice(format!("Content-Length: {}\r\n", response.body.len()).as_bytes())
        }
    }
    if !keep {
        out.extend_from_slice(b"Connection: close\r\n");
    }
    out.extend_from_slice(b"\r\n");
    match (bodiless || head_only, chunked) {
        (true, _) => {}
        (false, false) => out.extend_from_slice(&response.body),
        (false, true) => {
            for part in response.body.chunks(LENGTH_SENT_MAX) {
                out.extend_from_slice(format!("{:x}\r\n", part.len()).as_bytes());
                out.extend_from_slice(part);
                out.extend_from_slice(b"\r\n");
            }
            out.extend_from_slice(b"0\r\n\r\n");
        }
    }
    stream.write_all(&out)
}

fn reason(status: u16) -> &'static str {
    http::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Connection;

    /// Requests over one connection, and the bodies that come back.
    #[track_caller]
    fn check(requests: &[&str], want: &[&str]) {
        let server = Server::start("127.0.0.1:0", |request| Response {
            status: 200,
            headers: Vec::new(),
            body: format!("{} {} {}", request.method, request.target, String::from_utf8_lossy(&request.body))
                .into(),
        })
        .unwrap();
        let limit = Duration::from_secs(5);
        let mut connection = Connection::open(server.address(), None, limit).unwrap();
        for (request, want) in requests.iter().zip(want) {
            let have = connection.exchange(request.as_bytes(), limit).unwrap();
            assert_eq!(String::from_utf8_lossy(have.after_head()), *want, "{request}");
        }
    }

    #[test]
    fn keep_alive_and_framings() {
        check(
            &[
                "GET /a?b HTTP/1.1\r\n\r\n",
                "POST /c HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc",
                "POST /d HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1;e\r\nx\r\n2\r\nyz\r\n0\r\nt: u\r\n\r\n",
                "HEAD /e HTTP/1.1\r\n\r\n",
                "POST /f HTTP/1.1\r\nContent-Length: x\r\n\r\n",
            ],
            &["GET /a?b ", "POST /c abc", "POST /d xyz", "", "body refused"],
        );
        check(
            &["POST /c HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\na"],
            &["HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nPOST /c a"],
        );
    }
}
