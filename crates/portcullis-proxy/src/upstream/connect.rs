//! A new connection to an endpoint.

use std::io;
use std::mem::MaybeUninit;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use portcullis_event::UpstreamError;
use portcullis_http::h1::{Limits, ResponseParser};
use socket2::SockRef;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::Group;
use crate::buffer::{Buffer, Spares};
use crate::stream::Stream;
use crate::timer::Timer;

/// A connection to an endpoint, between two requests or in one.
pub(crate) struct UpstreamConnection {
    pub(crate) stream: Stream,
    pub(crate) input: Buffer,
    pub(crate) parser: ResponseParser,
}

/// What failed, for events and metrics. Nothing of the request has been sent.
#[derive(Debug)]
pub(crate) struct Failed(pub(crate) UpstreamError);

impl UpstreamConnection {
    /// True if nothing speaks against another request: the peer has neither closed nor sent anything unasked. What the
    /// runtime knows of that costs nothing, but may be some microseconds old; with `certain` the socket is asked.
    pub(crate) fn is_usable(&self, certain: bool) -> bool {
        if certain {
            let peeked = SockRef::from(self.stream.tcp()).peek(&mut [MaybeUninit::uninit()]);
            if !peeked.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
                return false;
            }
        }
        let mut byte = [0];
        let quiet = match self.stream.tcp().try_read(&mut byte) {
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
            Ok(_) => false,
        };
        quiet && self.input.unread().is_empty()
    }
}

/// Connects to one endpoint of a group before the timer's deadline.
pub(crate) async fn connect(
    group: &Arc<Group>,
    endpoint: usize,
    timer: &Timer,
    spares: Rc<Spares>,
) -> Result<UpstreamConnection, Failed> {
    let failed_late = |_| Failed(UpstreamError::ConnectTimeout);
    let stream = timer.run(open(group, endpoint)).await.map_err(failed_late)??;
    Ok(UpstreamConnection {
        stream,
        input: Buffer::new(spares),
        parser: ResponseParser::new(Limits::default()),
    })
}

/// Opens a connection, TLS included.
pub(super) async fn open(group: &Arc<Group>, endpoint: usize) -> Result<Stream, Failed> {
    let endpoint = &group.settings.endpoints[endpoint];
    let tcp = match endpoint.host.parse::<IpAddr>() {
        Ok(address) => TcpStream::connect((address, endpoint.port)).await,
        Err(_) => {
            let name = (endpoint.host.as_str(), endpoint.port);
            let mut addresses =
                tokio::net::lookup_host(name).await.map_err(|_| Failed(UpstreamError::Dns))?.peekable();
            if addresses.peek().is_none() {
                return Err(Failed(UpstreamError::Dns));
            }
            let addresses: Vec<_> = addresses.collect();
            TcpStream::connect(&addresses[..]).await
        }
    };
    let tcp = tcp.map_err(|_| Failed(UpstreamError::Connect))?;
    let _ = tcp.set_nodelay(true);
    let Some(config) = &group.tls else { return Ok(Stream::Plain(tcp)) };
    let name = group.server_name(endpoint).map_err(|_| Failed(UpstreamError::Tls))?;
    let tls = TlsConnector::from(Arc::clone(config)).connect(name, tcp).await;
    tls.map(|tls| Stream::Tls(Box::new(tls.into()))).map_err(|_| Failed(UpstreamError::Tls))
}
