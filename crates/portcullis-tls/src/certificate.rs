//! A certificate of our own, as its files are at present.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use portcullis_config::CertificateFiles;
use portcullis_fetch::{certificates, pem};
use portcullis_metrics::{EnumCounters, Registry, catalogue};
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use rustls::sign::CertifiedKey;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::StartError;
use crate::Watch;
use crate::{provider, subject};

/// Label values of `portcullis_tls_reloads_total`.
const RESULTS: [&str; 2] = ["ok", "failed"];

/// A certificate with its key, read again when its files change.
#[derive(Debug)]
pub(crate) struct Certificate {
    files: CertificateFiles,
    /// It comes by itself.
    is_ordered: bool,
    watch: Watch,
    /// None as long as it has not been issued yet.
    current: ArcSwapOption<Loaded>,
    registry: Arc<Registry>,
    reloads: EnumCounters,
}

/// The contents of the files when they were read last.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) key: Arc<CertifiedKey>,
    /// The DNS names that it bears, lower case.
    pub(crate) names: Vec<String>,
    /// The issuer, as RFC 4514 writes it.
    pub(crate) issuer: String,
    pub(crate) life: Life,
}

/// A certificate of a listener, for those who look at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateStatus {
    /// The file with its chain.
    pub file: PathBuf,
    /// It is ordered by ACME.
    pub is_ordered: bool,
    /// The contents; none as long as it has not been issued.
    pub issued: Option<IssuedCertificate>,
}

/// The contents of a certificate that is in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuedCertificate {
    /// The DNS names that it bears, lower case.
    pub names: Vec<String>,
    /// The issuer, as RFC 4514 writes it.
    pub issuer: String,
    /// From when until when it is valid.
    pub life: Life,
}

/// From when until when a certificate is valid, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    /// The first second of it.
    pub from: i64,
    /// The last second of it.
    pub until: i64,
}

impl Certificate {
    pub(crate) fn open(files: &CertificateFiles, registry: &Arc<Registry>) -> Result<Self, StartError> {
        let certificate = Certificate::unread(files, false, registry);
        certificate.take(load(files)?);
        Ok(certificate)
    }

    /// One that comes by itself, with its key in the same file: without it, or if it is of no use, there is
    /// none.
    pub(crate) fn awaited(path: &Path, registry: &Arc<Registry>) -> Self {
        let files = in_one_file(path);
        let certificate = Certificate::unread(&files, true, registry);
        if let Ok(loaded) = load(&files) {
            certificate.take(loaded);
        }
        certificate
    }

    fn unread(files: &CertificateFiles, is_ordered: bool, registry: &Arc<Registry>) -> Self {
        let watched = [&files.cert, &files.key].into_iter().chain(&files.ocsp).cloned().collect();
        let (watch, current) = (Watch::new(watched), ArcSwapOption::empty());
        let (registry, reloads) = (Arc::clone(registry), reloads(registry));
        Certificate { files: files.clone(), is_ordered, watch, current, registry, reloads }
    }

    fn take(&self, loaded: Loaded) {
        let file = self.files.cert.display().to_string();
        self.registry.gauge(&catalogue::TLS_CERTIFICATE_EXPIRY, &[&file]).set(loaded.life.until);
        self.current.store(Some(Arc::new(loaded)));
    }

    pub(crate) fn loaded(&self) -> Option<Arc<Loaded>> {
        self.current.load_full()
    }

    pub(crate) fn status(&self) -> CertificateStatus {
        let issued = self.loaded().map(|loaded| IssuedCertificate {
            names: loaded.names.clone(),
            issuer: loaded.issuer.clone(),
            life: loaded.life,
        });
        CertificateStatus { file: self.files.cert.clone(), is_ordered: self.is_ordered, issued }
    }

    /// Reads the files again if they have changed; true if there is another certificate now.
    pub(crate) fn refresh(&self, say: &(dyn Fn(&str) + Send + Sync)) -> bool {
        match self.watch.refresh(|| load(&self.files)) {
            Some(Ok(loaded)) => {
                let again = if self.current.load().is_some() { " again" } else { "" };
                self.take(loaded);
                self.reloads.inc(0);
                say(&format!("{}: the certificate was read{again}", self.files.cert.display()));
                true
            }
            Some(Err(error)) => {
                self.reloads.inc(1);
                say(&format!("{error}; keeping the previous certificate"));
                false
            }
            None => false,
        }
    }
}

/// The counters of files that were read again.
pub(crate) fn reloads(registry: &Registry) -> EnumCounters {
    registry.enum_counters(&catalogue::TLS_RELOADS, &[], &RESULTS)
}

/// The names and the life of a certificate that is in one file with its key, if it can be used.
pub fn kept(path: &Path) -> Result<(Vec<String>, Life), StartError> {
    load(&in_one_file(path)).map(|loaded| (loaded.names, loaded.life))
}

/// From when until when the certificate of a file is valid.
pub fn life_of(path: &Path) -> Result<Life, StartError> {
    let chain = certificates(path).map_err(StartError::new)?;
    let (_, leaf) = X509Certificate::from_der(&chain[0]).map_err(|error| StartError::file(path, error))?;
    Ok(Life { from: leaf.validity().not_before.timestamp(), until: leaf.validity().not_after.timestamp() })
}

fn in_one_file(path: &Path) -> CertificateFiles {
    CertificateFiles { cert: path.to_path_buf(), key: path.to_path_buf(), ocsp: None }
}

/// Bytes of an OCSP response; they are some thousand.
const OCSP_BYTES_MAX: u64 = 1 << 20;

#[expect(clippy::wildcard_enum_match_arm, reason = "the library's other errors speak for themselves")]
fn load(files: &CertificateFiles) -> Result<Loaded, StartError> {
    let chain = certificates(&files.cert).map_err(StartError::new)?;
    let (names, issuer, life) = {
        let wrong = |error| StartError::file(&files.cert, error);
        let (_, leaf) = X509Certificate::from_der(&chain[0]).map_err(wrong)?;
        let alternative = leaf.subject_alternative_name().ok().flatten();
        let names = alternative.iter().flat_map(|names| &names.value.general_names);
        let names = names.filter_map(|name| {
            if let GeneralName::DNSName(name) = name { Some(name.to_ascii_lowercase()) } else { None }
        });
        let validity = leaf.validity();
        let life = Life { from: validity.not_before.timestamp(), until: validity.not_after.timestamp() };
        (names.collect(), subject::name(leaf.issuer()), life)
    };
    let key = pem(&files.key).map_err(|error| StartError::file(&files.key, error))?;
    let key = PrivateKeyDer::from_pem_slice(&key).map_err(|error| StartError::file(&files.key, error))?;
    let mut key = CertifiedKey::from_der(chain, key, &provider()).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => {
            let why = format!("this key does not belong to the certificate in {}", files.cert.display());
            StartError::file(&files.key, why)
        }
        error => StartError::file(&files.key, error),
    })?;
    if let Some(path) = &files.ocsp {
        let response =
            portcullis_files::read(path, OCSP_BYTES_MAX).map_err(|error| StartError::file(path, error))?;
        if !is_successful_ocsp(&response) {
            return Err(StartError::file(path, "it is not a successful OCSP response in DER"));
        }
        key.ocsp = Some(response);
    }
    Ok(Loaded { key: Arc::new(key), names, issuer, life })
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
