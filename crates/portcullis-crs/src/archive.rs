//! Archives to files in memory, within limits.

use std::collections::BTreeMap;
use std::io::{Cursor, Read};

use flate2::read::MultiGzDecoder;

use crate::{Error, limits};

/// Files of a release by their place in its folder.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// The first bytes of a gzip file.
const GZIP: &[u8] = &[0x1f, 0x8b];
/// The first bytes of a zip file that has entries.
const ZIP: &[u8] = b"PK\x03\x04";

/// The files of a release that an archive holds: a `.tar.gz` as the CRS project makes them, or the zip of the
/// Coraza project's Go module. Other entries are passed over; names that lead out of the archive, links and
/// files that come twice are errors, as no release has them.
pub fn unpack(archive: &[u8]) -> Result<Files, Error> {
    let unpacking = Unpacking { files: Files::new(), entries: 0, bytes: 0 };
    if archive.starts_with(GZIP) {
        unpacking.tar(archive)
    } else if archive.starts_with(ZIP) {
        unpacking.zip(archive)
    } else {
        Err(Error::Archive("it is neither gzip nor zip".to_owned()))
    }
}

struct Unpacking {
    files: Files,
    entries: usize,
    /// Bytes that entries of a zip unpacked to.
    bytes: u64,
}

impl Unpacking {
    fn tar(mut self, archive: &[u8]) -> Result<Files, Error> {
        // Bounds everything: the entries that are passed over have to be unpacked, too, to get past them.
        let unpacked = MultiGzDecoder::new(archive).take(limits::UNPACKED_BYTES_MAX + 1);
        let mut tar = tar::Archive::new(unpacked);
        let mut seen_any = false;
        for entry in tar.entries().map_err(damaged)? {
            let mut entry = entry.map_err(damaged)?;
            seen_any = true;
            let kind = entry.header().entry_type();
            if kind.is_pax_global_extensions() {
                continue;
            }
            let name = String::from_utf8(entry.path_bytes().into_owned()).map_err(damaged)?;
            let place = self.place(&name)?;
            if kind.is_dir() {
                continue;
            }
            if !kind.is_file() {
                return Err(Error::Archive(format!("`{}` is a link or a device", shown(&name))));
            }
            if let Some(place) = place {
                self.keep(place, &mut entry)?;
            }
        }
        let mut rest = tar.into_inner();
        // What stands behind the last entry is still a part of the archive, and has a checksum.
        std::io::copy(&mut rest, &mut std::io::sink()).map_err(damaged)?;
        if rest.limit() == 0 {
            return Err(too_large());
        }
        if !seen_any {
            return Err(Error::Archive("it is empty".to_owned()));
        }
        Ok(self.files)
    }

    fn zip(mut self, archive: &[u8]) -> Result<Files, Error> {
        let mut zip = zip::ZipArchive::new(Cursor::new(archive)).map_err(damaged)?;
        for index in 0..zip.len() {
            let entry = zip.by_index(index).map_err(damaged)?;
            let name = entry.name().map_err(damaged)?.into_owned();
            let place = self.place(&name)?;
            if entry.is_dir() {
                continue;
            }
            if entry.is_symlink() {
                return Err(Error::Archive(format!("`{}` is a link or a device", shown(&name))));
            }
            if let Some(place) = place {
                self.keep(place, entry)?;
            }
        }
        Ok(self.files)
    }

    /// The place in the folder of a release that an entry with this name has, if it is kept.
    fn place(&mut self, name: &str) -> Result<Option<String>, Error> {
        self.entries += 1;
        if self.entries > limits::ENTRIES_MAX {
            return Err(Error::Archive(format!("it has more than {} entries", limits::ENTRIES_MAX)));
        }
        let leads_out =
            name.starts_with('/') || name.contains(['\\', '\0']) || name.split('/').any(|part| part == "..");
        if leads_out {
            return Err(Error::Archive(format!("the name `{}` leads out of it", shown(name))));
        }
        Ok(kept_at(name))
    }

    fn keep(&mut self, place: String, from: impl Read) -> Result<(), Error> {
        let mut bytes = Vec::new();
        from.take(limits::FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(damaged)?;
        self.bytes += bytes.len() as u64;
        if bytes.len() as u64 > limits::FILE_BYTES_MAX || self.bytes > limits::UNPACKED_BYTES_MAX {
            return Err(too_large());
        }
        if self.files.contains_key(&place) {
            return Err(Error::Archive(format!("it has {place} twice")));
        }
        self.files.insert(place, bytes);
        Ok(())
    }
}

/// The place of an entry in the folder of a release: `coreruleset-4.25.0/rules/NAME` of the CRS project, and
/// `MODULE@VERSION/rules/@owasp_crs/NAME` of the Go module; nothing for what else is in them.
fn kept_at(name: &str) -> Option<String> {
    let name = name.strip_prefix("./").unwrap_or(name);
    if let Some((module, inside)) = name.split_once("/rules/@") {
        let is_root = module.rsplit('/').next().is_some_and(|last| last.contains('@'));
        return match inside.split_once('/') {
            Some(("owasp_crs", file)) if is_root && is_rules(file) => Some(format!("rules/{file}")),
            None if is_root && inside == "crs-setup.conf.example" => Some(inside.to_owned()),
            _ => None,
        };
    }
    // The folder that each archive has around its files.
    let (_, inside) = name.split_once('/')?;
    match inside.split_once('/') {
        None if ["crs-setup.conf.example", "LICENSE"].contains(&inside) => Some(inside.to_owned()),
        Some(("rules", file)) if is_rules(file) => Some(inside.to_owned()),
        _ => None,
    }
}

/// Whether it is the plain name of a file of rules, of words for them, or of an example.
fn is_rules(file: &str) -> bool {
    let ends = [".conf", ".data", ".conf.example"].iter().any(|end| file.ends_with(end));
    ends && !file.starts_with('.') && file.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
}

fn damaged(why: impl std::fmt::Display) -> Error {
    Error::Archive(why.to_string())
}

fn too_large() -> Error {
    Error::Archive(format!(
        "it unpacks to more than {} MiB, or a file of it to more than {} MiB",
        limits::UNPACKED_BYTES_MAX >> 20,
        limits::FILE_BYTES_MAX >> 20
    ))
}

/// A name of an archive for people: short, and without what a terminal would obey.
fn shown(name: &str) -> String {
    name.chars().take(100).collect::<String>().escape_debug().to_string()
}
