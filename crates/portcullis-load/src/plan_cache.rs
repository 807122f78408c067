//! A file that keeps, from one run to the next, what loading rules takes long to find out.
//!
//! It holds facts about patterns and word lists, each under its own full text: nothing in it speaks of rules
//! or files. So there is no way to be served from a file that is out of date. A rule that changed has another
//! pattern, which is not in it and is read as if there were no file; one with the same pattern in another
//! rule set has the same facts. Only the program that derived them could differ, so the file names the
//! sources of that part of it.
//!
//! A wrong fact could blind a rule, so the file is taken only from its owner: the user of the process or
//! root, and no other user may write it. Its checksum tells damage; whatever else may be wrong is an
//! error, and then everything is found out anew.

mod format;

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use portcullis_compile::{Patterns, Used};

/// Longer files are not read. The CRS needs less than a megabyte.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// The file of one configuration.
#[derive(Debug)]
pub struct PlanCache {
    path: PathBuf,
    /// The content, if the file could be used.
    content: Vec<u8>,
}

/// The reason why a file is not used.
#[derive(Debug)]
pub enum PlanCacheError {
    /// It cannot be read.
    Read(io::Error),
    /// Others than the user of the process and root can write it.
    Foreign(&'static str),
    /// It is none, it is damaged, or it holds what cannot be.
    Damaged(&'static str),
    /// Another version of the program wrote it.
    OtherVersion,
}

impl fmt::Display for PlanCacheError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanCacheError::Read(error) => write!(f, "it cannot be read: {error}"),
            PlanCacheError::Foreign(why) => write!(f, "it cannot be trusted: {why}"),
            PlanCacheError::Damaged(why) => write!(f, "it is damaged: {why}"),
            PlanCacheError::OtherVersion => f.write_str("another version of the program wrote it"),
        }
    }
}

impl std::error::Error for PlanCacheError {}

impl PlanCache {
    /// Tells `patterns` what the file at `path` knows. A file that is not there is none that could be wrong;
    /// with one that cannot be used, patterns are read as without it, and the reason is for the log.
    pub fn open(path: &Path, patterns: &Patterns) -> (PlanCache, Option<PlanCacheError>) {
        let read = read(path).and_then(|content| match content {
            Some(content) => Ok((format::decode(&content)?, content)),
            None => Ok(Default::default()),
        });
        let (remembered, content, error) = match read {
            Ok((remembered, content)) => (remembered, content, None),
            Err(error) => (Default::default(), Vec::new(), Some(error)),
        };
        patterns.remembering(remembered);
        (PlanCache { path: path.to_owned(), content }, error)
    }

    /// Writes what was used since, if that is not what is in the file; true if it was written. The new file
    /// takes the old one's place in one step.
    pub fn keep(&self, used: &Used) -> io::Result<bool> {
        let content = format::encode(used);
        if content == self.content {
            return Ok(false);
        }
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.new", std::process::id()));
        let temporary = self.path.with_file_name(name);
        let written = write(&temporary, &content).and_then(|()| fs::rename(&temporary, &self.path));
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        let named = |error| io::Error::other(format!("cannot write {}: {error}", self.path.display()));
        written.map(|()| true).map_err(named)
    }
}

/// `None` if there is no file.
fn read(path: &Path) -> Result<Option<Vec<u8>>, PlanCacheError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(PlanCacheError::Read(error)),
    };
    let metadata = file.metadata().map_err(PlanCacheError::Read)?;
    if !metadata.is_file() {
        return Err(PlanCacheError::Foreign("it is not a regular file"));
    }
    let user = rustix::process::geteuid().as_raw();
    if ![0, user].contains(&metadata.uid()) {
        return Err(PlanCacheError::Foreign("another user owns it"));
    }
    if metadata.mode() & 0o022 != 0 {
        return Err(PlanCacheError::Foreign("others than its owner may write to it"));
    }
    let mut content = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut content).map_err(PlanCacheError::Read)?;
    match content.len() as u64 > FILE_BYTES_MAX {
        true => Err(PlanCacheError::Damaged("it is too long")),
        false => Ok(Some(content)),
    }
}

fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    // Not synced: after a crash the checksum tells.
    file.write_all(content)
}
