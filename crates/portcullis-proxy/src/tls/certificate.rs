//! A certificate of our own, as its files are at present.

use std::sync::Arc;

use arc_swap::ArcSwap;
use portcullis_config::CertificateFiles;
use portcullis_metrics::{EnumCounters, Gauge, Registry, catalogue};
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use rustls::sign::CertifiedKey;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::{certificates, provider};
use crate::StartError;
use crate::watch::Watch;

/// Label values of `portcullis_tls_reloads_total`.
const RESULTS: [&str; 2] = ["ok", "failed"];

/// A certificate with its key, read again when its files change.
#[derive(Debug)]
pub(super) struct Certificate {
    files: CertificateFiles,
    watch: Watch,
    current: ArcSwap<Loaded>,
    expiry: Gauge,
    reloads: EnumCounters,
}

/// What the files held when they were read last.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) key: Arc<CertifiedKey>,
    /// The DNS names that it bears, lower case.
    pub(super) names: Vec<String>,
    /// Seconds since 1970.
    expires: i64,
}

impl Certificate {
    pub(super) fn open(files: &CertificateFiles, registry: &Registry) -> Result<Self, StartError> {
        let watched = [&files.cert, &files.key].into_iter().chain(&files.ocsp).cloned().collect();
        let watch = Watch::new(watched);
        let loaded = load(files)?;
        let expiry = registry.gauge(&catalogue::TLS_CERTIFICATE_EXPIRY, &[&files.cert.display().to_string()]);
        expiry.set(loaded.expires);
        let current = ArcSwap::from_pointee(loaded);
        Ok(Certificate { files: files.clone(), watch, current, expiry, reloads: reloads(registry) })
    }

    pub(super) fn loaded(&self) -> Arc<Loaded> {
        self.current.load_full()
    }

    /// Reads the files again if they have changed; true if there is another certificate now.
    pub(super) fn refresh(&self, say: &(dyn Fn(&str) + Send + Sync)) -> bool {
        match self.watch.refresh(|| load(&self.files)) {
            Some(Ok(loaded)) => {
                self.expiry.set(loaded.expires);
                self.current.store(Arc::new(loaded));
                self.reloads.inc(0);
                say(&format!("{}: the certificate was read again", self.files.cert.display()));
                true
            }
            Some(Err(error)) => {
                self.reloads.inc(1);
                say(&format!("{error}; the certificate of before goes on"));
                false
            }
            None => false,
        }
    }
}

/// The counters of files that were read again.
pub(super) fn reloads(registry: &Registry) -> EnumCounters {
    registry.enum_counters(&catalogue::TLS_RELOADS, &[], &RESULTS)
}

fn load(files: &CertificateFiles) -> Result<Loaded, StartError> {
    let chain = certificates(&files.cert)?;
    let (names, expires) = {
        let wrong = |error| StartError::file(&files.cert, error);
        let (_, leaf) = X509Certificate::from_der(&chain[0]).map_err(wrong)?;
        let alternative = leaf.subject_alternative_name().ok().flatten();
        let names = alternative.iter().flat_map(|names| &names.value.general_names);
        let names = names.filter_map(|name| match name {
            GeneralName::DNSName(name) => Some(name.to_ascii_lowercase()),
            _ => None,
        });
        (names.collect(), leaf.validity().not_after.timestamp())
    };
    let key =
        PrivateKeyDer::from_pem_file(&files.key).map_err(|error| StartError::file(&files.key, error))?;
    let mut key = CertifiedKey::from_der(chain, key, &provider())
        .map_err(|error| StartError::file(&files.key, error))?;
    if let Some(path) = &files.ocsp {
        let response = std::fs::read(path).map_err(|error| StartError::file(path, error))?;
        if !is_successful_ocsp(&response) {
            return Err(StartError::file(path, "it is not a successful OCSP response in DER"));
        }
        key.ocsp = Some(response);
    }
    Ok(Loaded { key: Arc::new(key), names, expires })
}

/// `OCSPResponse ::= SEQUENCE { responseStatus ENUMERATED { successful (0), ... }, ... }`, RFC 6960, 4.2.1.
fn is_successful_ocsp(der: &[u8]) -> bool {
    let body = match der {
        [0x30, length @ 0..=0x7f, rest @ ..] if rest.len() == usize::from(*length) => rest,
        [0x30, 0x81, length, rest @ ..] if rest.len() == usize::from(*length) => rest,
        [0x30, 0x82, high, low, rest @ ..]
            if rest.len() == usize::from(u16::from_be_bytes([*high, *low])) =>
        {
            rest
        }
        _ => return false,
    };
    body.starts_with(&[0x0a, 1, 0])
}

#[cfg(test)]
mod tests {
    use super::is_successful_ocsp;

    #[test]
    fn tells_ocsp_responses() {
        assert!(is_successful_ocsp(&[0x30, 5, 0x0a, 1, 0, 0xa0, 0]));
        assert!(!is_successful_ocsp(&[0x30, 3, 0x0a, 1, 6]), "unauthorized");
        assert!(!is_successful_ocsp(&[0x30, 6, 0x0a, 1, 0, 0xa0, 0]), "cut off");
        assert!(!is_successful_ocsp(b"-----BEGIN"));
        assert!(!is_successful_ocsp(b""));
    }
}
