//! `upstreams`: groups of endpoints, checked.

use std::time::Duration;

use portcullis_balance::{Balance, BreakerSettings, BudgetSettings, EjectionSettings};

use crate::health::Health;
use crate::protocol::UpstreamProtocol;
use crate::tls::UpstreamTls;

pub(crate) mod check;
mod endpoint;

pub use endpoint::Endpoint;
pub(crate) use endpoint::{host_and_port, parse_url, parse_with_port};

/// A group of endpoints that serve the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// Its name, unique.
    pub name: String,
    /// At least one.
    pub endpoints: Vec<Endpoint>,
    /// The protocol that the endpoints are spoken to in.
    pub protocol: UpstreamProtocol,
    /// The method of choosing an endpoint.
    pub balance: Balance,
    /// The key of [`Balance::Hash`]; none otherwise.
    pub hash_by: Option<HashBy>,
    /// Name of the cookie that keeps a client at its endpoint.
    pub sticky_cookie: Option<String>,
    /// The share of an endpoint that comes back grows over this time.
    pub slow_start: Option<Duration>,
    /// Active checks.
    pub health: Option<Health>,
    /// The conditions under which failing endpoints are left out.
    pub ejection: Option<EjectionSettings>,
    /// The circuit breaker of each endpoint.
    pub breaker: Option<BreakerSettings>,
    /// Limits on the requests that an endpoint gets at one time.
    pub limits: Option<EndpointLimits>,
    /// The requests that are tried again.
    pub retry: Retry,
    /// The interval of resolving host names of endpoints anew.
    pub resolve: Resolve,
    /// TLS, for `https` endpoints.
    pub tls: Option<UpstreamTls>,
    /// To connect, TLS included.
    pub connect_timeout: Duration,
    /// Longest silence while a response is awaited or read.
    pub read_timeout: Duration,
    /// For the head of an answer, in each try.
    pub try_timeout: Duration,
    /// For the head of an answer, all tries together.
    pub total_timeout: Option<Duration>,
    /// Longest time without progress while a request is sent.
    pub write_timeout: Duration,
    /// The time for which an unused connection is kept.
    pub idle_timeout: Duration,
    /// Unused connections kept for each endpoint and worker.
    pub idle_connections_max: usize,
}

/// The interval of resolving host names anew: when the answer expires, within these bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resolve {
    /// Not sooner.
    pub min: Duration,
    /// Not later.
    pub max: Duration,
}

/// The part of a request whose hash chooses the endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HashBy {
    /// The address of the client.
    Client,
    /// The first header of this name.
    Header(String),
    /// The first cookie of this name.
    Cookie(String),
}

/// Limits on the requests that an endpoint gets at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointLimits {
    /// Requests in flight at each, at least 1.
    pub requests_max: u32,
    /// Requests of the group that wait for a place.
    pub queue_max: u32,
    /// The longest that one waits.
    pub queue_timeout: Duration,
}

/// The requests that are tried again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retry {
    /// Tries after the first.
    pub attempts_max: usize,
    /// The endpoint closed the connection before the head of an answer.
    pub on_closed: bool,
    /// There was no head of an answer in time.
    pub on_timeout: bool,
    /// The answer is not HTTP.
    pub on_invalid: bool,
    /// Answers of these statuses.
    pub statuses: Vec<u16>,
    /// The retry budget.
    pub budget: BudgetSettings,
}

impl Upstream {
    /// A plain group with the default settings.
    pub(crate) fn new(name: String, endpoints: Vec<Endpoint>) -> Self {
        Upstream {
            name,
            endpoints,
            protocol: UpstreamProtocol::default(),
            balance: Balance::default(),
            hash_by: None,
            sticky_cookie: None,
            slow_start: None,
            health: None,
            ejection: Some(EjectionSettings::default()),
            breaker: None,
            limits: None,
            retry: Retry { attempts_max: 2, ..Retry::default() },
            resolve: Resolve { min: Duration::from_secs(5), max: Duration::from_secs(300) },
            tls: None,
            connect_timeout: Duration::from_secs(5),
            read_timeout: Duration::from_secs(60),
            try_timeout: Duration::from_secs(60),
            total_timeout: None,
            write_timeout: Duration::from_secs(60),
            idle_timeout: Duration::from_secs(60),
            idle_connections_max: 64,
        }
    }

    /// The endpoint with this address, if the group has it and speaks that scheme. Names compare in any ASCII
    /// case.
    pub fn endpoint_at(&self, https: bool, host: &str, port: u16) -> Option<usize> {
        let is_it = |endpoint: &Endpoint| endpoint.port == port && endpoint.host.eq_ignore_ascii_case(host);
        self.endpoints.iter().position(is_it).filter(|_| self.tls.is_some() == https)
    }
}
