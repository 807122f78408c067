//! The trace exporter of `tracing`.

use std::time::Duration;

use portcullis_config::{Config, TraceParent, Tracing};
use portcullis_metrics::Registry;
use portcullis_trace::{Exporter, Settings};

use crate::outcome::Failure;

/// For one batch of traces.
const COLLECTOR_TIMEOUT: Duration = Duration::from_secs(5);

fn settings(config: &Config) -> Option<Settings> {
    config.tracing.clone().map(|tracing| Settings {
        url: tracing.url,
        ca: tracing.ca,
        service: tracing.service,
        version: env!("CARGO_PKG_VERSION"),
        headers: tracing.headers,
        timeout: COLLECTOR_TIMEOUT,
    })
}

/// Returns the error that would prevent its start.
pub fn check(config: &Config) -> Option<String> {
    settings(config).and_then(|settings| Exporter::check(settings).err()).map(|error| error.to_string())
}

/// Starts it, if there is a collector.
pub fn start(config: &Config, registry: &Registry) -> Result<Option<Exporter>, Failure> {
    let Some(settings) = settings(config) else { return Ok(None) };
    let say = |line: &str| eprintln!("portcullis: {line}");
    Exporter::start(settings, registry, say).map(Some).map_err(Failure::failed)
}

/// Returns true if a setting differs that is read only at the start. The ratio of traced requests can change
/// with a reload.
pub fn needs_restart(started: &Config, now: &Config) -> bool {
    let fixed = |config: &Config| {
        let tracing = config.tracing.clone();
        tracing.map(|tracing| Tracing { ratio: 0.0, parent: TraceParent::None, ..tracing })
    };
    fixed(started) != fixed(now)
}
