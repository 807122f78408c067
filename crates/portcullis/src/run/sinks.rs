//! Receivers of events beside files: `events.sinks`.

use std::sync::Arc;

use portcullis_config::{Config, EventForm};
use portcullis_event::Event;
use portcullis_event_socket::HasRoom;
use portcullis_event_store::RecorderHandle;
use portcullis_log::{EventSender, Format};
use portcullis_metrics::Registry;
use portcullis_sinks::{Sender, Sinks};

use crate::outcome::Failure;

/// What takes the events of workers.
pub type OnEvent = Arc<dyn Fn(Event) + Send + Sync>;

/// Starts them.
pub fn start(config: &Config, registry: &Registry) -> Result<Sinks, Failure> {
    let say = |line: &str| eprintln!("portcullis: {line}");
    Sinks::start(&config.event_sinks, registry, say).map_err(Failure::failed)
}

/// Returns the error that would prevent their start.
pub fn check(config: &Config) -> Option<String> {
    Sinks::check(&config.event_sinks).err().map(|error| error.to_string())
}

/// Gives each event to the store, the files, the other sinks and another process, which share it. None if
/// nothing takes events.
pub fn fan_out(
    files: EventSender,
    sinks: Sender,
    store: Option<RecorderHandle>,
    other: Option<EventSender>,
) -> Option<OnEvent> {
    if !files.is_enabled() && !sinks.is_enabled() && store.is_none() && other.is_none() {
        return None;
    }
    Some(Arc::new(move |mut event: Event| {
        let request = event.kept.take();
        let event = Arc::new(event);
        if let Some(store) = &store {
            store.event(Arc::clone(&event), request);
        }
        sinks.submit(&event);
        if let Some(other) = &other {
            other.submit(Arc::clone(&event));
        }
        files.submit(event);
    }))
}

/// True while the queues of the store and the files have room for events of other processes, too: half of
/// each is for those of this one. Sinks do not count: one that cannot be reached would keep all others
/// waiting.
pub fn has_room(files: EventSender, store: Option<RecorderHandle>) -> HasRoom {
    Arc::new(move || !files.is_half_full() && !store.as_ref().is_some_and(RecorderHandle::is_half_full))
}

/// The form of the lines of a file.
pub fn format(form: EventForm) -> Format {
    match form {
        EventForm::Json => Format::JsonLines,
        EventForm::Cef => Format::Cef,
        EventForm::Ocsf => Format::Ocsf,
    }
}
