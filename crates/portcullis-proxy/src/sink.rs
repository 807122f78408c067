//! Writing an answer to the client, framed as HTTP/1 or as a stream of HTTP/2. The head has been composed, as
//! HTTP/1.

use std::borrow::Cow;
use std::io::IoSlice;
use std::time::Duration;

use portcullis_http::h1::{CHUNK_END, CONTINUE, is_hop_by_hop, write_chunk_size};
use portcullis_http::message::{Fields, ResponseHead};

use crate::abort::{Aborted, Client};
use crate::connection::Connection;
use crate::http2;
use crate::io::{Broken, write_all};
use crate::stream::Stream;
use crate::timer::{Elapsed, Timer};
use crate::trailers::last_chunk;

/// So much of a body is put behind its head, since the kernel takes a single buffer more cheaply than
/// several.
const COPIED_BYTES_MAX: usize = 1024;

/// The client's end of one answer.
pub(crate) struct Sink<'c> {
    client: Client<'c>,
    timer: &'c Timer,
    /// The head, until it has gone.
    head: &'c mut Vec<u8>,
    /// The longest time without progress.
    patience: Duration,
    /// Over HTTP/1, the body goes in chunks.
    chunked: bool,
    size: Vec<u8>,
}

impl<'c> Sink<'c> {
    /// For the answer whose head is in the connection's scratch buffer.
    pub(crate) fn new(connection: &'c mut Connection, patience: Duration, chunked: bool) -> Self {
        let Connection { stream, input, timer, output, half_close, .. } = connection;
        let client = Client { stream, input, half_close: *half_close };
        Sink { client, timer, head: output, patience, chunked, size: Vec::new() }
    }

    /// Runs `work` for at most `patience`, and no longer than there is a client.
    pub(crate) async fn wait<T>(
        &mut self,
        patience: Duration,
        work: impl Future<Output = T>,
    ) -> Result<Result<T, Aborted>, Elapsed> {
        self.timer.arm(patience);
        self.timer.run(self.client.unless_gone(work)).await
    }

    /// The head has not gone yet.
    pub(crate) fn has_head(&self) -> bool {
        !self.head.is_empty()
    }

    /// Sends what is there in one go: the head, if it has not gone, these pieces of the body, and with `end`
    /// the end of the body and its trailers.
    pub(crate) async fn send(&mut self, pieces: [&[u8]; 3], end: Option<Fields<'_>>) -> Result<(), Broken> {
        let length = pieces.iter().map(|piece| piece.len()).sum();
        if let Stream::Http2(_) = self.client.stream {
            // Boxed, so that connections of HTTP/1 do not hold the room for it.
            return Box::pin(self.send_http2(pieces, length, end)).await;
        }
        let mut after: &[u8] = b"";
        self.size.clear();
        if self.chunked && length > 0 {
            write_chunk_size(length, &mut self.size);
            after = CHUNK_END;
        }
        let last = match end {
            // The decoder has refused those that a reader might act upon.
            Some(trailers) if self.chunked => last_chunk(trailers.filter(|(name, _)| !is_hop_by_hop(name))),
            _ => Cow::Borrowed(&b""[..]),
        };
        let [first, second, third] = pieces;
        let body = [&self.size[..], first, second, third, after, &last];
        if !self.head.is_empty() && body.iter().map(|part| part.len()).sum::<usize>() <= COPIED_BYTES_MAX {
            body.iter().for_each(|part| self.head.extend_from_slice(part));
            write_all(self.client.stream, self.timer, self.patience, &mut [IoSlice::new(self.head)]).await?;
        } else {
            let parts = [&self.head[..], body[0], body[1], body[2], body[3], body[4], body[5]];
            write_all(self.client.stream, self.timer, self.patience, &mut parts.map(IoSlice::new)).await?;
        }
        self.head.clear();
        Ok(())
    }

    /// Sends an answer that has been composed whole, head and body.
    pub(crate) async fn send_composed(mut self) -> Result<(), Broken> {
        if let Stream::Http2(_) = self.client.stream {
            let mut head = std::mem::take(self.head);
            let at = head.windows(4).position(|four| four == b"\r\n\r\n").map_or(head.len(), |at| at + 4);
            let body = head.split_off(at);
            *self.head = head;
            let end = Some(Fields::default());
            return Box::pin(self.send_http2([&body, b"", b""], body.len(), end)).await;
        }
        write_all(self.client.stream, self.timer, self.patience, &mut [IoSlice::new(self.head)]).await
    }

    async fn send_http2(
        &mut self,
        pieces: [&[u8]; 3],
        length: usize,
        end: Option<Fields<'_>>,
    ) -> Result<(), Broken> {
        let Stream::Http2(pipe) = &mut *self.client.stream else { return Err(Broken::Failed) };
        let ends = end.is_some();
        let trailers = end.filter(|trailers| trailers.len() > 0);
        let trailers = trailers.map(|fields| http2::fields(fields.filter(|(name, _)| !is_hop_by_hop(name))));
        let trailers = trailers.map(|fields| fields.ok_or(Broken::Failed)).transpose()?;
        if !self.head.is_empty() {
            let (head, _) = http2::response(self.head).ok_or(Broken::Failed)?;
            self.head.clear();
            pipe.respond(head, ends && length == 0 && trailers.is_none()).map_err(|_| Broken::Failed)?;
        }
        if ends && trailers.is_none() {
            pipe.ends_after(length);
        }
        if length > 0 {
            let parts = &mut pieces.map(IoSlice::new);
            let sent = write_all(self.client.stream, self.timer, self.patience, parts).await;
            if let (Err(Broken::Late), Stream::Http2(pipe)) = (&sent, &mut *self.client.stream) {
                pipe.stalled();
            }
            sent?;
        }
        if let Stream::Http2(pipe) = &mut *self.client.stream
            && ends
        {
            pipe.finish(trailers).map_err(|_| Broken::Failed)
        } else {
            Ok(())
        }
    }
}

/// Tells a client that waits for it to send its body.
pub(crate) async fn send_continue(connection: &mut Connection, patience: Duration) -> Result<(), Broken> {
    send_interim(connection, patience, CONTINUE).await
}

/// Passes early hints on, as far as they are links: these are what clients act upon. Other interim answers
/// say nothing that a client waits for, and no rule sees them.
pub(crate) async fn send_hints(
    connection: &mut Connection,
    patience: Duration,
    hints: &ResponseHead,
) -> Result<(), Broken> {
    let mut head = b"HTTP/1.1 103 Early Hints\r\n".to_vec();
    for link in hints.header("link") {
        for part in [&b"Link: "[..], link, b"\r\n"] {
            head.extend_from_slice(part);
        }
    }
    head.extend_from_slice(b"\r\n");
    send_interim(connection, patience, &head).await
}

/// Sends an interim answer, composed as HTTP/1.
async fn send_interim(connection: &mut Connection, patience: Duration, head: &[u8]) -> Result<(), Broken> {
    let Connection { stream, timer, .. } = connection;
    match stream {
        Stream::Http2(pipe) => match http2::response(head) {
            Some((head, _)) => pipe.inform(head).map_err(|_| Broken::Failed),
            None => Ok(()),
        },
        stream @ (Stream::Plain(_) | Stream::Tls(_)) => {
            write_all(stream, timer, patience, &mut [IoSlice::new(head)]).await
        }
    }
}
