//! The provider's document (OpenID Connect Discovery 1.0), checked.

use std::net::IpAddr;

use http::Uri;
use serde::Deserialize;

use crate::connection::Connection;
use crate::error::OidcError;

/// What is needed of the provider's document.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Metadata {
    issuer: String,
    pub(crate) authorization_endpoint: String,
    pub(crate) token_endpoint: String,
    pub(crate) jwks_uri: String,
    pub(crate) userinfo_endpoint: Option<String>,
    #[serde(default)]
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) authorization_response_iss_parameter_supported: bool,
}

/// Ways in which a client with a secret shows it at the token endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SecretIn {
    /// `client_secret_basic`.
    Header,
    /// `client_secret_post`.
    Form,
}

impl Metadata {
    /// The document of the provider with this name.
    pub(crate) fn fetch(connection: &Connection, issuer: &str) -> Result<Metadata, OidcError> {
        let base = issuer.strip_suffix('/').unwrap_or(issuer);
        let url = format!("{base}/.well-known/openid-configuration");
        let found: Metadata = connection.get(&url, "its document (openid-configuration)", None)?;
        // Exactly, or another provider could speak for this one (Discovery, 4.3).
        if found.issuer != issuer {
            let message =
                "its document names another issuer than `admin.oidc.issuer`, which must be the same text";
            return Err(OidcError::provider(message));
        }
        let endpoints = [&found.authorization_endpoint, &found.token_endpoint, &found.jwks_uri];
        for endpoint in endpoints.into_iter().chain(&found.userinfo_endpoint) {
            if !is_endpoint(endpoint, issuer.starts_with("https://")) {
                return Err(OidcError::provider(
                    "its document names an endpoint whose URL is not `https` as its own",
                ));
            }
        }
        Ok(found)
    }

    /// Where the client's secret goes; none if the provider takes it in no way that is known here.
    pub(crate) fn secret_in(&self) -> Option<SecretIn> {
        let Some(methods) = &self.token_endpoint_auth_methods_supported else {
            return Some(SecretIn::Header);
        };
        let takes = |method: &str| methods.iter().any(|taken| taken == method);
        match (takes("client_secret_basic"), takes("client_secret_post")) {
            (true, _) => Some(SecretIn::Header),
            (false, true) => Some(SecretIn::Form),
            (false, false) => None,
        }
    }
}

/// True for a URL that can be asked: over TLS, or, of a provider without TLS on this machine, there.
fn is_endpoint(text: &str, is_tls: bool) -> bool {
    let Ok(uri) = text.parse::<Uri>() else { return false };
    let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else { return false };
    let host = authority.host().trim_matches(['[', ']']);
    let is_local = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#');
    let fits = if is_tls { scheme == "https" } else { scheme == "http" && is_local };
    fits && is_plain && !host.is_empty() && !authority.as_str().contains('@')
}

#[cfg(test)]
mod tests {
    use super::is_endpoint;

    #[test]
    fn endpoints_are_urls_over_tls() {
        for (text, with_tls, on_this_machine) in [
            ("https://login.example/token", true, false),
            ("https://login.example:8443/token?realm=main", true, false),
            ("http://login.example/token", false, false),
            ("http://127.0.0.1:1/token", false, true),
            ("http://[::1]:1/token", false, true),
            ("http://localhost.evil.example/token", false, false),
            ("https://user@login.example/token", false, false),
            ("https://login.example/token#there", false, false),
            ("https://login.example/to ken", false, false),
            ("https:///token", false, false),
            ("/token", false, false),
            ("javascript:alert(1)", false, false),
            ("file:///etc/passwd", false, false),
            ("", false, false),
        ] {
            assert_eq!(
                (is_endpoint(text, true), is_endpoint(text, false)),
                (with_tls, on_this_machine),
                "{text}"
            );
        }
    }
}
