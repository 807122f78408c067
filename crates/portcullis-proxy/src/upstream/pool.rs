//! Unused connections of one worker, and which endpoint is next.
//!
//! Endpoints take turns. One that could not be connected to is left out for a while, growing with each failure; when all
//! are left out the one whose time is up first is tried all the same, so a group never talks itself to death.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Group, UpstreamConnection};

/// How long an endpoint is left out after its first failure; doubled by each further one.
const OUT_FIRST: Duration = Duration::from_secs(1);
/// The longest time an endpoint is left out.
const OUT_MAX: Duration = Duration::from_secs(30);

/// What a worker knows of all groups.
#[derive(Default)]
pub(crate) struct Pool {
    groups: HashMap<u64, Endpoints<UpstreamConnection>>,
}

impl Pool {
    /// The state of a group.
    pub(crate) fn group(&mut self, group: &Arc<Group>) -> &mut Endpoints<UpstreamConnection> {
        self.groups.entry(group.id).or_insert_with(|| {
            let settings = &group.settings;
            Endpoints::new(settings.endpoints.len(), settings.idle_connections_max, settings.idle_timeout)
        })
    }

    /// Closes what has been unused for too long and forgets groups that nothing uses.
    pub(crate) fn sweep(&mut self, now: Instant) {
        self.groups.retain(|_, endpoints| endpoints.sweep(now));
    }

    /// Closes all unused connections.
    pub(crate) fn clear(&mut self) {
        self.groups.clear();
    }
}

/// The endpoints of one group; generic so that tests need no sockets.
pub(crate) struct Endpoints<C> {
    endpoints: Vec<EndpointState<C>>,
    next: usize,
    idle_max: usize,
    idle_timeout: Duration,
    last_used: Option<Instant>,
}

struct EndpointState<C> {
    /// Oldest first; the newest is used first, so that a quiet group shrinks to what it needs.
    idle: Vec<(C, Instant)>,
    failures: u32,
    out_until: Option<Instant>,
}

impl<C> Endpoints<C> {
    fn new(count: usize, idle_max: usize, idle_timeout: Duration) -> Self {
        let endpoint = || EndpointState { idle: Vec::new(), failures: 0, out_until: None };
        Endpoints {
            endpoints: std::iter::repeat_with(endpoint).take(count).collect(),
            next: 0,
            idle_max,
            idle_timeout,
            last_used: None,
        }
    }

    /// The endpoint whose turn it is, never one of `tried`; none if all were.
    pub(crate) fn pick(&mut self, now: Instant, tried: &[usize]) -> Option<usize> {
        self.last_used = Some(now);
        let count = self.endpoints.len();
        let mut best: Option<(Option<Instant>, usize)> = None;
        for step in 0..count {
            let index = (self.next + step) % count;
            if tried.contains(&index) {
                continue;
            }
            let out = self.endpoints[index].out_until.filter(|until| *until > now);
            if best.is_none_or(|(best_out, _)| out < best_out) {
                best = Some((out, index));
            }
            if out.is_none() {
                break;
            }
        }
        let (_, index) = best?;
        self.next = (index + 1) % count;
        Some(index)
    }

    /// A connection that was used last and is not too old.
    pub(crate) fn take(&mut self, endpoint: usize, now: Instant) -> Option<C> {
        let timeout = self.idle_timeout;
        let (connection, since) = self.endpoints[endpoint].idle.pop()?;
        if now.duration_since(since) < timeout {
            return Some(connection);
        }
        // The newest is too old, so all are.
        self.endpoints[endpoint].idle.clear();
        None
    }

    /// Keeps a connection for the next request.
    pub(crate) fn put(&mut self, endpoint: usize, connection: C, now: Instant) {
        let idle = &mut self.endpoints[endpoint].idle;
        if self.idle_max == 0 {
            return;
        }
        if idle.len() >= self.idle_max {
            idle.remove(0);
        }
        idle.push((connection, now));
    }

    /// The endpoint answered a connection attempt.
    pub(crate) fn succeeded(&mut self, endpoint: usize) {
        let state = &mut self.endpoints[endpoint];
        state.failures = 0;
        state.out_until = None;
    }

