//! HTTP/2 clients: one that keeps the protocol, one that says whatever it is told to.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use h2::client::SendRequest;
use h2::{RecvStream, SendStream};
use http::{HeaderMap, Request};

use super::{Client, PATIENCE};

/// An answer, all of it.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    pub trailers: HeaderMap,
}

impl Answer {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

/// A client that keeps the protocol. It makes progress only while something is waited for.
pub struct Peer {
    pub runtime: tokio::runtime::Runtime,
    pub send: SendRequest<Bytes>,
}

impl Peer {
    /// With prior knowledge.
    pub fn connect(address: SocketAddr) -> Peer {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let send = runtime.block_on(async {
            let tcp = tokio::net::TcpStream::connect(address).await.unwrap();
            let (send, connection) = h2::client::handshake(tcp).await.unwrap();
            tokio::spawn(async move {
                let _ = connection.await;
            });
            send
        });
        Peer { runtime, send }
    }

    /// Sends a request and takes the whole answer.
    pub fn ask(&mut self, request: Request<()>, body: &[u8]) -> Result<Answer, h2::Error> {
        let send = self.send.clone();
        let body = Bytes::copy_from_slice(body);
        let answered = async move {
            let mut send = send.ready().await?;
            let (answer, mut stream) = send.send_request(request, body.is_empty())?;
            if !body.is_empty() {
                // An answer may come before the body has been read.
                let _ = stream.send_data(body, true);
            }
            let (head, receive) = answer.await?.into_parts();
            let (body, trailers) = whole(receive).await?;
            Ok(Answer { status: head.status.as_u16(), headers: head.headers, body, trailers })
        };
        self.runtime.block_on(async { tokio::time::timeout(PATIENCE, answered).await.expect("an answer") })
    }

    pub fn get(&mut self, uri: &str) -> Answer {
        self.ask(Request::get(uri).body(()).unwrap(), b"").unwrap()
    }

    /// Begins a request and leaves its stream open.
    pub fn begin(&mut self, request: Request<()>) -> (h2::client::ResponseFuture, SendStream<Bytes>) {
        let send = self.send.clone();
        self.runtime.block_on(async { send.ready().await.unwrap().send_request(request, false).unwrap() })
    }

    /// Waits for something.
    pub fn wait<T>(&self, what: impl Future<Output = T>) -> T {
        self.runtime.block_on(async { tokio::time::timeout(PATIENCE, what).await.expect("in time") })
    }
}

/// The rest of an answer.
pub async fn whole(mut receive: RecvStream) -> Result<(Vec<u8>, HeaderMap), h2::Error> {
    let mut body = Vec::new();
    while let Some(data) = receive.data().await {
        let data = data?;
        receive.flow_control().release_capacity(data.len())?;
        body.extend_from_slice(&data);
    }
    let trailers = poll_fn(|context| receive.poll_trailers(context)).await?;
    Ok((body, trailers.unwrap_or_default()))
}

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;

pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;

/// A frame.
#[derive(Clone, Debug)]
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

impl Frame {
    /// The code of RST_STREAM or GOAWAY.
    pub fn code(&self) -> u32 {
        let at = if self.kind == GOAWAY { 4 } else { 0 };
        u32::from_be_bytes(self.payload[at..at + 4].try_into().unwrap())
    }
}

/// A client that says what it is told to.
pub struct Rude {
    pub client: Client,
}

impl Rude {
    /// Says the preface, with these settings.
    pub fn connect(address: SocketAddr, settings: &[(u16, u32)]) -> Rude {
        let mut rude = Rude { client: Client::connect(address) };
        rude.client.stream.set_read_timeout(Some(PATIENCE)).unwrap();
        rude.client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        let mut payload = Vec::new();
        for (key, value) in settings {
            payload.extend(key.to_be_bytes());
            payload.extend(value.to_be_bytes());
        }
        rude.frame(SETTINGS, 0, 0, &payload);
        rude
    }

    pub fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        self.client.send(frame(kind, flags, stream, payload));
    }

    /// A request without a body.
    pub fn head(&mut self, stream: u32, fields: &[(&[u8], &[u8])]) {
        self.frame(HEADERS, END_STREAM | END_HEADERS, stream, &block(fields));
    }

    /// The next frame; none once the proxy has closed.
    pub fn next(&mut self) -> Option<Frame> {
        while self.client.input.len() < 9 {
            if !self.more() {
                return None;
            }
        }
        let head: Vec<u8> = self.client.input.drain(..9).collect();
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        while self.client.input.len() < length {
            if !self.more() {
                return None;
            }
        }
        let payload = self.client.input.drain(..length).collect();
        let stream = u32::from_be_bytes(head[5..9].try_into().unwrap());
        Some(Frame { kind: head[3], flags: head[4], stream, payload })
    }

    fn more(&mut self) -> bool {
        let mut buffer = [0; 16384];
        match std::io::Read::read(&mut self.client.stream, &mut buffer) {
            Ok(count) => {
                self.client.input.extend_from_slice(&buffer[..count]);
                count > 0
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => panic!("the proxy says nothing"),
            Err(_) => false,
        }
    }

    /// Waits for a frame of a kind.
    pub fn until(&mut self, kind: u8) -> Frame {
        loop {
            let frame = self.next().unwrap_or_else(|| panic!("closed without a frame of kind {kind}"));
            if frame.kind == kind {
                return frame;
            }
        }
    }

    /// Waits for the end of a stream; the code of its RST_STREAM or of the connection's GOAWAY, none if it
    /// ended well.
    pub fn end_of(&mut self, stream: u32) -> Option<u32> {
        loop {
            let frame = self.next()?;
            match frame.kind {
                RST_STREAM if frame.stream == stream => return Some(frame.code()),
                GOAWAY => return Some(frame.code()),
                HEADERS | DATA if frame.stream == stream && frame.flags & END_STREAM != 0 => return None,
                _ => {}
            }
        }
    }

    pub fn patience(&mut self, patience: Duration) {
        self.client.stream.set_read_timeout(Some(patience)).unwrap();
    }
}

pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// A header block: literals, not indexed, no Huffman code.
pub fn block(fields: &[(&[u8], &[u8])]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            length(text.len(), &mut block);
            block.extend(*text);
        }
    }
    block
}

/// An HPACK integer with a prefix of seven bits.
fn length(mut number: usize, block: &mut Vec<u8>) {
    if number < 127 {
        return block.push(number as u8);
    }
    block.push(127);
    number -= 127;
    while number >= 128 {
        block.push(number as u8 | 128);
        number >>= 7;
    }
    block.push(number as u8);
}

/// The head of a plain GET.
pub const GET: [(&[u8], &[u8]); 4] =
    [(b":method", b"GET"), (b":scheme", b"http"), (b":path", b"/"), (b":authority", b"a.example")];
