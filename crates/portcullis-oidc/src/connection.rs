//! Requests to the provider: bounded, timed, without redirects.

use std::path::Path;
use std::time::Duration;

use portcullis_fetch::Authorities;
use serde::de::DeserializeOwned;

use crate::error::OidcError;

/// Bytes of an answer; a longer one is none.
pub const ANSWER_BYTES_MAX: u64 = 256 << 10;

/// A client of the provider's endpoints.
#[derive(Debug)]
pub(crate) struct Connection {
    agent: ureq::Agent,
}

/// Status and body of an answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    body: Vec<u8>,
}

impl Connection {
    /// Nothing is connected yet. With TLS no endpoint is asked without it.
    pub(crate) fn new(is_tls: bool, ca: Option<&Path>, timeout: Duration) -> Result<Connection, String> {
        let mut builder = ureq::Agent::config_builder()
            .max_redirects(0)
            .http_status_as_error(false)
            .proxy(None)
            // Logins are rare, and a connection that the provider has closed meanwhile would fail one.
            .max_idle_connections(0)
            .timeout_global(Some(timeout));
        if is_tls {
            let authorities = Authorities::load(ca, "admin.oidc.ca")?;
            builder = builder.https_only(true).tls_config(authorities.https());
        }
        Ok(Connection { agent: builder.build().into() })
    }

    /// A JSON object; `what` names it in errors.
    pub(crate) fn get<T: DeserializeOwned>(
        &self,
        url: &str,
        what: &str,
        bearer: Option<&str>,
    ) -> Result<T, OidcError> {
        let mut request = self.agent.get(url).header("Accept", "application/json");
        if let Some(token) = bearer {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        let answer = read(request.call(), what)?;
        match answer.status {
            200 => answer.json(what),
            status => Err(OidcError::provider(format!("{what}: it answers {status}"))),
        }
    }

    /// The answer to a form, whatever its status.
    pub(crate) fn post(
        &self,
        url: &str,
        what: &str,
        authorization: Option<&str>,
        form: &str,
    ) -> Result<Answer, OidcError> {
        let mut request = self.agent.post(url).header("Accept", "application/json");
        request = request.header("Content-Type", "application/x-www-form-urlencoded");
        if let Some(value) = authorization {
            request = request.header("Authorization", value);
        }
        read(request.send(form.as_bytes()), what)
    }
}

impl Answer {
    pub(crate) fn json<T: DeserializeOwned>(&self, what: &str) -> Result<T, OidcError> {
        // Without the text of the error, which may quote a token.
        serde_json::from_slice(&self.body)
            .map_err(|_| OidcError::provider(format!("{what}: it is not the JSON object that it should be")))
    }
}

fn read(
    response: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    what: &str,
) -> Result<Answer, OidcError> {
    let mut response = response.map_err(|error| failed(&error, what))?;
    let status = response.status().as_u16();
    let body = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec();
    Ok(Answer { status, body: body.map_err(|error| failed(&error, what))? })
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the library's other errors speak for themselves")]
fn failed(error: &ureq::Error, what: &str) -> OidcError {
    let why = match error {
        ureq::Error::Timeout(_) => "no answer in time".to_string(),
        ureq::Error::BodyExceedsLimit(_) => format!("its answer has more than {ANSWER_BYTES_MAX} bytes"),
        ureq::Error::HostNotFound => "its host is not found".to_string(),
        ureq::Error::ConnectionFailed => "no connection".to_string(),
        error => error.to_string(),
    };
    OidcError::provider(format!("{what}: {why}"))
}
