//! An archive back into folders: checked as it is read, beside the place it is for, and put there in one
//! step.

use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};
use tar::{Archive, Entry, EntryType};

use super::manifest::{self, MANIFEST, MANIFEST_BYTES_MAX, MANIFEST_SUM, Manifest, Part};
use super::sum::Summed;
use crate::new_file;

/// Where the parts of an archive go.
pub struct Target {
    pub data: PathBuf,
    pub document: Option<PathBuf>,
    pub acme: Option<PathBuf>,
}

/// What was restored.
#[derive(Debug)]
pub struct Restored {
    pub files: usize,
    /// When the backup was made.
    pub created: String,
    /// Parts that nobody named a place for, and the flag that does.
    pub left_out: Vec<(&'static str, &'static str)>,
}

/// Restores an archive. After an error nothing is where it was to go.
pub fn archive(file: &Path, target: &Target) -> Result<Restored, String> {
    let opened = File::open(file).map_err(|error| error.to_string())?;
    if !opened.metadata().is_ok_and(|found| found.is_file()) {
        return Err("it is not a regular file".to_owned());
    }
    let mut places = vec![Place::new(Part::Data, &target.data)?];
    if let Some(acme) = &target.acme {
        places.push(Place::new(Part::Acme, acme)?);
    }
    if let Some(document) = &target.document {
        places.push(Place::of_file(Part::Document, document)?);
    }
    let mut archive = Archive::new(BufReader::new(opened));
    // As they are: an entry that gives another one its name, or says that it is sparse, is one of its own.
    let mut entries = archive.entries().map_err(damaged)?.raw(true);
    let mut next = || entries.next().transpose().map_err(damaged);
    let text = next().and_then(|entry| small(entry, MANIFEST, MANIFEST_BYTES_MAX));
    let text = text.map_err(|_| "this is no backup of Portcullis".to_owned())?;
    let sum = small(next()?, MANIFEST_SUM, 64)?;
    if HEXLOWER.encode(&Sha256::digest(&text)).as_bytes() != sum {
        // Of a later version too: what it says of itself may be wrong.
        return Err("the backup is damaged: its manifest has another checksum".to_owned());
    }
    let manifest = Manifest::parse(&text, env!("CARGO_PKG_VERSION"))?;
    for (index, file) in manifest.files.iter().enumerate() {
        let name = manifest::entry_name(index);
        let mut entry = next()?.ok_or("the backup is cut off")?;
        check(&entry, &name, file.bytes)?;
        let place = places.iter().find(|place| place.part == file.part);
        let (bytes, sha256) = match place {
            Some(place) => place.write(&file.path, &mut entry)?,
            None => {
                let mut summed = Summed::new(io::sink());
                (io::copy(&mut entry, &mut summed).map_err(damaged)?, summed.sha256())
            }
        };
        if (bytes, &sha256) != (file.bytes, &file.sha256) {
            return Err(format!("the backup is damaged: `{}` has another checksum", file.path));
        }
    }
    if next()?.is_some() {
        return Err("the backup is damaged: it has more files than its manifest".to_owned());
    }
    let has = |part: Part| manifest.files.iter().any(|file| file.part == part);
    let left = [
        (Part::Document, "document", "--config DOCUMENT", target.document.is_none()),
        (Part::Acme, "state of ACME", "--acme DIR", target.acme.is_none()),
    ];
    let left_out = left.into_iter().filter(|(part, _, _, is_left)| *is_left && has(*part));
    let left_out = left_out.map(|(_, what, flag, _)| (what, flag)).collect();
    // The data folder last: with it the instance is complete.
    while let Some(place) = places.pop() {
        if place.part == Part::Data || has(place.part) {
            place.take()?;
        }
    }
    Ok(Restored { files: manifest.files.len(), created: manifest.created, left_out })
}

fn damaged(error: io::Error) -> String {
    format!("the backup is damaged: {error}")
}

