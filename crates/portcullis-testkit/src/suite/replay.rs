//! Sends the stages.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::Options;
use crate::TestkitError;
use crate::client::{self, Exchange, Failure};
use crate::ftw::{Input, Suite, Test};

/// A test with the addresses its stages come from.
pub(super) struct Case<'a> {
    pub family: &'a str,
    pub test: &'a Test,
    /// Index of its first stage among all.
    first: usize,
}

impl Case<'_> {
    /// The address that stage `index` of this test comes from.
    pub fn address(&self, index: usize) -> IpAddr {
        address(self.first + index)
    }
}

/// One outcome for each stage of a case.
pub(super) type Outcomes = Vec<Result<Exchange, Failure>>;

/// The address of the final marker request.
pub(super) const MARKER: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 1, 255, 254));

/// 127.1.0.1 and up; host parts 0 and 255 stay unused.
fn address(index: usize) -> IpAddr {
    let (high, low) = (index / 254, index % 254 + 1);
    IpAddr::V4(Ipv4Addr::new(127, 1, high as u8, low as u8))
}

/// Stages that have an address: 254 networks of 254, the last network left to the marker.
const STAGES_MAX: usize = 254 * 254;

/// Returns the tests to run.
pub(super) fn plan<'a>(suite: &'a Suite, filter: &str) -> Result<Vec<Case<'a>>, TestkitError> {
    let mut first = 0;
    let mut cases = Vec::new();
    for (file, test) in suite.tests().filter(|(_, test)| test.name().starts_with(filter)) {
        cases.push(Case { family: &file.family, test, first });
        first += test.stages.len();
    }
    match first <= STAGES_MAX {
        true => Ok(cases),
        false => Err(TestkitError::Run(format!("{first} stages are more than the {STAGES_MAX} addresses"))),
    }
}

/// Sends every stage of every case; stages of one test in order, tests side by side.
pub(super) fn run(cases: &[Case], target: SocketAddr, options: &Options) -> Vec<Outcomes> {
    let limit = Duration::from_secs(options.timeout);
    let next = AtomicUsize::new(0);
    let outcomes: Vec<_> = cases.iter().map(|_| Mutex::new(Outcomes::new())).collect();
    std::thread::scope(|scope| {
        for _ in 0..options.connections.clamp(1, 256) {
            scope.spawn(|| {
                while let Some((case, slot)) = {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    cases.get(index).zip(outcomes.get(index))
                } {
                    let result = stages(case, target, limit);
                    if let Ok(mut slot) = slot.lock() {
                        *slot = result;
                    }
                }
            });
        }
    });
    outcomes.into_iter().map(|slot| slot.into_inner().unwrap_or_default()).collect()
}

fn stages(case: &Case, target: SocketAddr, limit: Duration) -> Outcomes {
    let mut outcomes = Outcomes::new();
    for (index, stage) in case.test.stages.iter().enumerate() {
        let input = match (stage.input.follow_redirect, outcomes.last()) {
            (true, Some(Ok(previous))) => follow(&stage.input, previous),
            _ => stage.input.clone(),
        };
        outcomes.push(client::exchange(target, Some(case.address(index)), &input.wire(), limit));
    }
    outcomes
}

/// The input aimed at the previous response's `Location`. The connection still goes to the target: a
/// redirect to another host is followed by name, never over the network.
fn follow(input: &Input, previous: &Exchange) -> Input {
    let mut input = input.clone();
    let location = String::from_utf8_lossy(previous.header("location").unwrap_or_default()).into_owned();
    let path = match location.split_once("://") {
        Some((_, rest)) => {
            let at = rest.find(['/', '?']).unwrap_or(rest.len());
            let (host, path) = rest.split_at(at);
            input.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("host"));
            input.headers.push(("Host".into(), host.into()));
            path.to_string()
        }
        None => location,
    };
    let path = path.split('#').next().unwrap_or_default();
    input.uri = if path.starts_with('/') { path.to_string() } else { format!("/{path}") };
    input
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::ftw::parse;

    #[test]
    fn addresses_are_distinct() {
        let all: BTreeSet<IpAddr> = (0..STAGES_MAX).map(address).collect();
        assert_eq!(all.len(), STAGES_MAX);
        assert!(!all.contains(&MARKER));
        assert_eq!(address(254).to_string(), "127.1.1.1");
    }

    #[test]
    fn redirects_are_followed_by_name() {
        let file =
            parse("rule_id: 1\ntests: [{stages: [{input: {headers: {Host: a}}, output: {}}]}]", "x.yaml")
                .unwrap();
        let check = |location: &str, want: (&str, &str)| {
            let raw = format!("HTTP/1.1 302 Found\r\nLocation: {location}\r\n\r\n").into_bytes();
            let input = follow(&file.tests[0].stages[0].input, &Exchange { status: 302, raw, whole: true });
            assert_eq!((input.uri.as_str(), input.headers[0].1.as_str()), want, "{location}");
        };
        check("/x?y#z", ("/x?y", "a"));
        check("http://b:81/x", ("/x", "b:81"));
        check("https://b?q", ("/?q", "b"));
    }
}
