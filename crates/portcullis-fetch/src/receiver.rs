//! Receivers of requests that may be down, slow or hostile.

use std::path::PathBuf;
use std::time::Duration;
use std::{fmt, io};

use http::{Method, Request, Response};

use crate::client::{Body, Client, Connections, Error};
use crate::trust::Authorities;

/// Bytes of an answer that are read.
pub const ANSWER_BYTES_MAX: u64 = 64 << 10;
/// The longest `Retry-After` that is obeyed.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(600);

/// The target of requests, and the way to it.
#[derive(Clone)]
pub struct Settings {
    /// `http://...` or `https://...`, without user and password.
    pub url: String,
    /// PEM file of the only authorities to trust; those of the system if there is none.
    pub ca: Option<PathBuf>,
    /// Headers of each request.
    pub headers: Vec<(String, String)>,
    /// For one request, from the name of the host to the end of the answer.
    pub timeout: Duration,
}

/// Names of headers, without values; no URL.
impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| &**name).collect();
        f.debug_struct("Settings")
            .field("ca", &self.ca)
            .field("headers", &headers)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// A receiver of POST requests. Connections are kept open between them.
#[derive(Debug)]
pub struct Receiver {
    settings: Settings,
    client: Client,
}

/// A receiver's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its body, or the part of it within the limits.
    pub body: Vec<u8>,
    /// `Retry-After` in seconds, ten minutes at most.
    pub retry_after: Option<Duration>,
}

/// By what a server tells whether an answer has changed (RFC 9110, section 8.8): longer values are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Validators {
    /// `ETag`.
    pub etag: Option<String>,
    /// `Last-Modified`.
    pub modified: Option<String>,
}

impl Validators {
    /// Bytes of one value.
    pub const BYTES_MAX: usize = 256;
}

/// The reason why a receiver did not take a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotTaken {
    /// It may later: no server listens, the connection broke, or it says so.
    ForNow {
        /// The reason.
        why: String,
        /// The time after which it wants to be asked again.
        after: Option<Duration>,
    },
    /// It did not say: the time was up. It may have taken the request.
    Perhaps(String),
    /// It will not.
    ForGood(String),
}

impl Receiver {
    /// Nothing is connected yet. `key` is the setting that names `ca`, for the error.
    pub fn new(settings: Settings, key: &str) -> io::Result<Receiver> {
        let is_tls = settings.url.starts_with("https://");
        let authorities = is_tls.then(|| Authorities::load(settings.ca.as_deref(), key)).transpose();
        let authorities = authorities.map_err(io::Error::other)?;
        let client = Client::direct(authorities.as_ref(), settings.timeout, Connections::Kept);
        Ok(Receiver { client, settings })
    }

    /// Sends one request with this body.
    pub fn send(&self, body: &[u8]) -> Result<Answer, NotTaken> {
        self.send_with(body, &[])
    }

    /// The same with headers of this request alone.
    pub fn send_with(&self, body: &[u8], headers: &[(&str, String)]) -> Result<Answer, NotTaken> {
        let (head, rest) =
            self.ask_for(Method::POST, Some(body), headers, self.settings.timeout)?.into_parts();
        let retry_after = head.headers.get("retry-after").and_then(|value| value.to_str().ok());
        let retry_after = retry_after.and_then(|text| text.trim().parse().ok());
        let retry_after = retry_after.map(|seconds| Duration::from_secs(seconds).min(RETRY_AFTER_MAX));
        // The status has been said; a body that breaks off, is too long or late takes nothing back.
        let body = rest.read(ANSWER_BYTES_MAX).unwrap_or_default();
        Ok(Answer { status: head.status.as_u16(), body, retry_after })
    }

    /// Sends one request whose answer is what counts: all of it within `timeout`, with a body of
    /// `answer_bytes_max` at most.
    pub fn ask(&self, body: &[u8], answer_bytes_max: u64, timeout: Duration) -> Result<Answer, NotTaken> {
        whole(self.ask_for(Method::POST, Some(body), &[], timeout)?, answer_bytes_max)
    }