    /// The endpoint could not be connected to.
    pub(crate) fn failed(&mut self, endpoint: usize, now: Instant) {
        let state = &mut self.endpoints[endpoint];
        let out = OUT_FIRST.saturating_mul(1 << state.failures.min(5)).min(OUT_MAX);
        state.failures = state.failures.saturating_add(1);
        state.out_until = Some(now + out);
        state.idle.clear();
    }

    /// Closes old connections; false if the group has not been used since they would have been.
    fn sweep(&mut self, now: Instant) -> bool {
        let timeout = self.idle_timeout;
        let mut any = false;
        for endpoint in &mut self.endpoints {
            endpoint.idle.retain(|(_, since)| now.duration_since(*since) < timeout);
            any |= !endpoint.idle.is_empty();
        }
        any || self.last_used.is_some_and(|used| now.duration_since(used) < timeout.max(OUT_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(start: Instant, seconds: u64) -> Instant {
        start + Duration::from_secs(seconds)
    }

    #[test]
    fn endpoints_take_turns_and_dead_ones_are_left_out() {
        let t = Instant::now();
        let mut group: Endpoints<u32> = Endpoints::new(3, 2, Duration::from_secs(10));
        assert_eq!([group.pick(t, &[]), group.pick(t, &[]), group.pick(t, &[])], [Some(0), Some(1), Some(2)]);
        group.failed(0, t);
        assert_eq!([group.pick(t, &[]), group.pick(t, &[]), group.pick(t, &[])], [Some(1), Some(2), Some(1)]);
        assert_eq!(group.pick(t, &[1, 2]), Some(0), "rather a dead one than none");
        assert_eq!(group.pick(t, &[0, 1, 2]), None);
        assert_eq!(group.pick(after(t, 2), &[1, 2]), Some(0));
        group.failed(1, t);
        group.failed(1, t);
        group.failed(2, t);
        group.failed(0, t);
        group.failed(0, t);
        assert_eq!(group.pick(t, &[]), Some(2), "the first to come back");
        group.succeeded(1);
        assert_eq!(group.pick(t, &[]), Some(1));
    }

    #[test]
    fn connections_are_kept_while_they_are_young() {
        let t = Instant::now();
        let mut group: Endpoints<u32> = Endpoints::new(1, 2, Duration::from_secs(10));
        for connection in 1..=3 {
            group.put(0, connection, t);
        }
        assert_eq!(group.take(0, t), Some(3));
        assert_eq!(group.take(0, t), Some(2), "1 had to go");
        assert_eq!(group.take(0, t), None);
        group.put(0, 4, t);
        assert_eq!(group.take(0, after(t, 10)), None);
        group.put(0, 5, t);
        group.pick(t, &[]);
        assert!(group.sweep(after(t, 11)), "failures are remembered longer than connections");
        assert_eq!(group.take(0, t), None);
        assert!(!group.sweep(after(t, 31)));
    }

    #[test]
    fn a_seeded_model_of_faults() {
        // Endpoints fail and recover at random; whatever happens, a pick is one of the endpoints and not a tried one, and
        // a live endpoint is never passed over for a dead one.
        for seed in 1..200u64 {
            let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mut random = |bound: u64| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state % bound
            };
            let start = Instant::now();
            let count = 1 + random(4) as usize;
            let mut group: Endpoints<u32> = Endpoints::new(count, 4, Duration::from_secs(5));
            let mut out: Vec<Option<Instant>> = vec![None; count];
            let mut now = start;
            for _ in 0..100 {
                now += Duration::from_millis(random(1500));
                let picked = group.pick(now, &[]).expect("there is an endpoint");
                let alive = |index: usize| out[index].is_none_or(|until| until <= now);
                let any_alive = (0..count).any(alive);
                assert!(alive(picked) || !any_alive, "seed {seed}");
                if random(3) == 0 {
                    group.failed(picked, now);
                    out[picked] = group.endpoints[picked].out_until;
                    assert!(out[picked].is_some_and(|until| until - now <= OUT_MAX), "seed {seed}");
                } else {
                    group.succeeded(picked);
                    out[picked] = None;
                }
            }
        }
    }
}
