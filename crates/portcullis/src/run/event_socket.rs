//! The socket over which recent events are asked for: a line with a request id, or an empty one for the last
//! events; JSON lines come back.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::recent::Recent;
use crate::runtime_folder;

/// For each part of a question or an answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Of a question.
const QUESTION_BYTES_MAX: u64 = 256;
/// Events in answer to an empty question.
const LISTED: usize = 100;

/// A socket that is served. Dropped, it is gone.
#[derive(Debug)]
pub struct EventSocket(PathBuf);

impl EventSocket {
    /// Serves `recent` in `folder`, on a thread of its own.
    pub fn open(folder: &Path, recent: Arc<Recent>) -> io::Result<EventSocket> {
        runtime_folder::make(folder)?;
        // Removes what processes left behind that did not end by themselves.
        let _ = runtime_folder::sockets(folder)?;
        let path = runtime_folder::socket(folder, std::process::id());
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path)?;
        let socket = EventSocket(path);
        let serve = move || {
            for stream in listener.incoming() {
                match stream {
                    // Whatever goes wrong with one who asks, the next may ask.
                    Ok(stream) => drop(answer(&stream, &recent)),
                    Err(_) => std::thread::sleep(Duration::from_millis(100)),
                }
            }
        };
        std::thread::Builder::new().name("events".to_owned()).spawn(serve)?;
        Ok(socket)
    }
}

impl Drop for EventSocket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn answer(stream: &UnixStream, recent: &Recent) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut question = String::new();
    BufReader::new(stream.take(QUESTION_BYTES_MAX)).read_line(&mut question)?;
    let lines = match question.trim() {
        "" => recent.last(LISTED),
        id => recent.of(id).into_iter().collect(),
    };
    let mut stream = stream;
    for line in lines {
        stream.write_all(line.as_bytes())?;
        stream.write_all(b"\n")?;
    }
    Ok(())
}

/// Asks the instance whose socket this is. Each event is one JSON text.
pub fn ask(socket: &Path, question: &str) -> io::Result<Vec<String>> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(3 * PATIENCE))?;
    stream.write_all(format!("{question}\n").as_bytes())?;
    BufReader::new(stream).lines().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::recent::Keeper;

    #[test]
    fn events_are_asked_for_by_their_id() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("events");
        let recent = Recent::new(1 << 20);
        let mut keeper = Keeper::new(Arc::clone(&recent), false);
        for number in 0..150 {
            writeln!(keeper, "{{\"schema\":1,\"request_id\":\"r{number}\"}}").unwrap();
        }
        let socket = EventSocket::open(&folder, recent).unwrap();
        // One that says nothing, one that says too much, and one that is gone at once delay no other client
        // for long.
        let silent = UnixStream::connect(&socket.0).unwrap();
        let _ = UnixStream::connect(&socket.0).unwrap().write_all(&[b'x'; 100_000]);
        drop(UnixStream::connect(&socket.0).unwrap());
        assert_eq!(ask(&socket.0, "r7").unwrap(), ["{\"schema\":1,\"request_id\":\"r7\"}"]);
        assert_eq!(ask(&socket.0, "r1000").unwrap(), Vec::<String>::new());
        let listed = ask(&socket.0, "").unwrap();
        assert_eq!((listed.len(), listed[99].contains("r149")), (LISTED, true));
        drop((silent, socket));
        assert_eq!(runtime_folder::sockets(&folder).unwrap(), Vec::<PathBuf>::new());
    }
}
