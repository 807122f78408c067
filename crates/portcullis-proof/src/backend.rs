//! An application that breaks on request.

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use portcullis_testkit::TestkitError;
use socket2::{Domain, Socket, Type};

/// The path of an answer that no socket buffer holds.
pub const LARGE: &str = "/large";
const LARGE_BYTES: usize = 16 << 20;

/// The behaviour of the back end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// 200 and a small body.
    Well,
    /// Another status.
    Status(u16),
    /// 200, after a while.
    Slow(Duration),
    /// Reads requests and never says a word.
    Silent,
    /// Reads a request and closes.
    HalfClosed,
    /// Sends a head and 300 of 1,000 bytes, and resets the connection.
    ResetInBody,
    /// Answers with what is not HTTP.
    Garbage,
}

/// A running back end.
pub struct Backend {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

struct State {
    behaviour: Behaviour,
    /// Counts up at a crash: what an older one began ends.
    life: u64,
    /// The thread that accepts; None after a crash.
    acceptor: Option<JoinHandle<()>>,
    open: Vec<TcpStream>,
    /// Number of times that each numbered request arrived whole.
    arrived: HashMap<u64, u32>,
}

impl Backend {
    /// Starts on a free port.
    pub fn start() -> Result<Backend, TestkitError> {
        let state = State {
            behaviour: Behaviour::Well,
            life: 0,
            acceptor: None,
            open: Vec::new(),
            arrived: HashMap::new(),
        };
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut backend = Backend { address: any, state: Arc::new(Mutex::new(state)) };
        backend.address = backend.listen()?;
        Ok(backend)
    }

    /// Returns the address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on it answers like this; requests in hand are answered as when they came.
    pub fn behave(&self, behaviour: Behaviour) {
        lock(&self.state).behaviour = behaviour;
    }

    /// The port is closed and every connection is reset, as if the process had been killed.
    pub fn crash(&self) {
        let mut state = lock(&self.state);
        state.life += 1;
        for stream in state.open.drain(..) {
            reset(&stream);
        }
        let acceptor = state.acceptor.take();
        drop(state);
        let Some(acceptor) = acceptor else { return };
        // A connection wakes it. Its socket is closed for sure only when the thread has ended: until then the
        // kernel continues to accept, and a request would be reset instead of refused.
        while !acceptor.is_finished() {
            drop(TcpStream::connect_timeout(&self.address, Duration::from_millis(500)));
            thread::sleep(Duration::from_millis(1));
        }
        let _ = acceptor.join();
    }

    /// Listens again on the same port.
    pub fn restore(&self) -> Result<(), TestkitError> {
        self.listen().map(|_| ())
    }

    /// Returns the number of times that the request with this number arrived.
    pub fn arrivals(&self, id: u64) -> u32 {
        lock(&self.state).arrived.get(&id).copied().unwrap_or(0)
    }

    /// Returns the number of requests that arrived.
    pub fn total(&self) -> u64 {
        lock(&self.state).arrived.values().map(|&count| u64::from(count)).sum()
    }

    fn listen(&self) -> Result<SocketAddr, TestkitError> {
        let listener = self.bind().map_err(|error| TestkitError::Run(format!("back end: {error}")))?;
        let address =
            listener.local_addr().map_err(|error| TestkitError::Run(format!("back end: {error}")))?;
        let mut now = lock(&self.state);
        let life = now.life;
        let state = Arc::clone(&self.state);
        now.acceptor = Some(thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut now = lock(&state);
                if now.life != life {
                    break;
                }
                now.open.retain(|stream| stream.peer_addr().is_ok());
                now.open.extend(stream.try_clone());
                drop(now);
                let state = Arc::clone(&state);
                let _ =
                    thread::Builder::new().stack_size(128 << 10).spawn(move || serve(stream, &state, life));
            }
        }));
        Ok(address)
    }

    fn bind(&self) -> std::io::Result<TcpListener> {
        let end = Instant::now() + Duration::from_secs(5);
        loop {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
            socket.set_reuse_address(true)?;
            match socket.bind(&self.address.into()).and_then(|()| socket.listen(1024)) {
                Ok(()) => return Ok(socket.into()),
                Err(error) if error.kind() != ErrorKind::AddrInUse || Instant::now() > end => {
                    return Err(error);
                }
                Err(_) => thread::sleep(Duration::from_millis(20)),
            }
        }
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.crash();
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Closes with RST: what is in flight is lost.
fn reset(stream: &TcpStream) {
    let _ = socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO));
    let _ = stream.shutdown(std::net::Shutdown::Both);
}

