use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use portcullis_http::h1::{self, BodyFraming, ClientConnection, Compat, Parsed, RequestParser};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::pages::{Pages, answer, refuse};

/// Bounds of the admin listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at a time; more wait in the listen queue. Default 64.
    pub connections_max: usize,
    /// Bytes of a request head. Default 8 KiB.
    pub head_bytes_max: usize,
    /// From opening or the last answer to the end of the next head; then the connection closes. Default 30 s.
    pub head_time_max: Duration,
    /// For writing one answer. Default 10 s.
    pub write_time_max: Duration,
    /// What open connections get to finish after shutdown. Default 1 s.
    pub drain_time_max: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections_max: 64,
            head_bytes_max: 8 << 10,
            head_time_max: Duration::from_secs(30),
            write_time_max: Duration::from_secs(10),
            drain_time_max: Duration::from_secs(1),
        }
    }
}

/// Serves until `shutdown` completes.
pub async fn serve(listener: TcpListener, pages: Pages, shutdown: impl Future<Output = ()>) {
    serve_with(listener, pages, shutdown, Limits::default()).await;
}

/// [`serve`] with other limits.
pub async fn serve_with(
    listener: TcpListener,
    pages: Pages,
    shutdown: impl Future<Output = ()>,
    limits: Limits,
) {
    let shared = Arc::new(pages);
    let mut connections = JoinSet::new();
    tokio::pin!(shutdown);
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept(), if connections.len() < limits.connections_max.max(1) => match accepted {
                Ok((stream, _)) => {
                    let shared = shared.clone();
                    connections.spawn(async move {
                        // Whatever goes wrong on an admin connection, closing it is the answer.
                        let _ = connection(stream, &shared, &limits).await;
                    });
                }
                // Out of descriptors, most likely: trying again at once would only burn time.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            },
        }
    }
    drop(listener);
    let drained = async { while connections.join_next().await.is_some() {} };
    let _ = timeout(limits.drain_time_max, drained).await;
}

async fn connection(mut stream: TcpStream, pages: &Pages, limits: &Limits) -> io::Result<()> {
    let _ = stream.set_nodelay(true);
    let mut input = Vec::new();
    let mut output = Vec::new();
    loop {
        let parsed = timeout(limits.head_time_max, read_head(&mut stream, &mut input, limits)).await??;
        let mut open = false;
        match parsed {
            Parsed::NeedMore => return Ok(()),
            Parsed::Head(head) => {
                // A request with a body is answered, but its body is not read: the connection cannot go on.
                open = head.keep_alive() && head.framing() == BodyFraming::None;
                input.drain(..head.received_len().min(input.len()));
                answer(&head, pages, ClientConnection::of(head.version(), open), &mut output).await;
            }
            Parsed::Refused { refusal, .. } => refuse(refusal.status(), refusal.explanation(), &mut output),
        }
        timeout(limits.write_time_max, stream.write_all(&output)).await??;
        output.clear();
        if !open {
            return stream.shutdown().await;
        }
    }
}

/// Reads until a head is whole; [`Parsed::NeedMore`] if the client left.
async fn read_head(stream: &mut TcpStream, input: &mut Vec<u8>, limits: &Limits) -> io::Result<Parsed> {
    let head_limits = h1::Limits {
        request_line_bytes_max: limits.head_bytes_max,
        header_bytes_max: limits.head_bytes_max,
        head_bytes_max: limits.head_bytes_max,
        ..h1::Limits::default()
    };
    let mut parser = RequestParser::new(head_limits, Compat::Strict);
    loop {
        match parser.parse(input) {
            Parsed::NeedMore => {}
            parsed => return Ok(parsed),
        }
        input.reserve(1024);
        if stream.read_buf(input).await? == 0 {
            return Ok(parser.end(input).unwrap_or(Parsed::NeedMore));
        }
    }
}
