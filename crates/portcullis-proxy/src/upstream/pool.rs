//! Unused connections of one worker, and its position in the rotation of endpoints.

use std::sync::Arc;
use std::time::{Duration, Instant};

use portcullis_balance::Rotation;

use super::{Group, UpstreamConnection};

/// The least time for which a worker remembers a group that nothing uses.
const REMEMBERED: Duration = Duration::from_secs(30);

/// A worker's part of all groups.
pub(crate) struct Pool {
    /// Few, so that looking through them is faster than hashing.
    groups: Vec<Local<Box<UpstreamConnection>>>,
    seed: u64,
}

impl Pool {
    /// An empty pool. Workers with different seeds do not all begin with the same endpoint.
    pub(crate) fn new(seed: u64) -> Self {
        Pool { groups: Vec::new(), seed }
    }

    /// The worker's part of a group.
    pub(crate) fn group(&mut self, group: &Arc<Group>) -> &mut Local<Box<UpstreamConnection>> {
        let known = self.groups.iter().position(|local| local.id == group.id);
        let index = known.unwrap_or_else(|| self.join(group));
        &mut self.groups[index]
    }

    /// Takes a group up, with the connections that settings before a reload left.
    fn join(&mut self, group: &Arc<Group>) -> usize {
        let settings = &group.settings;
        let mut local = Local::new(
            group.id,
            group.endpoints.rotation(self.seed ^ group.id),
            &group.connections,
            settings.idle_connections_max,
            settings.idle_timeout,
        );
        for old in &mut self.groups {
            local.adopt(old);
        }
        self.groups.push(local);
        self.groups.len() - 1
    }

    /// Closes what has been unused for too long and forgets groups that nothing uses.
    pub(crate) fn sweep(&mut self, now: Instant) {
        self.groups.retain_mut(|local| local.sweep(now));
    }

    /// Closes all unused connections.
    pub(crate) fn clear(&mut self) {
        self.groups.clear();
    }
}

/// One worker's part of a group; generic so that tests need no sockets.
pub(crate) struct Local<C> {
    id: u64,
    pub(crate) rotation: Rotation,
    /// By endpoint.
    idle: Vec<Idle<C>>,
    idle_max: usize,
    idle_timeout: Duration,
    last_used: Option<Instant>,
}

struct Idle<C> {
    /// The endpoints of the connections, as [`Group::connections`] numbers them.
    to: u64,
    /// Oldest first; the newest is used first, so that a quiet group shrinks to what it needs.
    connections: Vec<(C, Instant)>,
}

impl<C> Local<C> {
    fn new(id: u64, rotation: Rotation, to: &[u64], idle_max: usize, idle_timeout: Duration) -> Self {
        let idle = to.iter().map(|to| Idle { to: *to, connections: Vec::new() }).collect();
        Local { id, rotation, idle, idle_max, idle_timeout, last_used: None }
    }

    /// Takes the connections of another group to the same endpoints.
    fn adopt(&mut self, other: &mut Local<C>) {
        for theirs in &mut other.idle {
            if let Some(ours) = self.idle.iter_mut().find(|ours| ours.to == theirs.to) {
                ours.connections.append(&mut theirs.connections);
                let surplus = ours.connections.len().saturating_sub(self.idle_max);
                ours.connections.drain(..surplus);
            }
        }
    }

    /// A connection that was used last and is not too old.
    pub(crate) fn take(&mut self, endpoint: usize, now: Instant) -> Option<C> {
        self.last_used = Some(now);
        let idle = &mut self.idle[endpoint].connections;
        let (connection, since) = idle.pop()?;
        if now.duration_since(since) < self.idle_timeout {
            return Some(connection);
        }
        // The newest is too old, so all are.
        idle.clear();
        None
    }

    /// Keeps a connection for the next request.
    pub(crate) fn put(&mut self, endpoint: usize, connection: C, now: Instant) {
        let idle = &mut self.idle[endpoint].connections;
        if self.idle_max == 0 {
            return;
        }
        if idle.len() >= self.idle_max {
            idle.remove(0);
        }
        idle.push((connection, now));
    }

    /// Closes the unused connections to an endpoint that cannot be connected to.
    pub(crate) fn close(&mut self, endpoint: usize) {
        self.idle[endpoint].connections.clear();
    }

    /// Closes old connections; false if the group has not been used since they would have been.
    fn sweep(&mut self, now: Instant) -> bool {
        let timeout = self.idle_timeout;
        let mut any = false;
        for Idle { connections, .. } in &mut self.idle {
            connections.retain(|(_, since)| now.duration_since(*since) < timeout);
            any |= !connections.is_empty();
        }
        any || self.last_used.is_some_and(|used| now.duration_since(used) < timeout.max(REMEMBERED))
    }
}

#[cfg(test)]
mod tests {
    use portcullis_balance::{Endpoints, Policy};

    use super::*;

    fn after(start: Instant, seconds: u64) -> Instant {
        start + Duration::from_secs(seconds)
    }

    fn local(id: u64, to: &[u64]) -> Local<u32> {
        let rotation = Endpoints::new(Vec::new(), Policy::default()).rotation(1);
        Local::new(id, rotation, to, 2, Duration::from_secs(10))
    }

    #[test]
    fn connections_are_kept_while_they_are_young() {
        let t = Instant::now();
        let mut group = local(1, &[1]);
        for connection in 1..=3 {
            group.put(0, connection, t);
        }
        assert_eq!(group.take(0, t), Some(3));
        assert_eq!(group.take(0, t), Some(2), "1 had to go");
        assert_eq!(group.take(0, t), None);
        group.put(0, 4, t);
        assert_eq!(group.take(0, after(t, 10)), None);
        group.put(0, 5, t);
        assert!(group.sweep(after(t, 11)), "turns are remembered longer than connections");
        assert_eq!(group.take(0, t), None);
        assert!(!group.sweep(after(t, 31)));
    }

    #[test]
    fn connections_outlive_a_reload_that_leaves_their_endpoint() {
        let t = Instant::now();
        let mut old = local(1, &[1, 2]);
        for (endpoint, connection) in [(0, 10), (1, 20), (1, 21)] {
            old.put(endpoint, connection, t);
        }
        // The first endpoint went, the second has another place, and there is a new one.
        let mut new = local(2, &[3, 2]);
        new.put(1, 22, t);
        new.adopt(&mut old);
        assert_eq!([new.take(1, t), new.take(1, t), new.take(1, t)], [Some(21), Some(20), None]);
        assert_eq!(new.take(0, t), None);
        assert_eq!(old.take(0, t), Some(10));
    }
}
