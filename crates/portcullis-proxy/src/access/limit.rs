//! Rate limits: the decision for a request, and the fields of its answer.

use std::sync::Arc;
use std::time::Duration;

use portcullis_access::{Key, Limiter, Rate};
use portcullis_config::{RateLimit, RefuseAction};
use portcullis_event::{Control, ControlKind};
use portcullis_http::message::RequestHead;
use portcullis_match::IpSet;
use portcullis_metrics::{Counter, Registry, catalogue};

use super::event_limit::EventLimit;
use super::gate::{ClientSet, set_of};
use super::keys::Keys;
use super::shared::{LimitLink, SharedLimit};
use super::{ControlDecision, Denial, Lists, Visitor};
use crate::StartError;

/// A rate limit, ready to count.
pub(crate) struct Limit {
    site: Arc<str>,
    settings: RateLimit,
    /// Kept over reloads that do not change what it counts.
    limiter: Arc<Limiter>,
    /// Counted with other nodes.
    shared: Option<SharedLimit>,
    only: Option<ClientSet>,
    except: IpSet,
    control: Control,
    events: EventLimit,
    limited: Counter,
    evicted: Counter,
}

impl Limit {
    /// Builds the limits of a site, or of one of its routes. Those of `old` go on with the buckets they have.
    pub(crate) fn build(
        registry: &Registry,
        site: &Arc<str>,
        limits: &[RateLimit],
        old: &[Arc<Limit>],
        lists: &mut Lists<'_>,
        link: Option<&LimitLink>,
    ) -> Result<Vec<Arc<Limit>>, StartError> {
        let one = |settings: &RateLimit| {
            let known = old.iter().find(|old| old.site == *site && old.counts_as(settings));
            let limiter = known.map_or_else(|| Arc::new(limiter(settings)), |old| Arc::clone(&old.limiter));
            let action = match settings.action {
                RefuseAction::Block => "block",
                RefuseAction::Log => "log",
            };
            let name = &settings.name;
            let only = settings.only.as_ref().map(|only| ClientSet::build(only, lists)).transpose()?;
            let known = known.and_then(|old| old.shared.as_ref());
            let shared = settings.shared.zip(link);
            let shared = shared.map(|(unavailable, link)| {
                let known = known.map(|known| &known.limit);
                SharedLimit::new(registry, (site, settings), unavailable, link, known)
            });
            Ok::<_, StartError>(Arc::new(Limit {
                only,
                shared,
                site: Arc::clone(site),
                limiter,
                except: set_of(&settings.except),
                control: Control { by: ControlKind::RateLimit, name: name.as_str().into() },
                events: EventLimit::new(registry),
                limited: registry.counter(&catalogue::RATE_LIMITED, &[site, name, action]),
                evicted: registry.counter(&catalogue::RATE_LIMIT_EVICTED, &[site, name]),
                settings: settings.clone(),
            }))
        };
        limits.iter().map(one).collect()
    }

    /// A limit with these settings counts the same things in the same way.
    fn counts_as(&self, settings: &RateLimit) -> bool {
        let RateLimit { action, status, except, only, .. } = &self.settings;
        let (action, status, except, only) = (*action, *status, except.clone(), only.clone());
        self.settings == RateLimit { action, status, except, only, ..settings.clone() }
    }

    /// The name of its site.
    pub(crate) fn site(&self) -> &str {
        &self.site
    }

    /// Requests that came too early, and buckets that were forgotten before they were full again.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.limited.value(), self.evicted.value())
    }

    pub(crate) fn name(&self) -> &str {
        &self.settings.name
    }

    /// Counts a request; `rule` is what a rule says of it. What is to be reported of it, and how it is
    /// answered, if it comes too early.
    pub(crate) fn check(
        &self,
        client: Visitor,
        head: &RequestHead,
        rule: Option<&[u8]>,
        now: u64,
    ) -> Option<(ControlDecision, Option<Denial>)> {
        let methods = &self.settings.methods;
        if !methods.is_empty() && !methods.iter().any(|method| method.as_bytes() == head.method()) {
            return None;
        }
        if self.only.as_ref().is_some_and(|only| only.find(client).is_none()) {
            return None;
        }
        if self.except.contains(client.address) {
            return None;
        }
        let empty = self.shared.as_ref().map_or_else(|| self.limiter.keying(), SharedLimit::keying);
        let keys = Keys::of(&self.settings, empty, client, head, rule)?;
        let mut wait = None;
        for mut key in keys.into_iter() {
            let waits = match &self.shared {
                Some(shared) => {
                    let hashed = key.key();
                    shared.wait(&mut key, now, || self.wait(hashed, now))
                }
                None => self.wait(key.key(), now),
            };
            wait = wait.max(waits);
        }
        let wait = wait?;
        self.limited.inc();
        let decision = ControlDecision {
            control: self.control.clone(),
            reason: format!("The rate limit `{}` was exceeded", self.settings.name),
            in_event: self.events.admits(now),
        };
        let denial = (self.settings.action == RefuseAction::Block).then(|| self.denial(wait));
        Some((decision, denial))
    }

    /// The time by which a request comes too early, by the count of this node.
    fn wait(&self, key: Key, now: u64) -> Option<Duration> {
        let checked = self.limiter.check(key, now);
        if checked.evicted {
            self.evicted.inc();
        }
        checked.wait
    }

    /// `Retry-After` (RFC 9110), and the fields of draft-ietf-httpapi-ratelimit-headers-10.
    fn denial(&self, wait: Duration) -> Denial {
        let RateLimit { name, rate, per, status, .. } = &self.settings;
        let (wait, per) = (whole_seconds(wait), whole_seconds(*per));
        Denial {
            status: *status,
            text: Some("There were too many requests. Please try again later."),
            fields: vec![
                ("Retry-After", wait.to_string()),
                ("RateLimit-Policy", format!("\"{name}\";q={rate};w={per}")),
                ("RateLimit", format!("\"{name}\";r=0;t={wait}")),
            ],
        }
    }
}

fn limiter(settings: &RateLimit) -> Limiter {
    let rate = Rate::new(settings.rate.into(), settings.per, settings.burst.into());
    Limiter::new(rate, settings.keys_max)
}

/// Rounded up, and at least 1: a client that gets a wait of zero does not wait.
fn whole_seconds(duration: Duration) -> u64 {
    (duration.as_secs() + u64::from(duration.subsec_nanos() > 0)).max(1)
}
