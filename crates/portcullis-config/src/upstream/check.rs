//! The raw groups, checked.

use std::collections::BTreeMap;
use std::time::Duration;

use portcullis_balance::{Balance, BreakerSettings, BudgetSettings, EjectionSettings};

use super::endpoint::{Endpoint, parse_url};
use super::{EndpointLimits, HashBy, Resolve, Retry, Upstream};
use crate::health;
use crate::mistakes::Mistakes;
use crate::protocol;
use crate::raw::upstream as raw;
use crate::spanned::Spanned;
use crate::tls;
use crate::values::{is_token, number};

pub(crate) fn check(mistakes: &mut Mistakes<'_>, raw: BTreeMap<String, raw::Upstream>) -> Vec<Upstream> {
    raw.into_iter().map(|(name, group)| check_one(mistakes, name, group)).collect()
}

fn check_one(mistakes: &mut Mistakes<'_>, name: String, group: raw::Upstream) -> Upstream {
    let (endpoints, is_tls) = endpoints(mistakes, &name, group.endpoints);
    if let (false, Some(settings)) = (is_tls, &group.tls) {
        mistakes.wrong_with_hint(
            settings.span.clone(),
            format!("`{name}` has TLS settings, but its endpoints are plain http"),
            "write `https://` in the endpoints or drop `tls`".to_string(),
        );
    }
    let settings = group.tls.map(|tls| tls.value).unwrap_or_default();
    let (balance, hash_by) = balance(mistakes, group.balance, group.hash_by);
    if let (Balance::Hash, Some(time)) = (balance, &group.slow_start) {
        let message = "slow_start has no effect on `balance = \"hash\"`, which decides by the key alone";
        mistakes.wrong(time.span.clone(), message.to_string());
    }
    let sticky_cookie = group.sticky_cookie.and_then(|name| {
        if is_token(&name) {
            return Some(name.value);
        }
        mistakes.wrong(name.span, format!("`{}` is not the name of a cookie", name.value));
        None
    });
    let protocol = protocol::check(mistakes, group.protocol, is_tls);
    let default = Upstream::new(name, endpoints);
    let min = group.resolve.min.map_or(default.resolve.min, |time| time.0);
    if let Some(max) = group.resolve.max.as_ref().filter(|max| max.value.0 < min) {
        mistakes.wrong(max.span.clone(), "`max` is shorter than `min`".to_string());
    }
    let max = group.resolve.max.map_or(default.resolve.max.max(min), |max| max.value.0);
    let read_timeout = group.read_timeout.map_or(default.read_timeout, |time| time.0);
    Upstream {
        protocol,
        balance,
        hash_by,
        sticky_cookie,
        slow_start: group.slow_start.map(|time| time.value.0),
        health: group.health.map(|health| health::check(mistakes, health, protocol)),
        ejection: ejection(mistakes, group.ejection),
        breaker: group.breaker.map(|breaker| self::breaker(mistakes, breaker)),
        limits: group.limits.map(|limits| EndpointLimits {
            requests_max: number(mistakes, Some(limits.requests), 1..=1_000_000, "requests", 1),
            queue_max: limits.queue.unwrap_or(100),
            queue_timeout: limits.queue_timeout.map_or(Duration::from_secs(5), |time| time.0),
        }),
        retry: retry(mistakes, group.retry),
        resolve: Resolve { min, max },
        tls: is_tls.then(|| tls::upstream(mistakes, settings)),
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
    mistakes: &mut Mistakes<'_>,
    name: &str,
    raw: Spanned<Vec<Spanned<raw::Endpoint>>>,
) -> (Vec<Endpoint>, bool) {
    let mut endpoints: Vec<Endpoint> = Vec::new();
    let mut tls = None;
    if raw.is_empty() {
        mistakes.wrong(raw.span, format!("the upstream `{name}` has no endpoint"));
    }
    for Spanned { value: given, span } in raw.value {
        let (endpoint, is_tls) = match parse_url(&given.url) {
            Ok(parsed) => parsed,
            Err(message) => {
                mistakes.wrong(span, message);
                continue;
            }
        };
        if *tls.get_or_insert(is_tls) != is_tls {
            mistakes.wrong(span, format!("the endpoints of `{name}` mix http and https"));
            continue;
        }
        if endpoints.iter().any(|other| (&other.host, other.port) == (&endpoint.host, endpoint.port)) {
            let message = format!("`{name}` has the endpoint {endpoint} twice");
            mistakes.wrong_with_hint(span, message, "give it a `weight` for a larger share".to_string());
            continue;
        }
        let weight = number(mistakes, given.weight, 1..=1000, "weight", 1);
        endpoints.push(Endpoint { weight, priority: given.priority.unwrap_or(0), ..endpoint });
    }
    (endpoints, tls == Some(true))
}

fn balance(
    mistakes: &mut Mistakes<'_>,
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
                mistakes.wrong_with_hint(text.span, message, hint);
            }
            (chosen, by)
        }
        (Balance::Hash, None) => {
            let hint = "add `hash_by = \"client\"`, `\"header:NAME\"` or `\"cookie:NAME\"`".to_string();
            let message = "`balance = \"hash\"` needs `hash_by`".to_string();
            mistakes.wrong_with_hint(span.unwrap_or(0..0), message, hint);
            (chosen, None)
        }
        (_, Some(text)) => {
            let hint = "add `balance = \"hash\"` or drop it".to_string();
            mistakes.wrong_with_hint(text.span, "`hash_by` requires `balance = \"hash\"`".to_string(), hint);
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

fn retry(mistakes: &mut Mistakes<'_>, raw: raw::Retry) -> Retry {
    let default = BudgetSettings::default();
    let is_on = |what| raw.on.contains(&what);
    let (on_closed, on_timeout) = (is_on(raw::RetryOn::Closed), is_on(raw::RetryOn::Timeout));
    let on_invalid = is_on(raw::RetryOn::Invalid);
    let mut statuses = Vec::new();
    for status in raw.statuses {
        match status.value {
            500..=599 => statuses.push(status.value),
            other => mistakes
                .wrong(status.span, format!("{other} is not the status of a server error (500 to 599)")),
        }
    }
    Retry {
        attempts_max: number(mistakes, raw.attempts, 0..=10, "attempts", 2).into(),
        on_closed,
        on_timeout,
        on_invalid,
        statuses,
        budget: BudgetSettings {
            percent: number(mistakes, raw.budget, 0..=1000, "budget", default.percent),
            per_second: number(mistakes, raw.per_second, 0..=1000, "per_second", default.per_second),
        },
    }
}

fn ejection(mistakes: &mut Mistakes<'_>, raw: raw::Ejection) -> Option<EjectionSettings> {
    let default = EjectionSettings::default();
    let time = raw.time.map_or(default.time, |time| time.0);
    if let Some(max) = raw.time_max.as_ref().filter(|max| max.value.0 < time) {
        mistakes.wrong(max.span.clone(), "`time_max` is shorter than `time`".to_string());
    }
    let settings = EjectionSettings {
        failures: raw.failures.unwrap_or(default.failures),
        time,
        time_max: raw.time_max.map_or(default.time_max.max(time), |max| max.value.0),
        share_max_percent: number(mistakes, raw.share, 0..=100, "share", default.share_max_percent),
    };
    (settings.failures > 0).then_some(settings)
}

pub(crate) fn breaker(mistakes: &mut Mistakes<'_>, raw: raw::Breaker) -> BreakerSettings {
    let default = BreakerSettings::default();
    BreakerSettings {
        failures: number(mistakes, raw.failures, 1..=4095, "failures", default.failures),
        successes: number(mistakes, raw.successes, 1..=4095, "successes", default.successes),
        open: raw.open.map_or(default.open, |time| time.0),
        probes: number(mistakes, raw.probes, 1..=63, "probes", default.probes),
    }
}
