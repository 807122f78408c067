//! A new connection to an endpoint.

use std::cell::RefCell;
use std::io;
use std::mem::MaybeUninit;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use portcullis_config::{Endpoint, UpstreamProtocol};
use portcullis_event::UpstreamError;
use portcullis_http::h1::{BodyDecoder, BodyError, Limits, ResponseParser, Trailers};
use portcullis_http::message::{BodyFraming, Fields};
use socket2::SockRef;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::{Failed, Group, Sessions, session};
use crate::buffer::{Buffer, Spares};
use crate::http2::{Active, Pipe};
use crate::stream::Stream;
use crate::timer::Timer;
use portcullis_tls::{UpstreamTls, why_failed};

/// A connection to an endpoint, between two requests or in one.
pub(crate) struct UpstreamConnection {
    pub(crate) stream: Stream,
    pub(crate) input: Buffer,
    pub(crate) parser: ResponseParser,
    /// A user may have logged in on it, so that it belongs to one client connection.
    pub(crate) login: Option<Active>,
}

impl UpstreamConnection {
    pub(super) fn new(stream: Stream, spares: Rc<Spares>) -> Self {
        let parser = ResponseParser::new(Limits::default());
        UpstreamConnection { stream, input: Buffer::new(spares), parser, login: None }
    }

    /// A stream of HTTP/2.
    pub(super) fn of(pipe: Pipe, spares: Rc<Spares>) -> Self {
        Self::new(Stream::Http2(Box::new(pipe)), spares)
    }

    /// No new requests are sent on it, if it is shared.
    pub(crate) fn leave(&self) {
        if let Stream::Http2(pipe) = &self.stream {
            pipe.leave_connection();
        }
    }

    /// Finds the end of a response body.
    pub(crate) fn body_decoder(&self, framing: BodyFraming) -> BodyDecoder {
        match self.stream {
            Stream::Plain(_) | Stream::Tls(_) => BodyDecoder::response(framing, &Limits::default()),
            Stream::Http2(_) => BodyDecoder::unframed(framing),
        }
    }

    /// The trailers of a body that has been read to its end by `decoder`; `room` holds them.
    pub(crate) fn trailers<'t>(
        &self,
        decoder: &'t BodyDecoder,
        room: &'t mut Trailers,
    ) -> Result<Fields<'t>, BodyError> {
        let Stream::Http2(pipe) = &self.stream else { return Ok(decoder.trailers()) };
        if let Some(trailers) = pipe.trailers() {
            let fields = trailers.iter().map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes()));
            *room = Trailers::assemble(fields, &Limits::default())?;
        }
        Ok(room.fields())
    }

    /// True if nothing speaks against another request: the peer has neither closed nor sent anything unasked.
    /// What the runtime knows of that costs nothing, but may be some microseconds old; with `certain` the
    /// socket is asked.
    pub(crate) fn is_usable(&self, certain: bool) -> bool {
        let Some(tcp) = self.stream.tcp() else { return false };
        if certain {
            let peeked = SockRef::from(tcp).peek(&mut [MaybeUninit::uninit()]);
            if !peeked.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
                return false;
            }
        }
        let mut byte = [0];
        let quiet = match tcp.try_read(&mut byte) {
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
            Ok(_) => false,
        };
        quiet && self.input.unread().is_empty()
    }
}

/// Connects to one endpoint of a group before the timer's deadline. `alone`: for one client, so over HTTP/1
/// if the endpoint may choose, and shared by nobody.
pub(crate) async fn connect(
    group: &Arc<Group>,
    endpoint: usize,
    timer: &Timer,
    spares: Rc<Spares>,
    sessions: &RefCell<Sessions>,
    alone: bool,
) -> Result<UpstreamConnection, Failed> {
    let failed_late = |_| UpstreamError::ConnectTimeout;
    let opened = async {
        let only = (alone && group.settings.protocol == UpstreamProtocol::Auto).then_some(b"http/1.1");
        let address = &group.settings.endpoints[endpoint];
        let stream = dial(address, group.tls.as_deref(), only.map(|protocol| &protocol[..])).await?;
        Ok::<_, Failed>(match (speaks_http2(group, &stream)?, alone) {
            (true, true) => Stream::Http2(Box::new(session::begin_alone(group, endpoint, stream).await?)),
            (true, false) => {
                Stream::Http2(Box::new(session::begin(sessions, group, endpoint, stream).await?))
            }
            (false, _) => stream,
        })
    };
    let stream = timer.run(opened).await.map_err(failed_late)??;
    Ok(UpstreamConnection::new(stream, spares))
}

/// HTTP/2 is spoken on a connection that has just been made.
pub(super) fn speaks_http2(group: &Group, stream: &Stream) -> Result<bool, Failed> {
    match group.settings.protocol {
        UpstreamProtocol::Http1 => Ok(false),
        UpstreamProtocol::Auto => Ok(stream.is_http2_agreed()),
        UpstreamProtocol::Http2 if group.tls.is_none() || stream.is_http2_agreed() => Ok(true),
        UpstreamProtocol::Http2 => Err(Failed {
            error: UpstreamError::Tls,
            why: Some("it does not offer HTTP/2 (ALPN `h2`)".to_string()),
        }),
    }
}

/// Opens a connection to an endpoint of a group, TLS included.
pub(super) async fn open(group: &Group, endpoint: usize) -> Result<Stream, Failed> {
    dial(&group.settings.endpoints[endpoint], group.tls.as_deref(), None).await
}

/// Opens a connection, TLS included; `only` is the protocol to agree to, if not one of the settings.
pub(crate) async fn dial(
    endpoint: &Endpoint,
    tls: Option<&UpstreamTls>,
    only: Option<&[u8]>,
) -> Result<Stream, Failed> {
    let known = endpoint.address.ok_or(()).or_else(|()| endpoint.host.parse::<IpAddr>());
    let tcp = match known {
        Ok(address) => TcpStream::connect((address, endpoint.port)).await,
        Err(_) => {
            let name = (endpoint.host.as_str(), endpoint.port);
            let mut addresses =
                tokio::net::lookup_host(name).await.map_err(|_| UpstreamError::Dns)?.peekable();
            if addresses.peek().is_none() {
                return Err(UpstreamError::Dns.into());
            }
            let addresses: Vec<_> = addresses.collect();
            TcpStream::connect(&addresses[..]).await
        }
    };
    let tcp = tcp.map_err(|_| UpstreamError::Connect)?;
    let _ = tcp.set_nodelay(true);
    let Some(tls) = tls else { return Ok(Stream::Plain(tcp)) };
    let failed = |why: String| Failed { error: UpstreamError::Tls, why: Some(why) };
    let name = tls.server_name(endpoint).map_err(|error| failed(error.to_string()))?;
    let connector = TlsConnector::from(Arc::clone(&tls.config));
    let tls = match only {
        Some(protocol) => connector.with_alpn(vec![protocol.to_vec()]).connect(name, tcp).await,
        None => connector.connect(name, tcp).await,
    };
    tls.map(|tls| Stream::Tls(Box::new(tls.into()))).map_err(|error| failed(why_failed(&error)))
}
