//! Connections of HTTP/2 to endpoints: a few for each worker, each with many requests.

use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::PingPong;
use h2::client::{Builder, SendRequest};
use portcullis_event::UpstreamError;
use portcullis_metrics::Gauge;

use super::Group;
use crate::http2::{Pipe, SettingsAwaited, StreamPermit};
use crate::stream::Stream;

/// Requests on one connection at one time, if the endpoint allows as many; then there is another connection.
const STREAMS_MAX: usize = 100;
/// Bytes that an endpoint may send of one answer, and of all on a connection, before they have been read.
const STREAM_WINDOW_BYTES: u32 = 1 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 4 << 20;
/// The head of an answer, as RFC 9113 counts it.
const HEADER_LIST_BYTES_MAX: u32 = 64 * 1024;
const SEND_BUFFER_BYTES_MAX: usize = 64 * 1024;

/// Those of one worker, by what they lead to, as [`Group::connections`] has it.
#[derive(Default)]
pub(crate) struct Sessions {
    open: HashMap<u64, Vec<Session>>,
    /// Locks held by the request that connects; others wait, so that many requests at once make one
    /// connection.
    opening: HashMap<u64, Rc<tokio::sync::Mutex<()>>>,
}

struct Session {
    send: SendRequest<Bytes>,
    active: Rc<Cell<usize>>,
    /// The connection has ended, or takes no new requests.
    ended: Rc<Cell<bool>>,
    settings: Rc<SettingsAwaited>,
    used: Instant,
    idle_timeout: Duration,
}

/// Why there is no connection, for events and metrics. Nothing of the request has been sent.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) error: UpstreamError,
    /// The same in words, where there is more to say.
    pub(crate) why: Option<String>,
}

impl From<UpstreamError> for Failed {
    fn from(error: UpstreamError) -> Self {
        Failed { error, why: None }
    }
}

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.error.name())?;
        self.why.iter().try_for_each(|why| write!(f, ": {why}"))
    }
}

impl Session {
    /// A stream for one more request.
    fn pipe(&self) -> Pipe {
        let (active, ended) = (Rc::clone(&self.active), Rc::clone(&self.ended));
        let permit = StreamPermit::new(active, ended, Rc::clone(&self.settings));
        Pipe::asking(self.send.clone(), Some(permit))
    }
}

impl Sessions {
    /// A stream on an open connection with room for it.
    pub(crate) fn take(&mut self, to: u64, now: Instant) -> Option<Pipe> {
        let sessions = self.open.get_mut(&to)?;
        sessions.retain(|session| !session.ended.get());
        let has_room = |session: &&mut Session| {
            session.active.get() < STREAMS_MAX.min(session.send.current_max_send_streams())
        };
        let session = sessions.iter_mut().find(has_room)?;
        session.used = now;
        Some(session.pipe())
    }

    /// Held while a connection is made.
    pub(crate) fn opening(&mut self, to: u64) -> Rc<tokio::sync::Mutex<()>> {
        Rc::clone(self.opening.entry(to).or_default())
    }

    /// Keeps a connection, and gives the first stream on it.
    fn keep(&mut self, to: u64, session: Session) -> Pipe {
        let pipe = session.pipe();
        self.open.entry(to).or_default().push(session);
        pipe
    }

    /// Leaves connections that have been unused for too long.
    pub(crate) fn sweep(&mut self, now: Instant) {
        self.open.retain(|_, sessions| {
            sessions.retain(|session| {
                let idle =
                    session.active.get() == 0 && now.duration_since(session.used) >= session.idle_timeout;
                !idle && !session.ended.get()
            });
            !sessions.is_empty()
        });
        self.opening.retain(|_, lock| Rc::strong_count(lock) > 1);
    }

    /// Leaves all connections; they end with their last request.
    pub(crate) fn clear(&mut self) {
        self.open.clear();
    }
}

/// Begins HTTP/2 on a connection, has it looked after, and gives the first stream on it.
pub(crate) async fn begin(
    sessions: &std::cell::RefCell<Sessions>,
    group: &Group,
    endpoint: usize,
    stream: Stream,
) -> Result<Pipe, Failed> {
    let (send, ended, ping) = handshake(stream, group.report.sessions(endpoint)).await?;
    let idle_timeout = group.settings.idle_timeout;
    let settings = Rc::new(SettingsAwaited::new(ping));
    let session =
        Session { send, active: Rc::default(), ended, settings, used: Instant::now(), idle_timeout };
    Ok(sessions.borrow_mut().keep(group.connections[endpoint], session))
}

/// Begins HTTP/2; `open` counts the connection while it lasts.
async fn handshake(
    stream: Stream,
    open: Gauge,
) -> Result<(SendRequest<Bytes>, Rc<Cell<bool>>, Option<PingPong>), Failed> {
    let mut builder = Builder::new();
    builder
        .enable_push(false)
        .initial_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_header_list_size(HEADER_LIST_BYTES_MAX)
        .max_send_buffer_size(SEND_BUFFER_BYTES_MAX);
    let begun = builder.handshake::<_, Bytes>(stream).await;
    let (send, mut connection) = begun.map_err(|_| UpstreamError::Connect)?;
    let ping = connection.ping_pong();
    let ended = Rc::new(Cell::new(false));
    let told = Rc::clone(&ended);
    tokio::task::spawn_local(async move {
        open.add(1);
        let _ = connection.await;
        open.add(-1);
        told.set(true);
    });
    Ok((send, ended, ping))
}

/// A stream on a connection of its own, which ends with it.
pub(super) async fn begin_alone(group: &Group, endpoint: usize, stream: Stream) -> Result<Pipe, Failed> {
    let (send, _, _) = handshake(stream, group.report.sessions(endpoint)).await?;
    Ok(Pipe::asking(send, None))
}

/// A connection of its own for one request: a health check, or an agent.
pub(crate) async fn alone(stream: Stream) -> Result<SendRequest<Bytes>, Failed> {
    Ok(handshake(stream, Gauge::default()).await?.0)
}
