//! A connection to a listener, made anew when it breaks.

use std::io::{self, BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest time for a listener to take what is sent.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest line of a listener: a number.
const NUMBER_BYTES_MAX: u64 = 21;

/// How an attempt to send failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failed {
    /// Nothing of it has left; it may be sent again.
    Before,
    /// So many of the last lines are not known to have been taken.
    Midway(u64),
}

/// A listener and the connection to it, if there is one.
#[derive(Debug)]
pub(crate) struct Connection {
    path: PathBuf,
    open: Option<Open>,
    error: Option<io::Error>,
}

#[derive(Debug)]
struct Open {
    stream: BufReader<UnixStream>,
    /// Lines that were taken.
    taken: u64,
}

impl Connection {
    pub(crate) fn new(path: PathBuf) -> Connection {
        Connection { path, open: None, error: None }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Why it is not open.
    pub(crate) fn error(&self) -> Option<&io::Error> {
        self.error.as_ref().filter(|_| self.open.is_none())
    }

    /// Sends so many lines and waits until they are taken.
    pub(crate) fn send(&mut self, parts: &[&[u8]], lines: u64) -> Result<(), Failed> {
        // A listener that is gone is noticed by the first byte that it does not take.
        let was_open = self.is_open();
        match self.try_send(parts, lines) {
            Err(Failed::Before) if was_open => self.try_send(parts, lines),
            result => result,
        }
    }

    fn try_send(&mut self, parts: &[&[u8]], lines: u64) -> Result<(), Failed> {
        let mut open = match self.open.take() {
            Some(open) => open,
            None => match connect(&self.path) {
                Ok(stream) => Open { stream: BufReader::new(stream), taken: 0 },
                Err(error) => return self.fail(error, Failed::Before),
            },
        };
        let expected = open.taken + lines;
        let mut has_begun = false;
        for part in parts {
            if let Err((error, written)) = write(open.stream.get_mut(), part) {
                if !has_begun && !written {
                    return self.fail(error, Failed::Before);
                }
                // It may have told what it took before it went.
                let _ = open.wait_for(expected);
                return self.fail(error, Failed::Midway(expected.saturating_sub(open.taken)));
            }
            has_begun |= !part.is_empty();
        }
        match open.wait_for(expected) {
            Ok(()) => {
                self.open = Some(open);
                Ok(())
            }
            Err(error) => self.fail(error, Failed::Midway(expected.saturating_sub(open.taken))),
        }
    }

    fn fail(&mut self, error: io::Error, how: Failed) -> Result<(), Failed> {
        self.error = Some(error);
        Err(how)
    }
}

impl Open {
    /// Reads numbers until all lines are taken.
    fn wait_for(&mut self, expected: u64) -> io::Result<()> {
        while self.taken < expected {
            let mut line = String::new();
            self.stream.by_ref().take(NUMBER_BYTES_MAX).read_line(&mut line)?;
            let number = line.strip_suffix('\n').and_then(|number| number.parse().ok());
            match number.filter(|taken| (self.taken + 1..=expected).contains(taken)) {
                Some(taken) => self.taken = taken,
                None if line.is_empty() => return Err(ErrorKind::UnexpectedEof.into()),
                None => return Err(io::Error::new(ErrorKind::InvalidData, "it is no event socket")),
            }
        }
        Ok(())
    }
}

fn connect(path: &Path) -> io::Result<UnixStream> {
    let stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Writes all; an error comes with whether anything had been written before.
fn write(stream: &mut UnixStream, mut part: &[u8]) -> Result<(), (io::Error, bool)> {
    let mut has_begun = false;
    while !part.is_empty() {
        match stream.write(part) {
            Ok(0) => return Err((ErrorKind::WriteZero.into(), has_begun)),
            Ok(length) => {
                has_begun = true;
                part = part.get(length..).unwrap_or_default();
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err((error, has_begun)),
        }
    }
    Ok(())
}
