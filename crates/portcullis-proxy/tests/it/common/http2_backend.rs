//! A backend that speaks HTTP/2 in clear text.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::{HeaderMap, HeaderValue, Request, Response};
use tokio::sync::Notify;

/// A request as the backend received it.
#[derive(Clone, Debug)]
pub struct Seen {
    pub method: String,
    pub uri: String,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    pub trailers: HeaderMap,
}

/// The backend. What it does goes by the path: `/echo` sends each piece of the body back as it comes, then
/// trailers; `/refuse` refuses the first stream; `/hints` has early hints; `/wait` says nothing until its
/// stream is reset; `/events` sends one for each [`Http2Backend::go`]; `/empty` is an answer of trailers
/// alone; `/cut` resets in the middle of the body; `/secret` is what rules look for;
/// `/grpc.health.v1.Health/Check` is healthy while `healthy` is not 0; anything else tells the length of the
/// body.
pub struct Http2Backend {
    pub address: SocketAddr,
    pub connections: Arc<AtomicUsize>,
    pub healthy: Arc<AtomicUsize>,
    /// Lets `/events` go on.
    pub go: Arc<Notify>,
    state: State,
}

#[derive(Clone, Default)]
struct State {
    seen: Arc<Mutex<Vec<Seen>>>,
    healthy: Arc<AtomicUsize>,
    refused: Arc<AtomicUsize>,
    waiting: Arc<AtomicUsize>,
    cancelled: Arc<AtomicUsize>,
    go: Arc<Notify>,
}

impl Http2Backend {
    pub fn start() -> Http2Backend {
        Http2Backend::start_with(&h2::server::Builder::new())
    }

    /// One that takes WebSockets: `/refused` is answered 403, all else is an echo.
    pub fn taking_websockets() -> Http2Backend {
        Http2Backend::start_with(h2::server::Builder::new().enable_connect_protocol())
    }

    fn start_with(builder: &h2::server::Builder) -> Http2Backend {
        let builder = builder.clone();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let state = State { healthy: Arc::new(1.into()), ..State::default() };
        let connections = Arc::new(AtomicUsize::new(0));
        let kept = state.clone();
        let counted = Arc::clone(&connections);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                while let Ok((tcp, _)) = listener.accept().await {
                    counted.fetch_add(1, Ordering::SeqCst);
                    let (state, builder) = (state.clone(), builder.clone());
                    tokio::spawn(async move {
                        let Ok(mut connection) = builder.handshake::<_, Bytes>(tcp).await else { return };
                        while let Some(Ok((request, respond))) = connection.accept().await {
                            let state = state.clone();
                            tokio::spawn(async move {
                                let _ = serve(request, respond, state).await;
                            });
                        }
                    });
                }
            });
        });
        let (healthy, go) = (Arc::clone(&kept.healthy), Arc::clone(&kept.go));
        Http2Backend { address, connections, healthy, go, state: kept }
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.state.seen.lock().unwrap().clone()
    }

    /// Requests for `/wait` that have come.
    pub fn waiting(&self) -> usize {
        self.state.waiting.load(Ordering::SeqCst)
    }

    /// Those that were reset.
    pub fn cancelled(&self) -> usize {
        self.state.cancelled.load(Ordering::SeqCst)
    }
}

async fn serve(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    state: State,
) -> Result<(), h2::Error> {
    let (parts, mut receive) = request.into_parts();
    let path = parts.uri.path().to_string();
    let trailers = |status: &'static str| {
        HeaderMap::from_iter([(
            http::HeaderName::from_static("grpc-status"),
            HeaderValue::from_static(status),
        )])
    };
    let ok = || Response::builder().header("content-type", "application/grpc").body(()).unwrap();
    if parts.extensions.get::<h2::ext::Protocol>().is_some_and(|protocol| protocol.as_str() == "websocket") {
        let (method, uri) = (parts.method.to_string(), parts.uri.to_string());
        state.seen.lock().unwrap().push(Seen {
            method,
            uri,
            headers: parts.headers,
            body: Vec::new(),
            trailers: HeaderMap::new(),
        });
        if path == "/refused" {
            let head = Response::builder().status(403).header("content-type", "text/plain");
            let mut send = respond.send_response(head.body(()).unwrap(), false)?;
            return send.send_data("not you".into(), true);
        }
        let head = Response::builder().header("sec-websocket-protocol", "chat").body(()).unwrap();
        let mut send = respond.send_response(head, false)?;
        while let Some(data) = receive.data().await {
            let Ok(data) = data else {
                state.cancelled.fetch_add(1, Ordering::SeqCst);
                return Ok(());
            };
            receive.flow_control().release_capacity(data.len())?;
            send.send_data(data, false)?;
        }
        return send.send_data(Bytes::new(), true);
    }
    if path == "/echo" {
        let mut send = respond.send_response(ok(), false)?;
        while let Some(data) = receive.data().await {
            let data = data?;
            receive.flow_control().release_capacity(data.len())?;
            send.send_data(data, false)?;
        }
        return send.send_trailers(trailers("0"));
    }
    if path == "/refuse" && state.refused.fetch_add(1, Ordering::SeqCst) == 0 {
        respond.send_reset(Reason::REFUSED_STREAM);
        return Ok(());
    }
    if path == "/wait" {
        state.waiting.fetch_add(1, Ordering::SeqCst);
        let _ = poll_fn(|context| respond.poll_reset(context)).await;
        state.cancelled.fetch_add(1, Ordering::SeqCst);
        return Ok(());
    }
    if path == "/events" {
        let head = Response::builder().header("content-type", "text/event-stream").body(()).unwrap();
        let mut send = respond.send_response(head, false)?;
        loop {
            state.go.notified().await;
            send.send_data("data: x\n\n".into(), false)?;
        }
    }
    let mut body = Vec::new();
    while let Some(data) = receive.data().await {
        let data = data?;
        receive.flow_control().release_capacity(data.len())?;
        body.extend_from_slice(&data);
    }
    let behind = receive.trailers().await?.unwrap_or_default();
    let length = body.len().to_string();
    let (method, uri) = (parts.method.to_string(), parts.uri.to_string());
    state.seen.lock().unwrap().push(Seen { method, uri, headers: parts.headers, body, trailers: behind });
    match path.as_str() {
        "/empty" => {
            let head = Response::builder().header("grpc-status", "5").body(()).unwrap();
            respond.send_response(head, true)?;
        }
        "/cut" => {
            let mut send = respond.send_response(ok(), false)?;
            send.send_data("the beginning".into(), false)?;
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            send.send_reset(Reason::INTERNAL_ERROR);
        }
        "/grpc.health.v1.Health/Check" => {
            let mut send = respond.send_response(ok(), false)?;
            let status = if state.healthy.load(Ordering::SeqCst) != 0 { 1 } else { 2 };
            send.send_data(Bytes::from(vec![0, 0, 0, 0, 2, 8, status]), false)?;
            send.send_trailers(trailers("0"))?;
        }
        path => {
            if path == "/hints" {
                let hints = Response::builder().status(103).header("link", "</a.css>; rel=preload");
                respond.send_informational(hints.header("x-own", "y").body(()).unwrap())?;
            }
            let text = if path == "/secret" { "a secret".to_string() } else { length };
            let head = Response::builder().header("content-type", "text/plain").header("x-from", "h2");
            let mut send = respond.send_response(head.body(()).unwrap(), false)?;
            send.send_data(text.into(), false)?;
            send.send_trailers(trailers("0"))?;
        }
    }
    Ok(())
}
