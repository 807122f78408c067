//! Metrics of a group of endpoints, and a line for the operator at each change.

use std::fmt::Display;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use portcullis_balance::{BreakerState, Changes, Endpoints, Moment};
use portcullis_metrics::{Counter, EnumCounters, Gauge, catalogue};

use super::Failed;
use crate::services::Services;

/// The outcome of a request at an endpoint.
#[derive(Clone, Copy)]
pub(crate) enum Sent {
    Answered,
    Failed,
    Abandoned,
}

impl Sent {
    /// Label values, in the order of the variants.
    const NAMES: &'static [&'static str] = &["answered", "failed", "abandoned"];
}

/// Why a request was sent once more.
#[derive(Clone, Copy)]
pub(crate) enum Retried {
    /// The endpoint closed a kept connection as we began to use it.
    Stale,
    /// No connection could be made.
    Connect,
    /// Closed before the head of an answer.
    Closed,
    /// No head of an answer in time.
    Timeout,
    /// The answer is not HTTP.
    Invalid,
    /// An answer of a status that is not to be passed on.
    Status,
    /// The endpoint has said that it has not looked at it.
    Refused,
}

impl Retried {
    const NAMES: &'static [&'static str] =
        &["stale", "connect", "closed", "timeout", "invalid", "status", "refused"];
}

/// Why a request did not wait, or no longer.
#[derive(Clone, Copy)]
pub(crate) enum QueueRefusal {
    Full,
    Timeout,
}

impl QueueRefusal {
    const NAMES: &'static [&'static str] = &["full", "timeout"];
}

/// The outcome of resolving a name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resolved {
    Unchanged,
    Changed,
    Failed,
}

impl Resolved {
    const NAMES: &'static [&'static str] = &["unchanged", "changed", "failed"];
}

/// Metrics of one group, and the way of its lines.
pub(crate) struct Reporter {
    group: String,
    say: Arc<dyn Fn(&str) + Send + Sync>,
    healthy: Gauge,
    retries: EnumCounters,
    retries_denied: Counter,
    queued: Gauge,
    queue_refused: EnumCounters,
    resolutions: EnumCounters,
    endpoints: Vec<EndpointMetrics>,
}

struct EndpointMetrics {
    name: String,
    requests: EnumCounters,
    active: Gauge,
    breaker: Gauge,
    sessions: Gauge,
    logins: Gauge,
    ejections: Counter,
    checks: EnumCounters,
    last_failure: ArcSwapOption<Failure>,
    /// Why no connection could be made, in words, where there are any. It was logged.
    not_connected: ArcSwapOption<Failure>,
}

/// A reason for which there is no connection is logged again after so long.
const SAID_AGAIN_AFTER: Duration = Duration::from_secs(600);

/// A failure of an endpoint: of a request or of an active check.
pub(crate) struct Failure {
    pub(crate) at: Instant,
    pub(crate) why: String,
}

impl Reporter {
    pub(crate) fn new(services: &Services, group: &str, endpoints: &[&str]) -> Self {
        let registry = &services.registry;
        let metrics = |name: &&str| EndpointMetrics {
            name: name.to_string(),
            requests: registry.enum_counters(&catalogue::UPSTREAM_REQUESTS, &[group, name], Sent::NAMES),
            active: registry.gauge(&catalogue::UPSTREAM_ACTIVE, &[group, name]),
            breaker: registry.gauge(&catalogue::UPSTREAM_BREAKER, &[group, name]),
            sessions: registry.gauge(&catalogue::UPSTREAM_HTTP2, &[group, name]),
            logins: registry.gauge(&catalogue::UPSTREAM_LOGINS, &[group, name]),
            ejections: registry.counter(&catalogue::UPSTREAM_EJECTIONS, &[group, name]),
            checks: registry.enum_counters(
                &catalogue::UPSTREAM_CHECKS,
                &[group, name],
                &["passed", "failed"],
            ),
            last_failure: ArcSwapOption::empty(),
            not_connected: ArcSwapOption::empty(),
        };
        Reporter {
            group: group.to_string(),
            say: Arc::clone(&services.say),
            healthy: registry.gauge(&catalogue::UPSTREAM_HEALTHY, &[group]),
            retries: registry.enum_counters(&catalogue::UPSTREAM_RETRIES, &[group], Retried::NAMES),
            retries_denied: registry.counter(&catalogue::UPSTREAM_RETRIES_DENIED, &[group]),
            queued: registry.gauge(&catalogue::UPSTREAM_QUEUED, &[group]),
            queue_refused: registry.enum_counters(
                &catalogue::UPSTREAM_QUEUE_REFUSED,
                &[group],
                QueueRefusal::NAMES,
            ),
            resolutions: registry.enum_counters(&catalogue::UPSTREAM_RESOLUTIONS, &[group], Resolved::NAMES),
            endpoints: endpoints.iter().map(metrics).collect(),
        }
    }

