//! Fetching `SecRemoteRules`.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use portcullis_fetch::Authorities;
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
        let text = download(remote).map_err(|error| io::Error::other(format!("{}: {error}", remote.url)))?;
        if text.len() > limits::FILE_BYTES_MAX {
            let message = format!("{}: it is longer than {} bytes", remote.url, limits::FILE_BYTES_MAX);
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
        }
        let found = Sha256::digest(&text);
        if found[..] != remote.sha256 {
            let hex: String = found.iter().map(|byte| format!("{byte:02x}")).collect();
            let message = format!("{}: the file has another checksum, sha256:{hex}", remote.url);
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        Ok(text)
    }
}

fn download(remote: &RemoteFile) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .https_only(true)
        .max_redirects(0)
        .timeout_global(Some(TIMEOUT))
        .tls_config(Authorities::of_system()?.https())
        .build()
        .into();
    let mut request = agent.get(&remote.url);
    if !remote.key.is_empty() {
        request = request.header("ModSec-key", &remote.key);
    }
    let response = request.call()?;
    let status = response.status().as_u16();
    if status != 200 {
        return Err(format!("the server answered with status {status}").into());
    }
    let mut text = Vec::new();
    response.into_body().into_reader().take(limits::FILE_BYTES_MAX as u64 + 1).read_to_end(&mut text)?;
    Ok(text)
}
