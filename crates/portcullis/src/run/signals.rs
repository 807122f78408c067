//! The signals that mean something here.

use tokio::signal::unix::{SignalKind, signal};

use crate::outcome::Failure;

pub enum Signal {
    /// SIGHUP.
    Reload,
    /// SIGUSR1.
    Reopen,
    /// SIGUSR2.
    Upgrade,
    /// SIGTERM, SIGINT.
    Stop,
}

pub struct Signals {
    hangup: tokio::signal::unix::Signal,
    user1: tokio::signal::unix::Signal,
    user2: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

impl Signals {
    pub fn catch() -> Result<Self, Failure> {
        let catch = |kind| signal(kind).map_err(Failure::failed);
        Ok(Signals {
            hangup: catch(SignalKind::hangup())?,
            user1: catch(SignalKind::user_defined1())?,
            user2: catch(SignalKind::user_defined2())?,
            terminate: catch(SignalKind::terminate())?,
            interrupt: catch(SignalKind::interrupt())?,
        })
    }

    pub async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.hangup.recv() => Signal::Reload,
            _ = self.user1.recv() => Signal::Reopen,
            _ = self.user2.recv() => Signal::Upgrade,
            _ = self.terminate.recv() => Signal::Stop,
            _ = self.interrupt.recv() => Signal::Stop,
        }
    }
}
