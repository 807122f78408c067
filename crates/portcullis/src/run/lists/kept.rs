//! The file of a list in the data folder: what is known of the answer it came from, then its addresses.

use std::io;
use std::path::Path;

use data_encoding::HEXLOWER;
use portcullis_fetch::Validators;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::format;
use crate::{data_folder, new_file};

/// The longest file: what the largest answer comes to, and the proxy reads.
const BYTES_MAX: u64 = 256 << 20;
const FIRST: &str = "# portcullis list ";

/// A list as it was last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// By what its server tells whether it has changed.
    pub validators: Validators,
    /// When it was known to be current, in seconds since 1970.
    pub current_s: u64,
    /// A network or range in each line; empty: too old.
    pub addresses: String,
}

/// Reads a list; none if there is none.
pub fn read(path: &Path) -> Result<Option<Kept>, String> {
    let text = match portcullis_files::read_text(path, BYTES_MAX) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        read => read.map_err(|error| error.to_string())?,
    };
    parse(&text).map(Some).ok_or_else(|| "it is damaged".to_owned())
}

/// Writes a list in one step.
pub fn write(path: &Path, kept: &Kept) -> io::Result<()> {
    data_folder::create(new_file::parent(path))?;
    new_file::put(path, text(kept).as_bytes(), true)
}

fn text(kept: &Kept) -> String {
    let Kept { validators, current_s, addresses } = kept;
    let about = json!({
        "etag": validators.etag, "modified": validators.modified, "current_s": current_s,
        "sha256": checksum(addresses.as_bytes()),
    });
    format!("{FIRST}{about}\n{addresses}")
}

fn parse(text: &str) -> Option<Kept> {
    let (about, addresses) = text.strip_prefix(FIRST)?.split_once('\n')?;
    let about: Value = serde_json::from_str(about).ok()?;
    let field = |name: &str| about.get(name).and_then(Value::as_str).map(str::to_owned);
    let is_whole = field("sha256")? == checksum(addresses.as_bytes());
    if !is_whole || !(addresses.is_empty() || format::check(addresses).is_ok()) {
        return None;
    }
    Some(Kept {
        validators: Validators { etag: field("etag"), modified: field("modified") },
        current_s: about.get("current_s")?.as_u64()?,
        addresses: addresses.to_owned(),
    })
}

/// SHA-256 in hexadecimal digits.
pub fn checksum(bytes: &[u8]) -> String {
    HEXLOWER.encode(&Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_as_it_was_written_or_not_at_all() {
        let kept = Kept {
            validators: Validators { etag: Some("\"a\nb\"".to_owned()), modified: None },
            current_s: 7,
            addresses: "192.0.2.0/24\n2001:db8::-2001:db8::9\n".to_owned(),
        };
        assert_eq!(parse(&text(&kept)).as_ref(), Some(&kept));
        let empty = Kept { addresses: String::new(), ..kept.clone() };
        assert_eq!(parse(&text(&empty)), Some(empty));
        let whole = text(&kept).into_bytes();
        for at in 0..whole.len() {
            let cut = std::str::from_utf8(&whole[..at]).unwrap();
            assert_eq!(parse(cut), None, "{at}");
            let mut changed = whole.clone();
            changed[at] ^= 1;
            // What is known of the server is not under the checksum: at worst, the list is fetched again.
            if let Some(read) = String::from_utf8(changed).ok().as_deref().and_then(parse) {
                assert_eq!(read.addresses, kept.addresses, "{at}");
            }
        }
    }
}
