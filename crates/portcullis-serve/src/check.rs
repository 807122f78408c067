//! Forward auth: nginx `auth_request`, Caddy `forward_auth` and Traefik ForwardAuth ask by a subrequest to
//! `/check` whether a request may pass.
//!
//! The subrequest tells of the request in headers, of which there are two families. A request that has both
//! was perhaps given one of them by its client, so it is refused, unless it was said which one the server
//! sets. The client of a server that sets none could choose what is inspected; therefore method and target
//! must be there.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, Request, Response, StatusCode, request};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body as _, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use portcullis_event::{Action, BlindSpot};
use portcullis_http::forwarded;
use portcullis_http::h1::{Limits, Parsed, RequestParts, assemble_request};
use portcullis_http::message::{BodyFraming, Version};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::service::Service;
use portcullis_exchange::Block;
use portcullis_exchange::Unanswered;
use portcullis_exchange::{Arrival, Conversation};

/// The path of the endpoint.
const PATH: &str = "/check";
/// Bytes of a subrequest's head.
const HEAD_BYTES_MAX: usize = 128 << 10;

/// The headers in which a server tells of the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HeaderFamily {
    /// The family that is there; both are refused.
    #[default]
    Either,
    /// `X-Forwarded-Method`, `-Uri`, `-Host`, `-Proto`: Caddy and Traefik.
    Forwarded,
    /// `X-Original-Method`, and `X-Original-URI` or `X-Original-URL`: nginx.
    Original,
}

/// The reason why a subrequest does not tell of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unreadable {
    NoMethod,
    NoTarget,
    TwoFamilies,
    Twice,
}

impl Unreadable {
    fn explanation(self) -> &'static str {
        match self {
            Unreadable::NoMethod => {
                "no X-Original-Method and no X-Forwarded-Method: the server that asks has to set one of them, \
                 whatever its clients send"
            }
            Unreadable::NoTarget => {
                "no X-Original-URI, X-Original-URL or X-Forwarded-Uri: the server that asks has to set one of \
                 them, whatever its clients send"
            }
            Unreadable::TwoFamilies => {
                "both X-Original and X-Forwarded headers tell of the request, and one of them may be the client's: \
                 say with --headers which your server sets"
            }
            Unreadable::Twice => "a header that tells of the request is there twice",
        }
    }
}

