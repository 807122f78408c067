//! A connection to a peer: TCP, with TLS or without.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::http2::Pipe;

/// Plain TCP or TLS over it, for either side, or one stream of an HTTP/2 connection.
pub(crate) enum Stream {
    /// Plain.
    Plain(TcpStream),
    /// TLS, we are the server or the client.
    Tls(Box<tokio_rustls::TlsStream<TcpStream>>),
    /// The bodies of one request and its answer.
    Http2(Box<Pipe>),
}

impl Stream {
    /// The socket, unless others use it as well.
    pub(crate) fn tcp(&self) -> Option<&TcpStream> {
        match self {
            Stream::Plain(tcp) => Some(tcp),
            Stream::Tls(tls) => Some(tls.get_ref().0),
            Stream::Http2(_) => None,
        }
    }

    /// The peer has agreed to HTTP/2 in the TLS handshake.
    pub(crate) fn is_http2_agreed(&self) -> bool {
        match self {
            Stream::Tls(tls) => tls.get_ref().1.alpn_protocol() == Some(b"h2"),
            Stream::Plain(_) | Stream::Http2(_) => false,
        }
    }
}

/// The one that is not empty: `send` costs a tenth of a microsecond less than `writev`.
fn only<'s>(slices: &'s [io::IoSlice<'_>]) -> Option<&'s [u8]> {
    let mut filled = slices.iter().filter(|slice| !slice.is_empty());
    let first = filled.next()?;
    filled.next().is_none().then_some(first)
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(tcp) => Pin::new(tcp).poll_read(context, into),
            Stream::Tls(tls) => Pin::new(tls).poll_read(context, into),
            Stream::Http2(pipe) => Pin::new(pipe).poll_read(context, into),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(tcp) => Pin::new(tcp).poll_write(context, bytes),
            Stream::Tls(tls) => Pin::new(tls).poll_write(context, bytes),
            Stream::Http2(pipe) => Pin::new(pipe).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(tcp) => match only(slices) {
                Some(slice) => Pin::new(tcp).poll_write(context, slice),
                None => Pin::new(tcp).poll_write_vectored(context, slices),
            },
            Stream::Tls(tls) => Pin::new(tls).poll_write_vectored(context, slices),
            Stream::Http2(pipe) => Pin::new(pipe).poll_write_vectored(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(tcp) => Pin::new(tcp).poll_flush(context),
            Stream::Tls(tls) => Pin::new(tls).poll_flush(context),
            Stream::Http2(pipe) => Pin::new(pipe).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(tcp) => Pin::new(tcp).poll_shutdown(context),
            Stream::Tls(tls) => Pin::new(tls).poll_shutdown(context),
            Stream::Http2(pipe) => Pin::new(pipe).poll_shutdown(context),
        }
    }
}
