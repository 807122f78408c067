use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// How a collector is known over TLS: by the authorities of `file`, or those of the system.
pub(crate) fn tls(file: Option<&Path>) -> io::Result<TlsConfig> {
    let roots = match file {
        Some(path) => {
            let wrong = |why: String| io::Error::other(format!("tracing.ca: {}: {why}", path.display()));
            of_file(path).map_err(wrong)?
        }
        None => rustls_native_certs::load_native_certs().certs,
    };
    if roots.is_empty() {
        let hint = "name a PEM file in `tracing.ca`";
        return Err(io::Error::other(format!("the system has no certificate authorities; {hint}")));
    }
    let roots = roots.iter().map(|root| Certificate::from_der(root).to_owned()).collect();
    Ok(TlsConfig::builder()
        .root_certs(RootCerts::Specific(Arc::new(roots)))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build())
}

fn of_file(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Vec<CertificateDer<'static>> =
        CertificateDer::pem_file_iter(path).and_then(Iterator::collect).map_err(|error| error.to_string())?;
    if found.is_empty() {
        return Err("it holds no certificate".to_string());
    }
    // The client leaves out what it cannot read; the operator is to know.
    let mut store = RootCertStore::empty();
    found.iter().try_for_each(|root| store.add(root.clone())).map_err(|error| error.to_string())?;
    Ok(found)
}
