//! The event store of the process: opened before the first request, closed after the last.

use std::path::Path;
use std::sync::Arc;

use portcullis_config::Config;
use portcullis_event_store::{Recorder, RecorderHandle, StoreSettings, Writer};
use portcullis_exchange::OnRequest;
use portcullis_log::QueueLimits;
use portcullis_metrics::Registry;

use crate::cli::Failure;
use crate::data_folder;

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
    data_folder::create(data).map_err(|error| explain(&error, data))?;
    let folder = settings.folder.clone();
    let writer = Writer::open(settings, takes_over).map_err(|error| explain(&error, &folder))?;
    let say = Arc::new(|line: &str| eprintln!("portcullis: {line}"));
    let (above, limits) = (config.event_store.coalesce_above, QueueLimits::default());
    let recorder = Recorder::start(writer, above, limits, registry, say);
    recorder.map(Some).map_err(|error| explain(&error, &folder))
}

/// What counts each request.
pub fn on_request(recorder: Option<&RecorderHandle>) -> Option<OnRequest> {
    let recorder = recorder.cloned()?;
    Some(Arc::new(move |record, coverage| recorder.request(record, coverage)))
}
