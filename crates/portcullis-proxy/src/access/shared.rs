//! A rate limit that is counted together with other nodes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use portcullis_access::{Keying, Rate, Taken};
use portcullis_config::{LimitStore, RateLimit, Unavailable};
use portcullis_metrics::{Counter, Registry, catalogue};
use portcullis_share::{Link, ShareMetrics, Shared};

use crate::StartError;
use crate::services::Services;

/// The wait (`Retry-After`) of a request which is refused because the store cannot be asked.
const WAIT: Duration = Duration::from_secs(1);

/// The way to where nodes share rate limits.
#[derive(Clone)]
pub(crate) struct LimitLink {
    store: LimitStore,
    link: Arc<Link>,
}

impl LimitLink {
    /// `known` is that of the settings before, kept if nothing has changed.
    pub(crate) fn build(
        store: Option<&LimitStore>,
        services: &Services,
        started: Instant,
        known: Option<&LimitLink>,
    ) -> Result<Option<LimitLink>, StartError> {
        let Some(store) = store else { return Ok(None) };
        if let Some(known) = known.filter(|known| known.store == *store) {
            return Ok(Some(known.clone()));
        }
        let metrics = ShareMetrics::new(&services.registry);
        let link = Link::start((&store.url, &store.prefix), metrics, started, &services.say);
        let link = link.map_err(|error| StartError::new(format!("limit_store: {error}")))?;
        Ok(Some(LimitLink { store: store.clone(), link: Arc::new(link) }))
    }
}

/// The shared side of a limit.
pub(super) struct SharedLimit {
    /// Kept over reloads that do not change what it counts.
    pub(super) limit: Arc<Shared>,
    link: Arc<Link>,
    unavailable: Unavailable,
    unshared: Counter,
}

impl SharedLimit {
    /// `known` is that of the settings before, if it counts the same.
    pub(super) fn new(
        registry: &Registry,
        (site, settings): (&str, &RateLimit),
        unavailable: Unavailable,
        link: &LimitLink,
        known: Option<&Arc<Shared>>,
    ) -> SharedLimit {
        let name = &settings.name;
        let policy = match unavailable {
            Unavailable::Local => "local",
            Unavailable::Open => "open",
            Unavailable::Closed => "closed",
        };
        let new = || {
            let rate = Rate::new(settings.rate.into(), settings.per, settings.burst.into());
            let interval = Duration::from_nanos(rate.interval());
            Shared::new(format!("{site}:{name}"), interval, rate.burst(), settings.keys_max)
        };
        SharedLimit {
            limit: known.map_or_else(new, Arc::clone),
            link: Arc::clone(&link.link),
            unavailable,
            unshared: registry.counter(&catalogue::RATE_LIMIT_UNSHARED, &[site, name, policy]),
        }
    }

    /// A key without parts.
    pub(super) fn keying(&self) -> Keying {
        self.limit.leases().table().keying().keep()
    }

    /// The time by which a request comes too early. `local` goes by the count of this node alone.
    pub(super) fn wait(
        &self,
        key: &mut Keying,
        now: u64,
        local: impl FnOnce() -> Option<Duration>,
    ) -> Option<Duration> {
        let hashed = key.key();
        match self.limit.take(&self.link, hashed, now, || key.bytes()) {
            Taken::Admitted => None,
            Taken::Refused(wait) => Some(wait),
            Taken::Unknown => {
                self.unshared.inc();
                match self.unavailable {
                    Unavailable::Local => local(),
                    Unavailable::Open => None,
                    Unavailable::Closed => Some(WAIT),
                }
            }
        }
    }
}
