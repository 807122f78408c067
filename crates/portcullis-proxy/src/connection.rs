//! One client connection: TLS and PROXY protocol, and what a request that comes on it needs of it.

use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use portcullis_http::h1::{BodyDecoder, Limits};
use portcullis_http::message::BodyFraming;
use portcullis_http::proxy_protocol::{self, Command};
use portcullis_tls::{ClientCertificate, ListenerTls};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use crate::abort::Client;
use crate::budget::Held;
use crate::buffer::Buffer;
use crate::linger::{Linger, linger};
use crate::network::Member;
use crate::state::{Counted, Worker};
use crate::stream::Stream;
use crate::timer::{Elapsed, Timer};
use crate::upstream::Logins;

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
    /// The certificate that was verified, if there was one; none of it where clients are not asked.
    pub(crate) client_certificate: Option<Option<Arc<ClientCertificate>>>,
    /// The name that the client asked for in the handshake (SNI).
    pub(crate) sni: Option<Arc<str>>,
    /// The client may end its side and still read the answer.
    pub(crate) half_close: bool,
    /// The time at which the first byte of the current request came.
    pub(crate) began: Began,
    /// The client network that sent the last request with a body, by the address of the client.
    pub(crate) network: Option<(IpAddr, Member)>,
    /// Upstream connections on which a user has logged in, which no other client may have.
    pub(crate) logins: Logins,
}

impl Connection {
    /// Opens a connection that has been accepted; none if that fails.
    pub(crate) async fn open(
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
        let (mut client_certificate, mut sni) = (None, None);
        let stream = match &settings.tls {
            None => Stream::Plain(tcp),
            Some(tls) => {
                let overload = &worker.shared.overload;
                if let Some(network) = counted.network() {
                    overload.charge_handshake(overload.key(network), worker.shared.clock(Instant::now()));
                }
                let stream = accept_tls(tls, tcp, &timer, generation.linger()).await?;
                if tls.asks_clients() {
                    let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
                    client_certificate = Some(ClientCertificate::new(chain).map(Arc::new));
                }
                sni = stream.get_ref().1.server_name().map(Arc::from);
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
            sni,
            half_close,
            began,
            network: None,
            logins: Logins::default(),
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

    /// The number of trailers behind a request body that `decoder` has read to its end.
    pub(crate) fn trailers(&self, decoder: &BodyDecoder) -> u32 {
        let count = match &self.stream {
            Stream::Http2(pipe) => pipe.trailers().map_or(0, http::HeaderMap::len),
            Stream::Plain(_) | Stream::Tls(_) => decoder.trailers().len(),
        };
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// Its client, and the timer beside it.
    pub(crate) fn client(&mut self) -> (Client<'_>, &Timer) {
        let Connection { stream, input, timer, half_close, .. } = self;
        (Client { stream, input, half_close: *half_close }, timer)
    }
}

/// Does the handshake before the timer's deadline. A client that speaks HTTP in clear text gets an answer
/// that says so.
async fn accept_tls(
    tls: &ListenerTls,
    mut tcp: TcpStream,
    timer: &Timer,
    limits: Linger,
) -> Option<TlsStream<TcpStream>> {
    match timer.run(tls.is_clear_text(&tcp)).await {
        Ok(false) => {}
        Ok(true) => {
            let answer = ListenerTls::clear_text_answer();
            if let Ok(Ok(())) = timer.run(tcp.write_all(answer.as_bytes())).await {
                linger(&mut tcp, timer, limits).await;
            }
            return None;
        }
        Err(Elapsed) => {
            tls.late();
            return None;
        }
    }
    let accepted = timer.run(tls.accept(tcp)).await;
    accepted.unwrap_or_else(|Elapsed| {
        tls.late();
        None
    })
}

/// Reads exactly a PROXY header; what follows may be TLS. The inner option is none where it names no client,
/// as in the health checks of load balancers.
async fn read_proxy_header(tcp: &mut TcpStream) -> Option<Option<(SocketAddr, SocketAddr)>> {
    let mut bytes = Vec::with_capacity(128);
    loop {
        // A byte at a time, since what follows the header belongs to another reader. It is short and read
        // once.
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
