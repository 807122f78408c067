//! The state that all connections of one integration share.

use std::net::IpAddr;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use portcullis_config::Network;
use portcullis_exchange::Service as Exchanges;

/// The limits of the connections of a service.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Networks whose peers may ask, and whose word on clients is believed.
    pub trusted: Vec<Network>,
    /// Connections at one time.
    pub connections_max: usize,
    /// For the rest of a message whose beginning has come.
    pub message_timeout: Duration,
    /// Between two messages of a connection.
    pub idle_timeout: Duration,
    /// For what is in flight after SIGTERM.
    pub drain_timeout: Duration,
}

/// The state that all connections of one integration share.
#[derive(Debug)]
pub struct Service {
    pub(crate) exchanges: Arc<Exchanges>,
    pub(crate) limits: Limits,
}

impl Service {
    /// A service that nothing has asked yet.
    pub fn new(exchanges: Arc<Exchanges>, limits: Limits) -> Arc<Service> {
        Arc::new(Service { exchanges, limits })
    }

    pub(crate) fn trusts(&self, peer: IpAddr) -> bool {
        self.limits.trusted.iter().any(|network| network.contains(peer))
    }
}

impl Deref for Service {
    type Target = Exchanges;

    fn deref(&self) -> &Exchanges {
        &self.exchanges
    }
}
