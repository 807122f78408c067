//! The tries of one request: which endpoint is next, whether there may be another one, and how long all of it
//! may take.

use std::net::IpAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use portcullis_balance::{Ask, Refused};
use portcullis_config::UpstreamProtocol;
use portcullis_event::UpstreamError;
use portcullis_http::message::RequestHead;

use super::report::{QueueRefusal, Retried};
use super::{Group, Lease, UpstreamConnection, connect, key};
use crate::clock;
use crate::connection::Connection;
use crate::timer::Timer;

/// The tries of one request so far.
pub(crate) struct Tries<'g> {
    group: &'g Arc<Group>,
    key: Option<u64>,
    preferred: Option<usize>,
    tried: Vec<usize>,
    /// The client is logged in at this endpoint, so that no other will do as long as it can be asked.
    bound_to: Option<usize>,
    /// The request goes on a connection that no other client's requests share.
    alone: bool,
    deadline: Option<Instant>,
}

impl<'g> Tries<'g> {
    /// Nothing has been tried for this request.
    pub(crate) fn new(group: &'g Arc<Group>, head: &RequestHead, client: IpAddr) -> Self {
        let by = group.settings.hash_by.as_ref();
        Tries {
            group,
            key: by.and_then(|by| key::key(by, head, client)),
            preferred: group.sticky.as_ref().and_then(|sticky| sticky.endpoint(head)),
            tried: Vec::new(),
            bound_to: None,
            alone: false,
            deadline: group.settings.total_timeout.map(|timeout| clock::coarse() + timeout),
        }
    }

    /// The client is logged in at an endpoint.
    pub(crate) fn bind(&mut self, endpoint: Option<usize>) {
        self.bound_to = endpoint;
    }

    /// The request needs a connection that no other client's requests share. False if that was known.
    pub(crate) fn need_own_connection(&mut self) -> bool {
        !std::mem::replace(&mut self.alone, true)
    }

    /// Arms a timer for one step, which ends with all tries.
    pub(crate) fn arm(&self, timer: &Timer, after: Duration) {
        match self.deadline {
            None => timer.arm(after),
            Some(deadline) => timer.arm_within(after, deadline),
        }
    }

