//! The files of a configuration: read within limits, each once, and called by their names on the machine that
//! they were written for.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use portcullis_seclang::glob;

use crate::error::Error;

/// Bytes of one file.
pub const FILE_BYTES_MAX: u64 = 4 << 20;
/// Bytes of all files.
pub const BYTES_MAX: u64 = 32 << 20;
/// Files of one configuration.
pub const FILES_MAX: usize = 2000;
/// Files that include each other.
pub const INCLUDE_DEPTH_MAX: usize = 16;

/// Links on the way to one file.
const LINKS_MAX: usize = 40;

/// One of the files that were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FileId(usize);

/// A line of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub file: FileId,
    /// From 1 on.
    pub line: usize,
}

/// The files that were read.
#[derive(Debug)]
pub(crate) struct Sources {
    root: PathBuf,
    files: Vec<Source>,
    by_path: BTreeMap<String, FileId>,
    bytes: u64,
}

#[derive(Debug)]
struct Source {
    path: String,
    text: Rc<str>,
}

impl Sources {
    /// Absolute paths in the configuration are looked up below `root`, a copy of the machine's files.
    pub fn new(root: &Path) -> Result<Sources, Error> {
        let shown = root.display().to_string();
        let root = root.canonicalize().map_err(|error| Error::new(shown, error.to_string()))?;
        Ok(Sources { root, files: Vec::new(), by_path: BTreeMap::new(), bytes: 0 })
    }

    /// The name that a file of this machine has in the configuration: its path below the root.
    pub fn name_of(&self, path: &Path) -> Result<String, Error> {
        let shown = path.display().to_string();
        let full = path.canonicalize().map_err(|error| Error::new(&shown, error.to_string()))?;
        let below = full.strip_prefix(&self.root).map_err(|_| {
            Error::new(&shown, format!("this is not below the root {}", self.root.display()))
                .with_help("name the folder that stands for `/` with --root")
        })?;
        below
            .to_str()
            .map(|below| format!("/{below}"))
            .ok_or_else(|| Error::new(shown, "the name of the file is not UTF-8"))
    }

    /// Where a file that the configuration names is on this machine. Links lead where they would on the other
    /// machine, so never out of the root; a name that leads nowhere is empty.
    pub fn on_disk(&self, name: &str) -> PathBuf {
        let mut found: Vec<String> = Vec::new();
        let mut rest: Vec<String> = name.split('/').rev().map(str::to_owned).collect();
        let mut links = 0;
        while let Some(part) = rest.pop() {
            match part.as_str() {
                "" | "." => continue,
                ".." => drop(found.pop()),
                _ => found.push(part),
            }
            let Ok(target) = fs::read_link(self.below_root(&found)) else { continue };
            links += 1;
            let Some(target) = target.to_str().filter(|_| links <= LINKS_MAX) else { return PathBuf::new() };
            found.pop();
            if target.starts_with('/') {
                found.clear();
            }
            rest.extend(target.split('/').rev().map(str::to_owned));
        }
        self.below_root(&found)
    }

    fn below_root(&self, parts: &[String]) -> PathBuf {
        parts.iter().fold(self.root.clone(), |path, part| path.join(part))
    }

    /// Reads the file that the configuration calls `name`, an absolute path, if it has not been read.
    pub fn open(&mut self, name: &str) -> Result<FileId, Error> {
        if let Some(file) = self.by_path.get(name) {
            return Ok(*file);
        }
        if self.files.len() == FILES_MAX {
            return Err(Error::new(name, format!("more than {FILES_MAX} files")));
        }
        let text = read(&self.on_disk(name), name)?;
        self.bytes += text.len() as u64;
        if self.bytes > BYTES_MAX {
            return Err(Error::new(name, format!("all files together have more than {BYTES_MAX} bytes")));
        }
        let file = FileId(self.files.len());
        self.files.push(Source { path: name.to_owned(), text: text.into() });
        self.by_path.insert(name.to_owned(), file);
        Ok(file)
    }

    /// The text of a file.
    pub fn text(&self, file: FileId) -> Rc<str> {
        self.files.get(file.0).map_or_else(|| "".into(), |source| source.text.clone())
    }

    /// The name of a file.
    pub fn name(&self, file: FileId) -> &str {
        self.files.get(file.0).map_or("", |source| &source.path)
    }

    /// `file:line`.
    pub fn show(&self, place: Place) -> String {
        format!("{}:{}", self.name(place.file), place.line)
    }

    /// A mistake at a place.
    pub fn error(&self, place: Place, message: impl Into<String>) -> Error {
        Error::new(self.show(place), message)
    }

    /// The files that fit `pattern`, an absolute path with wildcards, in the order of their names.
    pub fn matching(&self, pattern: &str) -> Vec<String> {
        let mut found = vec![String::new()];
        for part in pattern.split('/').filter(|part| !part.is_empty()) {
            let mut next = Vec::new();
            for folder in &found {
                if !glob::is_pattern(part) {
                    next.push(format!("{folder}/{part}"));
                    continue;
                }
                let Ok(entries) = fs::read_dir(self.on_disk(folder)) else { continue };
                // A folder with more files than may be read is refused where they are opened.
                let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
                let names = names.filter(|name| glob::matches(part, name)).take(FILES_MAX + 1);
                next.extend(names.map(|name| format!("{folder}/{name}")));
            }
            next.sort();
            next.truncate(FILES_MAX + 1);
            found = next;
        }
        found.retain(|name| self.on_disk(name).is_file());
        found
    }
}

/// The text of a file. Devices and pipes have no end and are refused.
fn read(path: &Path, name: &str) -> Result<String, Error> {
    let failed = |error: std::io::Error| Error::new(name, format!("cannot be read: {error}"));
    let known = fs::metadata(path).map_err(failed)?;
    if !known.is_file() {
        return Err(Error::new(name, "this is not a file"));
    }
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes))
        .map_err(failed)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(Error::new(name, format!("the file has more than {FILE_BYTES_MAX} bytes"))
            .with_help("a configuration is smaller; is this the right file?"));
    }
    let line = |at: usize| bytes[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
    if let Some(at) = bytes.iter().position(|byte| *byte == 0) {
        return Err(Error::new(format!("{name}:{}", line(at)), "a NUL byte: this is not a text"));
    }
    match std::str::from_utf8(&bytes) {
        Ok(_) => String::from_utf8(bytes).map_err(|_| Error::new(name, "the file is not UTF-8")),
        Err(error) => {
            let place = format!("{name}:{}", line(error.valid_up_to()));
            Err(Error::new(place, "this line is not UTF-8")
                .with_help("convert the file, for example with iconv"))
        }
    }
}

/// `path` as the configuration means it in a file of `folder`: absolute, without `.` and `..`.
pub(crate) fn absolute(folder: &str, path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let joined = Path::new(folder).join(path);
    for component in joined.components() {
        match component {
            Component::ParentDir => drop(parts.pop()),
            Component::Normal(part) => parts.push(part.to_str().unwrap_or_default()),
            Component::Prefix(_) | Component::RootDir | Component::CurDir => {}
        }
    }
    format!("/{}", parts.join("/"))
}

/// The folder of a file.
pub(crate) fn folder(name: &str) -> &str {
    name.rsplit_once('/').map_or("/", |(folder, _)| if folder.is_empty() { "/" } else { folder })
}
