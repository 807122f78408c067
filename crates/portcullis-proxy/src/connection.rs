//! One client connection: TLS and PROXY protocol first, then requests one after the other.

use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use portcullis_http::h1::{BodyDecoder, Limits, Parsed, RequestParser};
use portcullis_http::message::{BodyFraming, Refusal, RequestHead};
use portcullis_http::proxy_protocol::{self, Command};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use crate::budget::Held;
use crate::buffer::Buffer;
use crate::exchange::Next;
use crate::linger::linger;
use crate::network::Member;
use crate::state::{Counted, Worker};
use crate::stream::Stream;
use crate::timer::Timer;
use crate::tls::ClientCertificate;
use crate::{handle, http2};

/// Version 2 of the PROXY header may carry extensions; nobody needs more of them.
const PROXY_HEADER_BYTES_MAX: usize = 4096;

/// A client connection that requests may come on; with HTTP/2 one stream of it, for one request.
pub(crate) struct Connection {
    pub(crate) worker: Rc<Worker>,
    pub(crate) listener: usize,
    pub(crate) stream: Stream,
    pub(crate) input: Buffer,
    /// Scratch for heads that are written; kept for its memory.
    pub(crate) output: Vec<u8>,
    pub(crate) timer: Timer,
    /// The other end of the socket, or what a trusted PROXY header says it is.
    pub(crate) peer: SocketAddr,
    pub(crate) local: SocketAddr,
    pub(crate) tls: bool,
    /// Where clients are asked for a certificate: that which was verified, if there was one.
    pub(crate) client_certificate: Option<Option<Arc<ClientCertificate>>>,
    /// The client may end its side and still read the answer.
    pub(crate) half_close: bool,
    /// When the first byte of the present request came.
    pub(crate) began: Began,
    /// The client network that sent the last request with a body, by the address of the client.
    pub(crate) network: Option<(IpAddr, Member)>,
}

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

/// What came instead of, or as, the next request.
enum Incoming {
    Request(Box<RequestHead>),
    /// Not to be forwarded; `status` is what to answer.
    Refused(Box<RequestHead>, Refusal, u16),
    /// Nothing more.
    Closed,
}

impl Connection {
    async fn open(
        worker: Rc<Worker>,
        counted: &Counted,
        listener: usize,
        mut tcp: TcpStream,
        mut peer: SocketAddr,
    ) -> Option<Self> {
        let _ = tcp.set_nodelay(true);
        let mut local = tcp.local_addr().ok()?;
        let timer = worker.timers.timer_of(counted.network());
        let generation = worker.shared.current.load_full();
        let settings = &generation.listeners[listener];
        timer.arm(generation.timeouts.header);
        timer.spare();
        if settings.proxy_protocol && generation.client_address.trusts(peer.ip()) {
            let header = timer.run(read_proxy_header(&mut tcp)).await.ok()??;
            if let Some((client, server)) = header {
                (peer, local) = (client, server);
                if !counted.is_of(peer.ip()) {
                    return None;
                }
                timer.set_network(counted.network());
            }
        }
        let mut client_certificate = None;
        let stream = match &settings.tls {
            None => Stream::Plain(tcp),
            Some(tls) => {
                let overload = &worker.shared.overload;
                if let Some(network) = counted.network() {
                    overload.charge_handshake(overload.key(network), worker.shared.clock(Instant::now()));
                }
                let stream = tls.accept(tcp, &timer, generation.linger()).await?;
                if tls.asks_clients() {
                    let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
                    client_certificate = Some(ClientCertificate::new(chain).map(Arc::new));
                }
                Stream::Tls(Box::new(stream.into()))
            }
        };
        let (tls, half_close) = (settings.tls.is_some(), settings.half_close);
        let (input, output) = (Buffer::new(Rc::clone(&worker.spares)), Vec::new());
        let began = Began::now();
        Some(Connection {
            worker,
            listener,
            stream,
            input,
            output,
            timer,
            peer,
            local,
            tls,
            client_certificate,
            half_close,
            began,
            network: None,
        })
    }

    /// Memory for a body that `client` sends or gets.
    pub(crate) fn memory(&mut self, client: IpAddr) -> Held {
        let budget = &self.worker.shared.budget;
        let member = match &self.network {
            Some((known, member)) if *known == client && member.key() == budget.network_of(client) => {
                member.clone()
            }
            _ => {
                let member = budget.join(client);
                self.network = Some((client, member.clone()));
                member
            }
        };
        budget.share(member)
    }

    /// Finds the end of a request body.
    pub(crate) fn body_decoder(&self, framing: BodyFraming) -> BodyDecoder {
        match self.stream {
            Stream::Plain(_) | Stream::Tls(_) => BodyDecoder::request(framing, &Limits::default()),
            Stream::Http2(_) => BodyDecoder::unframed(framing),
        }
    }

    /// How many fields came behind a request body that `decoder` has read to its end.
    pub(crate) fn trailers(&self, decoder: &BodyDecoder) -> u32 {
        let count = match &self.stream {
            Stream::Http2(pipe) => pipe.trailers().map_or(0, http::HeaderMap::len),
            Stream::Plain(_) | Stream::Tls(_) => decoder.trailers().len(),
        };
        u32::try_from(count).unwrap_or(u32::MAX)
    }

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
            // Boxed, so that a connection that waits for its next request does not hold the room of one in flight.
            match Box::pin(handle::run(self, &generation, head, refused)).await {
                Next::Request => {}
                Next::Close => return self.linger().await,
                Next::Gone => return,
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
                    // From the first byte on there is one deadline for the whole head: a drip does not move it.
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

/// Reads exactly a PROXY header; what follows may be TLS. The inner option is none where it names no client, as in the
/// health checks of load balancers.
async fn read_proxy_header(tcp: &mut TcpStream) -> Option<Option<(SocketAddr, SocketAddr)>> {
    let mut bytes = Vec::with_capacity(128);
    loop {
        // A byte at a time, since what follows the header belongs to another reader. It is short and read once.
        bytes.push(tcp.read_u8().await.ok()?);
        if let Some(header) = proxy_protocol::parse(&bytes, PROXY_HEADER_BYTES_MAX).ok()? {
            return Some(match header.command {
                Command::Proxy { source, destination } => Some((source, destination)),
                Command::Local | Command::Unknown => None,
            });
        }
    }
}

/// The moment a request began, on both clocks.
#[derive(Clone, Copy)]
pub(crate) struct Began {
    pub(crate) instant: Instant,
    pub(crate) time: SystemTime,
}

impl Began {
    pub(crate) fn now() -> Self {
        Began { instant: Instant::now(), time: SystemTime::now() }
    }

    /// Milliseconds since 1970.
    pub(crate) fn epoch_millis(self) -> u64 {
        self.time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
    }
}
