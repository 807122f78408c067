//! A request body that streams on by itself, from a client's stream to an endpoint's, while the answer
//! streams back: calls of gRPC may go on in both directions as long as they like.

use std::cell::Cell;
use std::rc::Rc;

use tokio::io::AsyncWriteExt;
use tokio::task::AbortHandle;

use crate::buffer::Buffer;
use crate::connection::Connection;
use crate::stream::Stream;
use crate::upstream::UpstreamConnection;

/// A body on its way. Dropped, it is left where it is.
pub(crate) struct Pump {
    moved: Rc<Moved>,
    task: AbortHandle,
}

/// The progress of the task.
#[derive(Default)]
struct Moved {
    bytes: Cell<u64>,
    trailers: Cell<u32>,
    client_gone: Cell<bool>,
}

impl Pump {
    /// Takes over what is left of the body, if both sides are streams of HTTP/2.
    pub(crate) fn start(connection: &mut Connection, upstream: &mut UpstreamConnection) -> Option<Pump> {
        let (Stream::Http2(client), Stream::Http2(endpoint)) = (&mut connection.stream, &mut upstream.stream)
        else {
            return None;
        };
        let (mut from, mut to) = (client.take_receiver(), endpoint.take_sender());
        let spares = Rc::clone(&connection.worker.spares);
        let mut input = std::mem::replace(&mut connection.input, Buffer::new(spares));
        let moved = Rc::new(Moved::default());
        let told = Rc::clone(&moved);
        let task = tokio::task::spawn_local(async move {
            loop {
                while !input.unread().is_empty() {
                    // An endpoint that takes no more has answered, or its answer says what is wrong.
                    let Ok(count @ 1..) = to.write(input.unread()).await else { return };
                    told.bytes.set(told.bytes.get() + count as u64);
                    input.consume(count);
                }
                match input.fill(&mut from).await {
                    Ok(0) => {
                        let trailers = from.trailers().map_or(0, http::HeaderMap::len);
                        told.trailers.set(u32::try_from(trailers).unwrap_or(u32::MAX));
                        return drop(to.finish(None));
                    }
                    Ok(_) => {}
                    // The client has given up; nobody may take what was sent for all of it.
                    Err(_) => {
                        told.client_gone.set(true);
                        return to.give_up(h2::Reason::CANCEL);
                    }
                }
            }
        });
        Some(Pump { moved, task: task.abort_handle() })
    }

    /// Bytes that have gone on.
    pub(crate) fn bytes(&self) -> u64 {
        self.moved.bytes.get()
    }

    /// The client has given up within the body. What the endpoint says after that is not its failure.
    pub(crate) fn is_client_gone(&self) -> bool {
        self.moved.client_gone.get()
    }

    /// Fields that came behind it; they have not.
    pub(crate) fn trailers(&self) -> u32 {
        self.moved.trailers.get()
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        self.task.abort();
    }
}
