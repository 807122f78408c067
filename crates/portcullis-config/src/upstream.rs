//! `upstreams`: groups of endpoints, checked.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use portcullis_balance::{Balance, BreakerSettings, BudgetSettings, EjectionSettings};

use crate::check::Checker;
use crate::health::{self, Health};
use crate::protocol::{self, UpstreamProtocol};
use crate::raw;
use crate::spanned::Spanned;
use crate::tls::{self, UpstreamTls};

/// A group of endpoints that serve the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// Its name, unique.
    pub name: String,
    /// At least one.
    pub endpoints: Vec<Endpoint>,
    /// What the endpoints are spoken to in.
    pub protocol: UpstreamProtocol,
    /// How an endpoint is chosen.
    pub balance: Balance,
    /// What [`Balance::Hash`] goes by; none otherwise.
    pub hash_by: Option<HashBy>,
    /// Name of the cookie that keeps a client at its endpoint.
    pub sticky_cookie: Option<String>,
    /// The share of an endpoint that comes back grows over this time.
    pub slow_start: Option<Duration>,
    /// Active checks.
    pub health: Option<Health>,
    /// When endpoints that fail are left out.
    pub ejection: Option<EjectionSettings>,
    /// The circuit breaker of each endpoint.
    pub breaker: Option<BreakerSettings>,
    /// How many requests an endpoint gets at one time.
    pub limits: Option<EndpointLimits>,
    /// Which requests are tried again.
    pub retry: Retry,
    /// How often host names of endpoints are resolved anew.
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
    /// How long an unused connection is kept.
    pub idle_timeout: Duration,
    /// Unused connections kept for each endpoint and worker.
    pub idle_connections_max: usize,
}

/// One endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Host name or address, without brackets.
    pub host: String,
    /// The address that the name stands for at present; none: it is not known, or `host` is one.
    pub address: Option<IpAddr>,
    /// Port.
    pub port: u16,
    /// Its share of the requests, at least 1.
    pub weight: u32,
    /// Those of a higher number wait until none of a lower one is available.
    pub priority: u32,
}

/// How often host names are resolved anew: when the answer expires, within these bounds.
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

/// How many requests an endpoint gets at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointLimits {
    /// Requests in flight at each, at least 1.
    pub requests_max: u32,
    /// Requests of the group that wait for a place.
    pub queue_max: u32,
    /// The longest that one waits.
    pub queue_timeout: Duration,
}

/// Which requests are tried again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retry {
    /// Tries after the first.
    pub attempts_max: usize,
    /// The endpoint closed the connection before the head of an answer.
    pub on_closed: bool,
    /// There was no head of an answer in time.
    pub on_timeout: bool,
    /// What came is not HTTP.
    pub on_invalid: bool,
    /// Answers of these statuses.
    pub statuses: Vec<u16>,
    /// How many there may be.
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

    /// The endpoint with this address, if the group has it and speaks that scheme. Names compare in any ASCII case.
    pub fn endpoint_at(&self, https: bool, host: &str, port: u16) -> Option<usize> {
        let is_it = |endpoint: &Endpoint| endpoint.port == port && endpoint.host.eq_ignore_ascii_case(host);
        self.endpoints.iter().position(is_it).filter(|_| self.tls.is_some() == https)
    }
}

impl Endpoint {
    fn new(host: &str, port: u16) -> Self {
        Endpoint { host: host.to_string(), address: None, port, weight: 1, priority: 0 }
    }

    /// Whether `host` is a name to be resolved anew, not an address. `localhost` is not: it never changes (RFC 6761,
    /// section 6.3), and which of its addresses a server listens on is found out by connecting.
    pub fn has_name(&self) -> bool {
        self.host.parse::<IpAddr>().is_err() && !self.host.eq_ignore_ascii_case("localhost")
    }

    /// Where connections go, as metrics show it: the address of a name, if it is known.
    pub fn place(&self) -> String {
        match self.address {
            Some(address) => std::net::SocketAddr::new(address, self.port).to_string(),
            None => self.to_string(),
        }
    }
}

/// Host and port as in a URL.
impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

