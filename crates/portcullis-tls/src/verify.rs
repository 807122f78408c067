//! Verification of endpoints' certificates: by authorities, by the certificate itself, by pins.

use std::fmt;
use std::io;
use std::sync::Arc;

use portcullis_fetch::Authorities;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};
use sha2::{Digest, Sha256};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::provider;

/// Verifies the certificate of an endpoint.
pub(crate) struct Verifier {
    /// None: the pins are enough.
    by_authority: Option<Arc<WebPkiServerVerifier>>,
    /// Certificates of the file that the settings name: an endpoint that shows one of them needs no
    /// authority.
    own: Vec<CertificateDer<'static>>,
    pins: Vec<[u8; 32]>,
    provider: Arc<CryptoProvider>,
}

impl Verifier {
    /// `named`: the authorities are those that the settings name, not those of the system.
    pub(crate) fn new(
        authorities: Option<Authorities>,
        named: bool,
        pins: &[[u8; 32]],
    ) -> Result<Verifier, rustls::server::VerifierBuilderError> {
        let own = authorities.iter().filter(|_| named).flat_map(Authorities::certificates).cloned().collect();
        let by_authority = authorities.map(|authorities| {
            WebPkiServerVerifier::builder_with_provider(Arc::new(authorities.store()), provider()).build()
        });
        let by_authority = by_authority.transpose()?;
        Ok(Verifier { by_authority, own, pins: pins.to_vec(), provider: provider() })
    }

    fn is_pinned(&self, certificate: &CertificateDer<'_>) -> bool {
        let is_one = |bytes: &[u8]| self.pins.contains(&Sha256::digest(bytes).into());
        is_one(certificate)
            || X509Certificate::from_der(certificate).is_ok_and(|(_, read)| is_one(read.public_key().raw))
    }
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verifier").field("own", &self.own.len()).field("pins", &self.pins.len()).finish()
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if !self.pins.is_empty() && !self.is_pinned(end_entity) {
            return Err(
                CertificateError::Other(rustls::OtherError(Arc::new(NotPinned::of(end_entity)))).into()
            );
        }
        let Some(by_authority) = &self.by_authority else { return Ok(ServerCertVerified::assertion()) };
        if self.own.iter().any(|own| own == end_entity) {
            // A certificate that servers make for themselves is often one of an authority, too, which no
            // chain may end in. It is trusted as what it is.
            verify_dates(end_entity, now)?;
            verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
            return Ok(ServerCertVerified::assertion());
        }
        by_authority.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

fn verify_dates(certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), CertificateError> {
    let (_, read) = X509Certificate::from_der(certificate).map_err(|_| CertificateError::BadEncoding)?;
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let validity = read.validity();
    match () {
        () if now < validity.not_before.timestamp() => Err(CertificateError::NotValidYet),
        () if now > validity.not_after.timestamp() => Err(CertificateError::Expired),
        () => Ok(()),
    }
}

/// The certificate is not one of those that the settings accept.
#[derive(Debug)]
struct NotPinned {
    certificate: [u8; 32],
}

impl NotPinned {
    fn of(certificate: &CertificateDer<'_>) -> Self {
        NotPinned { certificate: Sha256::digest(certificate).into() }
    }
}

impl fmt::Display for NotPinned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: String = self.certificate.iter().map(|byte| format!("{byte:02x}")).collect();
        write!(f, "`tls.pin` does not have its SHA-256, {shown}")
    }
}

impl std::error::Error for NotPinned {}

/// Why a handshake with an endpoint failed, for the operator, with what to do about it.
#[expect(clippy::wildcard_enum_match_arm, reason = "the library's other errors speak for themselves")]
pub fn why_failed(error: &io::Error) -> String {
    let Some(error) = error.get_ref().and_then(|error| error.downcast_ref::<Error>()) else {
        return if let io::ErrorKind::UnexpectedEof = error.kind() {
            "it closed the connection in the handshake".to_string()
        } else {
            error.to_string()
        };
    };
    match error {
        Error::InvalidCertificate(why) => format!("its certificate is not accepted: {}", refused(why)),
        Error::InvalidMessage(_) => format!("it does not speak TLS ({error}); is it meant to be `http://`?"),
        Error::AlertReceived(alert) => format!("it refused the handshake with the alert {alert:?}"),
        other => other.to_string(),
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the library's other errors speak for themselves")]
fn refused(why: &CertificateError) -> String {
    match why {
        // Another authority of the same name has signed something else.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "unknown issuer; name its authority, or the certificate itself, in `tls.ca`, or its SHA-256 in `tls.pin`"
                .to_string()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!("{why}; name what it bears in `tls.name`")
        }
        CertificateError::Other(other) => match other.0.downcast_ref::<NotPinned>() {
            Some(not_pinned) => not_pinned.to_string(),
            None if format!("{other:?}").contains("CaUsedAsEndEntity") => {
                "it is that of an authority; name the certificate itself in `tls.ca`, or its SHA-256 in `tls.pin`"
                    .to_string()
            }
            None => format!("{other}"),
        },
        CertificateError::UnsupportedSignatureAlgorithmContext { .. } => "its signature algorithm is not supported".to_string(),
        why => why.to_string(),
    }
}
