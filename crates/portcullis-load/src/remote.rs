//! Fetching `SecRemoteRules`.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::Request;
use portcullis_fetch::{Authorities, Client, Error};
use portcullis_seclang::{DiskFiles, Files, RemoteFile, limits};
use sha2::{Digest, Sha256};

/// Longest time for a remote file, from the name look-up to the last byte.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Rule files of this machine, and of the servers that they name.
#[derive(Clone, Copy, Debug, Default)]
pub struct RuleFiles;

impl Files for RuleFiles {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        portcullis_files::read(path, limits::FILE_BYTES_MAX as u64)
    }

    fn expand(&self, pattern: &Path) -> io::Result<Vec<PathBuf>> {
        DiskFiles.expand(pattern)
    }

    /// By HTTPS, with the machine's certificate authorities (`SSL_CERT_FILE` names others), without following
    /// redirects; the checksum decides whether it is the right file.
    fn fetch(&self, remote: &RemoteFile) -> io::Result<Vec<u8>> {
        let text = download(remote).map_err(|error| match error {
            Error::TooLong(bytes_max) => io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!("{}: it is longer than {bytes_max} bytes", remote.url),
            ),
            Error::Connection(_) | Error::Late | Error::Final(_) => {
                io::Error::other(format!("{}: {error}", remote.url))
            }
        })?;
        let found = Sha256::digest(&text);
        if found[..] != remote.sha256 {
            let hex: String = found.iter().map(|byte| format!("{byte:02x}")).collect();
            let message = format!("{}: the file has another checksum, sha256:{hex}", remote.url);
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        Ok(text)
    }
}

fn download(remote: &RemoteFile) -> Result<Vec<u8>, Error> {
    let authorities = Authorities::of_system().map_err(Error::Final)?;
    let mut request = Request::get(&remote.url);
    if !remote.key.is_empty() {
        request = request.header("ModSec-key", &remote.key);
    }
    let answer = Client::download(&authorities, TIMEOUT, 0).send(request.body(None)?)?;
    match answer.status().as_u16() {
        200 => answer.into_body().read(limits::FILE_BYTES_MAX as u64),
        status => Err(Error::Final(format!("the server answers {status}"))),
    }
}
