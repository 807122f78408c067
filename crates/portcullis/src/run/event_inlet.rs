//! Events between processes of this machine: the socket of `events.listen`, and `--events-socket`.

use std::path::Path;
use std::sync::Arc;

use portcullis_config::Config;
use portcullis_event_socket::{Forward, HasRoom, Listener, Settings};
use portcullis_log::QueueLimits;
use portcullis_metrics::Registry;

use super::sinks::OnEvent;
use crate::outcome::Failure;

/// Takes the events of other processes, if the settings say so. `takes_over`: the predecessor of an upgrade
/// may still do so.
pub fn open(
    config: &Config,
    takes_over: bool,
    registry: &Registry,
    on_event: Option<OnEvent>,
    has_room: HasRoom,
) -> Result<Option<Listener>, Failure> {
    let Some(socket) = &config.event_socket else { return Ok(None) };
    let Some(on_event) = on_event else {
        return Err(Failure::failed(
            "events.listen: nothing here takes events; add `data = { folder = \"...\" }` or `events.file`",
        ));
    };
    let settings = Settings { path: socket.path.clone(), users: socket.users.clone() };
    let listener = Listener::open(&settings, takes_over, registry, on_event, has_room, say());
    let listener = listener.map_err(|error| Failure::failed(format_args!("events.listen: {error}")))?;
    eprintln!("portcullis: events of other processes are taken on {}", settings.path.display());
    Ok(Some(listener))
}

/// Sends events to another process.
pub fn forward(path: &Path, registry: &Registry) -> Result<Forward, Failure> {
    let forward = Forward::start(path.to_owned(), QueueLimits::default(), registry, say());
    forward.map_err(|error| Failure::failed(format_args!("--events-socket: {error}")))
}

fn say() -> portcullis_event_socket::Say {
    Arc::new(|line: &str| eprintln!("portcullis: {line}"))
}
