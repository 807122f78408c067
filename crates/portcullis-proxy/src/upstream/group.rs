//! A group of endpoints, as all workers share it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use portcullis_balance::{Budget, Endpoint, Endpoints, Member, Moment, Policy};
use portcullis_config::Upstream;
use portcullis_http::message::RequestHead;

use super::names::Names;
use super::queue::Queue;
use super::report::Reporter;
use super::sticky::Sticky;
use crate::StartError;
use crate::services::Services;
use portcullis_tls::UpstreamTls;

/// The source of what groups get from the process: numbers that are never given twice, and a clock that
/// outlives a reload.
pub(crate) struct Origin {
    ids: AtomicU64,
    clock: Clock,
    /// Addresses by host name, as they were resolved last.
    pub(super) names: Names,
}

/// The time as balancing counts it.
#[derive(Clone, Copy)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn moment(self, now: Instant) -> Moment {
        Moment(1 + now.saturating_duration_since(self.0).as_millis() as u64)
    }
}

impl Default for Origin {
    fn default() -> Self {
        Origin { ids: AtomicU64::new(0), clock: Clock(Instant::now()), names: Names::default() }
    }
}

impl Origin {
    /// The instant at which the clock begins.
    pub(crate) fn started(&self) -> Instant {
        self.clock.0
    }

    fn id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }
}

/// Settings and state of a group. Two groups with one id are the same one, before and after a reload.
pub(crate) struct Group {
    pub(crate) id: u64,
    pub(crate) settings: Upstream,
    pub(crate) tls: Option<Arc<UpstreamTls>>,
    /// The `Host` of requests that bring none, as HTTP/1.0 allows: the first endpoint.
    pub(crate) host: String,
    /// The endpoints, by the same index as in the settings; so is `connections`.
    pub(crate) endpoints: Endpoints,
    /// The endpoint and way of connecting that connections belong to: those with the same number are
    /// interchangeable.
    pub(crate) connections: Vec<u64>,
    /// By endpoint: active checks had looked at it before this group was made.
    pub(super) was_checked: Vec<bool>,
    pub(super) sticky: Option<Sticky>,
    pub(super) queue: Queue,
    /// For retries, one with the groups that were in this one's place before: what they spent is spent.
    pub(super) budget: Arc<Budget>,
    pub(crate) report: Reporter,
    clock: Clock,
}

impl Group {
    /// Makes a group. One of `old` with the same settings is kept; else what is known of the endpoints of the
    /// one with the same name, its retry budget, and the connections to them; those with TLS only if its
    /// settings are `kept_tls`, which are as they were.
    pub(crate) fn build(
        settings: &Upstream,
        services: &Services,
        origin: &Origin,
        old: &[Arc<Group>],
        kept_tls: Option<Arc<UpstreamTls>>,
    ) -> Result<Arc<Group>, StartError> {
        // Behind the same path there may be other authorities now, so a group with TLS is always made anew.
        let same = |group: &&Arc<Group>| group.settings == *settings && group.tls.is_none();
        if let Some(group) = old.iter().find(same) {
            return Ok(Arc::clone(group));
        }
        let wrong = |error: StartError| StartError::new(format!("upstream `{}`: {error}", settings.name));
        let build = |tls| UpstreamTls::build(tls, settings.protocol, &services.registry).map(Arc::new);
        let tls = match kept_tls {
            Some(tls) => Some(tls),
            None => settings.tls.as_ref().map(build).transpose().map_err(wrong)?,
        };
        let before = old.iter().find(|group| group.settings.name == settings.name);
        let now = origin.clock.moment(Instant::now());
        let (mut members, mut connections, mut was_checked) = (Vec::new(), Vec::new(), Vec::new());
        for endpoint in &settings.endpoints {
            let same = |other: &portcullis_config::Endpoint| {
                (&other.host, other.address, other.port) == (&endpoint.host, endpoint.address, endpoint.port)
            };
            let known = before
                .and_then(|group| group.settings.endpoints.iter().position(same).map(|index| (group, index)));
            was_checked.push(known.is_some_and(|(group, _)| group.settings.health.is_some()));
            members.push(Member {
                endpoint: match (known, before) {
                    (Some((group, index)), _) => Arc::clone(&group.endpoints.members()[index].endpoint),
                    (None, Some(_)) => Arc::new(Endpoint::joining(now)),
                    (None, None) => Arc::default(),
                },
                name: endpoint.place(),
                weight: endpoint.weight,
                priority: endpoint.priority,
            });
            let same_way = |group: &Group| match (&tls, &group.tls) {
                (None, None) => group.settings.protocol == settings.protocol,
                (Some(new), Some(old)) => Arc::ptr_eq(new, old),
                _ => false,
            };
            let open = known.filter(|(group, _)| same_way(group));
            connections.push(open.map_or_else(|| origin.id(), |(group, index)| group.connections[index]));
        }
        let policy = Policy {
            balance: settings.balance,
            slow_start: settings.slow_start,
            ejection: settings.ejection,
            breaker: settings.breaker,
            active_max: settings.limits.as_ref().map(|limits| limits.requests_max),
        };
        let names: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
        let group = Group {
            id: origin.id(),
            settings: settings.clone(),
            tls,
            host: settings.endpoints.first().map_or_else(String::new, |endpoint| endpoint.to_string()),
            report: Reporter::new(services, &settings.name, &names),
            sticky: settings
                .sticky_cookie
                .as_ref()
                .filter(|_| names.len() > 1)
                .map(|cookie| Sticky::new(cookie, &settings.name, &names)),
            queue: Queue::default(),
            budget: before.map_or_else(Arc::default, |group| Arc::clone(&group.budget)),
            endpoints: Endpoints::new(members, policy),
            connections,
            was_checked,
            clock: origin.clock,
        };
        if let Some(tls) = &group.tls {
            for endpoint in &settings.endpoints {
                tls.server_name(endpoint).map_err(wrong)?;
            }
        }
        Ok(Arc::new(group))
    }

    /// The time as the state of its endpoints counts it.
    pub(crate) fn moment(&self, now: Instant) -> Moment {
        self.clock.moment(now)
    }

    /// Requests that wait for a place at an endpoint.
    pub(crate) fn queued(&self) -> u32 {
        self.queue.waiting()
    }

    /// The `Set-Cookie` that keeps the client at this endpoint, if it is to have one.
    pub(crate) fn sticky_cookie(&self, head: &RequestHead, endpoint: usize, tls: bool) -> Option<String> {
        self.sticky.as_ref()?.set(head, endpoint, tls)
    }
}
