//! The provider: what is known of it, and the two steps of a login.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use data_encoding::BASE64;
use form_urlencoded::{Serializer, byte_serialize};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::claims::{self, Subject};
use crate::connection::Connection;
use crate::error::OidcError;
use crate::keys::{Key, RawKeys};
use crate::metadata::{Metadata, SecretIn};
use crate::pending::Pending;
use crate::token::{Expected, Token};

/// Seconds that the provider's document and keys are kept.
const KEEP_S: u64 = 3600;
/// Seconds between two fetches of keys because one is not known.
const REFETCH_S: u64 = 60;
/// Seconds that a provider which failed is not asked for its document or keys again.
const PAUSE_S: u64 = 5;
/// Bytes of the file with the client's secret.
const SECRET_BYTES_MAX: u64 = 4096;
/// Characters of an error of the provider that are reported.
const REASON_MAX: usize = 200;

/// A provider, and the client that we are to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Its name, an `https` URL; `http` is for one on this machine.
    pub issuer: String,
    /// The name under which it knows us.
    pub client_id: String,
    /// File with the client's secret, read at each login; none: a public client.
    pub client_secret_file: Option<PathBuf>,
    /// Scopes to ask for, `openid` among them.
    pub scopes: Vec<String>,
    /// PEM file of the only authorities to trust; those of the system if there is none.
    pub ca: Option<PathBuf>,
    /// The claim with a user's groups.
    pub groups_claim: String,
    /// For one request to the provider.
    pub timeout: Duration,
}

/// A provider where users log in.
#[derive(Debug)]
pub struct Provider {
    settings: Settings,
    connection: Connection,
    metadata: Mutex<Known<Metadata>>,
    keys: Mutex<Known<Vec<Key>>>,
}

/// What was fetched, or why not, and when.
#[derive(Debug)]
struct Known<T> {
    outcome: Option<Result<Arc<T>, OidcError>>,
    fetched: u64,
}

impl<T> Default for Known<T> {
    fn default() -> Known<T> {
        Known { outcome: None, fetched: 0 }
    }
}

impl<T> Known<T> {
    /// The value if it is not old, or the failure if it has just come. A clock that was set back makes both
    /// old.
    fn fresh(&self, now: u64) -> Option<Result<Arc<T>, OidcError>> {
        let age = now.checked_sub(self.fetched)?;
        match &self.outcome {
            Some(Ok(value)) if age < KEEP_S => Some(Ok(Arc::clone(value))),
            Some(Err(error)) if age < PAUSE_S => Some(Err(error.clone())),
            _ => None,
        }
    }

    fn set(&mut self, fetched: Result<T, OidcError>, now: u64) -> Result<Arc<T>, OidcError> {
        let outcome = fetched.map(Arc::new);
        (self.fetched, self.outcome) = (now, Some(outcome.clone()));
        outcome
    }
}

#[derive(Deserialize)]
struct Tokens {
    id_token: Option<String>,
    access_token: Option<String>,
}

#[derive(Deserialize)]
struct TokenError {
    error: String,
}

impl Provider {
    /// Reads the files that the settings name; nothing is asked yet.
    pub fn new(settings: Settings) -> Result<Provider, String> {
        if let Some(file) = &settings.client_secret_file {
            secret(file)?;
        }
        let is_tls = settings.issuer.starts_with("https://");
        let connection = Connection::new(is_tls, settings.ca.as_deref(), settings.timeout)?;
        Ok(Provider { settings, connection, metadata: Mutex::default(), keys: Mutex::default() })
    }

    /// Its name.
    pub fn issuer(&self) -> &str {
        &self.settings.issuer
    }

    /// Begins a login that comes back to `redirect_uri`: the URL for the browser, and what to keep.
    pub fn begin(&self, redirect_uri: &str, now: u64) -> Result<(String, Pending), OidcError> {
        let metadata = self.metadata(now)?;
        let pending = Pending::new(redirect_uri)?;
        let Settings { client_id, scopes, .. } = &self.settings;
        Ok((pending.url(&metadata.authorization_endpoint, client_id, scopes), pending))
    }

    /// Checks the parameter `iss` with which a browser came back (RFC 9207): an answer of another provider is
    /// not taken for one of this.
    pub fn check_issuer(&self, answered: Option<&str>, now: u64) -> Result<(), OidcError> {
        match answered {
            Some(issuer) if issuer == self.settings.issuer => Ok(()),
            Some(_) => Err(OidcError::Refused("the answer is of another provider (`iss`)".to_owned())),
            None if self.metadata(now)?.authorization_response_iss_parameter_supported => {
                Err(OidcError::Refused("the answer does not say whose it is (`iss`)".to_owned()))
            }
            None => Ok(()),
        }
    }

    /// Finishes a login with the code that the browser brought.
    pub fn finish(&self, pending: &Pending, code: &str, now: u64) -> Result<Subject, OidcError> {
        let metadata = self.metadata(now)?;
        let tokens = self.exchange(&metadata, pending, code)?;
        let text = tokens.id_token.ok_or_else(|| OidcError::provider("its answer has no ID token"))?;
        let claims = self.verify(&metadata, &text, pending, now)?;
        let groups = &self.settings.groups_claim;
        let mut more = Map::new();
        if claims::find(&claims, groups).is_none() {
            more = self.userinfo(&metadata, tokens.access_token.as_deref(), &claims)?;
        }
        let found = claims::find(&claims, groups).or_else(|| claims::find(&more, groups));
        Ok(Subject {
            issuer: self.settings.issuer.clone(),
            subject: claims::text(&claims, "sub").to_owned(),
            name: claims::name([&claims, &more]),
            groups: found.map_or(Ok(Vec::new()), |value| claims::groups(value, groups))?,
        })
    }