    /// The endpoint to try first. Waits for one if all are full.
    pub(crate) async fn first(&mut self, connection: &Connection) -> Result<Lease<'g>, UpstreamError> {
        let group = self.group;
        group.budget.earn(&group.settings.retry.budget);
        if !group.queue.is_awaited() {
            match self.choose(connection) {
                Ok(lease) => return Ok(lease),
                Err(Refused::Unavailable) => return Err(UpstreamError::NoEndpoint),
                Err(Refused::Full) => {}
            }
        }
        let refused = |why| {
            group.report.queue_refused(why);
            Err(UpstreamError::Overloaded)
        };
        // Without limits an endpoint is full only while its breaker probes.
        let Some(limits) = &group.settings.limits else { return Err(UpstreamError::NoEndpoint) };
        let Some(waiting) = group.queue.enter(limits.queue_max) else { return refused(QueueRefusal::Full) };
        self.arm(&connection.timer, limits.queue_timeout);
        loop {
            let mut turn = pin!(waiting.turn());
            // From here on a place that becomes free is not missed.
            turn.as_mut().enable();
            match self.choose(connection) {
                Ok(lease) => return Ok(lease),
                Err(Refused::Unavailable) => return Err(UpstreamError::NoEndpoint),
                Err(Refused::Full) => {}
            }
            if connection.timer.run(turn).await.is_err() {
                return refused(QueueRefusal::Timeout);
            }
        }
    }

    /// The endpoint to try after `failed` has failed; none if there is none, or if it has been enough.
    pub(crate) fn next(&mut self, connection: &Connection, failed: usize, why: Retried) -> Option<Lease<'g>> {
        let group = self.group;
        self.tried.push(failed);
        self.bound_to = None;
        let now = clock::coarse();
        let is_late = self.deadline.is_some_and(|deadline| deadline <= now);
        let is_last = self.tried.len() >= group.connections.len();
        if is_late || is_last || self.tried.len() > group.settings.retry.attempts_max {
            return None;
        }
        if !group.budget.spend(&group.settings.retry.budget, group.moment(now)) {
            group.report.retry_denied();
            return None;
        }
        let lease = self.choose(connection).ok()?;
        group.report.retried(why);
        Some(lease)
    }

    fn choose(&self, connection: &Connection) -> Result<Lease<'g>, Refused> {
        let Some(bound_to) = self.bound_to else { return self.choose_beside(connection, &self.tried) };
        let others: Vec<usize> =
            (0..self.group.connections.len()).filter(|endpoint| *endpoint != bound_to).collect();
        match self.choose_beside(connection, &others) {
            // One that is full is waited for, but not one whose breaker probes.
            Err(Refused::Full) if self.group.settings.limits.is_some() => Err(Refused::Full),
            // The login is lost with its endpoint.
            Err(Refused::Unavailable | Refused::Full) => self.choose_beside(connection, &self.tried),
            chosen => chosen,
        }
    }

    /// Chooses an endpoint that is not one of `tried`.
    fn choose_beside(&self, connection: &Connection, tried: &[usize]) -> Result<Lease<'g>, Refused> {
        let group = self.group;
        let (key, preferred) = (self.key, self.preferred);
        let ask = Ask { now: group.moment(clock::coarse()), tried, key, preferred };
        let mut pool = connection.worker.pool.borrow_mut();
        let grant = group.endpoints.choose(&mut pool.group(group).rotation, &ask)?;
        Ok(Lease::new(group, grant))
    }

    /// A kept connection to the endpoint of a lease, which the flag tells, or a new one. `certain`: the
    /// request must not meet a connection that is being closed, since it cannot be sent twice.
    pub(crate) async fn open(
        &self,
        connection: &Connection,
        lease: &Lease<'g>,
        fresh_only: bool,
        certain: bool,
    ) -> Result<(Box<UpstreamConnection>, bool), UpstreamError> {
        if !fresh_only && let Some(kept) = self.kept(connection, lease, certain) {
            return Ok((kept, true));
        }
        // Boxed, so that an exchange on a kept connection does not hold the room for connecting.
        Box::pin(self.establish(connection, lease, fresh_only)).await
    }

    /// A stream of a shared connection, or a connection that nobody uses.
    fn kept(
        &self,
        connection: &Connection,
        lease: &Lease<'g>,
        certain: bool,
    ) -> Option<Box<UpstreamConnection>> {
        if let Some(stream) = self.stream(connection, lease) {
            return Some(stream);
        }
        let mut pool = connection.worker.pool.borrow_mut();
        let (local, now) = (pool.group(self.group), clock::coarse());
        while let Some(kept) = local.take(lease.endpoint, now) {
            if kept.is_usable(certain) {
                return Some(kept);
            }
        }
        None
    }

    /// A stream of a connection that requests share.
    fn stream(&self, connection: &Connection, lease: &Lease<'g>) -> Option<Box<UpstreamConnection>> {
        if self.group.settings.protocol == UpstreamProtocol::Http1 || self.alone {
            return None;
        }
        let to = self.group.connections[lease.endpoint];
        let pipe = connection.worker.sessions.borrow_mut().take(to, clock::coarse())?;
        Some(Box::new(UpstreamConnection::of(pipe, Rc::clone(&connection.worker.spares))))
    }

    /// A new connection, unless another request opens one meanwhile that can be shared.
    async fn establish(
        &self,
        connection: &Connection,
        lease: &Lease<'g>,
        fresh_only: bool,
    ) -> Result<(Box<UpstreamConnection>, bool), UpstreamError> {
        let group = self.group;
        let sessions = &connection.worker.sessions;
        let opening;
        let mut only_one = None;
        if group.settings.protocol == UpstreamProtocol::Http2 && !fresh_only && !self.alone {
            // While one request connects, others wait for what comes of it.
            self.arm(&connection.timer, group.settings.connect_timeout);
            opening = sessions.borrow_mut().opening(group.connections[lease.endpoint]);
            let locked = connection.timer.run(opening.lock()).await;
            only_one = Some(locked.map_err(|_| UpstreamError::ConnectTimeout)?);
            if let Some(stream) = self.stream(connection, lease) {
                return Ok((stream, true));
            }
        }
        self.arm(&connection.timer, group.settings.connect_timeout);
        let spares = Rc::clone(&connection.worker.spares);
        let connected = connect(group, lease.endpoint, &connection.timer, spares, sessions, self.alone).await;
        drop(only_one);
        match connected {
            Ok(fresh) => Ok((Box::new(fresh), false)),
            Err(failed) => {
                connection.worker.pool.borrow_mut().group(group).close(lease.endpoint);
                group.report.not_connected(lease.endpoint, &failed);
                Err(failed.error)
            }
        }
    }
}
