//! One client connection: a request out, its answer in.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use portcullis_http::h1::{BodyDecoder, Limits, ResponseParser};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Whom to talk to, and how.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    pub(crate) tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
}

trait Stream: AsyncRead + AsyncWrite + Unpin {}
impl<S: AsyncRead + AsyncWrite + Unpin> Stream for S {}

pub(crate) struct Client {
    stream: Box<dyn Stream>,
    parser: ResponseParser,
    input: Vec<u8>,
}

/// An answer that came whole.
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The connection carries another request.
    pub(crate) keeps: bool,
}

impl Client {
    pub(crate) async fn connect(peer: &Peer) -> io::Result<Client> {
        let tcp = TcpStream::connect(peer.address).await?;
        tcp.set_nodelay(true)?;
        let stream: Box<dyn Stream> = match &peer.tls {
            None => Box::new(tcp),
            Some((config, name)) => {
                Box::new(TlsConnector::from(Arc::clone(config)).connect(name.clone(), tcp).await?)
            }
        };
        Ok(Client { stream, parser: ResponseParser::new(Limits::default()), input: Vec::with_capacity(4096) })
    }

    pub(crate) async fn exchange(&mut self, request: &[u8]) -> io::Result<Answer> {
        self.stream.write_all(request).await?;
        self.stream.flush().await?;
        let head = loop {
            if !self.input.is_empty()
                && let Some(head) = self.parser.parse(&self.input).map_err(|error| invalid(error.name()))?
            {
                self.input.drain(..head.received_len());
                if !head.is_interim() {
                    break head;
                }
                continue;
            }
            self.read().await?;
        };
        let method = request.split(|byte| *byte == b' ').next().unwrap_or_default();
        let mut body = BodyDecoder::response(head.framing(method), &Limits::default());
        while !body.is_done() {
            if self.input.is_empty()
                && let Err(error) = self.read().await
            {
                body.close().map_err(|_| error)?;
                return Ok(Answer { status: head.status(), keeps: false });
            }
            let consumed = body.decode(&self.input).map_err(|error| invalid(error.name()))?.consumed;
            self.input.drain(..consumed);
        }
        Ok(Answer { status: head.status(), keeps: head.keep_alive() })
    }

    async fn read(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.input).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}
