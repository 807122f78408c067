//! TLS towards endpoints.

use std::sync::Arc;

use portcullis_config::{Endpoint, UpstreamProtocol, UpstreamTls as Settings};
use portcullis_fetch::Authorities;
use portcullis_metrics::Registry;
use rustls::client::ResolvesClientCert;
use rustls::pki_types::ServerName;
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, SignatureScheme};

use crate::StartError;
use crate::certificate::Certificate;
use crate::verify::Verifier;
use crate::{provider, versions};

/// TLS towards the endpoints of a group, or an agent.
pub struct UpstreamTls {
    /// The settings of connections.
    pub config: Arc<ClientConfig>,
    /// The name to ask for and to find in certificates, if it is not the endpoint's host.
    name: Option<String>,
    shown: Option<Arc<Shown>>,
}

impl UpstreamTls {
    /// Reads all files: the authorities that the settings name, else those of the system unless there are
    /// pins.
    pub fn build(
        settings: &Settings,
        protocol: UpstreamProtocol,
        registry: &Arc<Registry>,
    ) -> Result<Self, StartError> {
        let is_pin_enough = settings.ca.is_none() && !settings.pins.is_empty();
        let load = || Authorities::load(settings.ca.as_deref(), "tls.ca").map_err(StartError::new);
        let authorities = (!is_pin_enough).then(load).transpose()?;
        let wrong = |error: &dyn std::fmt::Display| StartError::new(format!("TLS: {error}"));
        let verifier = Verifier::new(authorities, settings.ca.is_some(), &settings.pins)
            .map_err(|error| wrong(&error))?;
        let builder = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(versions(settings.min_version))
            .map_err(|error| wrong(&error))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let certificate = settings.certificate.as_ref().map(|files| Certificate::open(files, registry));
        let shown = certificate.transpose()?.map(|certificate| Arc::new(Shown(certificate)));
        let mut config = match &shown {
            Some(shown) => builder.with_client_cert_resolver(Arc::clone(shown) as _),
            None => builder.with_no_client_auth(),
        };
        let protocols: &[&[u8]] = match protocol {
            UpstreamProtocol::Http1 => &[b"http/1.1"],
            UpstreamProtocol::Http2 => &[b"h2"],
            UpstreamProtocol::Auto => &[b"h2", b"http/1.1"],
        };
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        Ok(UpstreamTls { config: Arc::new(config), name: settings.name.clone(), shown })
    }

    /// The name to ask an endpoint for and to find in its certificate.
    pub fn server_name(&self, endpoint: &Endpoint) -> Result<ServerName<'static>, StartError> {
        let name = self.name.as_ref().unwrap_or(&endpoint.host);
        ServerName::try_from(name.clone())
            .map_err(|_| StartError::new(format!("`{name}` is not a name that a certificate can have")))
    }

    /// Takes a changed certificate into use, for new connections.
    pub fn refresh(&self, say: &(dyn Fn(&str) + Send + Sync)) {
        if let Some(shown) = &self.shown {
            shown.0.refresh(say);
        }
    }
}

/// The certificate for endpoints that ask for one.
#[derive(Debug)]
struct Shown(Certificate);

impl ResolvesClientCert for Shown {
    fn resolve(&self, _authorities: &[&[u8]], schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        let key = Arc::clone(&self.0.loaded()?.key);
        key.key.choose_scheme(schemes).is_some().then_some(key)
    }

    fn has_certs(&self) -> bool {
        true
    }
}
