//! Syslog: RFC 5424 over TCP (RFC 6587), TLS (RFC 5425), UDP (RFC 5426) and Unix sockets.
//!
//! Receivers of syslog do not answer. A message counts as sent when the system has taken all of it; what a
//! receiver that dies had not read by then is lost without a report. A message of which a part went out is
//! sent again whole, on a new connection; the part alone never goes on.

mod message;
mod transport;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use portcullis_config::Syslog;
use portcullis_event::Event;

use crate::metrics::TOO_LARGE;
use crate::output::{Batches, Failure, Outcome};
use message::Messages;
use transport::{Connection, Transport};

/// Events that are written between two looks at the queue.
const BATCH_EVENTS: usize = 256;
/// Messages over a stream are written in pieces of this size.
const WRITE_BYTES: usize = 64 << 10;

pub(crate) struct Output {
    messages: Messages,
    transport: Transport,
    octet_counting: bool,
    connection: Option<Connection>,
}

impl Output {
    pub(crate) fn new(settings: &Syslog, timeout: Duration, name: &str) -> io::Result<Output> {
        Ok(Output {
            messages: Messages::new(settings),
            transport: Transport::new(&settings.address, timeout, name)?,
            octet_counting: settings.octet_counting,
            connection: None,
        })
    }

    fn connection(&mut self) -> io::Result<&mut Connection> {
        // A receiver that closed in the meantime is noticed before anything is given to its dead connection.
        let open = self.connection.take().filter_map_closed();
        let connection = match open {
            Some(connection) => connection,
            None => self.transport.connect()?,
        };
        Ok(self.connection.insert(connection))
    }

    /// Writes messages; the number of those that are out, and the error that stopped it.
    fn write(&mut self, messages: &[Vec<u8>]) -> (usize, io::Result<()>) {
        let is_stream = self.transport.is_stream();
        let connection = match self.connection() {
            Ok(connection) => connection,
            Err(error) => return (0, Err(error)),
        };
        let mut out = 0;
        while out < messages.len() {
            let mut end = out + 1;
            let mut length = messages[out].len();
            while is_stream && end < messages.len() && length + messages[end].len() <= WRITE_BYTES {
                length += messages[end].len();
                end += 1;
            }
            let piece = messages[out..end].concat();
            let (written, result) = connection.write(&piece);
            // Those that went out as a whole.
            let mut left = written;
            let whole = messages[out..end].iter().take_while(|message| {
                let fits = message.len() <= left;
                left = left.saturating_sub(message.len());
                fits
            });
            out += whole.count();
            if let Err(error) = result {
                self.connection = None;
                return (out, Err(error));
            }
        }
        (out, Ok(()))
    }
}

/// Drops a connection that the other side closed.
trait FilterClosed {
    fn filter_map_closed(self) -> Option<Connection>;
}

impl FilterClosed for Option<Connection> {
    fn filter_map_closed(self) -> Option<Connection> {
        let mut connection = self?;
        (!connection.is_closed()).then_some(connection)
    }
}

impl crate::output::Output for Output {
    fn batches(&self) -> Batches {
        Batches { events_max: BATCH_EVENTS, time: Duration::ZERO }
    }

    fn deliver(&mut self, events: &[Arc<Event>]) -> Outcome {
        let frame = |message: String| match (self.transport.is_stream(), self.octet_counting) {
            (false, _) => message.into_bytes(),
            (true, true) => format!("{} {message}", message.len()).into_bytes(),
            (true, false) => format!("{message}\n").into_bytes(),
        };
        let framed: Vec<Option<Vec<u8>>> =
            events.iter().map(|event| self.messages.message(event).map(&frame)).collect();
        let fitting: Vec<Vec<u8>> = framed.iter().flatten().cloned().collect();
        let (sent, result) = self.write(&fitting);
        let mut outcome = Outcome { sent: sent as u64, ..Outcome::default() };
        // Those that fit up to the first that is not out, and those between them that do not.
        let mut left = sent;
        for message in &framed {
            match message {
                Some(_) if left > 0 => left -= 1,
                Some(_) => break,
                None => outcome.dropped.push((TOO_LARGE, 1)),
            }
            outcome.settled += 1;
        }
        if let Err(error) = result {
            let why = format!("{}: {error}", self.transport);
            if is_too_long(&error) && !self.transport.is_stream() {
                // The system takes no datagram of this length: the next one may be shorter.
                outcome.settled += 1;
                outcome.dropped.push((TOO_LARGE, 1));
            } else {
                outcome.failure = Some(Failure { why, after: None });
            }
        }
        outcome
    }
}

fn is_too_long(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::MSGSIZE.raw_os_error())
}
