//! TLS of listeners and towards endpoints, checked.

use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use crate::acme;
use crate::mistakes::Mistakes;
use crate::raw::tls as raw;
use crate::spanned::Spanned;

/// TLS of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerTls {
    /// At least one, unless there are names for ACME.
    pub certificates: Vec<CertificateFiles>,
    /// Names that have a certificate by ACME, each its own.
    pub acme: Vec<String>,
    /// The oldest version that clients may speak.
    pub min_version: TlsVersion,
    /// Certificates of clients.
    pub client_auth: Option<ClientAuth>,
    /// The time for which a key protects session tickets.
    pub ticket_key_life: Duration,
}

/// PEM files of one certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// Chain, leaf first.
    pub cert: PathBuf,
    /// Private key.
    pub key: PathBuf,
    /// An OCSP response, DER.
    pub ocsp: Option<PathBuf>,
}

/// A version of TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsVersion {
    /// RFC 5246.
    #[default]
    Tls12,
    /// RFC 8446.
    Tls13,
}

/// Certificates of clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientAuth {
    /// PEM file with the authorities that may sign them.
    pub ca: PathBuf,
    /// A client without one is refused.
    pub required: bool,
    /// PEM file with certificate revocation lists.
    pub crl: Option<PathBuf>,
}

/// TLS towards endpoints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpstreamTls {
    /// PEM file of the only authorities to trust.
    pub ca: Option<PathBuf>,
    /// SHA-256 of the certificates or public keys that are accepted; none: whatever the authorities have
    /// signed.
    pub pins: Vec<[u8; 32]>,
    /// Name to verify and to ask for.
    pub name: Option<String>,
    /// The certificate for endpoints that ask for one.
    pub certificate: Option<CertificateFiles>,
    /// The oldest version to speak.
    pub min_version: TlsVersion,
}

/// Ticket keys live as long as those of rustls unless told otherwise, and never longer.
const TICKET_KEY_LIFE: Duration = Duration::from_secs(6 * 3600);
const TICKET_KEY_LIFE_MIN: Duration = Duration::from_secs(60);

/// `listener` is where it is named.
pub(crate) fn listener(
    mistakes: &mut Mistakes<'_>,
    raw: raw::ListenerTls,
    listener: &Range<usize>,
) -> ListenerTls {
    if raw.acme.is_none() && raw.certificates.as_ref().is_none_or(|files| files.is_empty()) {
        mistakes.wrong_with_hint(
            raw.certificates.as_ref().map_or(listener, |files| &files.span).clone(),
            "TLS needs a certificate".to_string(),
            "name files in `certificates = [{ cert = \"...\", key = \"...\" }]`, or have one ordered with `acme = {}`"
                .to_string(),
        );
    }
    let files = raw.certificates.iter().flat_map(|files| &files.value);
    ListenerTls {
        acme: raw.acme.as_ref().map(|raw| acme::domains(mistakes, raw)).unwrap_or_default(),
        certificates: files
            .map(|pair| CertificateFiles {
                cert: mistakes.path(&pair.cert),
                key: mistakes.path(&pair.key),
                ocsp: pair.ocsp.as_ref().map(|ocsp| mistakes.path(ocsp)),
            })
            .collect(),
        min_version: version(raw.min_version),
        client_auth: raw.client_auth.map(|auth| ClientAuth {
            ca: mistakes.path(&auth.ca),
            required: auth.mode != Some(raw::ClientAuthMode::Optional),
            crl: auth.crl.map(|crl| mistakes.path(&crl)),
        }),
        ticket_key_life: raw.ticket_key_life.map_or(TICKET_KEY_LIFE, |Spanned { value, span }| {
            if !(TICKET_KEY_LIFE_MIN..=TICKET_KEY_LIFE).contains(&value.0) {
                mistakes.wrong(span, "ticket_key_life must be 1m to 6h".to_string());
            }
            value.0
        }),
    }
}

pub(crate) fn upstream(mistakes: &mut Mistakes<'_>, raw: raw::UpstreamTls) -> UpstreamTls {
    let certificate = match (raw.cert, raw.key) {
        (Some(cert), Some(key)) => {
            Some(CertificateFiles { cert: mistakes.path(&cert), key: mistakes.path(&key), ocsp: None })
        }
        (Some(one), None) | (None, Some(one)) => {
            let message = "a certificate for endpoints needs both `cert` and `key`".to_string();
            mistakes.wrong(one.span, message);
            None
        }
        (None, None) => None,
    };
    UpstreamTls {
        ca: raw.ca.map(|ca| mistakes.path(&ca)),
        pins: raw.pin.iter().filter_map(|text| pin(mistakes, text)).collect(),
        name: raw.name.map(|name| name.value),
        certificate,
        min_version: version(raw.min_version),
    }
}

/// A SHA-256 as OpenSSL, curl and browsers show it.
fn pin(mistakes: &mut Mistakes<'_>, text: &Spanned<String>) -> Option<[u8; 32]> {
    let shown = text.strip_prefix("sha256//").or(text.strip_prefix("sha256:")).unwrap_or(text);
    let read = hexadecimal(shown).or_else(|| base64(shown));
    if read.is_none() {
        mistakes.wrong_with_hint(
            text.span.clone(),
            "this is not a SHA-256: 64 hexadecimal digits, or 44 letters of Base64".to_string(),
            "`openssl x509 -in server.pem -noout -fingerprint -sha256` shows that of a certificate"
                .to_string(),
        );
    }
    read
}

fn hexadecimal(text: &str) -> Option<[u8; 32]> {
    let digits = text.chars().filter(|letter| *letter != ':').map(|letter| letter.to_digit(16));
    let digits: Vec<u8> = digits.map(|digit| digit.map(|digit| digit as u8)).collect::<Option<_>>()?;
    let bytes: Vec<u8> = digits.chunks(2).map(|pair| pair[0] << 4 | pair.get(1).unwrap_or(&0)).collect();
    (digits.len() == 64).then(|| bytes.try_into().ok()).flatten()
}

fn base64(text: &str) -> Option<[u8; 32]> {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let text = text.strip_suffix('=').unwrap_or(text);
    let value = |letter| LETTERS.iter().position(|known| *known == letter);
    let values: Vec<usize> = text.bytes().map(value).collect::<Option<_>>()?;
    let bits = values.iter().flat_map(|value| (0..6).rev().map(move |bit| (value >> bit & 1) as u8));
    let bits: Vec<u8> = bits.collect();
    let bytes: Vec<u8> =
        bits.chunks_exact(8).map(|eight| eight.iter().fold(0, |byte, bit| byte << 1 | bit)).collect();
    (values.len() == 43 && bits[256..] == [0, 0]).then(|| bytes.try_into().ok()).flatten()
}

fn version(raw: Option<raw::TlsVersion>) -> TlsVersion {
    match raw {
        Some(raw::TlsVersion::Tls13) => TlsVersion::Tls13,
        Some(raw::TlsVersion::Tls12) | None => TlsVersion::Tls12,
    }
}
