//! The folder of one authority: `account.json`, and `NAME.pem` with a key and its certificate chain.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use instant_acme::AccountCredentials;
use portcullis_config::Acme;
use serde::{Deserialize, Serialize};

use crate::StartError;
use crate::certificate::{self, Life};

const ACCOUNT: &str = "account.json";

/// The folder of an account and its certificates.
#[derive(Debug)]
pub(super) struct Folder(PathBuf);

/// An account as it is kept.
#[derive(Deserialize, Serialize)]
pub(super) struct KeptAccount {
    /// Those that the authority knows.
    pub(super) contact: Vec<String>,
    pub(super) credentials: AccountCredentials,
}

impl Folder {
    /// Makes it if it is not there: below the configured one, since another authority has other accounts.
    pub(super) fn open(account: &Acme) -> Result<Self, StartError> {
        let name = account.directory.trim_start_matches("https://");
        let letter =
            |letter: char| if letter.is_ascii_alphanumeric() || "-.".contains(letter) { letter } else { '_' };
        let path = account.state.join(name.chars().map(letter).collect::<String>());
        let wrong =
            |error| StartError::file(&path, format!("the folder of ACME accounts cannot be used: {error}"));
        DirBuilder::new().recursive(true).mode(0o700).create(&path).map_err(wrong)?;
        let mode = fs::metadata(&path).map_err(wrong)?.permissions().mode();
        if mode & 0o077 != 0 {
            fs::set_permissions(&path, Permissions::from_mode(0o700)).map_err(wrong)?;
        }
        Ok(Folder(path))
    }

    pub(super) fn certificate(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}.pem"))
    }

    /// The life of a certificate that can be used.
    pub(super) fn life(&self, name: &str) -> Option<Life> {
        life(&self.certificate(name), name).ok()
    }

    /// None if there is none yet.
    pub(super) fn account(&self) -> io::Result<Option<KeptAccount>> {
        match fs::read(self.0.join(ACCOUNT)) {
            Ok(text) => Ok(Some(serde_json::from_slice(&text)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) fn keep_account(&self, account: &KeptAccount) -> io::Result<()> {
        let path = self.0.join(ACCOUNT);
        fs::rename(write(&path, &serde_json::to_vec(account)?)?, path)
    }

    pub(super) fn keep_contact(&self, contact: &[String]) -> io::Result<()> {
        match self.account()? {
            Some(account) => self.keep_account(&KeptAccount { contact: contact.to_vec(), ..account }),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// The authority does not know it any more. It stays beside the new one, in case that is a mistake.
    pub(super) fn retire_account(&self) -> io::Result<()> {
        fs::rename(self.0.join(ACCOUNT), self.0.join("account.unknown.json"))
    }

    /// Keeps a key with its certificate if listeners can use them for `name`. In one file, so that there is
    /// never one without the other.
    pub(super) fn keep_certificate(&self, name: &str, key: &str, chain: &str) -> Result<Life, StartError> {
        let path = self.certificate(name);
        let wrong = |error| StartError::file(&path, error);
        let beside = write(&path, format!("{key}{chain}").as_bytes()).map_err(wrong)?;
        let life = life(&beside, name)?;
        fs::rename(beside, &path).map_err(wrong)?;
        Ok(life)
    }
}

fn life(path: &Path, name: &str) -> Result<Life, StartError> {
    let (names, life) = certificate::kept(path)?;
    match names.iter().any(|known| known == name) {
        true => Ok(life),
        false => Err(StartError::file(path, format!("the certificate does not bear the name `{name}`"))),
    }
}

/// Beside `path` first, so that a crash leaves the old one; says where.
fn write(path: &Path, content: &[u8]) -> io::Result<PathBuf> {
    let beside = path.with_added_extension("new");
    // One that is left of a crash may have another mode.
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    file.write_all(content)?;
    file.sync_all()?;
    Ok(beside)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(state: &Path) -> Acme {
        let directory = "https://ca.example:14000/dir".to_string();
        Acme { directory, contact: Vec::new(), state: state.to_path_buf(), ca: None }
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn signed(name: &str) -> (String, String) {
        let signed = rcgen::generate_simple_self_signed([name.to_string()]).unwrap();
        (signed.signing_key.serialize_pem(), signed.cert.pem())
    }

    #[test]
    fn what_is_kept_is_for_us_alone_and_can_be_used() {
        let place = tempfile::tempdir().unwrap();
        let state = place.path().join("state");
        let folder = Folder::open(&account(&state)).unwrap();
        assert_eq!(folder.0, state.join("ca.example_14000_dir"));
        assert_eq!((mode(&state), mode(&folder.0)), (0o700, 0o700));
        fs::set_permissions(&folder.0, Permissions::from_mode(0o755)).unwrap();
        Folder::open(&account(&state)).unwrap();
        assert_eq!(mode(&folder.0), 0o700);

        assert!(folder.life("a.example").is_none());
        let (key, chain) = signed("a.example");
        fs::write(folder.certificate("a.example").with_added_extension("new"), "left of a crash").unwrap();
        let life = folder.keep_certificate("a.example", &key, &chain).unwrap();
        assert_eq!(folder.life("a.example"), Some(life));
        assert_eq!(mode(&folder.certificate("a.example")), 0o600);

        let wrong = folder.keep_certificate("a.example", &key, &signed("b.example").1).unwrap_err();
        assert!(wrong.to_string().contains("a.example.pem.new: "), "{wrong}");
        let (other_key, other) = signed("b.example");
        let wrong = folder.keep_certificate("a.example", &other_key, &other).unwrap_err();
        assert!(wrong.to_string().ends_with("does not bear the name `a.example`"), "{wrong}");
        assert_eq!(folder.life("a.example"), Some(life), "the old one stays");

        assert!(folder.account().unwrap().is_none());
        fs::write(folder.0.join(ACCOUNT), "{").unwrap();
        assert!(folder.account().is_err());
    }
}
