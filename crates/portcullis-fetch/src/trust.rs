//! Certificate authorities that we trust: those that a file names, or those of the system.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// Bytes of a PEM file: hundreds of times a bundle of all authorities that browsers trust.
const PEM_BYTES_MAX: u64 = 64 << 20;

/// The text of a PEM file: of certificates, keys or revocation lists.
pub fn pem(path: &Path) -> io::Result<Vec<u8>> {
    portcullis_files::read(path, PEM_BYTES_MAX)
}

/// The certificates of a PEM file, one at least, in their order. Errors begin with the path.
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let wrong = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
    let text = pem(path).map_err(|error| wrong(&error))?;
    let found = CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>();
    let found = found.map_err(|error| wrong(&error))?;
    if found.is_empty() { Err(wrong(&"it has no certificate")) } else { Ok(found) }
}

/// Authorities that may have signed a peer's certificate, one at least.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authorities(Vec<CertificateDer<'static>>);

impl Authorities {
    /// Those of `file`, or those of the system. `key` is the setting that names a file.
    pub fn load(file: Option<&Path>, key: &str) -> Result<Authorities, String> {
        match file {
            Some(path) => Authorities::of_file(path).map_err(|why| format!("`{key}`: {why}")),
            None => Authorities::of_system().map_err(|why| format!("{why}; name a PEM file in `{key}`")),
        }
    }

    /// Those of a PEM file; each has to be one that can be used.
    pub fn of_file(path: &Path) -> Result<Authorities, String> {
        let found = certificates(path)?;
        let mut store = RootCertStore::empty();
        let fits = found.iter().try_for_each(|root| store.add(root.clone()));
        fits.map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Authorities(found))
    }

    /// Those of the operating system (`SSL_CERT_FILE` and `SSL_CERT_DIR` name others), without those that
    /// cannot be used.
    pub fn of_system() -> Result<Authorities, String> {
        let found = rustls_native_certs::load_native_certs().certs;
        let fit = |root: &CertificateDer<'static>| RootCertStore::empty().add(root.clone()).is_ok();
        let found: Vec<_> = found.into_iter().filter(fit).collect();
        if found.is_empty() {
            return Err("the system has no certificate authorities".to_string());
        }
        Ok(Authorities(found))
    }

    /// The certificates, in the order of the file.
    pub fn certificates(&self) -> &[CertificateDer<'static>] {
        &self.0
    }

    /// For connections of our own.
    pub fn store(&self) -> RootCertStore {
        let mut store = RootCertStore::empty();
        store.add_parsable_certificates(self.0.iter().cloned());
        store
    }

    pub(crate) fn https(&self) -> TlsConfig {
        let roots = self.0.iter().map(|root| Certificate::from_der(root).to_owned()).collect();
        TlsConfig::builder()
            .root_certs(RootCerts::Specific(Arc::new(roots)))
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .build()
    }
}
