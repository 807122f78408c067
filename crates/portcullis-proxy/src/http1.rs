//! Requests of HTTP/1 on a client connection, one after the other.

use std::net::SocketAddr;
use std::rc::Rc;

use portcullis_http::h1::{Limits, Parsed, RequestParser};
use portcullis_http::message::{Refusal, RequestHead};
use tokio::net::TcpStream;

use crate::connection::{Began, Connection};
use crate::exchange::Next;
use crate::linger::linger;
use crate::state::{Counted, Worker};
use crate::{handle, http2};

/// Serves a connection to its end, and keeps it counted until then.
pub(crate) async fn serve(
    worker: Rc<Worker>,
    counted: Counted,
    listener: usize,
    tcp: TcpStream,
    peer: SocketAddr,
) {
    // Boxed, since a handshake needs far more room than what it leaves behind.
    let opened = Box::pin(Connection::open(worker, &counted, listener, tcp, peer)).await;
    let Some(mut connection) = opened else { return };
    if connection.speaks_http2().await {
        return Box::pin(http2::serve(connection, counted)).await;
    }
    connection.run().await;
}

/// The next request, or the event in its place.
enum Incoming {
    Request(Box<RequestHead>),
    /// Not to be forwarded; `status` is what to answer.
    Refused(Box<RequestHead>, Refusal, u16),
    /// Nothing more.
    Closed,
}

impl Connection {
    /// The client has agreed to HTTP/2, or begins with it where it may.
    async fn speaks_http2(&mut self) -> bool {
        let generation = self.worker.shared.current.load();
        if !generation.listeners[self.listener].http2.cleartext {
            return self.stream.is_http2_agreed();
        }
        self.timer.arm(generation.timeouts.header);
        self.timer.spare();
        drop(generation);
        loop {
            let unread = self.input.unread();
            let known = unread.len().min(http2::PREFACE.len());
            if unread[..known] != http2::PREFACE[..known] {
                return false;
            }
            if known == http2::PREFACE.len() {
                return true;
            }
            match self.timer.run(self.input.fill(&mut self.stream)).await {
                Ok(Ok(count)) if count > 0 => {}
                // Whatever it is, it is not HTTP/2; what there is of it is looked at as HTTP/1.
                _ => return false,
            }
        }
    }

    async fn run(&mut self) {
        let compat = self.worker.shared.current.load().listeners[self.listener].compat;
        let mut parser = RequestParser::new(Limits::default(), compat);
        let mut first = true;
        loop {
            let incoming = self.next(&mut parser, first).await;
            first = false;
            // Settings are looked up when the head is there: a reload holds from the next request on.
            let generation = self.worker.shared.current.load_full();
            let (head, refused) = match incoming {
                Incoming::Request(head) => (head, None),
                Incoming::Refused(head, refusal, status) => (head, Some((refusal, status))),
                Incoming::Closed => return,
            };
            self.input.consume(head.received_len());
            self.input.rest();
            self.timer.busy();
            // Boxed, so that a connection that waits for its next request does not hold the room of one in
            // flight.
            match Box::pin(handle::run(self, &generation, head, refused)).await {
                Next::Request => {}
                Next::Close => return self.linger().await,
                Next::Gone | Next::Http1 => return,
            }
        }
    }

    /// Waits for the next request head.
    async fn next(&mut self, parser: &mut RequestParser, first: bool) -> Incoming {
        let mut in_head = false;
        let mut began = false;
        loop {
            if !self.input.unread().is_empty() {
                if !std::mem::replace(&mut began, true) {
                    self.began = Began::now();
                }
                match parser.parse(self.input.unread()) {
                    Parsed::NeedMore => {}
                    Parsed::Head(head) => return Incoming::Request(Box::new(head)),
                    Parsed::Refused { partial, refusal } => {
                        return Incoming::Refused(Box::new(partial), refusal, refusal.status());
                    }
                }
            }
            if !in_head {
                let timeouts = self.worker.shared.current.load().timeouts;
                if self.input.unread().is_empty() && !first {
                    if self.worker.draining.get() && !self.worker.handed_over.get() {
                        return Incoming::Closed;
                    }
                    self.input.rest();
                    self.output = Vec::new();
                    self.timer.arm_idle(timeouts.idle);
                } else {
                    // From the first byte on there is one deadline for the whole head: a drip does not move
                    // it.
                    in_head = true;
                    self.timer.arm(timeouts.header);
                }
                self.timer.spare();
            }
            let (late, ended) = match self.timer.run(self.input.fill(&mut self.stream)).await {
                Err(_) if self.timer.is_evicted() => return Incoming::Closed,
                Err(_) => (true, true),
                Ok(Ok(read)) => (false, read == 0),
                Ok(Err(_)) => return Incoming::Closed,
            };
            if ended {
                return match parser.end(self.input.unread()) {
                    None => Incoming::Closed,
                    Some(Parsed::Head(head)) => Incoming::Request(Box::new(head)),
                    Some(Parsed::Refused { partial, refusal }) => {
                        let status = if late { 408 } else { refusal.status() };
                        Incoming::Refused(Box::new(partial), refusal, status)
                    }
                    Some(Parsed::NeedMore) => Incoming::Closed,
                };
            }
        }
    }

    /// Closes so that the client can read our last answer.
    async fn linger(&mut self) {
        let limits = self.worker.shared.current.load().linger();
        linger(&mut self.stream, &self.timer, limits).await;
    }
}