    /// The provider's document. Callers that come meanwhile wait for the same fetch.
    fn metadata(&self, now: u64) -> Result<Arc<Metadata>, OidcError> {
        let mut known = lock(&self.metadata);
        if let Some(outcome) = known.fresh(now) {
            return outcome;
        }
        let fetched = Metadata::fetch(&self.connection, &self.settings.issuer);
        known.set(fetched, now)
    }

    /// Has the provider change the code into tokens.
    fn exchange(&self, metadata: &Metadata, pending: &Pending, code: &str) -> Result<Tokens, OidcError> {
        const WHAT: &str = "its token endpoint";
        let id = &self.settings.client_id;
        let mut form = Serializer::new(String::new());
        form.append_pair("grant_type", "authorization_code")
            .append_pair("code", code)
            .append_pair("redirect_uri", &pending.redirect_uri)
            .append_pair("code_verifier", &pending.verifier);
        let secret = self.settings.client_secret_file.as_deref().map(secret).transpose();
        let secret = secret.map_err(OidcError::Provider)?;
        let mut authorization = None;
        match (secret, metadata.secret_in()) {
            (None, _) => {
                form.append_pair("client_id", id);
            }
            (Some(secret), Some(SecretIn::Header)) => {
                // RFC 6749, 2.3.1: both encoded as in a form.
                let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
                let pair = format!("{}:{}", encoded(id), encoded(&secret));
                authorization = Some(format!("Basic {}", BASE64.encode(pair.as_bytes())));
            }
            (Some(secret), Some(SecretIn::Form)) => {
                form.append_pair("client_id", id).append_pair("client_secret", &secret);
            }
            (Some(_), None) => {
                return Err(OidcError::provider(
                    "it takes a client's secret neither by Basic nor in the form",
                ));
            }
        }
        let form = form.finish();
        let answer = self.connection.post(&metadata.token_endpoint, WHAT, authorization.as_deref(), &form)?;
        match answer.status {
            200 => answer.json(WHAT),
            // A code that is old or used, or a client that it does not know.
            400 | 401 => match answer.json::<TokenError>(WHAT) {
                Ok(TokenError { error }) if error == "invalid_grant" => Err(OidcError::Refused(error)),
                Ok(TokenError { error }) => Err(OidcError::provider(format!("{WHAT}: {}", plain(&error)))),
                Err(_) => Err(OidcError::provider(format!("{WHAT}: it answers {}", answer.status))),
            },
            status => Err(OidcError::provider(format!("{WHAT}: it answers {status}"))),
        }
    }

    fn verify(
        &self,
        metadata: &Metadata,
        text: &str,
        pending: &Pending,
        now: u64,
    ) -> Result<Map<String, Value>, OidcError> {
        let token = Token::parse(text)?;
        let keys = self.keys(metadata, &token, now)?;
        let Settings { issuer, client_id, .. } = &self.settings;
        token.claims(&keys, &Expected { issuer, client_id, nonce: &pending.nonce, now })
    }

    /// The provider's keys; fetched again for a token whose key is not among them, but not often.
    fn keys(&self, metadata: &Metadata, token: &Token<'_>, now: u64) -> Result<Arc<Vec<Key>>, OidcError> {
        let mut known = lock(&self.keys);
        match known.fresh(now) {
            Some(Err(error)) => return Err(error),
            Some(Ok(keys)) if token.has_key(&keys) || now < known.fetched.saturating_add(REFETCH_S) => {
                return Ok(keys);
            }
            _ => {}
        }
        let fetched = self.connection.get::<RawKeys>(&metadata.jwks_uri, "its keys", None);
        known.set(fetched.map(RawKeys::usable), now)
    }

    /// More claims about the same user.
    fn userinfo(
        &self,
        metadata: &Metadata,
        access_token: Option<&str>,
        claims: &Map<String, Value>,
    ) -> Result<Map<String, Value>, OidcError> {
        let (Some(endpoint), Some(token)) = (&metadata.userinfo_endpoint, access_token) else {
            return Ok(Map::new());
        };
        if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(OidcError::provider("its access token cannot be sent"));
        }
        let more: Map<String, Value> = self.connection.get(endpoint, "its userinfo endpoint", Some(token))?;
        // Core, 5.3.2: nobody has signed this answer.
        match more.get("sub") == claims.get("sub") {
            true => Ok(more),
            false => Err(OidcError::token("the userinfo endpoint answers about another user (`sub`)")),
        }
    }
}

/// The client's secret: the text of the file without the line break at its end.
fn secret(file: &Path) -> Result<String, String> {
    let wrong = |why: String| format!("`admin.oidc.client_secret_file`: {}: {why}", file.display());
    // With the line break.
    let text = portcullis_files::read_text(file, SECRET_BYTES_MAX + 2);
    let text = text.map_err(|error| wrong(error.to_string()))?;
    let text = text.trim_end_matches(['\r', '\n']);
    match text.len() as u64 {
        1..=SECRET_BYTES_MAX => Ok(text.to_owned()),
        _ => Err(wrong(format!("a secret has 1 to {SECRET_BYTES_MAX} bytes"))),
    }
}

/// A text of the provider, for a message.
fn plain(text: &str) -> String {
    text.chars().filter(|char| !char.is_control()).take(REASON_MAX).collect()
}

/// A lock whose holders leave nothing half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
