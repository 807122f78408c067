//! The file of the document: read within a bound, written as a whole.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use portcullis_config::Format;
use sha2::{Digest as _, Sha256};

/// The longest document that has revisions, in bytes.
pub const DOCUMENT_BYTES_MAX: usize = 1 << 20;
/// Bytes of the digest that an entity tag shows.
const TAG_BYTES: usize = 16;

/// A document's text and its entity tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    text: String,
    etag: String,
}

impl Text {
    /// The text of a document.
    pub fn new(text: impl Into<String>) -> Text {
        let text = text.into();
        let digest = Sha256::digest(text.as_bytes());
        Text { etag: HEXLOWER.encode(&digest[..TAG_BYTES]), text }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Its entity tag: 32 hexadecimal digits, the same for the same text.
    pub fn etag(&self) -> &str {
        &self.etag
    }
}

/// The file of the document.
#[derive(Clone, Debug)]
pub struct Document {
    path: PathBuf,
    format: Format,
}

impl Document {
    /// The document at a path; none if its extension is neither that of TOML nor that of YAML.
    pub fn new(path: &Path) -> Option<Document> {
        Some(Document { path: path.to_owned(), format: Format::of(path)? })
    }

    /// Its path as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its syntax.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Its name in messages about mistakes.
    pub fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Reads it.
    pub fn read(&self) -> io::Result<Text> {
        portcullis_files::read_text(&self.path, DOCUMENT_BYTES_MAX as u64).map(Text::new)
    }

    /// Puts a text in place of what is there, with the same owner and mode: a reader at the same time, and a
    /// machine after a loss of power, finds the old text or the new one. A link stays one, what it leads to
    /// is replaced.
    pub fn write(&self, text: &Text) -> io::Result<()> {
        let path = fs::canonicalize(&self.path)?;
        let there = fs::metadata(&path)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let new = path.with_file_name(format!(".{name}.new"));
        // One that a crash left may have another owner.
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        let written = fill(&file, text, &there).and_then(|()| fs::rename(&new, &path));
        if written.is_err() {
            let _ = fs::remove_file(&new);
            return written;
        }
        // The name is on disk as soon as its folder is.
        path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
    }
}

fn fill(mut file: &File, text: &Text, there: &fs::Metadata) -> io::Result<()> {
    let own = file.metadata()?;
    if (own.uid(), own.gid()) != (there.uid(), there.gid()) {
        // Not everybody may give files away; the mode then still keeps others out.
        let group = (own.gid() != there.gid()).then_some(there.gid());
        let owner = (own.uid() != there.uid()).then_some(there.uid());
        std::os::unix::fs::fchown(file, owner, group)?;
    }
    file.set_permissions(fs::Permissions::from_mode(there.mode() & 0o7777))?;
    file.write_all(text.as_str().as_bytes())?;
    file.sync_all()
}
