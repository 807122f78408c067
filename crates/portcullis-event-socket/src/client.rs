//! A connection as the listener has it.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use crate::line::{LINE_BYTES_MAX, Line};
use crate::metrics::Refused;

/// Bytes that are read of a connection before the next one has its turn.
const TURN_BYTES: usize = 64 << 10;

/// What a turn of a connection came to.
#[derive(Debug)]
pub(crate) enum Turn {
    /// It goes on.
    Open,
    /// It has ended; within a line, if that is given.
    Ended(Option<Refused>),
    /// It is to be ended, since its peer breaks the rules: how, for people.
    Broken(Refused, String),
}

/// A connection and what is known of its lines.
#[derive(Debug)]
pub(crate) struct Client {
    stream: UnixStream,
    process: i32,
    /// A line that has not ended yet.
    begun: Vec<u8>,
    taken: u64,
    told: u64,
}

impl Client {
    pub(crate) fn new(stream: UnixStream, process: i32) -> io::Result<Client> {
        stream.set_nonblocking(true)?;
        Ok(Client { stream, process, begun: Vec::new(), taken: 0, told: 0 })
    }

    /// The process that has connected.
    pub(crate) fn process(&self) -> i32 {
        self.process
    }

    /// Reads what is there, as far as one turn goes, and shows each whole line.
    pub(crate) fn turn(&mut self, piece: &mut Vec<u8>, mut take: impl FnMut(Line)) -> Turn {
        piece.resize(TURN_BYTES, 0);
        let length = match self.stream.read(piece) {
            Ok(0) => return Turn::Ended((!self.begun.is_empty()).then_some(Refused::Cut)),
            Ok(length) => length,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                return Turn::Open;
            }
            Err(_) => return Turn::Ended((!self.begun.is_empty()).then_some(Refused::Cut)),
        };
        let mut rest = piece.get(..length).unwrap_or_default();
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let (line, behind) = (&rest[..end], &rest[end + 1..]);
            if self.begun.len() + line.len() > LINE_BYTES_MAX {
                return self.too_long();
            }
            let read = match self.begun.is_empty() {
                true => Line::read(line),
                false => {
                    self.begun.extend_from_slice(line);
                    Line::read(&self.begun)
                }
            };
            self.begun.clear();
            match read {
                Ok(line) => take(line),
                Err(what) => {
                    self.tell();
                    return Turn::Broken(Refused::Invalid, what);
                }
            }
            self.taken += 1;
            rest = behind;
        }
        if self.begun.len() + rest.len() > LINE_BYTES_MAX {
            return self.too_long();
        }
        self.begun.extend_from_slice(rest);
        if self.begun.is_empty() {
            // A long line is no reason to keep its room.
            self.begun.shrink_to(TURN_BYTES);
        }
        self.tell();
        Turn::Open
    }

    fn too_long(&mut self) -> Turn {
        self.tell();
        Turn::Broken(Refused::TooLong, format!("a line of more than {LINE_BYTES_MAX} bytes"))
    }

    /// Tells how many lines were taken. A peer that does not read it misses numbers, of which the next one is
    /// as good.
    fn tell(&mut self) {
        if self.taken == self.told {
            return;
        }
        let number = format!("{}\n", self.taken);
        match self.stream.write(number.as_bytes()) {
            Ok(length) if length == number.len() => self.told = self.taken,
            // Half a number would be read as another one.
            Ok(_) => drop(self.stream.shutdown(Shutdown::Both)),
            Err(_) => {}
        }
    }
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