pub(crate) fn check(checker: &mut Checker<'_>, raw: BTreeMap<String, raw::Upstream>) -> Vec<Upstream> {
    raw.into_iter().map(|(name, group)| check_one(checker, name, group)).collect()
}

fn check_one(checker: &mut Checker<'_>, name: String, group: raw::Upstream) -> Upstream {
    let (endpoints, is_tls) = endpoints(checker, &name, group.endpoints);
    if let (false, Some(settings)) = (is_tls, &group.tls) {
        checker.wrong_with_hint(
            settings.span.clone(),
            format!("`{name}` has TLS settings, but its endpoints are plain http"),
            "write `https://` in the endpoints or drop `tls`".to_string(),
        );
    }
    let settings = group.tls.map(|tls| tls.value).unwrap_or_default();
    let (balance, hash_by) = balance(checker, group.balance, group.hash_by);
    if let (Balance::Hash, Some(time)) = (balance, &group.slow_start) {
        let message = "slow_start has no effect on `balance = \"hash\"`, which decides by the key alone";
        checker.wrong(time.span.clone(), message.to_string());
    }
    let sticky_cookie = group.sticky_cookie.and_then(|name| {
        if is_token(&name) {
            return Some(name.value);
        }
        checker.wrong(name.span, format!("`{}` is not the name of a cookie", name.value));
        None
    });
    let protocol = protocol::check(checker, group.protocol, is_tls);
    let default = Upstream::new(name, endpoints);
    let min = group.resolve.min.map_or(default.resolve.min, |time| time.0);
    if let Some(max) = group.resolve.max.as_ref().filter(|max| max.value.0 < min) {
        checker.wrong(max.span.clone(), "`max` is shorter than `min`".to_string());
    }
    let max = group.resolve.max.map_or(default.resolve.max.max(min), |max| max.value.0);
    let read_timeout = group.read_timeout.map_or(default.read_timeout, |time| time.0);
    Upstream {
        protocol,
        balance,
        hash_by,
        sticky_cookie,
        slow_start: group.slow_start.map(|time| time.value.0),
        health: group.health.map(|health| health::check(checker, health, protocol)),
        ejection: ejection(checker, group.ejection),
        breaker: group.breaker.map(|breaker| self::breaker(checker, breaker)),
        limits: group.limits.map(|limits| EndpointLimits {
            requests_max: number(checker, Some(limits.requests), 1..=1_000_000, "requests", 1),
            queue_max: limits.queue.unwrap_or(100),
            queue_timeout: limits.queue_timeout.map_or(Duration::from_secs(5), |time| time.0),
        }),
        retry: retry(checker, group.retry),
        resolve: Resolve { min, max },
        tls: is_tls.then(|| tls::upstream(checker, settings)),
        connect_timeout: group.connect_timeout.map_or(default.connect_timeout, |time| time.0),
        read_timeout,
        try_timeout: group.try_timeout.map_or(read_timeout, |time| time.0),
        total_timeout: group.total_timeout.map(|time| time.0),
        write_timeout: group.write_timeout.map_or(default.write_timeout, |time| time.0),
        idle_timeout: group.idle_timeout.map_or(default.idle_timeout, |time| time.0),
        idle_connections_max: group
            .idle_connections
            .map_or(default.idle_connections_max, |number| number as usize),
        ..default
    }
}

/// The endpoints of the group `name`, and whether they speak TLS.
fn endpoints(
    checker: &mut Checker<'_>,
    name: &str,
    raw: Spanned<Vec<Spanned<raw::Endpoint>>>,
) -> (Vec<Endpoint>, bool) {
    let mut endpoints: Vec<Endpoint> = Vec::new();
    let mut tls = None;
    if raw.is_empty() {
        checker.wrong(raw.span, format!("the upstream `{name}` has no endpoint"));
    }
    for Spanned { value: given, span } in raw.value {
        let (endpoint, is_tls) = match parse_url(&given.url) {
            Ok(parsed) => parsed,
            Err(message) => {
                checker.wrong(span, message);
                continue;
            }
        };
        if *tls.get_or_insert(is_tls) != is_tls {
            checker.wrong(span, format!("the endpoints of `{name}` mix http and https"));
            continue;
        }
        if endpoints.iter().any(|other| (&other.host, other.port) == (&endpoint.host, endpoint.port)) {
            let message = format!("`{name}` has the endpoint {endpoint} twice");
            checker.wrong_with_hint(span, message, "give it a `weight` for a larger share".to_string());
            continue;
        }
        let weight = number(checker, given.weight, 1..=1000, "weight", 1);
        endpoints.push(Endpoint { weight, priority: given.priority.unwrap_or(0), ..endpoint });
    }
    (endpoints, tls == Some(true))
}

