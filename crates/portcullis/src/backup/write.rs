//! The archive of an instance, whether it runs or not. Databases are copied by SQLite, each as it was at one
//! moment; other files are never changed in place, so that a copy of one is whole.

use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use data_encoding::HEXLOWER;
use portcullis_event::Timestamp;
use portcullis_event_store::Store;
use rusqlite::{Connection, OpenFlags, backup::Backup};
use rustix::fs::OFlags;
use sha2::{Digest as _, Sha256};

use super::manifest::{self, FILES_MAX, Manifest, Part};
use super::sum::sum;
use crate::{data_folder, new_file};

/// Pages of a database that are copied between two chances for the writer.
const PAGES: std::ffi::c_int = 4096;
/// How long the lock of another process on a database may last.
const BUSY: Duration = Duration::from_secs(10);
/// Deeper folders are not ours.
const DEPTH_MAX: usize = 6;

/// What is backed up.
pub struct Source {
    pub data: PathBuf,
    pub document: Option<PathBuf>,
    pub acme: Option<PathBuf>,
}

/// What was written.
#[derive(Debug)]
pub struct Written {
    pub files: usize,
    pub bytes: u64,
}

/// Files that are copied, in a folder that goes away, and their list.
struct Staged {
    folder: tempfile::TempDir,
    files: Vec<manifest::File>,
}

/// Writes an archive: whole or not at all, for its owner alone, and only where nothing is.
pub fn archive(source: &Source, to: &Path) -> Result<Written, String> {
    let folder = new_file::parent(to);
    let wrong = |what: &dyn Display| format!("{}: {what}", to.display());
    if to.symlink_metadata().is_ok() {
        return Err(wrong(&"it is there already, and was left alone; name another file"));
    }
    // Copies have room where the archive has, and end with this process. Both have modes 0700 and 0600.
    let staging = tempfile::Builder::new().prefix(".portcullis-backup-").tempdir_in(folder);
    let folder_of_copies = staging.map_err(|error| wrong(&new_file::not_made(folder, &error)))?;
    let mut staged = Staged { folder: folder_of_copies, files: Vec::new() };
    if let Some(document) = &source.document {
        let name = document.file_name().unwrap_or_default().to_string_lossy().into_owned();
        staged.copy(Part::Document, name, document)?;
    }
    if let Some(acme) = source.acme.as_deref().filter(|folder| folder.is_dir()) {
        staged.tree(Part::Acme, acme, "", 0)?;
    }
    staged.tree(Part::Data, &source.data, "", 0)?;
    staged.store("events", &data_folder::events(&source.data))?;
    staged.store("sample", &data_folder::sample(&source.data))?;
    let file = tempfile::Builder::new().prefix(".portcullis-backup-").tempfile_in(folder);
    let mut file = file.map_err(|error| wrong(&new_file::not_made(folder, &error)))?;
    staged.pack(file.as_file_mut()).map_err(|error| wrong(&error))?;
    file.persist_noclobber(to).map_err(|error| wrong(&error.error))?;
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(|error| wrong(&error))?;
    let bytes = fs::metadata(to).map_err(|error| wrong(&error))?.len();
    Ok(Written { files: staged.files.len(), bytes })
}

