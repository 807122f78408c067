use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use portcullis_http::h1::{self, BodyFraming, ClientConnection, Compat, Parsed, RequestParser};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::connections::{Activity, Connections};
use crate::pages::{Pages, answer, refuse};

/// Bounds of the admin listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at a time. When they are used up, one that waits for its client is closed, the oldest of
    /// the network with the most; if all are being answered, more wait in the listen queue. Default 64.
    pub connections_max: usize,
    /// Bytes of a request head. Default 8 KiB.
    pub head_bytes_max: usize,
    /// From the first byte of a request to the end of its head; then the connection closes. Default 10 s.
    pub head_time_max: Duration,
    /// From opening or the last answer to the first byte of the next request. Default 30 s.
    pub silence_max: Duration,
    /// For writing one answer. Default 10 s.
    pub write_time_max: Duration,
    /// The time that open connections get to finish after shutdown. Default 1 s.
    pub drain_time_max: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections_max: 64,
            head_bytes_max: 8 << 10,
            head_time_max: Duration::from_secs(10),
            silence_max: Duration::from_secs(30),
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
    // Health checks and scrapers come from few addresses: all connections may be of one.
    let mut connections = Connections::new(limits.connections_max, limits.connections_max);
    tokio::pin!(shutdown);
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            () = connections.ended() => {}
            accepted = listener.accept(), if connections.has_room() => match accepted {
                Ok((stream, address)) => {
                    let shared = shared.clone();
                    connections.take(address.ip(), |activity| async move {
                        // Whatever goes wrong on an admin connection, closing it is the answer.
                        let _ = connection(stream, &shared, &limits, &activity).await;
                    });
                }
                // Out of descriptors, most likely: trying again at once would only burn time.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            },
        }
    }
    drop(listener);
    connections.drain(limits.drain_time_max).await;
}

async fn connection(
    mut stream: TcpStream,
    pages: &Pages,
    limits: &Limits,
    activity: &Arc<Activity>,
) -> io::Result<()> {
    let _ = stream.set_nodelay(true);
    let mut input = Vec::new();
    let mut output = Vec::new();
    loop {
        if input.is_empty() {
            timeout(limits.silence_max, stream.readable()).await??;
        }
        let parsed = timeout(limits.head_time_max, read_head(&mut stream, &mut input, limits)).await??;
        let answering = activity.answer();
        let mut open = false;
        match parsed {
            Parsed::NeedMore => return Ok(()),
            Parsed::Head(head) => {
                // A request with a body is answered, but its body is not read: the connection cannot be used
                // again.
                open = head.keep_alive() && head.framing() == BodyFraming::None;
                input.drain(..head.received_len().min(input.len()));
                // A reload goes on if its connection has to make room.
                let _waiting = (head.path() == b"/reload").then(|| activity.wait());
                answer(&head, pages, ClientConnection::of(head.version(), open), &mut output).await;
            }
            Parsed::Refused { refusal, .. } => refuse(refusal.status(), refusal.explanation(), &mut output),
        }
        // A client that does not read its answers keeps nobody out.
        drop(answering);
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
            parsed @ (Parsed::Head(_) | Parsed::Refused { .. }) => return Ok(parsed),
        }
        input.reserve(1024);
        if stream.read_buf(input).await? == 0 {
            return Ok(parser.end(input).unwrap_or(Parsed::NeedMore));
        }
    }
}
