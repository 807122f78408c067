//! TLS of listeners and towards endpoints, as written in the document.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::acme;
use crate::spanned::Spanned;
use crate::units::Time;

/// TLS of a listener.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListenerTls {
    /// Certificates; the name the client asks for (SNI) selects one, and the first serves all other names. At
    /// least one, unless there is `acme`.
    pub certificates: Option<Spanned<Vec<Certificate>>>,
    /// Certificates from ACME, used after those of files; requires the document's `acme`. Default: none.
    pub acme: Option<Spanned<acme::RawListener>>,
    /// The oldest version that clients may speak. Default: `1.2`.
    pub min_version: Option<TlsVersion>,
    /// Certificates of clients. Default: none are asked for.
    pub client_auth: Option<ClientAuth>,
    /// Lifetime of a session ticket key; tickets issued under it are accepted for as long again. 1m to
    /// 6h. Default: 6h.
    pub ticket_key_life: Option<Spanned<Time>>,
}

/// A certificate chain and its key, both PEM.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Certificate {
    /// File with the certificate chain, leaf first.
    pub cert: String,
    /// File with the private key.
    pub key: String,
    /// File with an OCSP response (DER) that is stapled. Default: none.
    pub ocsp: Option<String>,
}

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub(crate) enum TlsVersion {
    /// RFC 5246.
    #[serde(rename = "1.2")]
    Tls12,
    /// RFC 8446.
    #[serde(rename = "1.3")]
    Tls13,
}

/// Certificates of clients.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClientAuth {
    /// PEM file with the authorities that may sign them.
    pub ca: String,
    /// Requirement of a client certificate. Default: `required`.
    pub mode: Option<ClientAuthMode>,
    /// PEM file with certificate revocation lists of these authorities. Default: none.
    pub crl: Option<String>,
}

/// Requirement of a client certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ClientAuthMode {
    /// Without one there is no connection.
    Required,
    /// It may come without one; one that is not valid is refused.
    Optional,
}

/// TLS towards endpoints.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UpstreamTls {
    /// PEM file with the only certificate authorities to trust, or with the endpoint's own certificate, which
    /// need not be signed by one. Default: those of the system.
    pub ca: Option<String>,
    /// SHA-256 of the endpoint's certificate or of its public key: hexadecimal, with or without colons, or
    /// Base64 (`sha256//...` as for curl). One of them must be that of what the endpoint shows; without `ca`
    /// nothing else is verified, neither authority nor name nor dates. Default: none.
    #[serde(default)]
    pub pin: Vec<Spanned<String>>,
    /// Name the certificate must bear and that is asked for (SNI). Default: the host of the endpoint.
    pub name: Option<Spanned<String>>,
    /// PEM file with the certificate chain to show to endpoints that ask for one; with `key`. Default: none.
    pub cert: Option<Spanned<String>>,
    /// PEM file with its private key.
    pub key: Option<Spanned<String>>,
    /// The oldest version to speak. Default: `1.2`.
    pub min_version: Option<TlsVersion>,
}
