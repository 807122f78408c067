//! Rule files as they were when rules were loaded, to tell whether they are still the same.

use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};

use portcullis_load::RuleFiles;
use portcullis_seclang::{Files, RemoteFile};
use sha2::{Digest, Sha256};

/// Something that loading rules asked the file system for, and the answer. An answer that was an error is
/// none.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// The content of a file, by its hash.
    File(PathBuf, Option<[u8; 32]>),
    /// The files that a pattern names.
    Pattern(PathBuf, Option<Vec<PathBuf>>),
}

impl Read {
    /// True if the answer would be the same now.
    pub(crate) fn is_current(&self) -> bool {
        match self {
            Read::File(path, before) => hash(&RuleFiles.read(path)) == *before,
            Read::Pattern(pattern, before) => RuleFiles.expand(pattern).ok() == *before,
        }
    }
}

/// Reads rule files and keeps what was read. Files of servers are not kept: their checksum, which is part of
/// the rules, says that they are the same.
#[derive(Debug, Default)]
pub(crate) struct Recorder(RefCell<Vec<Read>>);

impl Recorder {
    pub(crate) fn into_reads(self) -> Vec<Read> {
        self.0.into_inner()
    }
}

impl Files for Recorder {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let answer = RuleFiles.read(path);
        self.0.borrow_mut().push(Read::File(path.to_owned(), hash(&answer)));
        answer
    }

    fn expand(&self, pattern: &Path) -> io::Result<Vec<PathBuf>> {
        let answer = RuleFiles.expand(pattern);
        let kept = answer.as_ref().ok().cloned();
        self.0.borrow_mut().push(Read::Pattern(pattern.to_owned(), kept));
        answer
    }

    fn fetch(&self, remote: &RemoteFile) -> io::Result<Vec<u8>> {
        RuleFiles.fetch(remote)
    }
}

fn hash(answer: &io::Result<Vec<u8>>) -> Option<[u8; 32]> {
    answer.as_ref().ok().map(|content| Sha256::digest(content).into())
}
