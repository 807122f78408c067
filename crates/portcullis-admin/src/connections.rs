//! The open connections of a listener, shared fairly between the networks of clients.
//!
//! A connection that waits for its client (for a head, for a body, or for an answer to be read) costs the
//! client nothing, so it may be closed for a new one. The network with the most connections loses its oldest
//! first: however many clients hold connections without using them, one that sends its request gets an
//! answer.

use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use portcullis_config::Prefixes;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

/// Addresses that share one part of the connections: what one customer of a provider usually gets.
const NETWORK: Prefixes = Prefixes { ipv4: 24, ipv6: 48 };
/// Addresses of one client: a host of IPv6 has 64 bits to itself.
const CLIENT: Prefixes = Prefixes { ipv4: 32, ipv6: 64 };

/// The open connections of one listener, each a task.
pub struct Connections {
    connections_max: usize,
    client_connections_max: usize,
    tasks: JoinSet<()>,
    /// The oldest first.
    open: Vec<Open>,
}

struct Open {
    client: IpAddr,
    network: IpAddr,
    activity: Arc<Activity>,
    task: AbortHandle,
}

impl Open {
    fn may_close(&self) -> bool {
        self.activity.waits_for_client() && !self.task.is_finished()
    }
}

impl Connections {
    /// Room for so many connections, and so many of one client (an IPv6 network of 64 bits is one).
    pub fn new(connections_max: usize, client_connections_max: usize) -> Connections {
        Connections {
            connections_max: connections_max.max(1),
            client_connections_max: client_connections_max.max(1),
            tasks: JoinSet::new(),
            open: Vec::new(),
        }
    }

    /// True if one more connection can be taken, if need be in place of another.
    pub fn has_room(&self) -> bool {
        self.tasks.len() < self.connections_max || self.open.iter().any(Open::may_close)
    }

    /// Waits until a connection ends; pending for ever if there is none.
    pub async fn ended(&mut self) {
        match self.tasks.join_next().await {
            Some(_) => self.open.retain(|open| !open.task.is_finished()),
            None => std::future::pending().await,
        }
    }

    /// Serves a connection of this client. Where there is no room, one that waits for its client is closed;
    /// without such a one the new connection is dropped.
    pub fn take<F>(&mut self, address: IpAddr, serve: impl FnOnce(Arc<Activity>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (client, network) = (CLIENT.network(address), NETWORK.network(address));
        let own = self.open.iter().filter(|open| open.client == client && !open.task.is_finished()).count();
        let has_room = match own >= self.client_connections_max {
            true => self.close_one(|open| open.client == client),
            false => self.tasks.len() < self.connections_max || self.close_one(|_| true),
        };
        if !has_room {
            return;
        }
        let activity = Arc::new(Activity::default());
        let task = self.tasks.spawn(serve(Arc::clone(&activity)));
        self.open.push(Open { client, network, activity, task });
    }

    /// Closes the connection that is missed least of those that are meant; false if there is none.
    fn close_one(&mut self, is_meant: impl Fn(&Open) -> bool) -> bool {
        let of_network = |network: IpAddr| self.open.iter().filter(|open| open.network == network).count();
        let candidates = self.open.iter().enumerate().filter(|(_, open)| is_meant(open) && open.may_close());
        let least = candidates.min_by_key(|(age, open)| {
            let is_trusted = open.activity.trusted.load(Ordering::Relaxed);
            (is_trusted, std::cmp::Reverse(of_network(open.network)), *age)
        });
        let Some(at) = least.map(|(at, _)| at) else { return false };
        self.open.remove(at).task.abort();
        true
    }

    /// Waits for the connections to end, so long at most; then they are closed.
    pub async fn drain(mut self, time_max: Duration) {
        let drained = async { while self.tasks.join_next().await.is_some() {} };
        let _ = timeout(time_max, drained).await;
    }
}

/// Events of a connection.
#[derive(Debug, Default)]
pub struct Activity {
    /// Requests that are being answered.
    answering: AtomicUsize,
    /// Times that the answer waits for the client.
    waiting: AtomicUsize,
    /// The client has shown who it is.
    trusted: AtomicBool,
}

impl Activity {
    fn waits_for_client(&self) -> bool {
        self.answering.load(Ordering::Relaxed) == 0 || self.waiting.load(Ordering::Relaxed) > 0
    }

    /// A request is being answered while the guard lives.
    pub fn answer(self: &Arc<Self>) -> Answering {
        self.answering.fetch_add(1, Ordering::Relaxed);
        Answering(Arc::clone(self))
    }

    /// The answer waits for the client while the guard lives.
    pub fn wait(self: &Arc<Self>) -> Waiting {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        Waiting(Arc::clone(self))
    }

    /// The client has shown who it is: connections of others are closed first.
    pub fn trust(&self) {
        self.trusted.store(true, Ordering::Relaxed);
    }
}

/// A request that is being answered.
#[derive(Debug)]
pub struct Answering(Arc<Activity>);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.answering.fetch_sub(1, Ordering::Relaxed);
    }
}

/// An answer that waits for the client.
#[derive(Debug)]
pub struct Waiting(Arc<Activity>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}
