//! TLS on both sides: certificates selected by SNI and, if they are asked for, of clients; verification
//! towards upstreams.
//!
//! Files of certificates are looked at each second and read again when they have changed, without a reload of
//! settings.

//!
//! ```text
//!  listener ──> ListenerTls ──> BySni ──> Certificate: files, or what acme::run has ordered
//!  upstream ──> UpstreamTls ──> Authorities (portcullis-fetch)
//! ```
//!
//! The crate does handshakes; how long one may take and what follows it is the proxy's. It writes the files
//! of ACME, and no others.
//!
//! ```
//! use portcullis_tls::Watch;
//!
//! let mut watch = Watch::listing(|| vec!["/nowhere/shop.pem".into()]);
//! assert!(watch.refresh(|| Ok::<_, ()>(())).is_none(), "nothing has changed");
//! ```

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

pub mod acme;
mod certificate;
mod clear_text;
mod error;
mod handshakes;
mod listener;
mod resolver;
mod subject;
mod upstream;
mod verify;
mod watch;

use std::sync::Arc;

use portcullis_config::TlsVersion;
use rustls::SupportedProtocolVersion;
use rustls::crypto::CryptoProvider;

pub use certificate::{CertificateStatus, IssuedCertificate, Life, life_of};
pub use error::StartError;
pub use listener::ListenerTls;
pub use subject::ClientCertificate;
pub use upstream::UpstreamTls;
pub use verify::why_failed;
pub use watch::Watch;

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
