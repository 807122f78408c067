//! A release in memory: its files, its version, and whether it is genuine.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use crate::archive::Files;
use crate::{Error, Version, known, unpack};

/// The file whose rules name the version.
const FIRST_RULES: &str = "rules/REQUEST-901-INITIALIZATION.conf";
/// The example of the settings, which are read before the rules.
const SETUP: &str = "crs-setup.conf.example";

/// The way in which a release is verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// By the digests of the releases that the program knows.
    Known,
    /// By the SHA-256 of the archive, in hexadecimal digits.
    Sha256(String),
    /// Not at all.
    Nothing,
}

/// The files of a release, verified, not yet on disk.
#[derive(Clone, Debug)]
pub struct Release {
    /// Its version, as its rules name it.
    pub version: Version,
    /// The digest of its rules, see [`known`].
    pub digest: String,
    /// Whether the program knows it.
    pub is_known: bool,
    pub(crate) files: Files,
}

impl Release {
    /// The release of an archive, if it is genuine in the sense of `check` and of the `wanted` version.
    pub fn of_archive(archive: &[u8], wanted: Option<Version>, check: &Check) -> Result<Release, Error> {
        if let Check::Sha256(sum) = check {
            let (wanted, found) = (sum.to_ascii_lowercase(), sha256_hex(archive));
            if wanted != found {
                return Err(Error::Checksum { wanted, found });
            }
        }
        let files = unpack(archive)?;
        let missing = |what| Err(Error::NotACrs(what));
        let Some(first) = files.get(FIRST_RULES) else {
            return missing("rules/REQUEST-901-INITIALIZATION.conf is missing");
        };
        if !files.contains_key(SETUP) {
            return missing("crs-setup.conf.example is missing");
        }
        let Some(version) = Version::in_rules(&String::from_utf8_lossy(first)) else {
            return missing("its rules do not name a version of a release");
        };
        if let Some(wanted) = wanted.filter(|wanted| *wanted != version) {
            return Err(Error::OtherVersion { wanted, found: version });
        }
        let digest = digest(&files);
        let known = known::release(version);
        let is_known = known.is_some_and(|known| known.digests.contains(&&*digest));
        if *check == Check::Known && !is_known {
            return Err(Error::Unverified { version, sha256: sha256_hex(archive), known: known.is_some() });
        }
        Ok(Release { version, digest, is_known, files })
    }
}

/// The digest of rules: the SHA-256 of the lines that `sha256sum` prints for them, in the order of their
/// names. The licence is not a part of it.
pub(crate) fn digest(files: &Files) -> String {
    let mut lines = String::new();
    for (place, bytes) in files.iter().filter(|(place, _)| *place != "LICENSE") {
        let _ = writeln!(lines, "{}  {place}", sha256_hex(bytes));
    }
    sha256_hex(lines.as_bytes())
}

/// The SHA-256 of `bytes` in hexadecimal digits.
pub fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}