impl Staged {
    /// The files of a folder. What SQLite keeps beside a database is in the copy of the database; the stores
    /// of events are copied on their own; names that begin with a dot are of files that are being written.
    fn tree(&mut self, part: Part, folder: &Path, below: &str, depth: usize) -> Result<(), String> {
        let wrong = |error: io::Error| format!("{}: {error}", folder.display());
        if depth > DEPTH_MAX {
            return Err(format!("{}: folders are nested too deeply", folder.display()));
        }
        let mut entries: Vec<_> =
            fs::read_dir(folder).map_err(wrong)?.collect::<Result<_, _>>().map_err(wrong)?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let (name, kind) = (entry.file_name(), entry.file_type().map_err(wrong)?);
            let name = name.to_str().ok_or_else(|| format!("{}: a name is not UTF-8", folder.display()))?;
            let path = if below.is_empty() { name.to_owned() } else { format!("{below}/{name}") };
            let is_passing = name.starts_with('.') || name.ends_with("-wal") || name.ends_with("-shm");
            let is_store = part == Part::Data && matches!(&*path, "events" | "sample");
            match () {
                () if is_passing || is_store => {}
                () if kind.is_dir() => self.tree(part, &entry.path(), &path, depth + 1)?,
                () if kind.is_file() && name.ends_with(".db") => self.database(part, path, &entry.path())?,
                () if kind.is_file() => self.copy(part, path, &entry.path())?,
                () => {}
            }
        }
        Ok(())
    }

    /// One of the stores of events, if it is there.
    fn store(&mut self, name: &str, folder: &Path) -> Result<(), String> {
        if !folder.is_dir() {
            return Ok(());
        }
        let wrong = |error: &dyn Display| format!("{}: {error}", folder.display());
        let to = self.folder.path().join(name);
        let copied = Store::new(folder).backup(&to).map_err(|error| wrong(&error))?;
        if let Some(skipped) = copied.skipped.first() {
            return Err(wrong(skipped));
        }
        let mut names: Vec<_> = fs::read_dir(&to)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| wrong(&error))?
            .iter()
            .map(fs::DirEntry::file_name)
            .collect();
        names.sort();
        for file in names {
            let path = format!("{name}/{}", file.to_string_lossy());
            let target = self.next()?;
            fs::rename(to.join(file), &target).map_err(|error| wrong(&error))?;
            self.note(Part::Data, path, &target)?;
        }
        Ok(())
    }

    fn database(&mut self, part: Part, path: String, from: &Path) -> Result<(), String> {
        let target = self.next()?;
        let copy = || -> Result<(), String> {
            let said = |error: rusqlite::Error| error.to_string();
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NOFOLLOW;
            // A database of WAL mode needs its files beside it, which only a writer makes.
            let source = Connection::open_with_flags(from, flags).map_err(said)?;
            source.busy_timeout(BUSY).map_err(said)?;
            portcullis_files::make_private(&target).map_err(|error| error.to_string())?;
            let mut copy = Connection::open(&target).map_err(said)?;
            let backup = Backup::new(&source, &mut copy).map_err(said)?;
            backup.run_to_completion(PAGES, Duration::from_millis(1), None).map_err(said)
        };
        copy().map_err(|error| format!("{}: {error}", from.display()))?;
        self.note(part, path, &target)
    }

    fn copy(&mut self, part: Part, path: String, from: &Path) -> Result<(), String> {
        let target = self.next()?;
        let copy = || -> io::Result<()> {
            // No pipe that was put there is waited for, and no link of the folder's owner is followed. The
            // document may be one.
            let link = if part == Part::Document { OFlags::empty() } else { OFlags::NOFOLLOW };
            let flags = (OFlags::NONBLOCK | OFlags::NOCTTY | link).bits().cast_signed();
            let mut source = File::options().read(true).custom_flags(flags).open(from)?;
            if !source.metadata()?.is_file() {
                return Err(io::Error::other("it is not a regular file"));
            }
            let mut target = File::options().write(true).create_new(true).mode(0o600).open(&target)?;
            io::copy(&mut source, &mut target).map(drop)
        };
        match copy() {
            Ok(()) => self.note(part, path, &target),
            // Files of a running instance come and go.
            Err(error) if error.kind() == io::ErrorKind::NotFound && part != Part::Document => {
                let _ = fs::remove_file(&target);
                Ok(())
            }
            Err(error) => Err(format!("{}: {error}", from.display())),
        }
    }

    /// Where the next file is copied to.
    fn next(&self) -> Result<PathBuf, String> {
        match self.files.len() < FILES_MAX {
            true => Ok(self.folder.path().join(format!("{:06}", self.files.len()))),
            false => Err(format!("there are more than {FILES_MAX} files")),
        }
    }

    fn note(&mut self, part: Part, path: String, copy: &Path) -> Result<(), String> {
        manifest::relative(&path)?;
        let (bytes, sha256) = sum(copy).map_err(|error| format!("{}: {error}", copy.display()))?;
        self.files.push(manifest::File { part, path, bytes, sha256 });
        Ok(())
    }

    fn pack(&mut self, file: &mut File) -> io::Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        let manifest = Manifest {
            format: manifest::FORMAT.to_owned(),
            version: manifest::VERSION,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            created: Timestamp::from_epoch_millis(now_ms).rfc3339(),
            files: std::mem::take(&mut self.files),
        };
        let text = serde_json::to_vec_pretty(&manifest).map_err(io::Error::other)?;
        let digest = HEXLOWER.encode(&Sha256::digest(&text));
        let mut tar = tar::Builder::new(BufWriter::new(&mut *file));
        append(&mut tar, manifest::MANIFEST, text.len() as u64, &*text)?;
        append(&mut tar, manifest::MANIFEST_SUM, digest.len() as u64, digest.as_bytes())?;
        for (index, each) in manifest.files.iter().enumerate() {
            let copy = File::open(self.folder.path().join(format!("{index:06}")))?;
            append(&mut tar, &manifest::entry_name(index), each.bytes, BufReader::new(copy))?;
        }
        self.files = manifest.files;
        tar.into_inner()?.flush()?;
        file.sync_all()
    }
}

fn append<W: io::Write>(
    tar: &mut tar::Builder<W>,
    name: &str,
    bytes: u64,
    content: impl Read,
) -> io::Result<()> {
    let mut header = tar::Header::new_ustar();
    header.set_size(bytes);
    header.set_mode(0o600);
    header.set_entry_type(tar::EntryType::Regular);
    tar.append_data(&mut header, name, content)
}
