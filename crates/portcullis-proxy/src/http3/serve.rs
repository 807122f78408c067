//! The QUIC endpoint of a worker, its connections, and a task for each request.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::Reason;
use portcullis_http::h1::Parsed;
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{Endpoint, EndpointConfig, ServerConfig, TokioRuntime, TransportConfig};
use rustls::pki_types::CertificateDer;
use tokio::sync::watch;

use super::checked::Checked;
use super::stream::{Incoming, Outgoing};
use crate::buffer::Buffer;
use crate::connection::{Began, Connection};
use crate::generation::Generation;
use crate::handle;
use crate::http2::{self, Active, InFlight, Pace, Pipe};
use crate::state::{Counted, Worker};
use crate::stream::Stream;
use crate::upstream::Logins;
use crate::worker::Stop;
use portcullis_tls::{ClientCertificate, ListenerTls};

/// The time that a connection has to close after its last request.
const GOODBYE: Duration = Duration::from_secs(2);
/// While there are requests in flight, these have the deadlines.
const FAR: Duration = Duration::from_secs(365 * 24 * 3600);

type Library = h3::server::Connection<Checked, Bytes>;
type Resolver = h3::server::RequestResolver<Checked, Bytes>;

/// The settings of QUIC, and those that they were made from.
struct Made {
    tls: Arc<rustls::ServerConfig>,
    generation: u64,
    quic: Arc<ServerConfig>,
}

/// The endpoint over a socket. The settings of TLS are those of the time at which a client comes.
pub(crate) fn endpoint(socket: UdpSocket, tls: &ListenerTls) -> io::Result<Endpoint> {
    let base = ServerConfig::with_crypto(crypto(&tls.current())?);
    Endpoint::new(EndpointConfig::default(), Some(base), socket, Arc::new(TokioRuntime))
}

fn crypto(tls: &rustls::ServerConfig) -> io::Result<Arc<QuicServerConfig>> {
    let mut own = tls.clone();
    own.alpn_protocols = vec![b"h3".to_vec()];
    QuicServerConfig::try_from(own).map(Arc::new).map_err(io::Error::other)
}

/// Accepts until told to stop. Connections that are open then go on as those of TCP do.
pub(crate) async fn accept(
    worker: Rc<Worker>,
    listener: usize,
    endpoint: Endpoint,
    mut stopped: watch::Receiver<Option<Stop>>,
) {
    let made = RefCell::new(None);
    loop {
        let incoming = tokio::select! {
            biased;
            _ = stopped.wait_for(Option::is_some) => break,
            incoming = endpoint.accept() => incoming,
        };
        let Some(incoming) = incoming else { return };
        let generation = worker.shared.current.load_full();
        let (open, most) = (worker.connections(), generation.caps.connections_max);
        let network = worker.network_of(incoming.remote_address().ip());
        if open >= most {
            worker.make_room();
            incoming.refuse();
            continue;
        }
        let of_network = network.map_or(0, |network| worker.connections_of(network));
        if is_crowded((open, most), (of_network, generation.caps.network_connections_max))
            && incoming.may_retry()
        {
            let _ = incoming.retry();
            continue;
        }
        if !worker.admits(network) {
            incoming.refuse();
            continue;
        }
        let Some(config) = settings(&made, &generation, listener) else {
            incoming.refuse();
            continue;
        };
        let local = endpoint.local_addr().ok().map(|address| match incoming.local_ip() {
            Some(ip) => SocketAddr::new(ip, address.port()),
            None => address,
        });
        let peer = incoming.remote_address();
        let (Ok(connecting), Some(local)) = (incoming.accept_with(config), local) else { continue };
        let counted = worker.count(network);
        tokio::task::spawn_local(serve(Rc::clone(&worker), counted, listener, connecting, (peer, local)));
    }
    // New clients are refused; a client that hears nothing would wait.
    endpoint.set_server_config(None);
}

/// True if a client must show that its address is its own before it gets room. Others could else take all of
/// it, or in the name of a client network have its connections closed.
fn is_crowded((open, most): (usize, usize), (of_network, most_of_network): (usize, usize)) -> bool {
    open >= most / 2 || of_network >= (most_of_network / 8).max(1)
}

/// The settings of QUIC, made anew when those that they come from have changed.
fn settings(
    made: &RefCell<Option<Made>>,
    generation: &Generation,
    listener: usize,
) -> Option<Arc<ServerConfig>> {
    let state = &generation.listeners[listener];
    let tls = state.tls.as_ref()?.current();
    let mut made = made.borrow_mut();
    let current =
        made.as_ref().filter(|made| made.generation == generation.number && Arc::ptr_eq(&made.tls, &tls));
    if let Some(made) = current {
        return Some(Arc::clone(&made.quic));
    }
    let limits = &state.http2;
    let mut transport = TransportConfig::default();
    transport
        .max_concurrent_bidi_streams(limits.streams_max.into())
        // Control and the two of QPACK, and some that we do not know.
        .max_concurrent_uni_streams(8u32.into())
        .stream_receive_window(limits.stream_window_bytes.into())
        .receive_window(limits.connection_window_bytes.into())
        .max_idle_timeout(generation.timeouts.idle.try_into().ok());
    let mut quic = ServerConfig::with_crypto(crypto(&tls).ok()?);
    quic.transport_config(Arc::new(transport));
    let quic = Arc::new(quic);
    *made = Some(Made { tls, generation: generation.number, quic: Arc::clone(&quic) });
    Some(quic)
}

