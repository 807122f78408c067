use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// The size at which a file is rotated, and the number of files to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// A file that would grow beyond this is put aside first. A single batch may be larger.
    pub bytes_max: u64,
    /// Number of files to keep beside the current one: `events.jsonl.1` is the youngest. 0 starts the file
    /// afresh.
    pub keep: u32,
}

/// A file that is appended to.
#[derive(Debug)]
pub(crate) struct LogFile {
    path: PathBuf,
    rotation: Option<Rotation>,
    file: File,
    bytes: u64,
    /// Permissions of a file that is made.
    mode: u32,
    /// Longest wait for the reader of a pipe.
    pipe_wait: Duration,
    /// It has waited so long for nothing.
    is_stuck: bool,
}

/// As programs make files that say nothing about it.
const MODE: u32 = 0o640;

/// Longest wait for the reader of a pipe, by a thread that writes for nobody but logs.
const PIPE_WAIT: Duration = Duration::from_secs(1);
/// Between two looks at a pipe that is full.
const PIPE_PAUSE: Duration = Duration::from_millis(2);

impl LogFile {
    pub(crate) fn open(path: &Path, rotation: Option<Rotation>) -> io::Result<LogFile> {
        LogFile::open_with_mode(path, rotation, MODE)
    }

    pub(crate) fn open_with_mode(path: &Path, rotation: Option<Rotation>, mode: u32) -> io::Result<LogFile> {
        let (file, bytes) = open(path, mode)?;
        let path = path.to_path_buf();
        Ok(LogFile { path, rotation, file, bytes, mode, pipe_wait: PIPE_WAIT, is_stuck: false })
    }

    /// The same with another longest wait for the reader of a pipe.
    pub(crate) fn with_pipe_wait(self, pipe_wait: Duration) -> LogFile {
        LogFile { pipe_wait, ..self }
    }

    /// Bytes in it.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes back what was written beyond `bytes`, as far as the file allows it.
    pub(crate) fn cut(&mut self, bytes: u64) {
        if self.bytes > bytes && self.file.set_len(bytes).is_ok() {
            self.bytes = bytes;
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the path again, for a file that was moved away. On failure the old file stays in use.
    pub(crate) fn reopen(&mut self) -> io::Result<()> {
        (self.file, self.bytes) = open(&self.path, self.mode)?;
        self.is_stuck = false;
        Ok(())
    }

    /// Opens the path again if another file has that name by now, or none.
    pub(crate) fn follow(&mut self) -> io::Result<()> {
        let held = self.file.metadata()?;
        match std::fs::metadata(&self.path) {
            Ok(named) if (named.dev(), named.ino()) == (held.dev(), held.ino()) => Ok(()),
            _ => self.reopen(),
        }
    }

    /// Puts the file aside if `more` bytes would take it over its limit.
    pub(crate) fn make_room(&mut self, more: usize) -> io::Result<()> {
        let Some(rotation) = self.rotation else { return Ok(()) };
        if self.bytes == 0 || self.bytes + more as u64 <= rotation.bytes_max {
            return Ok(());
        }
        if rotation.keep == 0 {
            self.file.set_len(0)?;
            self.bytes = 0;
            return Ok(());
        }
        for n in (1..rotation.keep).rev() {
            match std::fs::rename(numbered(&self.path, n), numbered(&self.path, n + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        std::fs::rename(&self.path, numbered(&self.path, 1))?;
        self.reopen()
    }
}

impl Write for LogFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut waited = Duration::ZERO;
        let n = loop {
            match self.file.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    // Once nobody has read for so long, no other record waits for a reader.
                    if self.is_stuck || waited >= self.pipe_wait {
                        self.is_stuck = true;
                        return Err(io::Error::new(error.kind(), "nobody reads from this pipe"));
                    }
                    thread::sleep(PIPE_PAUSE);
                    waited += PIPE_PAUSE;
                }
                result => break result?,
            }
        };
        self.is_stuck = false;
        self.bytes += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn numbered(path: &Path, n: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{n}"));
    PathBuf::from(name)
}

/// Opens for appending; ends the last line if a crash of an earlier process left it open.
///
/// The path may lead to a pipe: opening it does not wait for a reader, and writing to one that nobody empties
/// is an error, so that records are lost and counted in place of the thread that writes all others.
fn open(path: &Path, mode: u32) -> io::Result<(File, u64)> {
    let appending = || {
        let mut options = OpenOptions::new();
        options.append(true).create(true).mode(mode).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
        options
    };
    let mut file = appending().read(true).open(path).or_else(|error| {
        // A log directory may allow appending only.
        if error.kind() == io::ErrorKind::PermissionDenied { appending().open(path) } else { Err(error) }
    })?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Ok((file, 0));
    }
    let mut bytes = metadata.len();
    let mut last = [b'\n'];
    if bytes > 0 && file.seek(SeekFrom::End(-1)).is_ok() && file.read(&mut last).is_ok() && last != *b"\n" {
        // Failing here means a full disk, which the first batch will meet and count.
        bytes += file.write(b"\n").unwrap_or(0) as u64;
    }
    Ok((file, bytes))
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Instant;

    use super::*;

    /// With a reader or without: opening and writing end, and what is written is there to read.
    #[test]
    fn a_pipe_holds_nobody_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let began = Instant::now();
        let mut log = LogFile::open(&path, None).unwrap().with_pipe_wait(Duration::from_millis(20));
        let line = [b'a'; 1024];
        let kept = (0..2_000).take_while(|_| log.write_all(&line).is_ok()).count();
        assert!((1..2_000).contains(&kept), "a pipe holds so much: {kept}");
        for _ in 0..2_000 {
            assert_eq!(log.write_all(&line).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        }
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
        let mut reader = File::open(&path).unwrap();
        let mut read = vec![0; kept * line.len()];
        reader.read_exact(&mut read).unwrap();
        assert!(read.iter().all(|byte| *byte == b'a'));
        // A reader that is slower than the writer loses nothing.
        let reading = thread::spawn(move || {
            let mut read = Vec::new();
            while !read.ends_with(b"end") {
                let mut piece = [0; 4096];
                let count = reader.read(&mut piece).unwrap();
                read.extend_from_slice(&piece[..count]);
            }
            read.len()
        });
        let mut log = log.with_pipe_wait(Duration::from_secs(30));
        (0..500).for_each(|_| log.write_all(&line).unwrap());
        log.write_all(b"end").unwrap();
        assert_eq!(reading.join().unwrap(), 500 * line.len() + 3);
    }
}
