//! An authority of one run, and a certificate of the name that everything is called by.

use std::sync::Arc;

use rcgen::{BasicConstraints, Certificate, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};

use crate::Error;

/// The name in the certificate.
pub const NAME: &str = "localhost";

/// A certificate for [`NAME`] and the authority that signed it, both made for this run.
#[derive(Debug)]
pub struct Certificates {
    authority: Certificate,
    certificate: Certificate,
    key: KeyPair,
}

impl Certificates {
    /// Makes them.
    pub fn new() -> Result<Certificates, Error> {
        let mut params = CertificateParams::new(Vec::<String>::new()).map_err(failed)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority_key = KeyPair::generate().map_err(failed)?;
        let authority = params.self_signed(&authority_key).map_err(failed)?;
        let issuer = Issuer::new(params, authority_key);
        let key = KeyPair::generate().map_err(failed)?;
        let params = CertificateParams::new(vec![NAME.to_owned()]).map_err(failed)?;
        let certificate = params.signed_by(&key, &issuer).map_err(failed)?;
        Ok(Certificates { authority, certificate, key })
    }

    /// The authority, as a PEM file has it.
    pub fn authority_pem(&self) -> String {
        self.authority.pem()
    }

    /// The certificate, as a PEM file has it.
    pub fn certificate_pem(&self) -> String {
        self.certificate.pem()
    }

    /// Its key, as a PEM file has it.
    pub fn key_pem(&self) -> String {
        self.key.serialize_pem()
    }

    /// For clients that trust the authority.
    pub fn client(&self) -> Result<Arc<ClientConfig>, Error> {
        let mut roots = RootCertStore::empty();
        roots.add(self.authority.der().clone()).map_err(failed)?;
        let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(failed)?;
        Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
    }

    pub(crate) fn server(&self) -> Result<Arc<ServerConfig>, Error> {
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.key.serialize_der()));
        let builder = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(failed)?;
        let chain = vec![self.certificate.der().clone()];
        Ok(Arc::new(builder.with_no_client_auth().with_single_cert(chain, key).map_err(failed)?))
    }
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::Certificate(error.to_string())
}
