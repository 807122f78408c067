//! Inspection agents: processes that are asked about requests and responses over a Unix socket or gRPC.
//!
//! ```text
//!  route ──> Asked ──> Conversation ──> Agent: breaker, places (shared by all workers)
//!            all at     one agent,  └─> Link: a connection of this worker, many exchanges on it
//!            once       one exchange      └─> portcullis_agent::Session: what may be said
//!              └─> verdict, score, header changes, words for the event; or the policy for want of a decision
//! ```
//!
//! An agent is never waited for longer than its timeout, and one that only fails is not asked for a while.

mod ask;
mod call;
mod conversation;
mod events;
mod failed;
mod link;
mod report;
mod transport;

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use portcullis_balance::{Breaker, BreakerState, Moment, Permit};
use portcullis_config::{AgentAddress, OpenOrClosed, UpstreamProtocol};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::StartError;
use crate::services::Services;
use portcullis_tls::UpstreamTls;

use failed::Failed;

pub(crate) use ask::{Asked, Headers, begin, body, request_plan, response, response_plan, verdict};
pub(crate) use events::is_kept;
pub(crate) use link::Links;
use report::Report;

/// An agent, as all workers share it.
#[derive(Clone)]
pub(crate) struct Agent {
    pub(crate) settings: portcullis_config::Agent,
    pub(crate) name: Arc<str>,
    pub(crate) tls: Option<Arc<UpstreamTls>>,
    breaker: Arc<Breaker>,
    places: Arc<Semaphore>,
    waiting: Arc<AtomicU32>,
    report: Arc<Report>,
    started: Instant,
}

/// An agent that a route asks.
#[derive(Clone)]
pub(crate) struct AgentUse {
    agent: Arc<Agent>,
    failure: OpenOrClosed,
}

/// Counts one of the exchanges that an agent decides on at one time, with the leave of its breaker.
struct AgentPermit {
    agent: Arc<Agent>,
    /// None once the outcome was reported.
    permit: Option<Permit>,
    _place: OwnedSemaphorePermit,
}

impl Agent {
    /// The agents of a configuration. One of `old` with the same settings is kept, with its connections and
    /// its breaker; over TLS only the latter, since behind the same path there may be other authorities now.
    pub(crate) fn build(
        settings: &[portcullis_config::Agent],
        services: &Services,
        old: &[Arc<Agent>],
    ) -> Result<Vec<Arc<Agent>>, StartError> {
        let build = |settings: &portcullis_config::Agent| {
            let same = old.iter().find(|agent| agent.settings == *settings);
            let AgentAddress::Grpc(endpoint, Some(tls)) = &settings.address else {
                return Ok(same.map_or_else(|| Arc::new(Agent::new(settings, services)), Arc::clone));
            };
            let wrong = |error: StartError| StartError::new(format!("agent `{}`: {error}", settings.name));
            let tls = UpstreamTls::build(tls, UpstreamProtocol::Http2, &services.registry).map_err(wrong)?;
            tls.server_name(endpoint).map_err(wrong)?;
            let agent = same.map_or_else(|| Agent::new(settings, services), |same| Agent::clone(same));
            Ok(Arc::new(Agent { tls: Some(Arc::new(tls)), ..agent }))
        };
        settings.iter().map(build).collect()
    }

    fn new(settings: &portcullis_config::Agent, services: &Services) -> Agent {
        Agent {
            name: settings.name.as_str().into(),
            tls: None,
            breaker: Arc::default(),
            places: Arc::new(Semaphore::new(settings.concurrency as usize)),
            waiting: Arc::default(),
            report: Arc::new(Report::new(services, &settings.name)),
            started: Instant::now(),
            settings: settings.clone(),
        }
    }

    /// Those that a route asks.
    pub(crate) fn uses(agents: &[Arc<Agent>], uses: &[portcullis_config::AgentUse]) -> Box<[AgentUse]> {
        let of = |of: &portcullis_config::AgentUse| AgentUse {
            agent: Arc::clone(&agents[of.agent]),
            failure: of.failure,
        };
        uses.iter().map(of).collect()
    }

    /// Brings the gauges up to date.
    pub(crate) fn measure(&self) {
        let (breaker, waiting, active) = self.state();
        self.report.measure(breaker, waiting, active);
    }

    /// Its breaker, exchanges that wait for a place, and exchanges that have one.
    pub(crate) fn state(&self) -> (BreakerState, u32, usize) {
        let free = self.places.available_permits();
        let active = (self.settings.concurrency as usize).saturating_sub(free);
        (self.breaker.state(), self.waiting.load(Relaxed), active)
    }

    /// The agent is no longer used.
    pub(crate) fn forget(&self) {
        self.report.measure(BreakerState::Closed, 0, 0);
    }

    fn now(&self) -> Moment {
        Moment(1 + self.started.elapsed().as_millis() as u64)
    }

    /// A place, waited for as long as `patience` at most.
    async fn enter(self: &Arc<Self>, patience: Duration) -> Result<AgentPermit, Failed> {
        // Nobody waits for an agent that is not asked.
        if !self.breaker.admits(&self.settings.breaker, self.now()) {
            return Err(Failed::CircuitOpen);
        }
        let place = match Arc::clone(&self.places).try_acquire_owned() {
            Ok(place) => place,
            Err(_) => self.wait(patience).await?,
        };
        let Some((permit, change)) = self.breaker.acquire(&self.settings.breaker, self.now()) else {
            return Err(Failed::CircuitOpen);
        };
        if let Some(state) = change {
            self.report.breaker(state, "its time is up, probing");
        }
        Ok(AgentPermit { agent: Arc::clone(self), permit: Some(permit), _place: place })
    }

    async fn wait(&self, patience: Duration) -> Result<OwnedSemaphorePermit, Failed> {
        let waiting = Waiting(&self.waiting);
        if self.waiting.fetch_add(1, Relaxed) >= self.settings.queue_max {
            return Err(Failed::Queue);
        }
        let place = tokio::time::timeout(patience, Arc::clone(&self.places).acquire_owned()).await;
        drop(waiting);
        match place {
            Ok(Ok(place)) => Ok(place),
            Ok(Err(_)) | Err(_) => Err(Failed::Queue),
        }
    }
}

/// Counts one that waits for as long as it lives.
struct Waiting<'a>(&'a AtomicU32);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl AgentPermit {
    fn succeeded(mut self) {
        let Some(permit) = self.permit.take() else { return };
        if let Some(state) = self.agent.breaker.succeeded(permit, &self.agent.settings.breaker) {
            self.agent.report.breaker(state, "probes succeeded");
        }
    }

    fn failed(mut self, why: Failed, detail: &str) {
        let Some(permit) = self.permit.take() else { return };
        self.agent.report.failed(why);
        let agent = &self.agent;
        if let Some(state) = agent.breaker.failed(permit, &agent.settings.breaker, agent.now()) {
            agent.report.breaker(state, if detail.is_empty() { why.text() } else { detail });
        }
    }
}

impl Drop for AgentPermit {
    fn drop(&mut self) {
        if let Some(permit) = self.permit.take() {
            self.agent.breaker.cancelled(permit);
        }
    }
}

/// Something that belongs to an agent of some settings, and goes with it.
type OfAgent = Weak<Agent>;
