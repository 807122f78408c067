//! Learning what the fields of sites carry: a thread that takes over what the workers have seen, tells them
//! what is known, and keeps it in the data folder.

use std::path::PathBuf;
use std::sync::Arc;

use portcullis_config::{LearnedFields, OpenedKinds, Unusual};
use portcullis_inspect::{Opens, SiteFields, TrustedSources, UnusualAction};
use portcullis_learn::{Limits, Thresholds};
use portcullis_metrics::Registry;

use crate::run::fields::Desk;
use crate::run::kept::Sites;
use crate::run::learner::Learner;
use crate::run::redis::Link;
use crate::run::shared_fields;

/// All sites that learn. Kept over reloads; dropped, it writes what was learned last.
pub struct Learning {
    data: Option<PathBuf>,
    registry: Arc<Registry>,
    sites: Sites<Learner>,
    /// Behind the sites: it tells what they have learned last.
    link: Option<Link>,
}

impl Learning {
    /// None learns yet.
    pub fn new(data: Option<PathBuf>, registry: Arc<Registry>) -> Learning {
        Learning { data, registry, sites: Sites::new(), link: None }
    }

    /// The same, and what is learned is shared with the other nodes of this Redis.
    pub fn shared(mut self, redis: Option<&portcullis_config::Redis>) -> Learning {
        self.link = redis.and_then(|redis| {
            shared_fields::start(redis, self.data.as_deref(), self.sites.shared(), &self.registry)
        });
        self
    }

    /// What is learned, for the admin API.
    pub fn desk(&self) -> Desk {
        Desk(self.sites.shared())
    }

    /// The fields of a site that learns, with what was kept of them.
    pub fn fields_of(&mut self, settings: &LearnedFields) -> SiteFields {
        let limits = limits(settings);
        let is_shared = self.link.is_some();
        let open = || {
            let mut learner = Learner::open(&settings.site, self.data.clone(), limits, &self.registry);
            if is_shared {
                learner.remember_peers();
            }
            learner
        };
        let site = self.sites.with(&settings.site, open, |learner| {
            let has_trusted = !settings.trusted_networks.is_empty() || settings.trusted_answer.is_some();
            learner.set(limits, settings.unusual, has_trusted);
            learner.site()
        });
        SiteFields {
            site,
            unusual: match settings.unusual {
                Unusual::Off => UnusualAction::Off,
                Unusual::Detect => UnusualAction::Detect,
                Unusual::Block => UnusualAction::Block,
            },
            learns: true,
            opens: match settings.open {
                OpenedKinds::None => Opens::Nothing,
                OpenedKinds::Safe => Opens::Safe,
                OpenedKinds::All => Opens::All,
            },
            trusted: Arc::new(TrustedSources {
                networks: settings
                    .trusted_networks
                    .iter()
                    .map(|network| (network.address(), network.prefix()))
                    .collect(),
                answer: settings.trusted_answer.clone(),
                vouches_for_all: false,
            }),
        }
    }
}

fn limits(settings: &LearnedFields) -> Limits {
    let thresholds = Thresholds { networks: settings.networks, days: settings.days, ..Thresholds::default() };
    Limits { fields_max: settings.max, thresholds, auto: settings.auto }
}
