//! One HTTP/2 connection of a client: a task for each of its requests.

use std::cell::Cell;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use h2::server::{Builder, SendResponse};
use h2::{Reason, RecvStream};
use http::Request;
use http::uri::Scheme;
use portcullis_http::h1::Parsed;
use portcullis_http::message::Refusal;
use portcullis_metrics::Http2Limit;
use portcullis_tls::ClientCertificate;

use super::head;
use super::meter::Meter;
use super::pace::Pace;
use super::pipe::Pipe;
use crate::buffer::Buffer;
use crate::connection::{Began, Connection};
use crate::generation::Generation;
use crate::handle;
use crate::state::{Counted, Worker};
use crate::stream::Stream;
use crate::upstream::Logins;

/// The time that a connection has to close after it is given up.
const GOODBYE: Duration = Duration::from_secs(2);
/// While there are requests in flight, these have the deadlines.
const FAR: Duration = Duration::from_secs(365 * 24 * 3600);
/// Bytes of answers that wait in the library, for each stream.
const SEND_BUFFER_BYTES_MAX: usize = 64 * 1024;

/// The event that woke the task.
enum Event {
    Request(Box<(Request<RecvStream>, SendResponse<Bytes>)>),
    /// A limit was broken.
    Tripped(Http2Limit),
    /// There is nothing more to come.
    Ended,
}

/// Serves a connection whose client speaks HTTP/2, to its end.
pub(crate) async fn serve(connection: Connection, counted: Counted) {
    let Connection {
        worker, listener, stream, input, timer, peer, local, tls, client_certificate, sni, ..
    } = connection;
    let front = Front { worker: Rc::clone(&worker), listener, peer, local, tls, client_certificate, sni };
    let counted = Rc::new(counted);
    let generation = worker.shared.current.load_full();
    let limits = generation.listeners[listener].http2;
    let metrics = worker.shared.services.metrics.http2.clone();
    let _active = Active::new(metrics.connections_active.clone());
    let (meter, watch) = Meter::new(stream, input, &limits, metrics.clone());
    let mut builder = Builder::new();
    builder
        .initial_window_size(limits.stream_window_bytes)
        .initial_connection_window_size(limits.connection_window_bytes)
        .max_concurrent_streams(limits.streams_max)
        .max_header_list_size(limits.header_list_bytes_max)
        .max_send_buffer_size(SEND_BUFFER_BYTES_MAX)
        .enable_connect_protocol();
    timer.arm(generation.timeouts.header);
    timer.spare();
    let handshake = Box::pin(builder.handshake::<_, Bytes>(meter));
    let Ok(Ok(mut library)) = timer.run(handshake).await else {
        if let Some(limit) = watch.tripped.get() {
            metrics.limits.inc(limit as usize);
        }
        return;
    };
    drop(generation);
    let in_flight = Rc::new(Cell::new(0usize));
    let mut leaving = false;
    let mut idle = None;
    loop {
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
            match library.poll_accept(context) {
                Poll::Ready(Some(Ok(came))) => Poll::Ready(Event::Request(Box::new(came))),
                Poll::Ready(Some(Err(_)) | None) => Poll::Ready(Event::Ended),
                Poll::Pending => match watch.tripped.get() {
                    Some(limit) if !leaving => Poll::Ready(Event::Tripped(limit)),
                    _ => Poll::Pending,
                },
            }
        });
        match timer.run(next).await {
            Ok(Event::Request(came)) => {
                idle = None;
                watch.accepted.borrow_mut().insert(came.1.stream_id().as_u32());
                let here = InFlight::new(&in_flight, &counted, metrics.streams_active.clone());
                let generation = worker.shared.current.load_full();
                let pace =
                    Pace::new(limits.send_rate_bytes_min, generation.timeouts.write, metrics.limits.clone());
                front.answer(*came, generation, pace, here);
            }
            Ok(Event::Tripped(limit)) => {
                metrics.limits.inc(limit as usize);
                leaving = true;
                library.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
                timer.arm(GOODBYE);
            }
            Ok(Event::Ended) => return,
            // Gone for good, or told to go and did not.
            Err(_) if leaving && in_flight.get() == 0 || timer.is_evicted() => return,
            Err(_) => {
                let first = !std::mem::replace(&mut leaving, true);
                if first {
                    library.graceful_shutdown();
                }
                timer.arm(if in_flight.get() == 0 { GOODBYE } else { FAR });
            }
        }
        if worker.draining.get() && !std::mem::replace(&mut leaving, true) {
            library.graceful_shutdown();
            timer.arm(FAR);
        }
    }
}

