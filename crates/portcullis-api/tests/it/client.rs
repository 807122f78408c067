//! A client that sends what it is told, byte for byte.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;
use socket2::{Domain, Socket, Type};

/// An answer.
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().skip(1);
        lines
            .filter_map(|line| line.split_once(": "))
            .find(|(own, _)| own.eq_ignore_ascii_case(name))
            .map(|(_, v)| v)
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub fn text(&self) -> String {
        format!("{}\n\n{}", self.head, String::from_utf8_lossy(&self.body))
    }

    /// Checks that an error is a problem document.
    pub fn checked(self) -> Answer {
        if self.status >= 400 {
            assert_eq!(self.header("content-type"), Some("application/problem+json"), "{}", self.text());
            if !self.body.is_empty() {
                let json = self.json();
                assert_eq!(json["status"], self.status, "{json}");
                assert!(json["type"].as_str().unwrap().starts_with("urn:portcullis:problem:"), "{json}");
                assert!(!json["title"].as_str().unwrap().is_empty(), "{json}");
            }
        }
        for name in ["x-content-type-options", "content-security-policy", "cache-control"] {
            assert!(self.header(name).is_some(), "{name}: {}", self.head);
        }
        assert_eq!(self.header("access-control-allow-origin"), None);
        self
    }
}

pub fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream
}

/// A connection of a client at this address of the loopback network.
pub fn connect_from(client: Ipv4Addr, address: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((client, 0)).into()).unwrap();
    socket.connect(&address.into()).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

/// Sends a text, returns all that comes until the server closes; none if that is no answer.
pub fn raw(address: SocketAddr, text: &[u8]) -> Option<Answer> {
    exchange(connect(address), text)
}

/// The same on a connection that is there.
pub fn exchange(mut stream: TcpStream, text: &[u8]) -> Option<Answer> {
    // The server may close before it has read all.
    let _ = stream.write_all(text);
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    parse(&bytes)
}

pub fn parse(bytes: &[u8]) -> Option<Answer> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let status = head.get(9..12)?.parse().ok()?;
    Some(Answer { status, head, body: bytes[end + 4..].to_vec() })
}

/// A request, to be sent on a connection of its own.
pub struct Ask<'a> {
    pub address: SocketAddr,
    pub method: &'a str,
    pub target: String,
    pub headers: Vec<(String, String)>,
    pub body: Option<String>,
}

impl Ask<'_> {
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn bearer(self, token: &str) -> Self {
        self.header("Authorization", &format!("Bearer {token}"))
    }

    pub fn json(mut self, body: impl ToString) -> Self {
        self.body = Some(body.to_string());
        self.header("Content-Type", "application/json")
    }

    pub fn send(self) -> Answer {
        let mut text = format!("{} {} HTTP/1.1\r\nConnection: close\r\n", self.method, self.target);
        if !self.headers.iter().any(|(name, _)| name == "Host") {
            text.push_str(&format!("Host: {}\r\n", self.address));
        }
        for (name, value) in &self.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        let body = self.body.unwrap_or_default();
        if !body.is_empty() {
            text.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        text.push_str("\r\n");
        text.push_str(&body);
        raw(self.address, text.as_bytes()).expect("an answer").checked()
    }
}
