//! The files of what sites have learned, in the data folder: `learned/SITE.json`, which a running instance
//! writes, and `learned/SITE.*.import`, which it takes over.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::data_folder;

/// A larger file is none of ours.
const BYTES_MAX: u64 = 512 << 20;
const IMPORT: &str = ".import";

/// The folder.
pub fn folder(data: &Path) -> PathBuf {
    data.join("learned")
}

/// The file of a site.
pub fn file(data: &Path, site: &str) -> PathBuf {
    folder(data).join(format!("{}.json", file_name(site)))
}

/// A site's name as that of a file.
pub fn file_name(site: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    site.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02x}") }).collect()
}

/// The names of the sites that have learned something.
pub fn sites(data: &Path) -> io::Result<Vec<String>> {
    sites_in(&folder(data))
}

/// The names of the sites that have a file in a folder.
pub fn sites_in(folder: &Path) -> io::Result<Vec<String>> {
    let mut sites = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        if let Some(site) = name.to_str().and_then(|name| name.strip_suffix(".json")) {
            let site = portcullis_types::percent_decode(site.as_bytes(), false);
            sites.push(String::from_utf8_lossy(&site).into_owned());
        }
    }
    sites.sort();
    Ok(sites)
}

/// What is in a file; nothing if there is none.
pub fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    read_to(path, BYTES_MAX)
}

/// What is in a file of at most so many bytes; nothing if there is none.
pub fn read_to(path: &Path, bytes_max: u64) -> io::Result<Option<Vec<u8>>> {
    match portcullis_files::read(path, bytes_max) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        read => read.map(Some),
    }
}

/// Writes a file in one step.
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    data_folder::create(folder)?;
    let mut file = tempfile::Builder::new().prefix(".learned-").tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Puts a text where the instance that serves the site takes it over, now or at its next start.
pub fn offer(data: &Path, site: &str, text: &str) -> io::Result<()> {
    let name = format!("{}.{}-{}{IMPORT}", file_name(site), std::process::id(), text.len());
    write(&folder(data).join(name), text)
}

/// The files that wait to be taken over.
pub fn offered(data: &Path, site: &str) -> Vec<PathBuf> {
    let prefix = format!("{}.", file_name(site));
    let is_one = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with(&prefix) && name.ends_with(IMPORT)
    };
    let entries = fs::read_dir(folder(data)).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_one).collect();
    paths.sort();
    paths
}

/// Sets a damaged file aside, so that nothing of it is lost.
pub fn set_aside(path: &Path) -> io::Result<PathBuf> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".damaged");
    let aside = path.with_file_name(name);
    fs::rename(path, &aside)?;
    Ok(aside)
}