/// Serves a connection to its end.
async fn serve(
    worker: Rc<Worker>,
    counted: Counted,
    listener: usize,
    connecting: quinn::Connecting,
    (peer, local): (SocketAddr, SocketAddr),
) {
    let counted = Rc::new(counted);
    let timer = worker.timers.timer_of(counted.network());
    let generation = worker.shared.current.load_full();
    let Some(tls) = &generation.listeners[listener].tls else { return };
    timer.arm(generation.timeouts.header);
    timer.spare();
    let connection = match timer.run(connecting).await {
        Ok(Ok(connection)) => connection,
        Ok(Err(error)) => return tls.quic_handshake(Some(&error)),
        Err(_) => return tls.quic_handshake(Some(&quinn::ConnectionError::TimedOut)),
    };
    tls.quic_handshake(None);
    // Not before: until then the address may be that of another client, which would be refused for it in an
    // overload.
    let overload = &worker.shared.overload;
    if let Some(network) = counted.network() {
        overload.charge_handshake(overload.key(network), worker.shared.clock(Instant::now()));
    }
    let client_certificate = tls.asks_clients().then(|| client_certificate(&connection));
    let sni = sni(&connection);
    let limits = generation.listeners[listener].http2;
    let mut builder = h3::server::builder();
    builder.max_field_section_size(limits.header_list_bytes_max.into());
    let metrics = worker.shared.services.metrics.http2.clone();
    let checked =
        Checked::new(connection.clone(), limits.header_list_bytes_max.into(), metrics.limits.clone());
    let build = builder.build(checked);
    let Ok(Ok(mut library)) = timer.run(build).await else { return };
    drop(generation);
    let _active = Active::new(metrics.connections_active.clone());
    let in_flight = Rc::new(Cell::new(0usize));
    let (mut leaving, mut idle) = (false, None);
    loop {
        let next = {
            let mut accept = pin!(library.accept());
            let next = poll_fn(|context| {
                if !leaving && idle != Some(in_flight.get() == 0) {
                    idle = Some(in_flight.get() == 0);
                    // Either way a wait that draining cuts short.
                    timer.arm_idle(match idle {
                        Some(true) => worker.shared.current.load().timeouts.idle,
                        _ => FAR,
                    });
                    if idle == Some(true) {
                        timer.spare();
                    }
                }
                if leaving && in_flight.get() == 0 && idle != Some(true) {
                    idle = Some(true);
                    timer.arm(GOODBYE);
                }
                accept.as_mut().poll(context)
            });
            timer.run(next).await
        };
        match next {
            Ok(Ok(Some(resolver))) => {
                idle = None;
                let place = Place {
                    worker: Rc::clone(&worker),
                    listener,
                    peer,
                    local,
                    client_certificate: client_certificate.clone(),
                    sni: sni.clone(),
                    connection: connection.clone(),
                };
                let here = InFlight::new(&in_flight, &counted, metrics.streams_active.clone());
                tokio::task::spawn_local(async move {
                    request(place, resolver).await;
                    drop(here);
                });
            }
            // The client is gone, or it is done and has been notified that we are.
            Ok(Ok(None) | Err(_)) => return finish(&mut library, &in_flight, &timer).await,
            Err(_) if leaving && in_flight.get() == 0 || timer.is_evicted() => return,
            Err(_) => {
                if !std::mem::replace(&mut leaving, true) && library.shutdown(0).await.is_err() {
                    return;
                }
                idle = None;
                timer.arm(FAR);
            }
        }
        if worker.draining.get() && !std::mem::replace(&mut leaving, true) {
            idle = None;
            if library.shutdown(0).await.is_err() {
                return;
            }
            timer.arm(FAR);
        }
    }
}

/// The name that the client asked for in the handshake.
fn sni(connection: &quinn::Connection) -> Option<Arc<str>> {
    let data = connection.handshake_data()?.downcast::<quinn::crypto::rustls::HandshakeData>().ok()?;
    data.server_name.map(Arc::from)
}

