//! TLS on both sides: certificates selected by SNI towards clients, verification towards upstreams.

use std::path::Path;
use std::sync::Arc;

use portcullis_config::{CertificateFiles, UpstreamTls};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, RootCertStore, ServerConfig};

use crate::StartError;

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// The settings of a listener with these certificates.
pub(crate) fn server_config(files: &[CertificateFiles]) -> Result<Arc<ServerConfig>, StartError> {
    let keys = files.iter().map(certified_key).collect::<Result<Vec<_>, _>>()?;
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| StartError::new(format!("TLS: {error}")))?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(BySni { keys }));
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    if let Ok(ticketer) = rustls::crypto::ring::Ticketer::new() {
        config.ticketer = ticketer;
    }
    Ok(Arc::new(config))
}

/// The settings towards an upstream: its own authorities if it names some, else those of the system.
pub(crate) fn client_config(settings: &UpstreamTls) -> Result<Arc<ClientConfig>, StartError> {
    let mut roots = RootCertStore::empty();
    match &settings.ca {
        Some(path) => {
            for certificate in certificates(path)? {
                roots.add(certificate).map_err(|error| StartError::file(path, error))?;
            }
        }
        None => {
            let found = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(found.certs);
            if roots.is_empty() {
                let hint = "name a PEM file in `tls.ca` of the upstream";
                return Err(StartError::new(format!("the system has no certificate authorities; {hint}")));
            }
        }
    }
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| StartError::new(format!("TLS: {error}")))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, StartError> {
    let found: Vec<_> = CertificateDer::pem_file_iter(path)
        .and_then(|certificates| certificates.collect())
        .map_err(|error| StartError::file(path, error))?;
    if found.is_empty() {
        return Err(StartError::file(path, "it holds no certificate"));
    }
    Ok(found)
}

fn certified_key(files: &CertificateFiles) -> Result<Arc<CertifiedKey>, StartError> {
    let chain = certificates(&files.cert)?;
    let key =
        PrivateKeyDer::from_pem_file(&files.key).map_err(|error| StartError::file(&files.key, error))?;
    let key = CertifiedKey::from_der(chain, key, &provider())
        .map_err(|error| StartError::file(&files.key, error))?;
    Ok(Arc::new(key))
}

/// Takes the first certificate that bears the name the client asks for, else the first of all.
#[derive(Debug)]
struct BySni {
    /// At least one.
    keys: Vec<Arc<CertifiedKey>>,
}

impl ResolvesServerCert for BySni {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name().and_then(|name| ServerName::try_from(name).ok());
        let bears = |key: &&Arc<CertifiedKey>| {
            let (Some(name), Some(leaf)) = (&name, key.cert.first()) else { return false };
            ParsedCertificate::try_from(leaf)
                .is_ok_and(|leaf| rustls::client::verify_server_name(&leaf, name).is_ok())
        };
        self.keys.iter().find(bears).or(self.keys.first()).cloned()
    }
}
