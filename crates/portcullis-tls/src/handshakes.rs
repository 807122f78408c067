//! Counts of TLS handshakes with clients, by outcome.

use std::io;

use portcullis_metrics::{EnumCounters, Registry, catalogue};
use rustls::{CertificateError, Error, HandshakeKind, InvalidMessage, PeerIncompatible};

/// Label values of `portcullis_tls_handshakes_total`.
const KINDS: [&str; 2] = ["full", "resumed"];

/// The reason why a handshake failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// It took longer than a request head may.
    Timeout,
    /// The client left, or the connection broke.
    Closed,
    /// The client does not speak TLS.
    NotTls,
    /// No common version.
    Version,
    /// No common cipher suite, group or signature.
    Parameters,
    /// The client has no certificate and must have one.
    CertificateMissing,
    /// Its certificate is not valid.
    CertificateInvalid,
    /// Its certificate is on the revocation list.
    CertificateRevoked,
    /// The client does not accept what it was offered, our certificate mostly.
    Alert,
    /// Our certificate has not been issued yet.
    NotIssued,
    /// Anything else that is not as TLS has it.
    Other,
}

impl Reason {
    const NAMES: [&str; 11] = [
        "timeout",
        "closed",
        "not_tls",
        "version",
        "parameters",
        "certificate_missing",
        "certificate_invalid",
        "certificate_revoked",
        "alert",
        "not_issued",
        "other",
    ];

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the library's other errors have no reason of their own"
    )]
    fn of(error: &io::Error) -> Reason {
        let Some(error) = error.get_ref().and_then(|error| error.downcast_ref::<Error>()) else {
            return Reason::Closed;
        };
        match error {
            Error::NoCertificatesPresented => Reason::CertificateMissing,
            Error::InvalidCertificate(CertificateError::Revoked) => Reason::CertificateRevoked,
            Error::InvalidCertificate(_) => Reason::CertificateInvalid,
            Error::AlertReceived(_) => Reason::Alert,
            Error::InvalidMessage(
                InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion,
            ) => Reason::NotTls,
            Error::PeerIncompatible(
                PeerIncompatible::SupportedVersionsExtensionRequired
                | PeerIncompatible::Tls12NotOffered
                | PeerIncompatible::Tls12NotOfferedOrEnabled
                | PeerIncompatible::Tls13RequiredForQuic,
            ) => Reason::Version,
            Error::PeerIncompatible(_) => Reason::Parameters,
            _ => Reason::Other,
        }
    }
}

/// Counters of one listener.
pub(crate) struct Handshakes {
    done: EnumCounters,
    failed: EnumCounters,
}

impl Handshakes {
    pub(crate) fn new(registry: &Registry, listener: &str) -> Self {
        Handshakes {
            done: registry.enum_counters(&catalogue::TLS_HANDSHAKES, &[listener], &KINDS),
            failed: registry.enum_counters(&catalogue::TLS_HANDSHAKE_FAILURES, &[listener], &Reason::NAMES),
        }
    }

    pub(crate) fn done(&self, kind: Option<HandshakeKind>) {
        self.done.inc(usize::from(kind == Some(HandshakeKind::Resumed)));
    }

    /// `unissued`: our certificate does not exist yet, which rustls has no error of its own for.
    pub(crate) fn failed(&self, error: &io::Error, unissued: bool) {
        let mut reason = Reason::of(error);
        if unissued && matches!(reason, Reason::Other) {
            reason = Reason::NotIssued;
        }
        self.failed.inc(reason as usize);
    }

    /// As [`failed`](Handshakes::failed), of a handshake over QUIC, which does not say more.
    #[cfg(feature = "http3")]
    #[expect(clippy::wildcard_enum_match_arm, reason = "in every other case the connection ended")]
    pub(crate) fn quic_failed(&self, error: &quinn::ConnectionError, unissued: bool) {
        use quinn::ConnectionError::{ConnectionClosed, TimedOut, TransportError, VersionMismatch};
        let reason = match error {
            TimedOut => Reason::Timeout,
            VersionMismatch => Reason::Version,
            ConnectionClosed(_) => Reason::Alert,
            TransportError(_) if unissued => Reason::NotIssued,
            TransportError(_) => Reason::Other,
            _ => Reason::Closed,
        };
        self.failed.inc(reason as usize);
    }

    pub(crate) fn clear_text(&self) {
        self.failed.inc(Reason::NotTls as usize);
    }

    pub(crate) fn late(&self) {
        self.failed.inc(Reason::Timeout as usize);
    }
}