/// Serves one connection.
pub(crate) async fn serve(
    stream: TcpStream,
    peer: SocketAddr,
    service: &Arc<Service>,
    family: HeaderFamily,
    mut stopped: watch::Receiver<bool>,
) {
    let Ok(local) = stream.local_addr() else { return };
    let answer = service_fn(|request| async move {
        let at = Endpoint { service, peer, local, family };
        Ok::<_, std::convert::Infallible>(at.answer(request).await)
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(service.limits.idle_timeout);
    builder.max_buf_size(HEAD_BYTES_MAX);
    let connection = builder.serve_connection(TokioIo::new(stream), answer);
    tokio::pin!(connection);
    let result = tokio::select! {
        result = connection.as_mut() => result,
        _ = stopped.wait_for(|stopped| *stopped) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result
        && error.is_parse()
    {
        service.unanswered(Unanswered::Malformed);
    }
}

/// Tells a peer that is not trusted so, and nothing else.
pub(crate) async fn refuse_peer(service: &Service, mut stream: TcpStream) {
    if service.kind() == portcullis_event::IntegrationKind::ForwardAuth {
        let text = "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        // What does not fit into the socket's buffer at once is not waited for.
        let _ = stream.try_write(text.as_bytes());
        let _ = stream.shutdown().await;
    }
}

/// The endpoint, as one peer sees it.
struct Endpoint<'a> {
    service: &'a Arc<Service>,
    peer: SocketAddr,
    local: SocketAddr,
    family: HeaderFamily,
}

impl Endpoint<'_> {
    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        if request.uri().path() != PATH {
            return plain(StatusCode::NOT_FOUND, "ask /check");
        }
        let (parts, body) = request.into_parts();
        let (asked, is_original) = match self.read(&parts, body.is_end_stream(), body.size_hint().exact()) {
            Ok(asked) => asked,
            Err(why) => {
                self.service.unanswered(Unanswered::Malformed);
                return plain(StatusCode::BAD_REQUEST, why.explanation());
            }
        };
        let mut conversation =
            Conversation::begin(&self.service.exchanges, self.arrival(&parts.headers), asked);
        conversation.blind(BlindSpot::Response);
        match body.is_end_stream() {
            true => conversation.no_request_body(),
            false => {
                if let Err(answer) = self.show(&mut conversation, body).await {
                    return answer;
                }
            }
        }
        conversation.request_end(None);
        match conversation.block() {
            Some(block) => blocked(block, conversation.request_id(), is_original),
            None => passed(conversation.request_id()),
        }
    }

    /// Shows the body that came with the subrequest.
    async fn show(
        &self,
        conversation: &mut Conversation,
        mut body: Incoming,
    ) -> Result<(), Response<Full<Bytes>>> {
        loop {
            let why = match tokio::time::timeout(self.service.limits.message_timeout, body.frame()).await {
                Ok(None) => return Ok(()),
                Ok(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        conversation.request_body(&data);
                    }
                    if conversation.block().is_some() {
                        return Ok(());
                    }
                    continue;
                }
                Ok(Some(Err(_))) => Unanswered::Malformed,
                Err(_) => Unanswered::Timeout,
            };
            self.service.unanswered(why);
            conversation.reject(408, "The request body did not come in time.");
            return Err(plain(StatusCode::REQUEST_TIMEOUT, "the body of the request did not come"));
        }
    }

    /// The client, by `X-Forwarded-For` as far as trusted peers wrote it.
    fn arrival(&self, headers: &HeaderMap) -> Arrival {
        let trusted = |address: IpAddr| self.service.trusts(address);
        let entries: Vec<&[u8]> =
            headers.get_all("x-forwarded-for").iter().map(HeaderValue::as_bytes).collect();
        let client = forwarded::x_forwarded_for(entries, self.peer.ip(), trusted);
        let client =
            if client == self.peer.ip().to_canonical() { self.peer } else { SocketAddr::new(client, 0) };
        let tls = headers.get("x-forwarded-proto").is_some_and(|proto| proto.as_bytes() == b"https");
        Arrival { client, peer: self.peer, server: self.local, tls }
    }

    /// The request that the subrequest describes; and whether it is described as nginx does.
    fn read(
        &self,
        parts: &request::Parts,
        bodiless: bool,
        length: Option<u64>,
    ) -> Result<(Parsed, bool), Unreadable> {
        let headers = &parts.headers;
        let has = |names: &[&str]| names.iter().any(|name| headers.contains_key(*name));
        let original = has(&["x-original-method", "x-original-uri", "x-original-url"]);
        let forwarded = has(&["x-forwarded-method", "x-forwarded-uri"]);
        let is_original = match self.family {
            HeaderFamily::Forwarded => false,
            HeaderFamily::Original => true,
            HeaderFamily::Either if original && forwarded => return Err(Unreadable::TwoFamilies),
            HeaderFamily::Either => original,
        };
        let own: &[&str] = match is_original {
            true => &["x-original-method", "x-original-uri", "x-original-url", "x-original-content-length"],
            false => &["x-forwarded-method", "x-forwarded-uri"],
        };
        let method = one(headers, own[0])?.ok_or(Unreadable::NoMethod)?;
        let target = match (one(headers, own[1])?, is_original) {
            (Some(target), false) => Some(target),
            (uri, true) => match (uri, one(headers, "x-original-url")?) {
                (Some(_), Some(_)) => return Err(Unreadable::Twice),
                (uri, url) => uri.or(url),
            },
            (None, false) => None,
        };
        let (host, target) = split_url(target.ok_or(Unreadable::NoTarget)?);
        let host = match (host, is_original) {
            (Some(host), _) => Some(host),
            (None, true) => None,
            (None, false) => one(headers, "x-forwarded-host")?,
        };
        let told = match is_original {
            true => one(headers, "x-original-content-length")?,
            false => None,
        };
        let told = told.and_then(|text| std::str::from_utf8(text).ok()?.parse::<u64>().ok());
        let framing = match (bodiless, length, told) {
            (false, Some(length), _) | (true, _, Some(length)) => BodyFraming::Length(length),
            // It may have a body that is not described.
            (true, _, None) if matches!(method, b"GET" | b"HEAD" | b"OPTIONS") => BodyFraming::None,
            _ => BodyFraming::Chunked,
        };
        Ok((assemble(headers, own, method, target, host, framing), is_original))
    }
}