fn balance(
    checker: &mut Checker<'_>,
    balance: Option<Spanned<raw::Balance>>,
    hash_by: Option<Spanned<String>>,
) -> (Balance, Option<HashBy>) {
    let (chosen, span) = match balance {
        None => (Balance::default(), None),
        Some(Spanned { value, span }) => {
            let chosen = match value {
                raw::Balance::RoundRobin => Balance::RoundRobin,
                raw::Balance::LeastConnections => Balance::LeastConnections,
                raw::Balance::PowerOfTwo => Balance::PowerOfTwo,
                raw::Balance::Hash => Balance::Hash,
            };
            (chosen, Some(span))
        }
    };
    match (chosen, hash_by) {
        (Balance::Hash, Some(text)) => {
            let by = hash_key(&text);
            if by.is_none() {
                let message = format!("`{}` is not a part of a request to hash", text.value);
                let hint = "write `client`, `header:NAME` or `cookie:NAME`".to_string();
                checker.wrong_with_hint(text.span, message, hint);
            }
            (chosen, by)
        }
        (Balance::Hash, None) => {
            let hint = "add `hash_by = \"client\"`, `\"header:NAME\"` or `\"cookie:NAME\"`".to_string();
            let message = "`balance = \"hash\"` needs `hash_by`".to_string();
            checker.wrong_with_hint(span.unwrap_or(0..0), message, hint);
            (chosen, None)
        }
        (_, Some(text)) => {
            let hint = "add `balance = \"hash\"` or drop it".to_string();
            checker.wrong_with_hint(text.span, "`hash_by` is for `balance = \"hash\"`".to_string(), hint);
            (chosen, None)
        }
        (_, None) => (chosen, None),
    }
}

fn hash_key(text: &str) -> Option<HashBy> {
    match text.split_once(':') {
        None => (text == "client").then_some(HashBy::Client),
        Some(("header", name)) if is_token(name) => Some(HashBy::Header(name.to_string())),
        Some(("cookie", name)) if is_token(name) => Some(HashBy::Cookie(name.to_string())),
        Some(_) => None,
    }
}

/// Whether it can be the name of a header or cookie.
pub(crate) fn is_token(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_part)
}

fn retry(checker: &mut Checker<'_>, raw: raw::Retry) -> Retry {
    let default = BudgetSettings::default();
    let is_on = |what| raw.on.contains(&what);
    let (on_closed, on_timeout) = (is_on(raw::RetryOn::Closed), is_on(raw::RetryOn::Timeout));
    let on_invalid = is_on(raw::RetryOn::Invalid);
    let mut statuses = Vec::new();
    for status in raw.statuses {
        match status.value {
            500..=599 => statuses.push(status.value),
            other => {
                checker.wrong(status.span, format!("{other} is not a status of a server error, 500 to 599"))
            }
        }
    }
    Retry {
        attempts_max: number(checker, raw.attempts, 0..=10, "attempts", 2).into(),
        on_closed,
        on_timeout,
        on_invalid,
        statuses,
        budget: BudgetSettings {
            percent: number(checker, raw.budget, 0..=1000, "budget", default.percent),
            per_second: number(checker, raw.per_second, 0..=1000, "per_second", default.per_second),
        },
    }
}

fn ejection(checker: &mut Checker<'_>, raw: raw::Ejection) -> Option<EjectionSettings> {
    let default = EjectionSettings::default();
    let time = raw.time.map_or(default.time, |time| time.0);
    if let Some(max) = raw.time_max.as_ref().filter(|max| max.value.0 < time) {
        checker.wrong(max.span.clone(), "`time_max` is shorter than `time`".to_string());
    }
    let settings = EjectionSettings {
        failures: raw.failures.unwrap_or(default.failures),
        time,
        time_max: raw.time_max.map_or(default.time_max.max(time), |max| max.value.0),
        share_max_percent: number(checker, raw.share, 0..=100, "share", default.share_max_percent),
    };
    (settings.failures > 0).then_some(settings)
}

