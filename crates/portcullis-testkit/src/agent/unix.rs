//! The echo agent at a Unix socket: a thread for each connection.

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use portcullis_agent::Framing;

use super::Options;
use super::decide::{Next, Talk};

pub(super) fn serve(socket: &Path, options: &Options) -> io::Result<()> {
    let _ = std::fs::remove_file(socket);
    let listener = UnixListener::bind(socket)?;
    for stream in listener.incoming() {
        let (stream, options) = (stream?, options.clone());
        std::thread::spawn(move || converse(stream, &options));
    }
    Ok(())
}

fn converse(mut stream: UnixStream, options: &Options) -> io::Result<()> {
    let mut talk = Talk::new(options, Framing::Length);
    let mut buffer = vec![0; 64 << 10];
    loop {
        let count = stream.read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        match talk.take(&buffer[..count]) {
            Next::Read | Next::GoAway => stream.write_all(&talk.out)?,
            Next::Close | Next::Status(..) => return Ok(()),
        }
        talk.out.clear();
    }
}