fn serve(mut stream: TcpStream, state: &Mutex<State>, life: u64) {
    let _ = stream.set_nodelay(true);
    let mut buffer = Vec::new();
    while let Some((id, large)) = read_request(&mut stream, &mut buffer) {
        let behaviour = {
            let mut state = lock(state);
            if state.life != life {
                break;
            }
            if let Some(id) = id {
                *state.arrived.entry(id).or_default() += 1;
            }
            state.behaviour
        };
        if !answer(&mut stream, behaviour, large) {
            break;
        }
    }
    // The list of open streams has a copy, so dropping this one would not close the connection.
    let _ = stream.shutdown(std::net::Shutdown::Both);
}

/// Sends the answer; false if the connection ends with it.
fn answer(stream: &mut TcpStream, behaviour: Behaviour, large: bool) -> bool {
    let (status, reason) = match behaviour {
        Behaviour::Well => (200, "OK"),
        Behaviour::Status(status) => (status, "As told"),
        Behaviour::Slow(time) => {
            thread::sleep(time);
            (200, "OK")
        }
        Behaviour::Silent => {
            // Until the other side gives up.
            let _ = stream.read(&mut [0; 1]);
            return false;
        }
        Behaviour::HalfClosed => return false,
        Behaviour::ResetInBody => {
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 1000\r\n\r\n";
            let _ = stream.write_all(format!("{head}{}", "x".repeat(300)).as_bytes());
            thread::sleep(Duration::from_millis(5)); // for the bytes to be read before the reset
            reset(stream);
            return false;
        }
        Behaviour::Garbage => {
            let _ = stream.write_all(b"\x00\x01 this is not the protocol you are looking for\n\n");
            return false;
        }
    };
    if large {
        return send_large(stream).is_ok();
    }
    let text =
        format!("HTTP/1.1 {status} {reason}\r\nContent-Type: text/plain\r\nContent-Length: 6\r\n\r\nhello\n");
    stream.write_all(text.as_bytes()).is_ok()
}

fn send_large(stream: &mut TcpStream) -> std::io::Result<()> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: {LARGE_BYTES}\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    let part = [b'x'; 64 << 10];
    (0..LARGE_BYTES / part.len()).try_for_each(|_| stream.write_all(&part))
}

/// One request with a body of a given length: its number, if it has one, and whether it wants the large
/// answer. None at the end of the connection.
fn read_request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<(Option<u64>, bool)> {
    let head = loop {
        if let Some(end) = buffer.windows(4).position(|part| part == b"\r\n\r\n") {
            let head: Vec<u8> = buffer.drain(..end + 4).collect();
            break String::from_utf8_lossy(&head).to_ascii_lowercase();
        }
        fill(stream, buffer)?;
    };
    let field = |name: &str| {
        head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')?.trim().parse::<u64>().ok())
    };
    let length = field("content-length").unwrap_or(0) as usize;
    while buffer.len() < length {
        fill(stream, buffer)?;
    }
    buffer.drain(..length);
    let large = head.split(' ').nth(1).is_some_and(|target| target.starts_with(LARGE));
    Some((field("x-proof"), large))
}

fn fill(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<()> {
    let mut part = [0; 4096];
    match stream.read(&mut part) {
        Ok(count @ 1..) => {
            buffer.extend_from_slice(&part[..count]);
            Some(())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use portcullis_testkit::client;

    use super::*;

    fn ask(backend: &Backend, id: u64) -> Result<client::Exchange, client::Failure> {
        let request = format!("GET / HTTP/1.1\r\nHost: a\r\nX-Proof: {id}\r\n\r\n");
        client::exchange(backend.address(), None, request.as_bytes(), Duration::from_secs(5))
    }

    #[test]
    fn it_crashes_and_comes_back() {
        let backend = Backend::start().unwrap();
        assert!(ask(&backend, 1).is_ok_and(|answer| answer.status == 200 && answer.whole));
        backend.crash();
        assert!(matches!(ask(&backend, 2), Err(client::Failure::Connect(_))));
        backend.restore().unwrap();
        assert!(ask(&backend, 3).is_ok_and(|answer| answer.status == 200));
        assert_eq!([1, 2, 3].map(|id| backend.arrivals(id)), [1, 0, 1]);
    }

    #[test]
    fn it_misbehaves_as_told() {
        let backend = Backend::start().unwrap();
        backend.behave(Behaviour::Status(503));
        assert_eq!(ask(&backend, 1).unwrap().status, 503);
        backend.behave(Behaviour::HalfClosed);
        assert_eq!(ask(&backend, 2), Err(client::Failure::Closed));
        backend.behave(Behaviour::ResetInBody);
        assert!(!ask(&backend, 3).unwrap().whole);
        backend.behave(Behaviour::Garbage);
        assert!(matches!(ask(&backend, 4), Err(client::Failure::NotHttp(_))));
    }
}
