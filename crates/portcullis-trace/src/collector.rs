use std::io;
use std::path::PathBuf;
use std::time::Duration;

use portcullis_fetch::{NotTaken, Receiver, is_retryable_in_otlp};
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

/// A collector that takes OTLP over HTTP.
pub(crate) struct Collector {
    settings: Settings,
    receiver: Receiver,
}

impl Collector {
    pub(crate) fn new(settings: Settings) -> io::Result<Collector> {
        let mut headers = vec![("Content-Type".to_string(), "application/json".to_string())];
        headers.extend(settings.headers.iter().cloned());
        let post = portcullis_fetch::Settings {
            url: settings.url.clone(),
            ca: settings.ca.clone(),
            headers,
            timeout: settings.timeout,
        };
        Ok(Collector { receiver: Receiver::new(post, "tracing.ca")?, settings })
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Sends a batch; how many of its spans the collector rejects.
    pub(crate) fn send(&self, body: &[u8]) -> Result<u64, NotTaken> {
        let answer = self.receiver.send(body)?.accepted(is_retryable_in_otlp)?;
        Ok(rejected(&answer))
    }
}

/// Returns the number of spans that an answer reports as not taken. 64-bit numbers are texts in JSON, but not
/// with every collector.
fn rejected(answer: &[u8]) -> u64 {
    let answer: Json = serde_json::from_slice(answer).unwrap_or_default();
    match &answer["partialSuccess"]["rejectedSpans"] {
        Json::String(text) => text.parse().unwrap_or(0),
        number @ (Json::Null | Json::Bool(_) | Json::Number(_) | Json::Array(_) | Json::Object(_)) => {
            number.as_u64().unwrap_or(0)
        }
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
