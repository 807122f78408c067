//! The state of a running proxy as plain data, for the rest of the process. Reading it takes no lock that a
//! request waits for.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use portcullis_balance::BreakerState;
use portcullis_config::{Config, Recognised, Upstream};
use portcullis_http::message::RequestHead;
use portcullis_inspect::Inspector;
use portcullis_tls::CertificateStatus;

use crate::access::Limit;
use crate::generation::Generation;
use crate::recognition::Recognition;
use crate::site::{Routed, Site};
use crate::state::Shared;
use crate::upstream::{Group, Slot};

/// The state of a running proxy, for those who look at it.
#[derive(Clone)]
pub struct Status {
    shared: Arc<Shared>,
}

impl Status {
    pub(crate) fn new(shared: Arc<Shared>) -> Status {
        Status { shared }
    }

    /// The settings that serve now. A reload does not change what was taken before.
    pub fn serving(&self) -> Serving {
        Serving { generation: self.shared.current.load_full() }
    }
}

/// The settings that serve, and the state of their parts.
pub struct Serving {
    generation: Arc<Generation>,
}

/// The route that takes a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteChoice {
    /// The one with this index.
    Route(usize),
    /// None.
    Nowhere,
    /// Its path as written and as servers resolve it lead to different ones: it is refused.
    Ambiguous,
}

/// A group of endpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamStatus {
    /// Its name.
    pub name: String,
    /// Requests that wait for a place at an endpoint.
    pub queued: u32,
    /// Endpoints that are not known to be out of order.
    pub healthy: usize,
    /// Its endpoints; a name with several addresses is one for each.
    pub endpoints: Vec<EndpointStatus>,
}

/// An endpoint as the balancer sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointStatus {
    /// Address and port, or the name where the address is not known.
    pub place: String,
    /// Its share of the requests.
    pub weight: u32,
    /// Those of a higher number wait until none of a lower one is available.
    pub priority: u32,
    /// Active checks do not say that it is down.
    pub is_healthy: bool,
    /// It failed too often and is left out for a while.
    pub is_ejected: bool,
    /// Its circuit breaker; none if the group has none.
    pub breaker: Option<BreakerState>,
    /// Requests in flight.
    pub active: u32,
    /// The last failure of a request or an active check.
    pub last_failure: Option<EndpointFailure>,
}

/// A failure of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointFailure {
    /// The reason.
    pub why: String,
    /// The time that has passed since.
    pub ago: Duration,
}

/// A rate limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitStatus {
    /// The name of its site.
    pub site: String,
    /// Its name, unique in the site.
    pub name: String,
    /// Requests that came too early.
    pub limited: u64,
    /// Buckets that were forgotten before they were full again.
    pub evicted: u64,
}

/// An inspection agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentStatus {
    /// Its name.
    pub name: String,
    /// Its circuit breaker.
    pub breaker: BreakerState,
    /// Exchanges that it decides on.
    pub active: usize,
    /// Exchanges that wait for a place.
    pub waiting: u32,
}

impl Serving {
    /// The number of the settings, from 1.
    pub fn number(&self) -> u64 {
        self.generation.number
    }

    /// The settings.
    pub fn config(&self) -> &Config {
        &self.generation.config
    }

    /// The inspectors of the policies, by index.
    pub fn inspectors(&self) -> &[Arc<Inspector>] {
        &self.generation.inspectors
    }

    /// The site that serves this `Host` at any of the listeners, by index.
    pub fn site_of(&self, host: &[u8]) -> Option<usize> {
        self.generation.listeners.iter().find_map(|listener| listener.hosts.find(host))
    }

    /// The route of a site that takes a request, by index.
    pub fn route_of(&self, site: usize, head: &RequestHead) -> RouteChoice {
        match self.generation.sites.get(site).map(|site| site.route(head)) {
            Some(Routed::To(route)) => RouteChoice::Route(route),
            Some(Routed::Ambiguous(_)) => RouteChoice::Ambiguous,
            Some(Routed::Nowhere) | None => RouteChoice::Nowhere,
        }
    }

    /// The applications that answers of a site look like, by its index, as far as it does not take their
    /// profiles.
    pub fn offers(&self, site: usize) -> Vec<Recognised> {
        let routes = self.generation.sites.get(site).map(Site::routes).unwrap_or_default();
        let recognition = routes.iter().find_map(|route| route.recognition.as_deref());
        recognition.map(Recognition::offers).unwrap_or_default()
    }

    /// The groups of endpoints.
    pub fn upstreams(&self) -> Vec<UpstreamStatus> {
        let now = Instant::now();
        let status = |slot: &Arc<Slot>| upstream(slot.configured(), &slot.group(), now);
        self.generation.groups.iter().map(status).collect()
    }

    /// The rate limits of all sites.
    pub fn limits(&self) -> Vec<LimitStatus> {
        let status = |limit: &Arc<Limit>| {
            let (limited, evicted) = limit.counts();
            LimitStatus { site: limit.site().to_string(), name: limit.name().to_string(), limited, evicted }
        };
        self.generation.controls.limits.iter().map(status).collect()
    }

    /// Address ranges that a list file has; none if no list is read from there.
    pub fn list_ranges(&self, file: &Path) -> Option<usize> {
        self.generation.controls.lists.get(file).map(|list| list.ranges())
    }

    /// Requests that the lists of a route's site let in without inspection, allowed, denied, and would have
    /// denied if they did not only log.
    pub fn list_decisions(&self, site: usize, route: usize) -> Option<[u64; 4]> {
        let route = self.generation.sites.get(site)?.routes().get(route)?;
        Some(route.access.gate.as_ref()?.counts())
    }

    /// The certificates of a listener, by index; none without TLS.
    pub fn certificates(&self, listener: usize) -> Vec<CertificateStatus> {
        let listener = self.generation.listeners.get(listener);
        listener.and_then(|listener| listener.tls.as_ref()).map_or_else(Vec::new, |tls| tls.certificates())
    }

    /// The inspection agents.
    pub fn agents(&self) -> Vec<AgentStatus> {
        let agents = self.generation.agents.iter().map(|agent| {
            let (breaker, waiting, active) = agent.state();
            AgentStatus { name: agent.name.to_string(), breaker, active, waiting }
        });
        agents.collect()
    }
}

fn upstream(configured: &Upstream, group: &Group, now: Instant) -> UpstreamStatus {
    let members = group.endpoints.members().iter().enumerate();
    let endpoints = members.map(|(index, member)| {
        let endpoint = &member.endpoint;
        let failure = group.report.last_failure(index).map(|failure| EndpointFailure {
            why: failure.why.clone(),
            ago: now.saturating_duration_since(failure.at),
        });
        EndpointStatus {
            place: member.name.clone(),
            weight: member.weight,
            priority: member.priority,
            is_healthy: endpoint.is_healthy(),
            is_ejected: endpoint.is_ejected(),
            breaker: configured.breaker.as_ref().map(|_| endpoint.breaker_state()),
            active: endpoint.active(),
            last_failure: failure,
        }
    });
    UpstreamStatus {
        name: configured.name.clone(),
        queued: group.queued(),
        healthy: group.endpoints.healthy(group.moment(now)),
        endpoints: endpoints.collect(),
    }
}
