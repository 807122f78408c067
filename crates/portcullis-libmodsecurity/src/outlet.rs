//! Events on their way to another process: `SecEventSocket`.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use portcullis_event::Event;
use portcullis_event_socket::Forward;
use portcullis_log::QueueLimits;
use portcullis_metrics::Registry;

/// Events that wait in each process, and their memory.
const LIMITS: QueueLimits = QueueLimits { events_max: 4096, bytes_max: 16 << 20 };
/// Longest time that a process takes for its last events when it ends.
const LAST_EVENTS: Duration = Duration::from_secs(1);

/// A socket that events are sent to. The thread that sends them is started by the first event of a process:
/// rules are read by a process that forks, and threads do not survive that.
#[derive(Debug)]
pub(crate) struct Outlet {
    path: PathBuf,
    sending: Mutex<Option<Sending>>,
}

#[derive(Debug)]
struct Sending {
    /// The process that has the thread.
    process: u32,
    /// None if it could not be started.
    forward: Option<Forward>,
}

impl Outlet {
    pub(crate) fn new(path: &Path) -> Outlet {
        Outlet { path: path.to_owned(), sending: Mutex::default() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Queues an event, or drops and counts it. Never waits.
    pub(crate) fn submit(&self, event: Event) {
        let mut sending = self.sending();
        let process = std::process::id();
        if sending.as_ref().is_none_or(|sending| sending.process != process) {
            let forward = Forward::start(self.path.clone(), LIMITS, &Registry::new(), Arc::new(say));
            let forward = forward.inspect_err(|error| {
                say(&format!("events cannot be sent, since no thread can be started: {error}"));
            });
            leave(sending.replace(Sending { process, forward: forward.ok() }));
        }
        if let Some(Sending { forward: Some(forward), .. }) = &*sending {
            forward.sender().submit(event);
        }
    }

    fn sending(&self) -> MutexGuard<'_, Option<Sending>> {
        self.sending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Outlet {
    fn drop(&mut self) {
        let sending = self.sending().take();
        let is_own = sending.as_ref().is_some_and(|sending| sending.process == std::process::id());
        if !is_own {
            return leave(sending);
        }
        let lost =
            sending.and_then(|sending| sending.forward).map_or(0, |forward| forward.shutdown(LAST_EVENTS));
        if lost > 0 {
            say(&format!("{lost} event(s) of this process could not be sent to {}", self.path.display()));
        }
    }
}

/// Leaves alone what belongs to the process that this one was forked from: its thread is not here.
fn leave(sending: Option<Sending>) {
    std::mem::forget(sending);
}

/// Standard error, which servers have in their error log.
pub(crate) fn say(line: &str) {
    let _ = writeln!(io::stderr(), "portcullis: {line}");
}
