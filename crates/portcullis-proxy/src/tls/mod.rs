//! TLS on both sides: certificates selected by SNI and, if they are asked for, of clients; verification towards upstreams.
//!
//! Files of certificates are looked at each second and read again when they have changed, without a reload of settings.

mod certificate;
mod clear_text;
mod handshakes;
mod listener;
mod resolver;
mod subject;
mod upstream;

use std::sync::Arc;

use portcullis_config::TlsVersion;
use rustls::SupportedProtocolVersion;
use rustls::crypto::CryptoProvider;

pub(crate) use certificate::{Life, kept, life_of};
pub(crate) use listener::ListenerTls;
pub(crate) use subject::ClientCertificate;
pub(crate) use upstream::UpstreamTls;

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

static TLS13_ONLY: [&SupportedProtocolVersion; 1] = [&rustls::version::TLS13];

fn versions(oldest: TlsVersion) -> &'static [&'static SupportedProtocolVersion] {
    match oldest {
        TlsVersion::Tls12 => rustls::ALL_VERSIONS,
        TlsVersion::Tls13 => &TLS13_ONLY,
    }
}
