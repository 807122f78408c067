//! Servers that the proxy asks, for tests: a DNS server and a virus scanner, both on loopback and both of few
//! words.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};

/// The answer of the DNS server.
#[derive(Clone, Copy, Debug)]
pub enum DnsReply {
    /// An address, good for so many seconds.
    Address(Ipv4Addr, u32),
    /// There is no such name.
    NoSuchName,
    /// SERVFAIL.
    Failure,
    /// Nothing.
    Silence,
}

/// A DNS server.
#[derive(Debug)]
pub struct DnsServer {
    /// The address that it listens on.
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl DnsServer {
    /// Answers questions for as long as the process lives.
    pub fn start(answer: impl Fn(&str) -> DnsReply + Send + 'static) -> io::Result<DnsServer> {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        let address = socket.local_addr()?;
        let asked = Arc::new(Mutex::new(Vec::new()));
        let record = Arc::clone(&asked);
        std::thread::spawn(move || {
            let mut message = [0; 1024];
            while let Ok((length, from)) = socket.recv_from(&mut message) {
                let Some((name, question)) = read_question(&message[..length]) else { continue };
                let reply = answer(&name);
                record.lock().unwrap_or_else(PoisonError::into_inner).push(name);
                if let Some(reply) = compose(&message[..2], question, reply) {
                    let _ = socket.send_to(&reply, from);
                }
            }
        });
        Ok(DnsServer { address, asked })
    }

    /// The same by TCP, one question on a connection.
    pub fn start_tcp(answer: impl Fn(&str) -> DnsReply + Send + 'static) -> io::Result<DnsServer> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let asked = Arc::new(Mutex::new(Vec::new()));
        let record = Arc::clone(&asked);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                // Both ways the length comes first, in two bytes.
                let mut length = [0; 2];
                let read = stream.read_exact(&mut length);
                let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
                let Ok(()) = read.and_then(|()| stream.read_exact(&mut message)) else { continue };
                let Some((name, question)) = read_question(&message) else { continue };
                let reply = answer(&name);
                record.lock().unwrap_or_else(PoisonError::into_inner).push(name);
                if let Some(reply) = compose(&message[..2], question, reply) {
                    let length = (reply.len() as u16).to_be_bytes();
                    let _ = stream.write_all(&[&length[..], &reply].concat());
                }
            }
        });
        Ok(DnsServer { address, asked })
    }

    /// Names that it was asked for, in order.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The name of the one question of a message, and that question's bytes.
fn read_question(message: &[u8]) -> Option<(String, &[u8])> {
    let body = message.get(12..)?;
    let (mut at, mut labels) = (0, Vec::new());
    loop {
        let length = usize::from(*body.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        labels.push(String::from_utf8_lossy(body.get(at..at + length)?).into_owned());
        at += length;
    }
    Some((labels.join("."), body.get(..at + 4)?))
}

fn compose(id: &[u8], question: &[u8], reply: DnsReply) -> Option<Vec<u8>> {
    let (code, answers): (u8, u8) = match reply {
        DnsReply::Address(..) => (0, 1),
        DnsReply::NoSuchName => (3, 0),
        DnsReply::Failure => (2, 0),
        DnsReply::Silence => return None,
    };
    let mut out = id.to_vec();
    // A response, recursion wanted and available; one question.
    out.extend_from_slice(&[0x81, 0x80 | code, 0, 1, 0, answers, 0, 0, 0, 0]);
    out.extend_from_slice(question);
    if let DnsReply::Address(address, seconds) = reply {
        // The name of the question, type A, class IN.
        out.extend_from_slice(&[0xc0, 12, 0, 1, 0, 1]);
        out.extend_from_slice(&seconds.to_be_bytes());
        out.extend_from_slice(&[0, 4]);
        out.extend_from_slice(&address.octets());
    }
    Some(out)
}

/// A scanner that speaks clamd's `INSTREAM`.
#[derive(Debug)]
pub struct Clamd {
    /// The address that it listens on.
    pub address: SocketAddr,
    seen: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Clamd {
    /// Says of each file what `reply` says, for as long as the process lives; nothing at all for `None`.
    pub fn start(reply: impl Fn(&[u8]) -> Option<String> + Send + 'static) -> io::Result<Clamd> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let seen = Arc::new(Mutex::new(Vec::new()));
        let record = Arc::clone(&seen);
        std::thread::spawn(move || {
            let mut silent = Vec::new();
            for mut stream in listener.incoming().flatten() {
                let Ok(content) = read_stream(&mut stream) else { continue };
                let said = reply(&content);
                record.lock().unwrap_or_else(PoisonError::into_inner).push(content);
                match said {
                    Some(line) => drop(stream.write_all(format!("{line}\0").as_bytes())),
                    None => silent.push(stream),
                }
            }
        });
        Ok(Clamd { address, seen })
    }

    /// The files it was shown, in order.
    pub fn seen(&self) -> Vec<Vec<u8>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn read_stream(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut command = [0; 10];
    stream.read_exact(&mut command)?;
    if &command != b"zINSTREAM\0" {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut content = Vec::new();
    loop {
        let mut length = [0; 4];
        stream.read_exact(&mut length)?;
        match u32::from_be_bytes(length) {
            0 => return Ok(content),
            length => {
                stream.take(length.into()).read_to_end(&mut content)?;
            }
        }
    }
}
