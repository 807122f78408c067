//! A request's stream among those of a shared connection to an endpoint.

use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;

use h2::{Ping, PingPong};
use tokio::sync::Mutex;

/// Tells when the endpoint's settings have come. A ping shows it, since they are the first that the endpoint
/// says; none is sent until a caller asks.
pub(crate) struct SettingsAwaited(Mutex<Option<PingPong>>);

/// Counts a stream on its connection for as long as it lives.
pub(crate) struct StreamPermit {
    active: Rc<Cell<usize>>,
    ended: Rc<Cell<bool>>,
    settings: Rc<SettingsAwaited>,
}

impl SettingsAwaited {
    pub(crate) fn new(ping: Option<PingPong>) -> Self {
        SettingsAwaited(Mutex::new(ping))
    }
}

impl StreamPermit {
    /// One more of `active`. `ended`: the connection takes no new requests.
    pub(crate) fn new(active: Rc<Cell<usize>>, ended: Rc<Cell<bool>>, settings: Rc<SettingsAwaited>) -> Self {
        active.set(active.get() + 1);
        StreamPermit { active, ended, settings }
    }

    /// No new requests go on this connection; it ends with its last one.
    pub(crate) fn leave(&self) {
        self.ended.set(true);
    }

    /// Waits for the settings of the endpoint.
    pub(crate) async fn heard(&self) {
        let mut ping = self.settings.0.lock().await;
        if let Some(ping) = &mut *ping {
            // One that is under way already was sent for a caller that did not wait for its answer.
            let _ = ping.send_ping(Ping::opaque());
            let _ = poll_fn(|context| ping.poll_pong(context)).await;
        }
        *ping = None;
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        self.active.set(self.active.get() - 1);
    }
}
