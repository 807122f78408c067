//! Metrics of an agent, and a line for the operator at each change.

use std::sync::Arc;
use std::time::Duration;

use portcullis_balance::BreakerState;
use portcullis_metrics::{Counter, EnumCounters, Gauge, Histogram, catalogue};

use super::failed::Failed;
use crate::access::EventLimit;
use crate::services::Services;

/// Metrics of one agent, and the way of its lines.
pub(super) struct Report {
    agent: String,
    say: Arc<dyn Fn(&str) + Send + Sync>,
    decisions: EnumCounters,
    failures: EnumCounters,
    timeouts: Counter,
    bypasses: EnumCounters,
    refusals: EnumCounters,
    duration: Histogram,
    queued: Gauge,
    active: Gauge,
    breaker: Gauge,
    connections: Gauge,
    events: EventLimit,
}

/// The values of the label `reason` of failures.
const FAILURES: &[&str] = &["connect", "handshake", "closed", "invalid", "status"];
/// Those of bypasses and refusals.
const WITHOUT: &[&str] = &["failed", "timeout", "circuit_open", "queue"];

impl Report {
    pub(super) fn new(services: &Services, agent: &str) -> Report {
        let registry = &services.registry;
        let label = [agent];
        let decisions = &["allow", "block", "redirect"];
        Report {
            agent: agent.to_string(),
            say: Arc::clone(&services.say),
            decisions: registry.enum_counters(&catalogue::AGENT_DECISIONS, &label, decisions),
            failures: registry.enum_counters(&catalogue::AGENT_FAILURES, &label, FAILURES),
            timeouts: registry.counter(&catalogue::AGENT_TIMEOUTS, &label),
            bypasses: registry.enum_counters(&catalogue::AGENT_BYPASSES, &label, WITHOUT),
            refusals: registry.enum_counters(&catalogue::AGENT_REFUSALS, &label, WITHOUT),
            duration: registry.histogram(&catalogue::AGENT_DURATION, &label),
            queued: registry.gauge(&catalogue::AGENT_QUEUED, &label),
            active: registry.gauge(&catalogue::AGENT_ACTIVE, &label),
            breaker: registry.gauge(&catalogue::AGENT_BREAKER, &label),
            connections: registry.gauge(&catalogue::AGENT_CONNECTIONS, &label),
            events: EventLimit::counting(registry.counter(&catalogue::AGENT_EVENTS_OMITTED, &label)),
        }
    }

    /// Counts a decision: 0 allow, 1 block, 2 redirect.
    pub(super) fn decided(&self, verdict: usize) {
        self.decisions.inc(verdict);
    }

    /// Counts the time that something waited for the agent.
    pub(super) fn waited(&self, time: Duration) {
        self.duration.observe(time);
    }

    /// Counts a failure of the agent itself.
    pub(super) fn failed(&self, why: Failed) {
        match why {
            Failed::Connect | Failed::Handshake | Failed::Closed | Failed::Invalid | Failed::Status => {
                self.failures.inc(why as usize);
            }
            Failed::Timeout => self.timeouts.inc(),
            Failed::CircuitOpen | Failed::Queue => {}
        }
    }

    /// Counts what went on, or did not, without a decision.
    pub(super) fn without(&self, why: Failed, passed: bool) {
        let reason = match why {
            Failed::Connect | Failed::Handshake | Failed::Closed | Failed::Invalid | Failed::Status => 0,
            Failed::Timeout => 1,
            Failed::CircuitOpen => 2,
            Failed::Queue => 3,
        };
        if passed { self.bypasses.inc(reason) } else { self.refusals.inc(reason) }
    }

    /// True if there is to be an event that only says that the agent failed, `since` its start.
    pub(super) fn admits_event(&self, since: Duration) -> bool {
        self.events.admits(1 + since.as_nanos() as u64)
    }

    /// Counts a connection, or its end.
    pub(super) fn connected(&self, change: i64) {
        self.connections.add(change);
    }

    /// Says that the breaker changed.
    pub(super) fn breaker(&self, state: BreakerState, why: &str) {
        let name = match state {
            BreakerState::Closed => "closed",
            BreakerState::Open => "open",
            BreakerState::HalfOpen => "half-open",
        };
        self.line(&format!("circuit breaker {name}: {why}"));
    }

    /// Writes a line about the agent.
    pub(super) fn line(&self, what: &str) {
        (self.say)(&format!("agent `{}`: {what}", self.agent));
    }

    pub(super) fn measure(&self, state: BreakerState, waiting: u32, active: usize) {
        self.breaker.set(state as i64);
        self.queued.set(waiting.into());
        self.active.set(active as i64);
    }
}
