//! What is in an archive, and where it goes.

use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

/// What every archive says that it is.
pub const FORMAT: &str = "portcullis-backup";
/// The version of this form of archives. A later one may say what this program does not understand.
pub const VERSION: u32 = 1;
/// Names in the archive.
pub const MANIFEST: &str = "manifest.json";
pub const MANIFEST_SUM: &str = "manifest.sha256";
/// Bytes of a manifest, files in it, bytes and depth of a path at most.
pub const MANIFEST_BYTES_MAX: u64 = 32 << 20;
pub const FILES_MAX: usize = 100_000;
const PATH_BYTES_MAX: usize = 1024;
const DEPTH_MAX: usize = 8;

/// The parts of a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// The data folder.
    Data,
    /// The document, one file.
    Document,
    /// The folder of accounts and certificates of ACME.
    Acme,
}

/// The list of files, the first entry of an archive.
#[derive(Debug, Serialize, Deserialize)]
pub struct Manifest {
    pub format: String,
    pub version: u32,
    /// The version of the program that wrote it.
    pub program: String,
    /// When it was made (RFC 3339).
    pub created: String,
    pub files: Vec<File>,
}

/// One file.
#[derive(Debug, Serialize, Deserialize)]
pub struct File {
    pub part: Part,
    /// Below the folder of its part, with `/`.
    pub path: String,
    pub bytes: u64,
    /// In hexadecimal digits.
    pub sha256: String,
}

/// The name of a file in the archive.
pub fn entry_name(index: usize) -> String {
    format!("files/{index:06}")
}

impl Manifest {
    /// Reads a manifest. An error is for people, and says why nothing of the archive is used.
    pub fn parse(text: &[u8], own: &str) -> Result<Manifest, String> {
        // A later version may have other members: its number is looked at first.
        #[derive(Deserialize)]
        struct Head {
            format: String,
            version: u32,
            program: String,
        }
        let foreign = |_| "this is no backup of Portcullis".to_owned();
        let head: Head = serde_json::from_slice(text).map_err(foreign)?;
        if head.format != FORMAT {
            return Err("this is no backup of Portcullis".to_owned());
        }
        if head.version > VERSION || numbers(&head.program) > numbers(own) {
            return Err(format!(
                "the backup is of a newer version ({}) than this program ({own}); restore it with that version or a later one",
                head.program
            ));
        }
        let manifest: Manifest =
            serde_json::from_slice(text).map_err(|error| format!("the manifest is damaged: {error}"))?;
        if manifest.files.len() > FILES_MAX {
            return Err(format!("the backup has more than {FILES_MAX} files"));
        }
        let mut seen = std::collections::BTreeSet::new();
        for file in &manifest.files {
            relative(&file.path)?;
            if !seen.insert((file.part, &*file.path)) {
                return Err(format!("the backup has `{}` twice", file.path));
            }
        }
        if manifest.files.iter().filter(|file| file.part == Part::Document).count() > 1 {
            return Err("the backup has two documents".to_owned());
        }
        Ok(manifest)
    }
}

/// A path that stays below its folder.
pub fn relative(path: &str) -> Result<PathBuf, String> {
    let shown = || path.escape_debug().to_string();
    let found = Path::new(path);
    let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_));
    // Of `a//b` and `a/./b` the parts are normal.
    let is_spelled =
        found.components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect::<Vec<_>>();
    let is_below = !path.is_empty()
        && path.len() <= PATH_BYTES_MAX
        && found.components().all(is_plain)
        && is_spelled.len() <= DEPTH_MAX
        && is_spelled.join("/") == path
        && !path.contains(char::is_control);
    match is_below {
        true => Ok(found.to_owned()),
        false => Err(format!("the backup has a path that leaves its folder, or is none: `{}`", shown())),
    }
}

/// The numbers of a version; what is behind them says nothing.
fn numbers(version: &str) -> Vec<u64> {
    let core = version.split(['-', '+']).next().unwrap_or_default();
    core.split('.').map(|part| part.parse().unwrap_or(u64::MAX)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_below_their_folder() {
        for good in ["events/1.seg", "identities.db", "learned/shop%2e.json", "a/b/c/..d"] {
            assert!(relative(good).is_ok(), "{good}");
        }
        let deep = "a/".repeat(9) + "b";
        let long = "a".repeat(2000);
        for bad in [
            "",
            ".",
            "..",
            "../a",
            "a/../b",
            "/etc/passwd",
            "a//b",
            "a/./b",
            "a/",
            "a\0b",
            "a\nb",
            &deep,
            &long,
        ] {
            assert!(relative(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn later_versions_are_refused_and_earlier_ones_are_not() {
        let manifest = |version: u32, program: &str| {
            format!(
                "{{\"format\":\"{FORMAT}\",\"version\":{version},\"program\":\"{program}\",\"created\":\"\",\"files\":[]}}"
            )
        };
        let parse = |version, program| Manifest::parse(manifest(version, program).as_bytes(), "0.10.2");
        for program in ["0.10.2", "0.9.30", "0.10.2-rc1", "0.1.0"] {
            assert!(parse(1, program).is_ok(), "{program}");
        }
        for (version, program) in [(1, "0.10.3"), (1, "0.11.0"), (1, "1.0.0"), (2, "0.10.2"), (1, "x")] {
            assert!(parse(version, program).unwrap_err().contains("newer"), "{program}");
        }
        assert!(Manifest::parse(b"{}", "1.0.0").is_err());
    }
}
