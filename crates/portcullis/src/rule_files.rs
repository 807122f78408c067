//! Rule files as a person names them on the command line.

use std::fmt;
use std::path::{Path, PathBuf};

use portcullis_seclang::{DiskFiles, Files, Root};

/// A path that names no rules.
#[derive(Debug)]
pub enum Missing {
    /// It does not exist or cannot be read.
    Path(PathBuf, std::io::Error),
    /// A folder without rule files.
    EmptyFolder(PathBuf),
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Missing::Path(path, error) => write!(f, "cannot read {}: {error}", path.display()),
            Missing::EmptyFolder(path) => {
                write!(f, "{} is neither a CRS folder nor has it *.conf files", path.display())
            }
        }
    }
}

/// The files behind a path: a file, a folder of `*.conf` files, or a CRS folder with its setup file.
pub fn of_path(path: &Path) -> Result<Vec<Root>, Missing> {
    let unreadable = |error| Missing::Path(path.to_path_buf(), error);
    if !std::fs::metadata(path).map_err(unreadable)?.is_dir() {
        return Ok(vec![Root::File(path.to_path_buf())]);
    }
    let mut files = conf_files(&path.join("rules")).unwrap_or_default();
    if files.is_empty() {
        files = conf_files(path).map_err(unreadable)?;
    } else {
        let setup = ["crs-setup.conf", "crs-setup.conf.example"].map(|name| path.join(name));
        let mut before: Vec<PathBuf> = setup.into_iter().find(|path| path.is_file()).into_iter().collect();
        let plugins = path.join("plugins");
        for suffix in ["*-config.conf", "*-before.conf"] {
            before.extend(DiskFiles.expand(&plugins.join(suffix)).unwrap_or_default());
        }
        files.splice(..0, before);
        files.extend(DiskFiles.expand(&plugins.join("*-after.conf")).unwrap_or_default());
    }
    match files.is_empty() {
        true => Err(Missing::EmptyFolder(path.to_path_buf())),
        false => Ok(files.into_iter().map(Root::File).collect()),
    }
}

fn conf_files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    DiskFiles.expand(&folder.join("*.conf"))
}
