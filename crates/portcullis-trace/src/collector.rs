use std::path::PathBuf;
use std::time::Duration;
use std::{fmt, io};

use portcullis_trust::Authorities;
use serde_json::Value as Json;

/// The destination of traces.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `http://host:port/v1/traces`, or the same with https.
    pub url: String,
    /// PEM file of the only authorities to trust; those of the system if there is none.
    pub ca: Option<PathBuf>,
    /// The name of this service in traces.
    pub service: String,
    /// The version of this program.
    pub version: &'static str,
    /// Headers of each request, such as a token.
    pub headers: Vec<(String, String)>,
    /// For one request to the collector.
    pub timeout: Duration,
}

/// Bytes of an answer that are read.
const ANSWER_BYTES_MAX: u64 = 64 << 10;

/// A collector that takes OTLP over HTTP.
pub(crate) struct Collector {
    settings: Settings,
    agent: ureq::Agent,
}

/// The reason why a collector did not take a batch.
pub(crate) enum NotTaken {
    /// It may later: no server listens, the connection broke, or it says so (OTLP, "Retryable Response
    /// Codes").
    ForNow(String),
    /// It will not, or may have and did not say so.
    ForGood(String),
}

impl Collector {
    pub(crate) fn new(settings: Settings) -> io::Result<Collector> {
        // No proxy that the environment names: the collector is the one that the configuration names.
        let mut builder = ureq::Agent::config_builder()
            .max_redirects(0)
            .http_status_as_error(false)
            .proxy(None)
            .timeout_global(Some(settings.timeout));
        if settings.url.starts_with("https://") {
            let authorities =
                Authorities::load(settings.ca.as_deref(), "tracing.ca").map_err(io::Error::other)?;
            builder = builder.https_only(true).tls_config(authorities.https());
        }
        Ok(Collector { settings, agent: builder.build().into() })
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Sends a batch; how many of its spans the collector rejects.
    pub(crate) fn send(&self, body: &[u8]) -> Result<u64, NotTaken> {
        let mut request = self.agent.post(&self.settings.url).header("Content-Type", "application/json");
        for (name, value) in &self.settings.headers {
            request = request.header(name, value);
        }
        let mut response = match request.send(body) {
            Ok(response) => response,
            // A certificate that is not good for us will not be so in a few seconds.
            Err(ureq::Error::Io(error)) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(NotTaken::ForGood(error.to_string()));
            }
            Err(error @ (ureq::Error::ConnectionFailed | ureq::Error::HostNotFound | ureq::Error::Io(_))) => {
                return Err(NotTaken::ForNow(error.to_string()));
            }
            Err(error) => return Err(NotTaken::ForGood(error.to_string())),
        };
        match response.status().as_u16() {
            200..=299 => {
                let answer = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec();
                Ok(answer.map_or(0, |answer| rejected(&answer)))
            }
            status @ (429 | 502 | 503 | 504) => Err(NotTaken::ForNow(format!("it answers {status}"))),
            status => Err(NotTaken::ForGood(format!("it answers {status}"))),
        }
    }
}

/// Returns the number of spans that an answer reports as not taken. 64-bit numbers are texts in JSON, but not
/// with every collector.
fn rejected(answer: &[u8]) -> u64 {
    let answer: Json = serde_json::from_slice(answer).unwrap_or_default();
    match &answer["partialSuccess"]["rejectedSpans"] {
        Json::String(text) => text.parse().unwrap_or(0),
        number => number.as_u64().unwrap_or(0),
    }
}

impl fmt::Display for NotTaken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (NotTaken::ForNow(why) | NotTaken::ForGood(why)) = self;
        f.write_str(why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejected_spans() {
        for (answer, count) in [
            (r#"{"partialSuccess":{"rejectedSpans":"7","errorMessage":"too old"}}"#, 7),
            (r#"{"partialSuccess":{"rejectedSpans":7}}"#, 7),
            (r#"{"partialSuccess":{}}"#, 0),
            ("{}", 0),
            ("", 0),
        ] {
            assert_eq!(rejected(answer.as_bytes()), count, "{answer}");
        }
    }
}