    /// Asks for what is there, within the time of the settings: an answer as that of [`ask`](Self::ask).
    pub fn get(&self, answer_bytes_max: u64) -> Result<Answer, NotTaken> {
        whole(self.ask_for(Method::GET, None, &[], self.settings.timeout)?, answer_bytes_max)
    }

    /// Asks for what has changed since the answer that `known` is of; none if nothing has.
    pub fn get_if_changed(
        &self,
        known: &Validators,
        answer_bytes_max: u64,
    ) -> Result<Option<(Answer, Validators)>, NotTaken> {
        let fields = [("If-None-Match", &known.etag), ("If-Modified-Since", &known.modified)];
        let fields = fields.into_iter().filter_map(|(name, value)| Some((name, value.clone()?)));
        let fields: Vec<(&str, String)> = fields.collect();
        let answer = self.ask_for(Method::GET, None, &fields, self.settings.timeout)?;
        if answer.status().as_u16() == 304 && *known != Validators::default() {
            return Ok(None);
        }
        let field = |name: &str| {
            let value = answer.headers().get(name)?.to_str().ok()?;
            (value.len() <= Validators::BYTES_MAX).then(|| value.to_owned())
        };
        let validators = Validators { etag: field("etag"), modified: field("last-modified") };
        Ok(Some((whole(answer, answer_bytes_max)?, validators)))
    }

    fn ask_for(
        &self,
        method: Method,
        body: Option<&[u8]>,
        headers: &[(&str, String)],
        timeout: Duration,
    ) -> Result<Response<Body>, Error> {
        let mut request = Request::builder().method(method).uri(&self.settings.url);
        for (name, value) in &self.settings.headers {
            request = request.header(name, value);
        }
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        self.client.send_within(request.body(body)?, timeout)
    }
}

/// An answer with all of its body.
fn whole(answer: Response<Body>, bytes_max: u64) -> Result<Answer, NotTaken> {
    let status = answer.status().as_u16();
    Ok(Answer { status, body: answer.into_body().read(bytes_max)?, retry_after: None })
}

/// The header that logs a user in (RFC 7617). The name has no colon.
pub fn basic_login(user: &str, password: &str) -> (String, String) {
    let login = data_encoding::BASE64.encode(format!("{user}:{password}").as_bytes());
    ("Authorization".to_owned(), format!("Basic {login}"))
}

impl Answer {
    /// The body of an answer of the kind 2xx. Of other statuses, those for which `may_pass` holds are
    /// refusals for now.
    pub fn accepted(self, may_pass: impl Fn(u16) -> bool) -> Result<Vec<u8>, NotTaken> {
        let why = || format!("it answers {}", self.status);
        match self.status {
            200..=299 => Ok(self.body),
            300..=399 => Err(NotTaken::ForGood(format!("{}, a redirect, which is not followed", why()))),
            status if may_pass(status) => Err(NotTaken::ForNow { why: why(), after: self.retry_after }),
            _ => Err(NotTaken::ForGood(why())),
        }
    }
}

/// The statuses after which OTLP says to try again ("Retryable Response Codes").
pub fn is_retryable_in_otlp(status: u16) -> bool {
    matches!(status, 429 | 502 | 503 | 504)
}

impl From<Error> for NotTaken {
    fn from(error: Error) -> NotTaken {
        match error {
            Error::Connection(why) => NotTaken::ForNow { why, after: None },
            Error::Late => NotTaken::Perhaps(error.to_string()),
            Error::TooLong(_) | Error::Final(_) => NotTaken::ForGood(error.to_string()),
        }
    }
}

impl fmt::Display for NotTaken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (NotTaken::ForNow { why, .. } | NotTaken::Perhaps(why) | NotTaken::ForGood(why)) = self;
        f.write_str(why)
    }
}
