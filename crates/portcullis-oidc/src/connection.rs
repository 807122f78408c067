//! Requests to the provider: bounded, timed, without redirects.

use std::path::Path;
use std::time::Duration;

use http::Request;
use portcullis_fetch::{Authorities, Client, Connections, Error};
use serde::de::DeserializeOwned;

use crate::error::OidcError;

/// Bytes of an answer; a longer one is none.
pub const ANSWER_BYTES_MAX: u64 = 256 << 10;

/// A client of the provider's endpoints.
#[derive(Debug)]
pub(crate) struct Connection {
    client: Client,
}

/// Status and body of an answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    body: Vec<u8>,
}

impl Connection {
    /// Nothing is connected yet. With TLS no endpoint is asked without it.
    pub(crate) fn new(is_tls: bool, ca: Option<&Path>, timeout: Duration) -> Result<Connection, String> {
        let authorities = is_tls.then(|| Authorities::load(ca, "admin.oidc.ca")).transpose()?;
        Ok(Connection { client: Client::direct(authorities.as_ref(), timeout, Connections::Closed) })
    }

    /// A JSON object; `what` names it in errors.
    pub(crate) fn get<T: DeserializeOwned>(
        &self,
        url: &str,
        what: &str,
        bearer: Option<&str>,
    ) -> Result<T, OidcError> {
        let mut request = Request::get(url).header("Accept", "application/json");
        if let Some(token) = bearer {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        let answer = self.ask(request.body(None)).map_err(|error| failed(&error, what))?;
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
        let mut request = Request::post(url).header("Accept", "application/json");
        request = request.header("Content-Type", "application/x-www-form-urlencoded");
        if let Some(value) = authorization {
            request = request.header("Authorization", value);
        }
        self.ask(request.body(Some(form.as_bytes()))).map_err(|error| failed(&error, what))
    }

    fn ask(&self, request: http::Result<Request<Option<&[u8]>>>) -> Result<Answer, Error> {
        let answer = self.client.send(request?)?;
        let status = answer.status().as_u16();
        Ok(Answer { status, body: answer.into_body().read(ANSWER_BYTES_MAX)? })
    }
}

impl Answer {
    pub(crate) fn json<T: DeserializeOwned>(&self, what: &str) -> Result<T, OidcError> {
        // Without the text of the error, which may quote a token.
        serde_json::from_slice(&self.body)
            .map_err(|_| OidcError::provider(format!("{what}: it is not the JSON object that it should be")))
    }
}

fn failed(error: &Error, what: &str) -> OidcError {
    OidcError::provider(format!("{what}: {error}"))
}
