//! The bytes between Portcullis and an agent: those of a Unix socket, or of a call of gRPC. What they say is
//! the same.

use std::pin::Pin;
use std::task::{Context, Poll};

use portcullis_agent::Framing;
use portcullis_config::AgentAddress;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;

use super::call::Call;
use super::failed::{Ended, Failed};
use portcullis_tls::UpstreamTls;

/// A connection.
pub(super) enum Transport {
    Unix(UnixStream),
    Grpc(Box<Call>),
}

/// The framing of messages at this address.
pub(super) fn framing(address: &AgentAddress) -> Framing {
    match address {
        AgentAddress::Unix(_) => Framing::Length,
        AgentAddress::Grpc(..) => Framing::Grpc,
    }
}

impl Transport {
    /// Connects.
    pub(super) async fn open(address: &AgentAddress, tls: Option<&UpstreamTls>) -> Result<Transport, Ended> {
        match address {
            AgentAddress::Unix(socket) => {
                let stream = UnixStream::connect(socket).await.map_err(|_| Failed::Connect)?;
                Ok(Transport::Unix(stream))
            }
            AgentAddress::Grpc(endpoint, _) => {
                Ok(Transport::Grpc(Box::new(Call::open(endpoint, tls).await?)))
            }
        }
    }

    /// True if new exchanges may begin on it.
    pub(super) fn takes_more(&mut self) -> bool {
        match self {
            Transport::Unix(_) => true,
            Transport::Grpc(call) => call.takes_more(),
        }
    }

    /// Writes what there is room for at once. Only while nobody waits in
    /// [`poll_write`](Transport::poll_write).
    pub(super) fn write_now(&mut self, bytes: &[u8]) -> usize {
        match self {
            Transport::Unix(stream) => stream.try_write(bytes).unwrap_or(0),
            Transport::Grpc(call) => {
                let written = call.poll_write(&mut Context::from_waker(std::task::Waker::noop()), bytes);
                if let Poll::Ready(count) = written { count } else { 0 }
            }
        }
    }

    /// Writes once there is room.
    pub(super) fn poll_write(
        &mut self,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize, Ended>> {
        match self {
            Transport::Unix(stream) => {
                Pin::new(stream).poll_write(context, bytes).map_err(|_| Failed::Closed.into())
            }
            Transport::Grpc(call) => call.poll_write(context, bytes).map(Ok),
        }
    }

    /// Reads what has come; nothing if the agent has ended it in an orderly way.
    pub(super) fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<Result<(), Ended>> {
        match self {
            Transport::Unix(stream) => {
                Pin::new(stream).poll_read(context, into).map_err(|_| Failed::Closed.into())
            }
            Transport::Grpc(call) => call.poll_read(context, into),
        }
    }

    /// Nothing more is said; true if the agent has yet to say the same.
    pub(super) fn finish(&mut self) -> bool {
        match self {
            Transport::Unix(_) => false,
            Transport::Grpc(call) => call.finish(),
        }
    }
}
