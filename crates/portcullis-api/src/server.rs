//! Connections: bounded in number, in all and of a client, and in the time that they may be silent.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper_util::rt::{TokioIo, TokioTimer};
use portcullis_admin::{Activity, Answering, Connections};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tower_service::Service as _;

use crate::context::Context;
use crate::patient::Patient;
use crate::router::build;
use crate::settings::{Limits, Peer, Supplies};

/// Bytes of a request's head, at most; beyond them 431. A filter of the greatest length fits,
/// percent-encoded.
const HEAD_BYTES_MAX: usize = 32 << 10;
/// Header fields of a request, at most; beyond them 431.
const HEADERS_MAX: usize = 64;

/// The API of one program.
pub struct Api {
    router: Router,
    document: String,
    limits: Limits,
}

impl Api {
    /// The API of what this program supplies.
    pub fn new(supplies: Supplies, limits: Limits) -> Api {
        let (router, document) = build(Arc::new(Context::new(supplies, limits)));
        Api { router, document, limits }
    }

    /// The OpenAPI document, as `/api/v1/openapi.json` shows it.
    pub fn document(&self) -> &str {
        &self.document
    }

    /// Serves until `shutdown` completes; over TLS if there is an acceptor.
    pub async fn serve(
        self,
        listener: TcpListener,
        tls: Option<TlsAcceptor>,
        shutdown: impl Future<Output = ()>,
    ) {
        let Api { router, limits, .. } = self;
        let mut connections = Connections::new(limits.connections_max, limits.client_connections_max);
        tokio::pin!(shutdown);
        loop {
            tokio::select! {
                () = &mut shutdown => break,
                () = connections.ended() => {}
                accepted = listener.accept(), if connections.has_room() => match accepted {
                    Ok((stream, address)) => connections.take(address.ip(), |activity| {
                        let peer = Peer { address: address.ip().to_canonical(), is_tls: tls.is_some() };
                        let service = Requests { router: router.clone(), activity, peer };
                        connection(stream, tls.clone(), service, limits)
                    }),
                    // Out of descriptors, most likely: trying again at once would only burn time.
                    Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
                },
            }
        }
        drop(listener);
        connections.drain(limits.drain_time_max).await;
    }
}

async fn connection(stream: TcpStream, tls: Option<TlsAcceptor>, service: Requests, limits: Limits) {
    let _ = stream.set_nodelay(true);
    let stream = Patient::new(stream, limits.write_time_max, Arc::clone(&service.activity));
    match tls {
        None => exchange(stream, service, limits).await,
        Some(tls) => {
            if let Ok(Ok(stream)) = timeout(limits.head_time_max, tls.accept(stream)).await {
                exchange(stream, service, limits).await;
            }
        }
    }
}

async fn exchange<S: AsyncRead + AsyncWrite + Unpin>(stream: S, service: Requests, limits: Limits) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new());
    http.header_read_timeout(limits.head_time_max);
    http.max_buf_size(HEAD_BYTES_MAX);
    http.max_headers(HEADERS_MAX);
    http.half_close(false);
    // Whatever goes wrong on a connection, closing it is the answer.
    let _ = http.serve_connection(TokioIo::new(stream), service).await;
}

/// Answers the requests of one connection.
struct Requests {
    router: Router,
    activity: Arc<Activity>,
    peer: Peer,
}

impl Service<Request<Incoming>> for Requests {
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let answering = self.activity.answer();
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(self.peer);
        request.extensions_mut().insert(Arc::clone(&self.activity));
        let mut router = self.router.clone();
        Box::pin(async move {
            let response = router.call(request).await?;
            // Until the last byte of the body, as streams of events have it.
            Ok(response.map(|body| Body::new(Held { body, _answering: answering })))
        })
    }
}

/// A body that keeps its request counted.
struct Held {
    body: Body,
    _answering: Answering,
}

impl http_body::Body for Held {
    type Data = bytes::Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        waiting: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(waiting)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}

/// Binds a listener, as [`Api::serve`] takes it.
pub fn listener(socket: std::net::TcpListener) -> io::Result<(TcpListener, SocketAddr)> {
    socket.set_nonblocking(true)?;
    let address = socket.local_addr()?;
    Ok((TcpListener::from_std(socket)?, address))
}
