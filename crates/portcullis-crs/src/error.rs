//! The reasons why a release is not installed.

use std::fmt;
use std::path::PathBuf;

use crate::{Version, limits};

/// The reason why a release is not installed. Nothing of it is left on disk.
#[derive(Debug)]
pub enum Error {
    /// The archive cannot be read or downloaded.
    Fetch {
        /// URL or path.
        from: String,
        /// The reason.
        why: String,
    },
    /// It is longer than [`limits::ARCHIVE_BYTES_MAX`].
    TooLong(String),
    /// It cannot be unpacked: damaged, over a limit, or with names that lead out of it.
    Archive(String),
    /// It has no CRS in it.
    NotACrs(&'static str),
    /// It is another version than the one that was asked for.
    OtherVersion {
        /// The version that was asked for.
        wanted: Version,
        /// The version of its rules.
        found: Version,
    },
    /// Its checksum is not the one that was given.
    Checksum {
        /// The SHA-256 that was given.
        wanted: String,
        /// The SHA-256 of the archive.
        found: String,
    },
    /// Nothing says that it is genuine: the program does not know the release, and no checksum was given.
    Unverified {
        /// The version of its rules.
        version: Version,
        /// The SHA-256 of the archive.
        sha256: String,
        /// Whether the program knows a release of that version, with other rules.
        known: bool,
    },
    /// Its rules do not compile.
    Rules(String),
    /// The folder of that version is there with other rules.
    Other {
        /// The folder.
        folder: PathBuf,
    },
    /// A file or folder cannot be written.
    Write {
        /// The path.
        path: PathBuf,
        /// The reason.
        why: String,
    },
}

impl Error {
    pub(crate) fn write(path: impl Into<PathBuf>, why: impl fmt::Display) -> Error {
        Error::Write { path: path.into(), why: why.to_string() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Fetch { from, why } => write!(
                f,
                "cannot get {from}: {why}\n  help: on a machine that reaches it, download the archive, then name the \
                 file: `portcullis crs install --from FILE`"
            ),
            Error::TooLong(from) => {
                write!(
                    f,
                    "{from} is longer than {} MiB, no release of the CRS is",
                    limits::ARCHIVE_BYTES_MAX >> 20
                )
            }
            Error::Archive(why) => write!(
                f,
                "the archive cannot be unpacked: {why}\n  help: it has to be a .tar.gz or .zip of a CRS release"
            ),
            Error::NotACrs(missing) => write!(
                f,
                "the archive is no release of the CRS: {missing}\n  help: take coreruleset-VERSION-minimal.tar.gz \
                 of the CRS project"
            ),
            Error::OtherVersion { wanted, found } => {
                write!(f, "the archive has CRS {found}, not {wanted}; name that version, or another archive")
            }
            Error::Checksum { wanted, found } => write!(
                f,
                "the archive has the SHA-256 {found}, not {wanted}: it is damaged, changed, or another file; nothing \
                 was installed"
            ),
            Error::Unverified { version, sha256, known } => {
                if *known {
                    write!(f, "the rules of the archive are not those of the CRS release {version}")?;
                } else {
                    write!(f, "this program does not know CRS {version}, so the archive needs a checksum")?;
                }
                write!(
                    f,
                    "\n  help: compare the SHA-256 of the archive, {sha256}, with a source that you trust (or verify \
                     its signature with gpg), then add `--sha256 {sha256}`"
                )
            }
            Error::Rules(report) => {
                write!(f, "{report}\nthe rules of the release do not compile; nothing was installed")
            }
            Error::Other { folder } => write!(
                f,
                "{0} is there, with other rules than this release; it was left alone\n  help: move {0} away, or \
                 install to another folder with --to DIR",
                folder.display()
            ),
            Error::Write { path, why } => write!(
                f,
                "cannot write {}: {why}\n  help: run it as a user who may, or choose another folder with --to DIR",
                path.display()
            ),
        }
    }
}

impl std::error::Error for Error {}
