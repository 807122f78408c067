//! A login that has begun: what only we know of it, and the URL with which it begins.

use data_encoding::BASE64URL_NOPAD;
use form_urlencoded::Serializer;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};

use crate::error::OidcError;

/// Random bytes of each secret.
const BYTES: usize = 32;

/// A login that has begun. It works once: the caller forgets it before it finishes.
#[derive(Clone)]
pub struct Pending {
    pub(crate) state: String,
    pub(crate) nonce: String,
    pub(crate) verifier: String,
    pub(crate) redirect_uri: String,
}

/// Its parts are secrets.
impl std::fmt::Debug for Pending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pending").field("redirect_uri", &self.redirect_uri).finish_non_exhaustive()
    }
}

impl Pending {
    pub(crate) fn new(redirect_uri: &str) -> Result<Pending, OidcError> {
        let random = SystemRandom::new();
        let secret = || {
            let mut bytes = [0; BYTES];
            let filled = random.fill(&mut bytes);
            filled.map_err(|_| OidcError::provider("the system gives no random numbers"))?;
            Ok(BASE64URL_NOPAD.encode(&bytes))
        };
        let redirect_uri = redirect_uri.to_owned();
        Ok(Pending { state: secret()?, nonce: secret()?, verifier: secret()?, redirect_uri })
    }

    /// The parameter `state` with which the browser comes back: 43 characters of base64url.
    pub fn state(&self) -> &str {
        &self.state
    }

    /// The URL at the provider to which the browser goes.
    pub(crate) fn url(&self, endpoint: &str, client_id: &str, scopes: &[String]) -> String {
        let challenge = BASE64URL_NOPAD.encode(digest(&SHA256, self.verifier.as_bytes()).as_ref());
        let mut query = Serializer::new(String::new());
        query
            .append_pair("response_type", "code")
            .append_pair("client_id", client_id)
            .append_pair("redirect_uri", &self.redirect_uri)
            .append_pair("scope", &scopes.join(" "))
            .append_pair("state", &self.state)
            .append_pair("nonce", &self.nonce)
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256");
        let joint = if endpoint.contains('?') { '&' } else { '?' };
        format!("{endpoint}{joint}{}", query.finish())
    }
}
