//! A client of HTTP/3 that does one thing after the other.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes};
use h3::client::{RequestStream, SendRequest};
use h3_quinn::{BidiStream, OpenStreams};
use http::{HeaderMap, Request, StatusCode};
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Endpoint};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use tokio::runtime::Runtime;

use crate::TestkitError;

/// For anything to happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection.
pub struct Client {
    runtime: Runtime,
    connection: quinn::Connection,
    send: SendRequest<OpenStreams, Bytes>,
}

/// A request whose body may still be sent.
pub struct Exchange {
    stream: RequestStream<BidiStream<Bytes>, Bytes>,
}

/// A whole answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its header fields.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Vec<u8>,
    /// The trailers behind the body.
    pub trailers: Option<HeaderMap>,
}

/// The end of a stream of raw bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With an answer; its bytes.
    Answered(Vec<u8>),
    /// The server gave it up, with this code.
    Reset(u64),
    /// The server gave the connection up, with this code.
    Closed(u64),
}

impl Client {
    /// Connects to the server of `localhost` at `address`, which shows this certificate.
    pub fn connect(
        address: SocketAddr,
        certificate: CertificateDer<'static>,
    ) -> Result<Client, TestkitError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(trouble)?;
        let mut roots = RootCertStore::empty();
        roots.add(certificate).map_err(trouble)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13]);
        let mut tls = tls.map_err(trouble)?.with_root_certificates(roots).with_no_client_auth();
        tls.alpn_protocols = vec![b"h3".to_vec()];
        let config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).map_err(trouble)?));
        let (connection, send) = runtime.block_on(within(async {
            let endpoint = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).map_err(trouble)?;
            let connecting = endpoint.connect_with(config, address, "localhost").map_err(trouble)?;
            let connection = connecting.await.map_err(trouble)?;
            let (mut driver, send) =
                h3::client::new(h3_quinn::Connection::new(connection.clone())).await.map_err(trouble)?;
            tokio::spawn(async move { std::future::poll_fn(|context| driver.poll_close(context)).await });
            Ok((connection, send))
        }))?;
        Ok(Client { runtime, connection, send })
    }

    /// Sends a head.
    pub fn begin(&mut self, head: Request<()>) -> Result<Exchange, TestkitError> {
        let Client { runtime, send, .. } = self;
        let stream = runtime.block_on(within(async { send.send_request(head).await.map_err(trouble) }))?;
        Ok(Exchange { stream })
    }

    /// Sends a piece of a body.
    pub fn send(&self, exchange: &mut Exchange, piece: impl Into<Bytes>) -> Result<(), TestkitError> {
        let piece = piece.into();
        self.runtime.block_on(within(async { exchange.stream.send_data(piece).await.map_err(trouble) }))
    }

    /// Ends the request and waits for its answer.
    pub fn end(&self, mut exchange: Exchange) -> Result<Answer, TestkitError> {
        self.runtime.block_on(within(async {
            let stream = &mut exchange.stream;
            stream.finish().await.map_err(trouble)?;
            let head = stream.recv_response().await.map_err(trouble)?;
            let mut body = Vec::new();
            while let Some(mut data) = stream.recv_data().await.map_err(trouble)? {
                while data.has_remaining() {
                    let piece = data.chunk();
                    body.extend_from_slice(piece);
                    let count = piece.len();
                    data.advance(count);
                }
            }
            let trailers = stream.recv_trailers().await.map_err(trouble)?;
            let (head, ()) = head.into_parts();
            Ok(Answer { status: head.status, headers: head.headers, body, trailers })
        }))
    }

    /// A whole request, and its answer.
    pub fn exchange(&mut self, head: Request<()>, body: &[u8]) -> Result<Answer, TestkitError> {
        let mut exchange = self.begin(head)?;
        for piece in body.chunks(16 << 10) {
            self.send(&mut exchange, piece.to_vec())?;
        }
        self.end(exchange)
    }

    /// Sends bytes on a stream of their own, with `end` the end of it behind them, and waits for what comes.
    pub fn raw(&self, bytes: &[u8], end: bool) -> Result<Ended, TestkitError> {
        self.raw_pieces(&[bytes], Duration::ZERO, end)
    }

    /// As [`raw`](Client::raw), with a pause behind each piece.
    pub fn raw_pieces(&self, pieces: &[&[u8]], pause: Duration, end: bool) -> Result<Ended, TestkitError> {
        let closed = |error: &quinn::ConnectionError| {
            if let quinn::ConnectionError::ApplicationClosed(close) = error {
                Ok(Ended::Closed(close.error_code.into_inner()))
            } else {
                Err(trouble(error))
            }
        };
        self.runtime.block_on(within(async {
            let (mut send, mut receive) = match self.connection.open_bi().await {
                Ok(both) => both,
                Err(error) => return closed(&error),
            };
            for piece in pieces {
                // If the server refuses the rest, its answer comes the other way.
                let _ = send.write_all(piece).await;
                if !pause.is_zero() {
                    tokio::time::sleep(pause).await;
                }
            }
            if end {
                let _ = send.finish();
            }
            match receive.read_to_end(1 << 20).await {
                Ok(answer) => Ok(Ended::Answered(answer)),
                Err(quinn::ReadToEndError::Read(quinn::ReadError::Reset(code))) => {
                    Ok(Ended::Reset(code.into_inner()))
                }
                Err(quinn::ReadToEndError::Read(quinn::ReadError::ConnectionLost(error))) => closed(&error),
                Err(error) => Err(trouble(error)),
            }
        }))
    }

    /// Sends bytes on a stream of one direction. It may be that the server does not read them all.
    pub fn one_way(&self, bytes: &[u8]) -> Result<(), TestkitError> {
        self.runtime.block_on(within(async {
            let mut send = self.connection.open_uni().await.map_err(trouble)?;
            if send.write_all(bytes).await.is_ok() {
                let _ = send.finish();
            }
            Ok(())
        }))
    }

    /// Waits until the server has closed the connection.
    pub fn closed(&self) -> Result<(), TestkitError> {
        self.runtime.block_on(within(async {
            self.connection.closed().await;
            Ok(())
        }))
    }
}

async fn within<T>(work: impl Future<Output = Result<T, TestkitError>>) -> Result<T, TestkitError> {
    tokio::time::timeout(PATIENCE, work)
        .await
        .unwrap_or_else(|_| Err(TestkitError::Run("nothing happens".to_owned())))
}

fn trouble(error: impl std::fmt::Display) -> TestkitError {
    TestkitError::Run(format!("HTTP/3: {error}"))
}
