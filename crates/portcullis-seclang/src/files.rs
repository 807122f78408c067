//! Sources of rule texts: files on disk, files in memory, remote rules.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::{RemoteFile, glob};

/// A place that rule files are read from. The parser touches no other.
pub trait Files {
    /// The whole file, at most [`crate::limits::FILE_BYTES_MAX`] bytes of it and one more.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// The files that a pattern names, sorted. A path that is no pattern is returned as it is, whether it
    /// exists or not.
    fn expand(&self, pattern: &Path) -> io::Result<Vec<PathBuf>>;

    /// The text of a file on a server (`SecRemoteRules`). It is the one whose checksum `remote` names, or
    /// there is an error. Here, and unless an implementation says otherwise, there is no network.
    fn fetch(&self, remote: &RemoteFile) -> io::Result<Vec<u8>> {
        let message = format!("{} cannot be fetched: there is no network here", remote.url);
        Err(io::Error::new(io::ErrorKind::Unsupported, message))
    }
}

/// Files of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiskFiles;

#[allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "portcullis-load opens rule files with it"
)]
impl Files for DiskFiles {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        let limit = crate::limits::FILE_BYTES_MAX as u64 + 1;
        io::Read::read_to_end(&mut io::Read::take(std::fs::File::open(path)?, limit), &mut out)?;
        Ok(out)
    }

    fn expand(&self, pattern: &Path) -> io::Result<Vec<PathBuf>> {
        let mut found = vec![PathBuf::new()];
        for component in pattern.components() {
            let part = component.as_os_str();
            let name = if let Component::Normal(name) = component {
                name.to_str().filter(|name| glob::is_pattern(name))
            } else {
                None
            };
            let Some(name) = name else {
                found.iter_mut().for_each(|path| path.push(part));
                continue;
            };
            let mut next = Vec::new();
            for folder in &found {
                let read_from = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
                match std::fs::read_dir(read_from) {
                    Ok(entries) => {
                        for entry in entries {
                            let entry = entry?.file_name();
                            if entry.to_str().is_some_and(|entry| glob::matches(name, entry)) {
                                next.push(folder.join(entry));
                            }
                        }
                    }
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) if error.kind() == io::ErrorKind::NotADirectory => {}
                    Err(error) => return Err(error),
                }
            }
            found = next;
        }
        found.sort();
        Ok(found)
    }
}

/// Files in memory, by path without `.` and `..`, or by URL: for tests, and for rules that come with the
/// program. They are the caller's own, so checksums are not looked at.
#[derive(Clone, Debug, Default)]
pub struct MemoryFiles(pub BTreeMap<PathBuf, Vec<u8>>);

impl Files for MemoryFiles {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.0.get(&tidied(path)).cloned().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    fn expand(&self, pattern: &Path) -> io::Result<Vec<PathBuf>> {
        let tidy = tidied(pattern);
        let parts: Vec<&str> = tidy.components().filter_map(|c| c.as_os_str().to_str()).collect();
        if !parts.iter().any(|part| glob::is_pattern(part)) {
            return Ok(vec![pattern.to_owned()]);
        }
        let fits = |path: &Path| {
            let names: Vec<&str> = path.components().filter_map(|c| c.as_os_str().to_str()).collect();
            names.len() == parts.len()
                && parts.iter().zip(names).all(|(part, name)| glob::matches(part, name))
        };
        Ok(self.0.keys().filter(|path| fits(path)).cloned().collect())
    }

    fn fetch(&self, remote: &RemoteFile) -> io::Result<Vec<u8>> {
        self.0.get(Path::new(&remote.url)).cloned().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }
}

/// Without `.` and, where the text allows it, without `..`.
pub(crate) fn tidied(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if matches!(out.components().next_back(), Some(Component::Normal(_))) => {
                out.pop();
            }
            other @ (Component::Prefix(_)
            | Component::RootDir
            | Component::ParentDir
            | Component::Normal(_)) => out.push(other.as_os_str()),
        }
    }
    out
}
