//! A client of HTTP and HTTPS: one time limit for a request, answers within limits, errors without URLs.

use std::time::Duration;
use std::{fmt, io};

use http::{Request, Response};

use crate::trust::Authorities;

/// Asks peers. Each request ends after one time limit, from the name of the host to the end of the answer;
/// any status is an answer.
#[derive(Clone, Debug)]
pub struct Client {
    agent: ureq::Agent,
    /// Of URLs that may be asked.
    scheme: &'static str,
    timeout: Duration,
}

/// What happens to connections after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connections {
    /// They are kept for the next request.
    Kept,
    /// They are closed: requests are so rare that the peer has closed them meanwhile, and one would fail.
    Closed,
}

/// The bytes of an answer, which are still to be read.
#[derive(Debug)]
pub struct Body(ureq::Body);

/// The reason why there is no answer, or not all of it. No text has the URL in it, which may be a secret or
/// have one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// There is no connection, or it broke. There may be one later.
    Connection(String),
    /// The time was up. The request may have been carried out.
    Late,
    /// The answer has more bytes than this limit.
    TooLong(u64),
    /// Another try would end the same way.
    Final(String),
}

impl Client {
    /// For peers that the configuration names: over HTTPS alone with authorities, over plain HTTP alone
    /// without them. No redirect is followed, and no proxy that the environment names is used: neither can
    /// send us, with what we carry, to another host.
    pub fn direct(authorities: Option<&Authorities>, timeout: Duration, connections: Connections) -> Client {
        let builder = ureq::Agent::config_builder().proxy(None).max_redirects(0);
        let builder = match connections {
            Connections::Kept => builder,
            Connections::Closed => builder.max_idle_connections(0),
        };
        Client::built(builder, authorities, timeout)
    }

    /// For public files, over HTTPS alone: through the proxy that the environment names (`HTTPS_PROXY`,
    /// `NO_PROXY`), and along so many redirects.
    pub fn download(authorities: &Authorities, timeout: Duration, redirects_max: u32) -> Client {
        let builder = ureq::Agent::config_builder().max_redirects(redirects_max);
        Client::built(builder, Some(authorities), timeout)
    }

    fn built(
        builder: ureq::config::ConfigBuilder<ureq::typestate::AgentScope>,
        authorities: Option<&Authorities>,
        timeout: Duration,
    ) -> Client {
        let builder = builder.http_status_as_error(false);
        let (builder, scheme) = match authorities {
            Some(authorities) => (builder.https_only(true).tls_config(authorities.https()), "https"),
            None => (builder, "http"),
        };
        Client { agent: builder.build().into(), scheme, timeout }
    }

    /// What stands at a URL.
    pub fn get(&self, url: &str) -> Result<Response<Body>, Error> {
        self.send(Request::get(url).body(None)?)
    }

    /// Sends a request, and reads the head of the answer. `None` is no body at all, as GET has.
    pub fn send(&self, request: Request<Option<&[u8]>>) -> Result<Response<Body>, Error> {
        self.send_within(request, self.timeout)
    }

    /// The same with a time limit of its own.
    pub fn send_within(
        &self,
        request: Request<Option<&[u8]>>,
        timeout: Duration,
    ) -> Result<Response<Body>, Error> {
        let scheme = request.uri().scheme_str();
        if !scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case(self.scheme)) {
            return Err(Error::Final(format!("its URL does not begin with {}://", self.scheme)));
        }
        let (parts, body) = request.into_parts();
        let answer = match body {
            Some(body) => self.run(Request::from_parts(parts, body), timeout),
            None => self.run(Request::from_parts(parts, ()), timeout),
        };
        Ok(answer.map_err(|error| told(&error))?.map(Body))
    }

    fn run(
        &self,
        request: Request<impl ureq::AsSendBody>,
        timeout: Duration,
    ) -> Result<Response<ureq::Body>, ureq::Error> {
        self.agent.run(self.agent.configure_request(request).timeout_global(Some(timeout)).build())
    }
}

impl Body {
    /// All of it, if it has no more bytes than that.
    #[expect(clippy::wildcard_enum_match_arm, reason = "the library's other errors are of the connection")]
    pub fn read(mut self, bytes_max: u64) -> Result<Vec<u8>, Error> {
        // The library refuses what reaches its limit.
        let read = self.0.with_config().limit(bytes_max.saturating_add(1)).read_to_vec();
        read.map_err(|error| match error {
            ureq::Error::BodyExceedsLimit(_) => Error::TooLong(bytes_max),
            error => told(&error),
        })
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the library's other errors speak for themselves")]
fn told(error: &ureq::Error) -> Error {
    match error {
        // A certificate that is not good for us will not be so in a few seconds.
        ureq::Error::Io(error) if error.kind() == io::ErrorKind::InvalidData => {
            Error::Final(error.to_string())
        }
        ureq::Error::Io(error) => Error::Connection(error.to_string()),
        ureq::Error::ConnectionFailed => Error::Connection("no connection".to_string()),
        ureq::Error::HostNotFound => Error::Connection("its host is not found".to_string()),
        ureq::Error::Timeout(ureq::Timeout::Resolve | ureq::Timeout::Connect) => {
            Error::Connection("no connection in time".to_string())
        }
        ureq::Error::Timeout(_) => Error::Late,
        // These would show the URL.
        ureq::Error::BadUri(_) => Error::Final("its URL cannot be used".to_string()),
        ureq::Error::RequireHttpsOnly(_) => Error::Final("a redirect leads to a URL without TLS".to_string()),
        error => Error::Final(error.to_string()),
    }
}

impl From<http::Error> for Error {
    fn from(error: http::Error) -> Error {
        Error::Final(error.to_string())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Connection(why) | Error::Final(why) => f.write_str(why),
            Error::Late => f.write_str("no answer in time"),
            Error::TooLong(bytes_max) => write!(f, "its answer has more than {bytes_max} bytes"),
        }
    }
}

impl std::error::Error for Error {}
