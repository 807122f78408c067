//! Addresses of endpoints that are configured by host name.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use portcullis_config::{Endpoint, Upstream};

use crate::lookups::{self, Family};

/// For an answer of the system.
const SYSTEM_TIMEOUT: Duration = Duration::from_secs(10);
/// Addresses of one name that become endpoints.
const ADDRESSES_MAX: usize = 64;

/// Addresses by name, as was found out last.
#[derive(Default)]
pub(crate) struct Names(Mutex<HashMap<String, Vec<IpAddr>>>);

impl Names {
    /// `configured` with each name replaced by its addresses, where they are known.
    pub(super) fn put_into(&self, configured: &Upstream) -> Upstream {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut endpoints: Vec<Endpoint> = Vec::with_capacity(configured.endpoints.len());
        // Two names may stand for one address.
        let mut add = |one: Endpoint| {
            if !endpoints.iter().any(|other| other.place() == one.place()) {
                endpoints.push(one);
            }
        };
        for endpoint in &configured.endpoints {
            match known.get(&endpoint.host) {
                Some(addresses) => addresses
                    .iter()
                    .for_each(|address| add(Endpoint { address: Some(*address), ..endpoint.clone() })),
                None => add(endpoint.clone()),
            }
        }
        Upstream { endpoints, ..configured.clone() }
    }

    /// Notes an answer; true if it is another than before.
    pub(super) fn note(&self, name: &str, addresses: Vec<IpAddr>) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(name.to_string(), addresses.clone()).as_ref() != Some(&addresses)
    }
}

/// The addresses of a name, sorted, and how long they are good for, if that is known.
pub(super) async fn resolve(
    name: &str,
    settings: &lookups::Settings,
) -> Result<(Vec<IpAddr>, Option<Duration>), String> {
    let (mut addresses, life): (Vec<IpAddr>, _) = match settings.named {
        true => {
            let (mut found, mut seconds) = ask(name, Family::V4, settings).await?;
            if found.is_empty() {
                (found, seconds) = ask(name, Family::V6, settings).await?;
            }
            (found, Some(Duration::from_secs(seconds.into())))
        }
        false => {
            let asked = tokio::time::timeout(SYSTEM_TIMEOUT, tokio::net::lookup_host((name, 0))).await;
            let found = match asked {
                Ok(Ok(found)) => found.map(|address| address.ip()),
                Ok(Err(error)) => return Err(error.to_string()),
                Err(_) => return Err("the system does not answer".to_string()),
            };
            let (v4, v6): (Vec<IpAddr>, Vec<IpAddr>) = found.partition(IpAddr::is_ipv4);
            // Both are ways to the same machines, mostly.
            (if v4.is_empty() { v6 } else { v4 }, None)
        }
    };
    addresses.sort();
    addresses.dedup();
    addresses.truncate(ADDRESSES_MAX);
    match addresses.is_empty() {
        true => Err("the name has no address".to_string()),
        false => Ok((addresses, life)),
    }
}

/// Asks the servers that the operator named.
async fn ask(
    name: &str,
    family: Family,
    settings: &lookups::Settings,
) -> Result<(Vec<IpAddr>, u32), &'static str> {
    let asked = lookups::exchange(name, family, settings);
    match tokio::time::timeout(settings.dns_timeout, asked).await {
        Ok(Ok(found)) => Ok(found),
        Ok(Err(_)) | Err(_) => Err("no DNS server answers"),
    }
}

/// The time of the next resolution of names.
#[derive(Default)]
pub(super) struct Schedule {
    /// None while the question is open.
    next: HashMap<String, Option<Instant>>,
}

impl Schedule {
    /// The names of these groups that are due, each with the bounds of its group. They count as asked.
    pub(super) fn due(&mut self, groups: &[&Upstream], now: Instant) -> Vec<String> {
        let named = groups.iter().flat_map(|group| &group.endpoints).filter(|endpoint| endpoint.has_name());
        let names: Vec<&String> = named.map(|endpoint| &endpoint.host).collect();
        self.next.retain(|name, _| names.contains(&name));
        let mut due = Vec::new();
        for name in names {
            let next = self.next.entry(name.clone()).or_insert(Some(now));
            if next.is_some_and(|at| at <= now) {
                *next = None;
                due.push(name.clone());
            }
        }
        due
    }

    /// The answer is good for `life`.
    pub(super) fn answered(
        &mut self,
        name: &str,
        groups: &[&Upstream],
        life: Option<Duration>,
        now: Instant,
    ) {
        let has = |group: &&&Upstream| group.endpoints.iter().any(|endpoint| endpoint.host == name);
        let bounded = groups.iter().filter(has).map(|group| {
            let bounds = group.resolve;
            life.map_or(bounds.min, |life| life.clamp(bounds.min, bounds.max))
        });
        if let (Some(next), Some(wait)) = (self.next.get_mut(name), bounded.min()) {
            *next = Some(now + wait);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use portcullis_config::{Config, Format};

    fn upstream() -> Upstream {
        let text = "[[listeners]]\naddress = \"127.0.0.1:0\"\n[[sites]]\nname = \"a\"\nhosts = [\"*\"]\nupstream = \"app\"\n\
                    mode = \"off\"\n[upstreams.app]\nresolve = { min = \"2s\", max = \"10s\" }\n\
                    endpoints = [\"http://app.internal:9000\", \"http://127.0.0.1:9000\"]\n";
        Config::parse(text, Format::Toml, "test.toml").unwrap().upstreams.remove(0)
    }

    #[test]
    fn every_address_is_an_endpoint_once() {
        let (names, configured) = (Names::default(), upstream());
        assert_eq!(names.put_into(&configured), configured, "nothing is known yet");
        let address = |last| IpAddr::from([127, 0, 0, last]);
        assert!(names.note("app.internal", vec![address(1), address(2)]));
        assert!(!names.note("app.internal", vec![address(1), address(2)]));
        let places: Vec<String> = names.put_into(&configured).endpoints.iter().map(Endpoint::place).collect();
        assert_eq!(places, ["127.0.0.1:9000", "127.0.0.2:9000"]);
    }

    #[test]
    fn names_are_asked_for_when_their_answers_expire_within_bounds() {
        let (mut schedule, group, start) = (Schedule::default(), upstream(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(schedule.due(&[&group], start), ["app.internal"]);
        assert!(schedule.due(&[&group], at(100)).is_empty(), "it is being asked for");
        for (life, wait) in [(None, 2), (Some(1), 2), (Some(5), 5), (Some(60), 10)] {
            schedule.answered("app.internal", &[&group], life.map(Duration::from_secs), start);
            assert!(schedule.due(&[&group], at(wait - 1)).is_empty(), "{life:?}");
            assert_eq!(schedule.due(&[&group], at(wait)), ["app.internal"], "{life:?}");
        }
        assert!(schedule.due(&[], start).is_empty());
        assert_eq!(schedule.due(&[&group], start), ["app.internal"], "forgotten with its group");
    }
}
