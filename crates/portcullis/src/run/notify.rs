//! Notifications to the service manager (sd_notify(3)), and to the process that this one replaces.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Those who want to know how we are. Telling them never waits and never fails.
pub struct Notify {
    /// systemd, if it started us.
    manager: Option<Manager>,
    /// The process that we take over from.
    predecessor: Option<UnixDatagram>,
    watchdog: Option<Duration>,
}

impl Notify {
    /// As `NOTIFY_SOCKET` and `WATCHDOG_USEC` say.
    pub fn new(predecessor: Option<UnixDatagram>) -> Notify {
        let manager = std::env::var("NOTIFY_SOCKET").ok().and_then(|name| {
            let address = match name.strip_prefix('@') {
                Some(name) => SocketAddr::from_abstract_name(name),
                None => SocketAddr::from_pathname(&name),
            };
            let socket = UnixDatagram::unbound().ok()?;
            socket.set_nonblocking(true).ok()?;
            Some(Manager(Arc::new(socket), address.ok()?))
        });
        let asked = std::env::var("WATCHDOG_USEC").ok().and_then(|text| text.parse().ok());
        let watchdog = asked.filter(|_| manager.is_some()).map(Duration::from_micros);
        Notify { manager, predecessor, watchdog }
    }

    /// We serve.
    pub fn ready(&mut self) {
        self.tell("READY=1\nSTATUS=serving");
        // Told once: it ends then.
        if let Some(predecessor) = self.predecessor.take() {
            let _ = predecessor.send(b"READY=1");
        }
    }

    /// Settings are being read again; `ready` says that it is done.
    pub fn reloading(&self) {
        let now = clock_gettime(ClockId::Monotonic);
        let micros = i128::from(now.tv_sec) * 1_000_000 + i128::from(now.tv_nsec) / 1000;
        self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={micros}\nSTATUS=reloading"));
    }

    /// No new connections are accepted.
    pub fn stopping(&self) {
        self.tell("STOPPING=1\nSTATUS=draining");
    }

    /// The process with this id is the service from now on.
    pub fn main_process(&self, id: u32) {
        self.tell(&format!("MAINPID={id}\nREADY=1\nSTATUS=serving"));
    }

    /// Says that we are well, twice as often as is asked for, as long as every number of `beats` rises; none
    /// if the manager does not ask. A worker that hangs keeps us from saying so.
    pub fn keep_watch<F: Fn() -> Vec<u64> + Send + 'static>(
        &self,
        beats: F,
    ) -> Option<impl Future<Output = ()> + Send + use<F>> {
        let (manager, limit) = (self.manager.clone()?, self.watchdog?);
        Some(async move {
            let mut before = beats();
            loop {
                tokio::time::sleep(limit / 2).await;
                let now = beats();
                if now.iter().zip(&before).all(|(now, before)| now != before) {
                    manager.tell("WATCHDOG=1");
                }
                before = now;
            }
        })
    }

    fn tell(&self, what: &str) {
        if let Some(manager) = &self.manager {
            manager.tell(what);
        }
    }
}

#[derive(Clone)]
struct Manager(Arc<UnixDatagram>, SocketAddr);

impl Manager {
    fn tell(&self, what: &str) {
        let _ = self.0.send_to_addr(what.as_bytes(), &self.1);
    }
}
