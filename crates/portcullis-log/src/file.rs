use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

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
}

/// As programs make files that say nothing about it.
const MODE: u32 = 0o640;

impl LogFile {
    pub(crate) fn open(path: &Path, rotation: Option<Rotation>) -> io::Result<LogFile> {
        LogFile::open_with_mode(path, rotation, MODE)
    }

    pub(crate) fn open_with_mode(path: &Path, rotation: Option<Rotation>, mode: u32) -> io::Result<LogFile> {
        let (file, bytes) = open(path, mode)?;
        Ok(LogFile { path: path.to_path_buf(), rotation, file, bytes, mode })
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
        let n = self.file.write(bytes)?;
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
fn open(path: &Path, mode: u32) -> io::Result<(File, u64)> {
    let mut file =
        OpenOptions::new().append(true).create(true).read(true).mode(mode).open(path).or_else(|error| {
            // A log directory may allow appending only.
            if error.kind() == io::ErrorKind::PermissionDenied {
                OpenOptions::new().append(true).create(true).mode(mode).open(path)
            } else {
                Err(error)
            }
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
