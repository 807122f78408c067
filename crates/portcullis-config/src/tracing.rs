//! `tracing`: which requests are traced, and where the traces go.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::mistakes::Mistakes;
use crate::spanned::Spanned;
use crate::upstream::parse_url;
use crate::values::is_token;

/// Traces in the form of OpenTelemetry.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Raw {
    /// The collector, which takes OTLP over HTTP at `/v1/traces`: `http://host:port` or `https://host:port`.
    pub otlp: Spanned<String>,
    /// PEM file with the only authorities to trust when the collector is asked over https. Default: those of
    /// the system.
    pub ca: Option<Spanned<String>>,
    /// Share of the requests that are traced, 0 to 1, where no `traceparent` says whether. Default: 0.01.
    #[schemars(range(min = 0, max = 1))]
    pub ratio: Option<Spanned<f64>>,
    /// Whose `traceparent` is followed. Default: `trusted`.
    pub parent: Option<Parent>,
    /// The name of this service in traces. Default: `portcullis`.
    pub service: Option<String>,
    /// Headers of requests to the collector, by name.
    #[serde(default)]
    pub headers: BTreeMap<String, Spanned<String>>,
}

/// Whose `traceparent` is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Parent {
    /// That of every client.
    All,
    /// That of the trusted proxies of `client_address`.
    Trusted,
    /// Nobody's: each request begins a trace.
    None,
}

/// Tracing: the requests that are traced, and the destination of the traces.
#[derive(Clone, Debug, PartialEq)]
pub struct Tracing {
    /// `http://host:port/v1/traces`, or the same with https.
    pub url: String,
    /// PEM file of the only authorities to trust.
    pub ca: Option<PathBuf>,
    /// Share of the requests without a parent that are traced, 0 to 1.
    pub ratio: f64,
    /// The peers whose `traceparent` is followed.
    pub parent: TraceParent,
    /// The name of this service.
    pub service: String,
    /// Headers of requests to the collector.
    pub headers: Vec<(String, String)>,
}

/// The peers whose `traceparent` is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceParent {
    /// That of every client.
    All,
    /// That of trusted proxies.
    Trusted,
    /// None: each request begins a trace.
    None,
}

// A ratio is checked to be a number.
impl Eq for Tracing {}

const RATIO: f64 = 0.01;

pub(crate) fn check(mistakes: &mut Mistakes<'_>, raw: Option<Raw>) -> Option<Tracing> {
    let raw = raw?;
    let url = match parse_url(raw.otlp.trim_end_matches('/')) {
        Ok((endpoint, is_tls)) => {
            if let Some(ca) = raw.ca.as_ref().filter(|_| !is_tls) {
                let message = "`ca` requires a collector with TLS".to_string();
                let hint = "write `https://` in `otlp` or drop `ca`".to_string();
                mistakes.wrong_with_hint(ca.span.clone(), message, hint);
            }
            format!("{}://{endpoint}/v1/traces", if is_tls { "https" } else { "http" })
        }
        Err(message) => {
            mistakes.wrong(raw.otlp.span.clone(), message);
            String::new()
        }
    };
    if let Some(ratio) = raw.ratio.as_ref().filter(|ratio| !(0.0..=1.0).contains(&ratio.value)) {
        mistakes.wrong(ratio.span.clone(), "ratio must be 0 to 1".to_string());
    }
    for (name, value) in &raw.headers {
        if !is_token(name) || value.bytes().any(|byte| byte.is_ascii_control()) {
            mistakes.wrong(value.span.clone(), format!("`{name}` is not a header that can be sent"));
        }
    }
    Some(Tracing {
        url,
        ca: raw.ca.map(|ca| mistakes.path(&ca)),
        ratio: raw.ratio.map_or(RATIO, |ratio| ratio.value),
        parent: match raw.parent {
            Some(Parent::All) => TraceParent::All,
            Some(Parent::Trusted) | None => TraceParent::Trusted,
            Some(Parent::None) => TraceParent::None,
        },
        service: raw.service.unwrap_or_else(|| "portcullis".to_string()),
        headers: raw.headers.into_iter().map(|(name, value)| (name, value.value)).collect(),
    })
}
