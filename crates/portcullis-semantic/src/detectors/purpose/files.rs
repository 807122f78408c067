//! Fields that name a file or a folder: one that a page asks for, or one of the installation.

use super::name::{above, has_word, innermost, is_of_body, last_part, parts};
use crate::{Location, Place};

/// The parameter of a page says which file it is about.
pub(in crate::detectors) fn asks_for_file(location: Location<'_>) -> bool {
    const FILES: &[&[u8]] = &[
        b"file",
        b"filename",
        b"filepath",
        b"path",
        b"template",
        b"include",
        b"download",
        b"doc",
        b"document",
    ];
    // `fileName`, `file_name`, `filePath`
    location.place == Place::Query && has_word(innermost(location.name), FILES)
}

/// The field says which file or folder an editor has open, as the Language Server Protocol has it:
/// `textDocument.uri`, `rootUri`, `workspaceFolders.uri`.
pub(in crate::detectors) fn names_edited_file(location: Location<'_>) -> bool {
    let mut parts = parts(location.name);
    location.place == Place::Json
        && match parts.next() {
            Some(b"rootUri") => true,
            Some(b"uri") => matches!(parts.next(), Some(b"textDocument" | b"workspaceFolders")),
            _ => false,
        }
}

/// The field is called `path` and no more: where something lies on the machine, or below a folder of the
/// site.
pub(in crate::detectors) fn is_bare_path(location: Location<'_>) -> bool {
    is_of_body(location.place) && last_part(location.name).eq_ignore_ascii_case(b"path")
}

/// The field says where a file of an installation lies: `config_path`, `log_file`, `ssl_cert`, `volumes`.
pub(in crate::detectors) fn names_own_file(location: Location<'_>) -> bool {
    const FILES: &[&[u8]] = &[b"path", b"file", b"filename", b"location"];
    const OWNERS: &[&[u8]] = words!("purpose", "file-owners");
    const WHOLE: &[&[u8]] = words!("purpose", "own-files");
    let last = last_part(location.name);
    // `log.file.path`, as collectors of logs write it.
    let above = above(location.name).strip_suffix(b".file.");
    // The label of each line that a collector of logs sends.
    let is_of_stream =
        || last == b"filename" && has_word(&location.name[..location.name.len() - 8], &[b"stream"]);
    let is_of_file = || last == b"path" && above.is_some_and(|above| has_word(last_part(above), OWNERS));
    is_of_body(location.place)
        && (has_word(last, WHOLE)
            || has_word(last, FILES) && has_word(last, OWNERS)
            || is_of_file()
            || is_of_stream())
}

/// The field says where files of an installation lie: `upload_dir`, `logfile`.
pub(in crate::detectors) fn names_own_folder(location: Location<'_>) -> bool {
    const FOLDERS: &[&[u8]] = &[
        b"dir",
        b"directory",
        b"log",
        b"logs",
        b"logfile",
        b"root",
        b"socket",
        b"mount",
        b"volume",
        b"workdir",
    ];
    is_of_body(location.place) && has_word(last_part(location.name), FOLDERS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(name: &str) -> Location<'_> {
        Location::new(Place::Json, name.as_bytes())
    }

    #[test]
    fn own_files() {
        assert!(
            names_own_file(at("config_path"))
                && names_own_file(at("log_file"))
                && names_own_file(at("volumes"))
        );
        assert!(
            names_own_file(at("log.file.path"))
                && names_own_file(at("streams.stream.filename"))
                && !names_own_file(at("x.file.path"))
                && !names_own_file(at("path"))
                && !names_own_file(at("file"))
                && !names_own_file(at("filename"))
        );
    }
}