/// The certificate of the client, if it has shown one.
fn client_certificate(connection: &quinn::Connection) -> Option<Arc<ClientCertificate>> {
    let identity = connection.peer_identity();
    let chain = identity.and_then(|any| any.downcast::<Vec<CertificateDer<'static>>>().ok());
    ClientCertificate::new(&chain.unwrap_or_default()).map(Arc::new)
}

/// Dropping the connection closes it, so what is in flight ends before.
async fn finish(library: &mut Library, in_flight: &Rc<Cell<usize>>, timer: &crate::timer::Timer) {
    timer.arm(GOODBYE);
    let ended = poll_fn(|context| {
        // It wakes the tasks that wait for a request when one has ended.
        let _ = pin!(library.accept()).poll(context);
        if in_flight.get() == 0 { Poll::Ready(()) } else { Poll::Pending }
    });
    let _ = timer.run(ended).await;
}

/// The connection of a request.
struct Place {
    worker: Rc<Worker>,
    listener: usize,
    peer: SocketAddr,
    local: SocketAddr,
    client_certificate: Option<Option<Arc<ClientCertificate>>>,
    sni: Option<Arc<str>>,
    connection: quinn::Connection,
}

/// One request, from its head to the last byte of its answer.
async fn request(place: Place, resolver: Resolver) {
    let Place { worker, listener, peer, local, client_certificate, sni, connection } = place;
    let timer = worker.timers.timer();
    timer.arm(worker.shared.current.load().timeouts.header);
    let began = Began::now();
    // Of what the library refuses it tells the client itself.
    let Ok(Ok((request, stream))) = timer.run(resolver.resolve_request()).await else {
        return refused(&worker, peer.ip());
    };
    let metrics = worker.shared.services.metrics.http2.clone();
    let generation = worker.shared.current.load_full();
    let (parts, ()) = request.into_parts();
    // Over QUIC there is nothing but HTTPS to ask us for.
    if parts.uri.scheme().is_some_and(|scheme| *scheme != http::uri::Scheme::HTTPS) {
        let mut stream = stream;
        stream.stop_sending(h3::error::Code::H3_MESSAGE_ERROR);
        stream.stop_stream(h3::error::Code::H3_MESSAGE_ERROR);
        return refused(&worker, peer.ip());
    }
    let (send, receive) = stream.split();
    let promised = parts.headers.get("content-length").and_then(|value| value.to_str().ok()?.parse().ok());
    let mut incoming = Incoming::new(receive, promised);
    let ended = poll_fn(|context| Poll::Ready(incoming.is_empty(context))).await;
    let key = || http2::websocket_key(worker.request_ids.borrow_mut().secret());
    let (head, refused) = match http2::request(&parts, ended, key) {
        Parsed::Head(head) => (head, None),
        Parsed::Refused { partial, refusal } => (partial, Some((refusal, refusal.status()))),
        Parsed::NeedMore => return,
    };
    let limits = generation.listeners[listener].http2;
    let pace = Pace::new(limits.send_rate_bytes_min, generation.timeouts.write, metrics.limits.clone());
    let closed = async move {
        connection.closed().await;
    };
    let pipe = Pipe::over_quic(incoming, Outgoing::new(send), ended, pace, closed);
    let mut stream = Connection {
        input: Buffer::new(Rc::clone(&worker.spares)),
        worker,
        listener,
        stream: Stream::Http2(Box::new(pipe)),
        output: Vec::new(),
        timer,
        peer,
        local,
        tls: true,
        client_certificate,
        sni,
        half_close: false,
        began,
        network: None,
        logins: Logins::default(),
    };
    let next = Box::pin(handle::run(&mut stream, &generation, Box::new(head), refused)).await;
    let Stream::Http2(pipe) = &mut stream.stream else { return };
    if let Some(reason) = next.reset() {
        pipe.give_up(reason);
    }
    stream.timer.arm(generation.timeouts.write);
    let sent = poll_fn(|context| pipe.poll_sent(context));
    let _ = stream.timer.run(sent).await;
}

/// Counts a stream that is no request, and charges it as one.
fn refused(worker: &Worker, peer: IpAddr) {
    let shared = &worker.shared;
    shared.services.metrics.http2.malformed.inc();
    if let Some(network) = worker.network_of(peer) {
        let account = shared.overload.key(network);
        shared.overload.charge_request(account, Duration::ZERO, shared.clock(Instant::now()));
    }
}

/// As QUIC has no reasons of HTTP/2: the code for why a stream is given up.
pub(crate) fn code(reason: Reason) -> h3::error::Code {
    match reason {
        Reason::ENHANCE_YOUR_CALM => h3::error::Code::H3_EXCESSIVE_LOAD,
        Reason::HTTP_1_1_REQUIRED => h3::error::Code::H3_VERSION_FALLBACK,
        _ => h3::error::Code::H3_INTERNAL_ERROR,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_claims_an_address_shows_it_where_there_is_little_room() {
        for (all, network, expected) in [
            ((0, 8192), (0, 4096), false),
            ((4095, 8192), (511, 4096), false),
            ((4096, 8192), (0, 4096), true),
            ((600, 8192), (512, 4096), true),
            ((0, 10), (0, 5), false),
            ((1, 10), (1, 5), true),
            // The first of all.
            ((0, 1), (0, 1), true),
        ] {
            assert_eq!(is_crowded(all, network), expected, "{all:?} {network:?}");
        }
    }
}