/// The facts of a connection that each of its streams has.
struct Front {
    worker: Rc<Worker>,
    listener: usize,
    peer: SocketAddr,
    local: SocketAddr,
    tls: bool,
    client_certificate: Option<Option<Arc<ClientCertificate>>>,
    sni: Option<Arc<str>>,
}

impl Front {
    /// Serves one request by a task of its own.
    fn answer(
        &self,
        (request, respond): (Request<RecvStream>, SendResponse<Bytes>),
        generation: Arc<Generation>,
        pace: Pace,
        here: InFlight,
    ) {
        let (parts, receive) = request.into_parts();
        let ended = receive.is_end_stream();
        let began = Began::now();
        let key = || head::websocket_key(self.worker.request_ids.borrow_mut().secret());
        // A proxy in front may hand on what its own client wrote.
        let is_proxy = generation.client_address.trusts(self.peer.ip());
        let (request_head, refused) = match head::request(&parts, ended, key) {
            Parsed::Head(head) if self.tls && parts.uri.scheme() == Some(&Scheme::HTTP) && !is_proxy => {
                (head, Some((Refusal::InvalidScheme, Refusal::InvalidScheme.status())))
            }
            Parsed::Head(head) => (head, None),
            Parsed::Refused { partial, refusal } => (partial, Some((refusal, refusal.status()))),
            Parsed::NeedMore => return,
        };
        let mut stream = Connection {
            worker: Rc::clone(&self.worker),
            listener: self.listener,
            stream: Stream::Http2(Box::new(Pipe::answering(receive, respond, pace))),
            input: Buffer::new(Rc::clone(&self.worker.spares)),
            output: Vec::new(),
            timer: self.worker.timers.timer(),
            peer: self.peer,
            local: self.local,
            tls: self.tls,
            client_certificate: self.client_certificate.clone(),
            sni: self.sni.clone(),
            half_close: false,
            began,
            network: None,
            logins: Logins::default(),
        };
        tokio::task::spawn_local(async move {
            let next = Box::pin(handle::run(&mut stream, &generation, Box::new(request_head), refused)).await;
            if let (Some(reason), Stream::Http2(pipe)) = (next.reset(), &mut stream.stream) {
                pipe.give_up(reason);
            }
            drop(here);
        });
    }
}

/// A request in flight; the connection counts until the last of them has ended.
pub(crate) struct InFlight {
    here: Rc<Cell<usize>>,
    _counted: Rc<Counted>,
    _active: Active,
}

impl InFlight {
    pub(crate) fn new(
        here: &Rc<Cell<usize>>,
        counted: &Rc<Counted>,
        gauge: portcullis_metrics::Gauge,
    ) -> Self {
        here.set(here.get() + 1);
        InFlight { here: Rc::clone(here), _counted: Rc::clone(counted), _active: Active::new(gauge) }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.here.set(self.here.get() - 1);
    }
}

/// One more on a gauge while it lives.
pub(crate) struct Active(portcullis_metrics::Gauge);

impl Active {
    pub(crate) fn new(gauge: portcullis_metrics::Gauge) -> Self {
        gauge.add(1);
        Active(gauge)
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        self.0.add(-1);
    }
}
