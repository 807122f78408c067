//! The event store of the process: opened before the first request, closed after the last.

use std::path::Path;
use std::sync::Arc;

use portcullis_config::Config;
use portcullis_event::Event;
use portcullis_event_store::{Recorder, RecorderHandle, StoreSettings, Writer};
use portcullis_exchange::{Capture, OnRequest};
use portcullis_log::QueueLimits;
use portcullis_metrics::Registry;

use crate::data_folder;
use crate::outcome::Failure;

/// Opens the store of the data folder, if there is one. `takes_over`: the predecessor of an upgrade may still
/// write.
pub fn start(config: &Config, takes_over: bool, registry: &Registry) -> Result<Option<Recorder>, Failure> {
    let Some(data) = &config.data else { return Ok(None) };
    let settings = StoreSettings {
        folder: data_folder::events(data),
        keep: config.event_store.keep,
        keep_bytes: config.event_store.keep_bytes,
        keep_rollups: config.event_store.keep_rollups,
    };
    let explain = |error: &dyn std::fmt::Display, folder: &Path| {
        Failure::failed(format_args!("event store: {}: {error}", folder.display()))
    };
    let folder = settings.folder.clone();
    let writer = Writer::open(settings, takes_over).map_err(|error| explain(&error, &folder))?;
    let say = Arc::new(|line: &str| eprintln!("portcullis: {line}"));
    let (above, limits) = (config.event_store.coalesce_above, QueueLimits::default());
    let recorder = Recorder::start(writer, above, limits, registry, say);
    recorder.map(Some).map_err(|error| explain(&error, &folder))
}

/// Requests of the sample that wait to be written.
const SAMPLE_QUEUE: QueueLimits = QueueLimits { events_max: 1024, bytes_max: 16 << 20 };

/// Opens the sample of requests that passed, if there is to be one.
pub fn start_sample(
    config: &Config,
    takes_over: bool,
    registry: &Registry,
) -> Result<Option<Recorder>, Failure> {
    let (Some(data), Some(capture)) = (&config.data, &config.event_store.capture) else { return Ok(None) };
    let folder = data_folder::sample(data);
    let settings = StoreSettings {
        keep: config.event_store.keep,
        keep_bytes: capture.keep_bytes,
        ..StoreSettings::new(&folder)
    };
    let explain = |error: &dyn std::fmt::Display| {
        Failure::failed(format_args!("sample of requests: {}: {error}", folder.display()))
    };
    let writer = Writer::open(settings, takes_over).map_err(|error| explain(&error))?;
    let say = Arc::new(|line: &str| eprintln!("portcullis: {line}"));
    let recorder = Recorder::start_sample(writer, SAMPLE_QUEUE, registry, say);
    recorder.map(Some).map_err(|error| explain(&error))
}

/// What takes the sample.
pub fn capture(
    config: &Config,
    sample: Option<&Recorder>,
    events: Option<&RecorderHandle>,
) -> Option<Capture> {
    let (settings, sample) = (config.event_store.capture.as_ref()?, sample?.sample_of(events?.clone()));
    let take = move |mut event: Event| {
        let request = event.kept.take();
        sample.request(Arc::new(event), request);
    };
    Some(Capture { share: settings.share(), take: Arc::new(take) })
}

/// What counts each request.
pub fn on_request(recorder: Option<&RecorderHandle>) -> Option<OnRequest> {
    let recorder = recorder.cloned()?;
    Some(Arc::new(move |record, coverage, inspection| recorder.request(record, coverage, inspection)))
}
