use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use portcullis_http::h1::{self, BodyFraming, ClientConnection, Compat, Parsed, RequestParser};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

use crate::pages::{Pages, answer, refuse};

/// Bounds of the admin listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at a time. When they are used up, the one that has been silent longest is closed; if all
    /// are being answered, more wait in the listen queue. Default 64.
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
    let mut connections = JoinSet::new();
    // The oldest first.
    let mut open: Vec<Open> = Vec::new();
    tokio::pin!(shutdown);
    loop {
        let is_full = connections.len() >= limits.connections_max.max(1);
        tokio::select! {
            () = &mut shutdown => break,
            Some(_) = connections.join_next() => open.retain(|open| !open.task.is_finished()),
            accepted = listener.accept(), if !is_full || open.iter().any(Open::is_silent) => match accepted {
                Ok((stream, _)) => {
                    if is_full && let Some(at) = open.iter().position(Open::is_silent) {
                        // A health check does not wait for those who only hold their place.
                        open.remove(at).task.abort();
                    }
                    let (shared, silent) = (shared.clone(), Arc::new(AtomicBool::new(true)));
                    let told = Arc::clone(&silent);
                    let task = connections.spawn(async move {
                        // Whatever goes wrong on an admin connection, closing it is the answer.
                        let _ = connection(stream, &shared, &limits, &told).await;
                    });
                    open.push(Open { silent, task });
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

/// An open connection.
struct Open {
    /// No whole request has come since it was opened or last answered.
    silent: Arc<AtomicBool>,
    task: AbortHandle,
}

impl Open {
    fn is_silent(&self) -> bool {
        self.silent.load(Ordering::Relaxed) && !self.task.is_finished()
    }
}

async fn connection(
    mut stream: TcpStream,
    pages: &Pages,
    limits: &Limits,
    silent: &AtomicBool,
) -> io::Result<()> {
    let _ = stream.set_nodelay(true);
    let mut input = Vec::new();
    let mut output = Vec::new();
    loop {
        silent.store(true, Ordering::Relaxed);
        if input.is_empty() {
            timeout(limits.silence_max, stream.readable()).await??;
        }
        let parsed = timeout(limits.head_time_max, read_head(&mut stream, &mut input, limits)).await??;
        silent.store(false, Ordering::Relaxed);
        let mut open = false;
        match parsed {
            Parsed::NeedMore => return Ok(()),
            Parsed::Head(head) => {
                // A request with a body is answered, but its body is not read: the connection cannot be used
                // again.
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
