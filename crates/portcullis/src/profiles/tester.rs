//! Policies with and without a profile, asked about requests that nobody sent.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use portcullis_config::{Policy, Profile};
use portcullis_engine::Plan;
use portcullis_event::{Event, Redactor};
use portcullis_inspect::Inspector;
use portcullis_load::SharedDetectors;
use portcullis_replay::Trial;
use portcullis_store::Store;

use crate::events::stored;
use crate::outcome::Failure;

/// An address for documentation (RFC 5737).
const CLIENT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 50_000);

/// Asks policies of one mode about requests that nobody sent.
pub struct Tester {
    plan: Arc<Plan>,
    pub detectors: SharedDetectors,
    now: u64,
}

impl Tester {
    pub fn new(policy: &Policy, detectors: SharedDetectors) -> Result<Tester, Failure> {
        let plan = portcullis_load::load(policy).map_err(Failure::failed)?.plan;
        Ok(Tester { plan, detectors, now: stored::now() })
    }

    pub fn trial(&mut self, policy: &Policy) -> Result<Trial, Failure> {
        let (redactor, store) = (Arc::new(Redactor::none()), Arc::new(Store::default()));
        let inspector = Inspector::new(Arc::clone(&self.plan), redactor, store);
        let inspector = self.detectors.attach(inspector, policy).map_err(Failure::failed)?;
        Ok(Trial::new(Arc::new(inspector)))
    }

    /// Whether it is stopped, and what was found.
    pub fn ask(&self, trial: &mut Trial, request: &[u8]) -> (bool, Option<Box<Event>>) {
        let tried = trial.ask(request, CLIENT, self.now);
        (tried.stopped, tried.event)
    }
}

/// The policy with what a profile excludes, of an application at this path.
pub fn with(policy: &Policy, profile: &Profile, at: &str) -> Policy {
    let mut policy = policy.clone();
    profile.apply(at, &mut policy);
    policy
}

/// With the exclusions of `whole` that are about no value (the method, the content type): a request that is
/// refused for one of these says nothing about an attack in it.
pub fn without_values(policy: &Policy, whole: &Policy) -> Policy {
    let mut with = whole.clone();
    let is_of_value = |target: &str| ["ARGS", "REQUEST_BODY"].iter().any(|part| target.starts_with(part));
    with.rule_exclude.retain(|each| !each.target_text.as_deref().is_some_and(is_of_value));
    with.semantic.exclude.clone_from(&policy.semantic.exclude);
    with
}