    /// Counts a request whose fate is known.
    pub(crate) fn sent(&self, endpoint: usize, sent: Sent) {
        self.endpoints[endpoint].requests.inc(sent as usize);
    }

    /// Open connections of HTTP/2 to an endpoint.
    pub(crate) fn sessions(&self, endpoint: usize) -> Gauge {
        self.endpoints[endpoint].sessions.clone()
    }

    /// Open connections to an endpoint that belong to a client connection.
    pub(crate) fn logins(&self, endpoint: usize) -> Gauge {
        self.endpoints[endpoint].logins.clone()
    }

    /// Counts a request that is sent once more.
    pub(crate) fn retried(&self, why: Retried) {
        self.retries.inc(why as usize);
    }

    /// Counts one that is not, for want of budget.
    pub(crate) fn retry_denied(&self) {
        self.retries_denied.inc();
    }

    /// Counts a request that found no place.
    pub(crate) fn queue_refused(&self, why: QueueRefusal) {
        self.queue_refused.inc(why as usize);
    }

    /// Counts an active check.
    pub(crate) fn checked(&self, endpoint: usize, passed: bool) {
        self.endpoints[endpoint].checks.inc(usize::from(!passed));
    }

    /// Keeps the last failure of an endpoint, for those who look at its state.
    pub(crate) fn failed(&self, endpoint: usize, why: &impl Display) {
        let failure = Failure { at: Instant::now(), why: why.to_string() };
        self.endpoints[endpoint].last_failure.store(Some(Arc::new(failure)));
    }

    /// Keeps why no connection could be made, and logs it unless the same was logged not long ago.
    pub(crate) fn not_connected(&self, endpoint: usize, failed: &Failed) {
        let Some(why) = &failed.why else { return };
        let (now, last) = (Instant::now(), &self.endpoints[endpoint].not_connected);
        let is_new = |last: &Failure| last.why != *why || now.duration_since(last.at) >= SAID_AGAIN_AFTER;
        if last.load().as_ref().is_none_or(|last| is_new(last)) {
            last.store(Some(Arc::new(Failure { at: now, why: why.clone() })));
            self.line(endpoint, failed);
        }
    }

    /// Why the last connection that could not be made was not, in words.
    pub(crate) fn why_not_connected(&self, endpoint: usize) -> Option<String> {
        Some(self.endpoints.get(endpoint)?.not_connected.load().as_ref()?.why.clone())
    }

    /// The last failure of an endpoint, since these settings came into use.
    pub(crate) fn last_failure(&self, endpoint: usize) -> Option<Arc<Failure>> {
        self.endpoints.get(endpoint)?.last_failure.load_full()
    }

    /// Says what a request changed; `why` is what happened to it.
    pub(crate) fn changes(&self, endpoint: usize, changes: Changes, why: impl Display) {
        if let Some(state) = changes.breaker {
            self.breaker(endpoint, state, &why);
        }
        if let Some(time) = changes.ejected {
            self.endpoints[endpoint].ejections.inc();
            self.line(endpoint, format_args!("ejected for {} s: {why}", time.as_secs_f32()));
        }
    }

    /// Says that a breaker changed.
    pub(crate) fn breaker(&self, endpoint: usize, state: BreakerState, why: impl Display) {
        let state = match state {
            BreakerState::Closed => "closed",
            BreakerState::Open => "open",
            BreakerState::HalfOpen => "half-open",
        };
        self.line(endpoint, format_args!("circuit breaker {state}: {why}"));
    }

    /// A name of an endpoint was resolved, or not; `told` is a line about it.
    pub(super) fn resolved(&self, what: Resolved, told: Option<&str>) {
        self.resolutions.inc(what as usize);
        if let Some(told) = told {
            (self.say)(&format!("upstream `{}`: {told}", self.group));
        }
    }

    /// Writes a line about an endpoint.
    pub(crate) fn line(&self, endpoint: usize, what: impl Display) {
        (self.say)(&format!("upstream `{}`: {}: {what}", self.group, self.endpoints[endpoint].name));
    }

    /// Brings the gauges up to date.
    pub(crate) fn measure(&self, endpoints: &Endpoints, queued: u32, now: Moment) {
        self.queued.set(i64::from(queued));
        self.healthy.set(endpoints.healthy(now) as i64);
        for (metrics, member) in self.endpoints.iter().zip(endpoints.members()) {
            metrics.active.set(i64::from(member.endpoint.active()));
            metrics.breaker.set(member.endpoint.breaker_state() as i64);
        }
    }

    /// The group is no longer used.
    pub(crate) fn forget(&self) {
        self.healthy.set(0);
        self.queued.set(0);
        for metrics in &self.endpoints {
            metrics.active.set(0);
            metrics.breaker.set(0);
        }
    }
}
