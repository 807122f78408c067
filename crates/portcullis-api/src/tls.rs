//! The certificate of the listener: one that is given, or a self-signed one of its own that is made once.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use portcullis_event::Timestamp;
use rcgen::{CertificateParams, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sha2::{Digest as _, Sha256};
use tokio_rustls::TlsAcceptor;

/// The files of the self-signed certificate in the data folder.
const CERTIFICATE: &str = "console-certificate.pem";
const KEY: &str = "console-key.pem";
/// Years that a self-signed certificate is valid.
const YEARS: i32 = 10;

/// Certificate and key, as files in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate, with those between it and its authority.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// Why TLS cannot be had.
#[derive(Debug)]
pub enum TlsError {
    /// A file cannot be read or written.
    File(PathBuf, io::Error),
    /// A file has no certificate or key that can be read.
    Content(PathBuf, String),
    /// Certificate and key cannot be used.
    Unusable(String),
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TlsError::File(path, error) => write!(f, "{}: {error}", path.display()),
            TlsError::Content(path, message) => write!(f, "{}: {message}", path.display()),
            TlsError::Unusable(message) => write!(f, "certificate and key cannot be used: {message}"),
        }
    }
}

impl std::error::Error for TlsError {}

/// Bytes of a certificate's file or a key's.
const PEM_BYTES_MAX: u64 = 4 << 20;

/// The acceptor of these files.
pub fn acceptor(files: &CertificateFiles) -> Result<TlsAcceptor, TlsError> {
    let read = |path: &Path| {
        portcullis_files::read(path, PEM_BYTES_MAX).map_err(|error| TlsError::File(path.to_owned(), error))
    };
    let wrong = |path: &Path, error: pem::Error| TlsError::Content(path.to_owned(), error.to_string());
    let path = &files.certificate;
    let chain = CertificateDer::pem_slice_iter(&read(path)?).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(|error| wrong(path, error))?;
    if chain.is_empty() {
        return Err(TlsError::Content(path.clone(), "there is no certificate in it".to_owned()));
    }
    let key = PrivateKeyDer::from_pem_slice(&read(&files.key)?).map_err(|error| wrong(&files.key, error))?;
    let unusable = |error: rustls::Error| TlsError::Unusable(error.to_string());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = [&rustls::version::TLS13, &rustls::version::TLS12];
    let config =
        ServerConfig::builder_with_provider(provider).with_protocol_versions(&versions).map_err(unusable)?;
    let mut config = config.with_no_client_auth().with_single_cert(chain, key).map_err(unusable)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// The self-signed certificate of a data folder, made if there is none, for a listener on this address; and
/// its SHA-256 fingerprint, by which people recognise it. `now`: in milliseconds since 1970.
pub fn self_signed(folder: &Path, address: IpAddr, now: u64) -> Result<(CertificateFiles, String), TlsError> {
    let files = CertificateFiles { certificate: folder.join(CERTIFICATE), key: folder.join(KEY) };
    if !files.certificate.exists() || !files.key.exists() {
        make(&files, address, now)?;
    }
    let path = &files.certificate;
    let certificate = CertificateDer::from_pem_file(path)
        .map_err(|error| TlsError::Content(path.clone(), error.to_string()))?;
    let bytes = Sha256::digest(&certificate);
    let fingerprint: Vec<String> = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
    Ok((files, fingerprint.join(":")))
}

fn make(files: &CertificateFiles, address: IpAddr, now: u64) -> Result<(), TlsError> {
    let unusable = |error: rcgen::Error| TlsError::Unusable(error.to_string());
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    if !address.is_unspecified() && !address.is_loopback() {
        names.push(address.to_string());
    }
    let mut params = CertificateParams::new(names).map_err(unusable)?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(rcgen::DnType::CommonName, "Portcullis console");
    // RFC 3339 begins with the year.
    let text = Timestamp::from_epoch_millis(now).rfc3339();
    let year = text.get(..4).and_then(|year| year.parse::<i32>().ok()).unwrap_or(1970);
    // A clock that is a little late must not make it a certificate of the future.
    params.not_before = rcgen::date_time_ymd(year - 1, 1, 1);
    params.not_after = rcgen::date_time_ymd(year + YEARS, 1, 1);
    let key = KeyPair::generate().map_err(unusable)?;
    let certificate = params.self_signed(&key).map_err(unusable)?;
    // The key first: a certificate without it would be taken for a pair.
    write(&files.key, &key.serialize_pem())?;
    write(&files.certificate, &certificate.pem())
}

/// Writes a file for its owner alone, in place of one that may be there.
fn write(path: &Path, text: &str) -> Result<(), TlsError> {
    let failed = |error| TlsError::File(path.to_owned(), error);
    let beside = path.with_extension("new");
    let _ = fs::remove_file(&beside);
    let mut file =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside).map_err(failed)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
    fs::rename(&beside, path).map_err(failed)
}
