//! Login at an OpenID Connect provider: the authorization code flow with PKCE, for one client.
//!
//! ```text
//!  Provider::begin ──> URL of the provider, for the browser; Pending, for us
//!      browser <──> provider: who are you? ──> code and state, through the browser
//!  Provider::finish(Pending, code) ──> token endpoint ──> ID token ──verified──> Subject
//!                                        keys (JWKS) ───────┘          userinfo ──┘ if the claim is missing
//! ```
//!
//! - An ID token counts if it is signed by a key of the provider with RS256, PS256 or ES256, is for this
//!   client, of this provider, fresh, and has the nonce of this login. No other algorithm is known here.
//! - The provider's document and keys are kept for an hour. A key that is not known has the keys fetched
//!   again, once a minute at most; a provider that failed is not asked again for five seconds.
//! - Every answer is read up to [`ANSWER_BYTES_MAX`] and within [`Settings::timeout`]; redirects are not
//!   followed, and no proxy that the environment names is used.
//! - Calls block. Times come in as seconds since 1970.
//!
//! The caller keeps what is pending, bound to a browser, and says who may do what.
//!
//! ```
//! use std::time::Duration;
//! use portcullis_oidc::{OidcError, Provider, Settings};
//!
//! let settings = Settings {
//!     issuer: "http://127.0.0.1:1".to_string(),
//!     client_id: "portcullis".to_string(),
//!     client_secret_file: None,
//!     scopes: vec!["openid".to_string()],
//!     ca: None,
//!     groups_claim: "groups".to_string(),
//!     timeout: Duration::from_secs(1),
//! };
//! let provider = Provider::new(settings).unwrap();
//! let wrong = provider.begin("http://localhost/callback", 1_790_000_000).unwrap_err();
//! assert!(matches!(wrong, OidcError::Provider(_)), "nothing listens there");
//! ```

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod claims;
mod connection;
mod error;
mod keys;
mod metadata;
mod pending;
mod provider;
mod token;

pub use claims::Subject;
pub use connection::ANSWER_BYTES_MAX;
pub use error::OidcError;
pub use pending::Pending;
pub use provider::{Provider, Settings};