pub(crate) fn breaker(checker: &mut Checker<'_>, raw: raw::Breaker) -> BreakerSettings {
    let default = BreakerSettings::default();
    BreakerSettings {
        failures: number(checker, raw.failures, 1..=4095, "failures", default.failures),
        successes: number(checker, raw.successes, 1..=4095, "successes", default.successes),
        open: raw.open.map_or(default.open, |time| time.0),
        probes: number(checker, raw.probes, 1..=63, "probes", default.probes),
    }
}

/// The number of a setting, which must lie in `range`.
pub(crate) fn number<T: Copy + PartialOrd + std::fmt::Display>(
    checker: &mut Checker<'_>,
    raw: Option<Spanned<T>>,
    range: RangeInclusive<T>,
    name: &str,
    default: T,
) -> T {
    let Some(Spanned { value, span }) = raw else { return default };
    if range.contains(&value) {
        return value;
    }
    checker.wrong(span, format!("{name} must be {} to {}", range.start(), range.end()));
    default
}

/// Reads `http://host[:port]` or `https://host[:port]`; the flag says whether it is TLS. A path is refused: requests
/// keep the path the client asked for.
pub(crate) fn parse_url(text: &str) -> Result<(Endpoint, bool), String> {
    let (rest, is_tls) = match (text.strip_prefix("http://"), text.strip_prefix("https://")) {
        (Some(rest), _) => (rest, false),
        (_, Some(rest)) => (rest, true),
        _ => return Err(format!("`{text}` does not begin with http:// or https://")),
    };
    let (host, port) = host_and_port(text, rest.strip_suffix('/').unwrap_or(rest))?;
    Ok((Endpoint::new(host, port.unwrap_or(80 + 363 * u16::from(is_tls))), is_tls))
}

/// Reads an endpoint that has to name its port. `rest` is the end of `text`, which messages show.
pub(crate) fn parse_with_port(text: &str, rest: &str) -> Result<Endpoint, String> {
    let (host, port) = host_and_port(text, rest)?;
    let port = port.ok_or_else(|| format!("`{text}` names no port"))?;
    Ok(Endpoint::new(host, port))
}

fn host_and_port<'t>(text: &str, rest: &'t str) -> Result<(&'t str, Option<u16>), String> {
    if rest.contains(['/', '?', '#', '@']) {
        return Err(format!("`{text}` has more than a host and a port"));
    }
    let wrong_port = || format!("the port of `{text}` is not a number from 1 to 65535");
    let (host, port) = match rest.strip_prefix('[') {
        Some(inner) => {
            let (host, port) =
                inner.split_once(']').ok_or_else(|| format!("`{text}` lacks the closing bracket"))?;
            if host.parse::<std::net::Ipv6Addr>().is_err() {
                return Err(format!("`{host}` is not an IPv6 address"));
            }
            (host, if port.is_empty() { None } else { Some(port.strip_prefix(':').ok_or_else(wrong_port)?) })
        }
        None => match rest.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (rest, None),
        },
    };
    let is_host = host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte));
    if host.is_empty() || !is_host {
        return Err(format!("`{text}` names no host"));
    }
    let number = |port: &str| port.parse().ok().filter(|port| *port > 0).ok_or_else(wrong_port);
    Ok((host, port.map(number).transpose()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_endpoints() {
        for (text, host, port, tls) in [
            ("http://127.0.0.1:9000", "127.0.0.1", 9000, false),
            ("http://app.internal", "app.internal", 80, false),
            ("https://app.internal/", "app.internal", 443, true),
            ("https://[::1]:8443", "::1", 8443, true),
        ] {
            let expected = (Endpoint::new(host, port), tls);
            assert_eq!(parse_url(text), Ok(expected), "{text}");
        }
        for text in [
            "",
            "app:80",
            "ftp://app",
            "http://",
            "http://a:0",
            "http://a:99999",
            "http://a/b",
            "http://[x]:1",
        ] {
            assert!(parse_url(text).is_err(), "{text}");
        }
    }
}
