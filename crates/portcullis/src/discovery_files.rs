//! The files of what was discovered, in the data folder: `discovery/SITE.json`.

use std::io;
use std::path::{Path, PathBuf};

use crate::learned_files;

/// The folder.
pub fn folder(data: &Path) -> PathBuf {
    data.join("discovery")
}

/// The file of a site.
pub fn file(data: &Path, site: &str) -> PathBuf {
    folder(data).join(format!("{}.json", learned_files::file_name(site)))
}

/// The names of the sites of which something was found.
pub fn sites(data: &Path) -> io::Result<Vec<String>> {
    learned_files::sites_in(&folder(data))
}
