//! The controls of all sites and routes of a configuration.

use std::sync::Arc;
use std::time::{Duration, Instant};

use portcullis_config::{
    self as config, Ban, Config, Prefixes, RateLimit, RefuseAction, Route, Site, Unserved,
};
use portcullis_metrics::Registry;

use super::ban::NO_POINTS;
use super::{Access, Gate, Jail, Jails, Limit, LimitLink, ListFiles, Lists};
use crate::StartError;
use crate::services::Services;

/// The controls that sites and routes share, and that go on over a reload.
pub(crate) struct Controls {
    pub(crate) limits: Vec<Arc<Limit>>,
    /// To the store of shared rate limits.
    limit_link: Option<LimitLink>,
    pub(crate) jails: Jails,
    /// The address lists.
    pub(crate) lists: ListFiles,
}

/// Builds them, site by site.
pub(crate) struct ControlsBuilder<'a> {
    services: &'a Services,
    /// Those that serve at present.
    old: Option<&'a Controls>,
    limits: Vec<Arc<Limit>>,
    limit_link: Option<LimitLink>,
    jails: Jails,
    lists: Lists<'a>,
}

impl<'a> ControlsBuilder<'a> {
    /// `started`: where the clock of rate limits begins.
    pub(crate) fn new(
        config: &'a Config,
        services: &'a Services,
        started: Instant,
        old: Option<&'a Controls>,
    ) -> Result<Self, StartError> {
        let known = old.and_then(|old| old.limit_link.as_ref());
        Ok(ControlsBuilder {
            services,
            old,
            limits: Vec::new(),
            limit_link: LimitLink::build(config.limit_store.as_ref(), services, started, known)?,
            jails: Jails::new(),
            lists: Lists {
                registry: &services.registry,
                config,
                old: old.map(|old| &old.lists),
                files: ListFiles::default(),
            },
        })
    }

    /// The controls of each route of a site.
    pub(crate) fn site(&mut self, site: &Site) -> Result<Vec<Access>, StartError> {
        let name: Arc<str> = site.name.as_str().into();
        let of_site = self.limits(&name, &site.rate_limits)?;
        site.routes.iter().map(|route| self.route(&name, &of_site, route)).collect()
    }

    fn route(
        &mut self,
        site: &Arc<str>,
        of_site: &[Arc<Limit>],
        route: &Route,
    ) -> Result<Access, StartError> {
        let mut limits = of_site.to_vec();
        limits.extend(self.limits(site, &route.rate_limits)?);
        self.access(site, (route.access.as_ref(), route.ban.as_ref()), limits)
    }

    /// The controls of requests that no site serves.
    pub(crate) fn unserved(&mut self, settings: &Unserved) -> Result<Access, StartError> {
        self.access("", (settings.access.as_ref(), settings.ban.as_ref()), Vec::new())
    }

    fn access(
        &mut self,
        site: &str,
        (lists, ban): (Option<&config::Access>, Option<&Ban>),
        limits: Vec<Arc<Limit>>,
    ) -> Result<Access, StartError> {
        let registry: &Registry = &self.services.registry;
        let gate = lists.map(|lists| Gate::build(registry, site, lists, &mut self.lists)).transpose()?;
        let old = self.old.map(|old| &old.jails);
        // Where conduct bans nobody, clients can be banned by hand all the same.
        let by_hand = by_hand();
        let jail = Jail::build(registry, ban.unwrap_or(&by_hand), &mut self.jails, old, &self.services.say);
        Ok(Access { gate, jail, limits })
    }

    fn limits(&mut self, site: &Arc<str>, settings: &[RateLimit]) -> Result<Vec<Arc<Limit>>, StartError> {
        let old = self.old.map_or(&[][..], |old| &old.limits);
        let (lists, link) = (&mut self.lists, self.limit_link.as_ref());
        let built = Limit::build(&self.services.registry, site, settings, old, lists, link)?;
        self.limits.extend_from_slice(&built);
        Ok(built)
    }

    /// All of them.
    pub(crate) fn finish(self) -> Controls {
        let ControlsBuilder { limits, limit_link, jails, lists, .. } = self;
        Controls { limits, limit_link, jails, lists: lists.files }
    }
}

/// Clients that may be banned by hand at one time.
const BY_HAND_MAX: usize = 4096;

/// The bans of routes without `ban`: no conduct gives points.
fn by_hand() -> Ban {
    Ban {
        name: "by_hand".to_owned(),
        score: u32::MAX,
        window: Duration::from_secs(1),
        points: NO_POINTS,
        duration: Duration::ZERO,
        duration_max: Duration::ZERO,
        memory: Duration::ZERO,
        prefixes: Prefixes::default(),
        except: Vec::new(),
        action: RefuseAction::Block,
        status: 403,
        clients_max: BY_HAND_MAX,
    }
}