/// An entry is the one that is expected here: a plain file with this name and length, and nothing else.
fn check<R: Read>(entry: &Entry<'_, R>, name: &str, bytes: u64) -> Result<(), String> {
    let header = entry.header();
    let is_plain = header.entry_type() == EntryType::Regular && *entry.path_bytes() == *name.as_bytes();
    match is_plain && entry.size() == bytes {
        true => Ok(()),
        false => Err(format!("the backup is damaged: `{name}` is missing, or no plain file of its length")),
    }
}

/// The content of an entry that fits into memory.
fn small<R: Read>(entry: Option<Entry<'_, R>>, name: &str, bytes_max: u64) -> Result<Vec<u8>, String> {
    let mut entry = entry.ok_or("the backup is cut off")?;
    let bytes = entry.size();
    check(&entry, name, bytes)?;
    if bytes > bytes_max {
        return Err(format!("the backup is damaged: `{name}` is too long"));
    }
    let mut content = Vec::new();
    entry.read_to_end(&mut content).map_err(damaged)?;
    match content.len() as u64 == bytes {
        true => Ok(content),
        false => Err("the backup is cut off".to_owned()),
    }
}

/// A place that is filled beside where it will be.
struct Place {
    part: Part,
    beside: tempfile::TempDir,
    target: PathBuf,
    is_file: bool,
}

impl Place {
    /// A folder that is missing or empty: one that has anything may be in use.
    fn new(part: Part, target: &Path) -> Result<Place, String> {
        let wrong = |what: &dyn Display| format!("{}: {what}", target.display());
        match fs::read_dir(target).map(|mut entries| entries.next().is_some()) {
            Ok(true) => {
                return Err(wrong(&"the folder is not empty, and was left alone; name a new or empty one"));
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(wrong(&error)),
            _ => {}
        }
        Place::beside(part, target, false)
    }

    fn of_file(part: Part, target: &Path) -> Result<Place, String> {
        match target.symlink_metadata() {
            Ok(_) => Err(format!("{}: it is there already, and was left alone", target.display())),
            Err(_) => Place::beside(part, target, true),
        }
    }

    fn beside(part: Part, target: &Path, is_file: bool) -> Result<Place, String> {
        let parent = new_file::parent(target);
        let beside = tempfile::Builder::new().prefix(".portcullis-restore-").tempdir_in(parent);
        let beside = beside
            .map_err(|error| format!("{}: {}", target.display(), new_file::not_made(parent, &error)))?;
        Ok(Place { part, beside, target: target.to_owned(), is_file })
    }

    /// The folder or file as it is filled.
    fn content(&self) -> PathBuf {
        self.beside.path().join("content")
    }

    /// Writes a file, for its owner alone. Gives its bytes and their sum.
    fn write(&self, named: &str, from: &mut impl Read) -> Result<(u64, String), String> {
        let path = match self.is_file {
            true => self.content(),
            false => self.content().join(manifest::relative(named)?),
        };
        let mut write = || -> io::Result<(u64, String)> {
            if let Some(folder) = path.parent() {
                fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            }
            let file = File::options().write(true).create_new(true).mode(0o600).open(&path)?;
            let mut summed = Summed::new(file);
            let bytes = io::copy(from, &mut summed)?;
            summed.inner.sync_all()?;
            Ok((bytes, summed.sha256()))
        };
        write().map_err(|error| format!("cannot write `{named}` for {}: {error}", self.target.display()))
    }

    /// Puts what was filled in its place, in one step, and never over anything.
    fn take(self) -> Result<(), String> {
        let content = self.content();
        let take = || -> io::Result<()> {
            if self.is_file {
                fs::hard_link(&content, &self.target)?;
            } else {
                fs::DirBuilder::new().recursive(true).mode(0o700).create(&content)?;
                // Onto a folder only if it is empty.
                fs::rename(&content, &self.target)?;
            }
            File::open(new_file::parent(self.beside.path()))?.sync_all()
        };
        take().map_err(|error| format!("{}: {error}", self.target.display()))
    }
}
