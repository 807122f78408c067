//! `upstreams.NAME.health`: active checks.

use std::ops::RangeInclusive;
use std::time::Duration;

use portcullis_balance::Thresholds;

use crate::mistakes::Mistakes;
use crate::protocol::UpstreamProtocol;
use crate::raw::upstream as raw;
use crate::spanned::Spanned;
use crate::values::number;

/// Active checks of each endpoint of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// The probe.
    pub probe: Probe,
    /// From one check to the next, about.
    pub interval: Duration,
    /// For a check.
    pub timeout: Duration,
    /// Results in a row that change the state.
    pub thresholds: Thresholds,
}

/// The request of a health check to an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// A connection, TLS included.
    Tcp,
    /// The health service of gRPC, for a service; empty for the whole server.
    Grpc(String),
    /// An answer to a GET request.
    Http {
        /// Path and query.
        path: String,
        /// The `Host`, if not the endpoint's own.
        host: Option<String>,
        /// Statuses that pass.
        statuses: Vec<RangeInclusive<u16>>,
    },
}

pub(crate) fn check(
    mistakes: &mut Mistakes<'_>,
    raw: Spanned<raw::Health>,
    protocol: UpstreamProtocol,
) -> Health {
    let Spanned { value: raw, span } = raw;
    let is_tcp = raw.tcp == Some(true);
    let http_only = [(&raw.path, "path"), (&raw.host, "host"), (&raw.status, "status")];
    for (text, name) in http_only.into_iter().filter_map(|(text, name)| Some((text.as_ref()?, name))) {
        if raw.grpc.is_some() {
            mistakes.wrong(text.span.clone(), format!("`{name}` is not for a check by `grpc`"));
        }
        if is_tcp {
            let message = format!("`{name}` has no effect with `tcp = true`, which sends no request");
            mistakes.wrong(text.span.clone(), message);
        }
    }
    if let Some(service) = &raw.grpc
        && (is_tcp || protocol != UpstreamProtocol::Http2)
    {
        let message = "health checks by gRPC require HTTP/2".to_string();
        let hint = "add `protocol = \"h2\"` or `\"h2c\"` to the upstream, and drop `tcp`".to_string();
        mistakes.wrong_with_hint(service.span.clone(), message, hint);
    }
    if !is_tcp && raw.path.is_none() && raw.grpc.is_none() {
        let hint = "add `path = \"/\"`, `tcp = true` or `grpc = \"\"`".to_string();
        mistakes.wrong_with_hint(span, "a health check requires `path`, `tcp` or `grpc`".to_string(), hint);
    }
    let probe = match (is_tcp, raw.grpc) {
        (true, _) => Probe::Tcp,
        (false, Some(service)) => Probe::Grpc(service.value),
        (false, None) => Probe::Http {
            path: visible(mistakes, raw.path, |path| path.starts_with('/'), "path").unwrap_or_default(),
            host: visible(mistakes, raw.host, |host| !host.is_empty(), "host"),
            statuses: statuses(mistakes, raw.status),
        },
    };
    Health {
        probe,
        interval: raw.interval.map_or(Duration::from_secs(5), |time| time.0),
        timeout: raw.timeout.map_or(Duration::from_secs(2), |time| time.0),
        thresholds: Thresholds {
            healthy: number(mistakes, raw.healthy, 1..=1000, "healthy", 2),
            unhealthy: number(mistakes, raw.unhealthy, 1..=1000, "unhealthy", 2),
        },
    }
}

/// A text that goes into a request head as it is.
fn visible(
    mistakes: &mut Mistakes<'_>,
    text: Option<Spanned<String>>,
    is_right: impl Fn(&str) -> bool,
    name: &str,
) -> Option<String> {
    let text = text?;
    if !is_right(&text) || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        mistakes.wrong(text.span, format!("`{}` cannot be the {name} of a request", text.value));
        return None;
    }
    Some(text.value)
}

fn statuses(mistakes: &mut Mistakes<'_>, text: Option<Spanned<String>>) -> Vec<RangeInclusive<u16>> {
    let Some(text) = text else { return vec![200..=399] };
    let status = |text: &str| text.trim().parse::<u16>().ok().filter(|status| (200..=599).contains(status));
    let part = |part: &str| match part.split_once('-') {
        Some((first, last)) => Some(status(first)?..=status(last)?).filter(|range| !range.is_empty()),
        None => status(part).map(|status| status..=status),
    };
    text.split(',').map(part).collect::<Option<Vec<_>>>().unwrap_or_else(|| {
        let hint = "write `200`, `200-399` or `200,204,301-399`".to_string();
        mistakes.wrong_with_hint(text.span, format!("`{}` names no final statuses", text.value), hint);
        Vec::new()
    })
}