/// The head of the request that the subrequest tells of.
fn assemble(
    headers: &HeaderMap,
    own: &[&str],
    method: &[u8],
    target: &[u8],
    host: Option<&[u8]>,
    framing: BodyFraming,
) -> Parsed {
    let length = match framing {
        BodyFraming::Length(length) => Some(length.to_string()),
        BodyFraming::None | BodyFraming::Chunked | BodyFraming::UntilClose => None,
    };
    let mut fields: Vec<(&[u8], &[u8])> = Vec::with_capacity(headers.len() + 2);
    fields.extend(host.map(|host| (&b"host"[..], host)));
    for (name, value) in headers {
        let name: &HeaderName = name;
        let is_of_subrequest =
            matches!(name.as_str(), "connection" | "content-length" | "transfer-encoding" | "keep-alive")
                || (name == "host" && host.is_some())
                || own.contains(&name.as_str());
        if !is_of_subrequest {
            fields.push((name.as_str().as_bytes(), value.as_bytes()));
        }
    }
    match (&length, framing) {
        (Some(length), _) => fields.push((b"content-length", length.as_bytes())),
        (None, BodyFraming::Chunked) => fields.push((b"transfer-encoding", b"chunked")),
        _ => {}
    }
    let parts =
        RequestParts { method, target, version: Version::Http11, framing, websocket: false, fields: &fields };
    assemble_request(&parts, &Limits::default())
}

/// The value of a header that is there once, if it is there and says something.
fn one<'h>(headers: &'h HeaderMap, name: &str) -> Result<Option<&'h [u8]>, Unreadable> {
    let mut values = headers.get_all(name).iter().map(HeaderValue::as_bytes);
    match (values.next(), values.next()) {
        (_, Some(_)) => Err(Unreadable::Twice),
        (value, None) => Ok(value.filter(|value| !value.is_empty())),
    }
}

/// The host of a whole URL, and the target.
fn split_url(text: &[u8]) -> (Option<&[u8]>, &[u8]) {
    let rest = text.strip_prefix(b"http://").or_else(|| text.strip_prefix(b"https://"));
    let Some(rest) = rest else { return (None, text) };
    let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
    match &rest[end..] {
        [] => (Some(&rest[..end]), b"/"),
        target => (Some(&rest[..end]), target),
    }
}

fn plain(status: StatusCode, text: &str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(format!("{text}\n"))));
    *response.status_mut() = status;
    put(&mut response, "content-type", b"text/plain; charset=utf-8");
    response
}

fn passed(request_id: &str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::new()));
    *response.status_mut() = StatusCode::OK;
    put(&mut response, "x-request-id", request_id.as_bytes());
    put(&mut response, "x-portcullis-action", b"pass");
    response
}

/// nginx takes 401 and 403 for a refusal, and everything else for our own fault.
fn blocked(block: &Block, request_id: &str, is_original: bool) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(block.page.body.clone())));
    let status = if is_original && block.status != 401 { 403 } else { block.status };
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::FORBIDDEN);
    put(&mut response, "content-type", block.page.media_type.as_bytes());
    put(&mut response, "cache-control", b"no-store");
    put(&mut response, "x-request-id", request_id.as_bytes());
    put(&mut response, "x-portcullis-action", block.action.name().as_bytes());
    put(&mut response, "x-portcullis-status", block.status.to_string().as_bytes());
    for (name, value) in &block.page.fields {
        put(&mut response, name, value.as_bytes());
    }
    if let (Some(location), Action::Redirect) = (&block.location, block.action) {
        put(&mut response, "location", location);
    }
    response
}

/// Adds a field; one that cannot be one is left out.
fn put(response: &mut Response<Full<Bytes>>, name: &str, value: &[u8]) {
    if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_bytes(value)) {
        response.headers_mut().insert(name, value);
    }
}
