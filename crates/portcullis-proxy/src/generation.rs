//! A generation: the settings in use, built and replaced as a whole.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use portcullis_config::{ClientAddress, Config, CookieFlags, HeaderChanges, Listener, Timeouts};
use portcullis_event::{Action, Redactor};
use portcullis_exchange::{BlockPage, Exclusions, LocalTime, redactor};
use portcullis_inspect::{Inspector, Origin, PolicyNames};
use portcullis_metrics::{RouteMetrics, RuleCounters};
use portcullis_tls::{ListenerTls, acme};

use crate::access::{Access, Controls, ControlsBuilder, Geo};
use crate::access_log::AccessLog;
use crate::agents::Agent;
use crate::compress::Compression;
use crate::cookies::{Signing, SiteCookies};
use crate::divert;
use crate::https::Https;
use crate::linger::Linger;
use crate::recognition::Recognition;
use crate::route::{Matcher, Route, Target};
use crate::services::Services;
use crate::site::{Hosts, Site};
use crate::upstream::{Origin as GroupOrigin, Slot};
use crate::{StartError, lookups};

/// All settings that a reload replaces, built whole before the first request sees them.
pub(crate) struct Generation {
    pub(crate) number: u64,
    /// The settings that it is built from, for those who look at them.
    pub(crate) config: Config,
    /// Those of the policies, by index.
    pub(crate) inspectors: Vec<Arc<Inspector>>,
    /// By listener.
    pub(crate) listeners: Vec<ListenerState>,
    pub(crate) sites: Vec<Site>,
    /// Some of them sign cookies.
    pub(crate) signs_cookies: bool,
    /// By listener, what becomes of requests that no route takes.
    pub(crate) unserved: Vec<Route>,
    pub(crate) groups: Vec<Arc<Slot>>,
    pub(crate) agents: Vec<Arc<Agent>>,
    /// Countries and networks of clients.
    pub(crate) geo: Geo,
    /// Rate limits, bans and address lists of all sites and routes.
    pub(crate) controls: Controls,
    /// Of requests that no route serves.
    pub(crate) access_log: Option<AccessLog>,
    /// The groups to which `proxy` actions send requests.
    pub(crate) diverted: HashMap<Origin, Arc<Slot>>,
    /// The certificates that are ordered.
    pub(crate) acme: Option<Arc<acme::Settings>>,
    pub(crate) client_address: ClientAddress,
    pub(crate) tracing: Option<portcullis_config::Tracing>,
    pub(crate) timeouts: Timeouts,
    pub(crate) caps: portcullis_config::Limits,
    pub(crate) lookups: lookups::Settings,
    pub(crate) pause_max: Duration,
    pub(crate) pauses_max: usize,
    pub(crate) block_page: BlockPage,
    /// For the events that no inspector makes.
    pub(crate) redactor: Redactor,
    pub(crate) rule_matches: RuleCounters,
    pub(crate) local_time: LocalTime,
}

/// The part of a listener that a reload replaces.
pub(crate) struct ListenerState {
    pub(crate) tls: Option<Arc<ListenerTls>>,
    /// For a reload.
    name: String,
    pub(crate) proxy_protocol: bool,
    pub(crate) half_close: bool,
    pub(crate) compat: portcullis_http::h1::Compat,
    pub(crate) http2: portcullis_config::Http2,
    /// HTTP/3 is announced to clients.
    pub(crate) http3: bool,
    pub(crate) hosts: Hosts,
}

/// The sources that a generation is built from.
#[derive(Clone, Copy)]
pub(crate) struct Sources<'a> {
    pub(crate) config: &'a Config,
    /// Those of the policies, by index.
    pub(crate) inspectors: &'a [Arc<Inspector>],
    pub(crate) number: u64,
    pub(crate) services: &'a Services,
    pub(crate) origin: &'a GroupOrigin,
    /// The generation that serves at present. Parts that have not changed go on with its state: connections,
    /// buckets, bans, tickets.
    pub(crate) old: Option<&'a Generation>,
}

impl Generation {
    /// The limits of reading after the last answer of a connection.
    pub(crate) fn linger(&self) -> Linger {
        Linger { time_max: self.timeouts.linger, bytes_max: self.caps.linger_bytes_max }
    }

    /// The exclusions of all routes.
    pub(crate) fn exclusions(&self) -> impl Iterator<Item = &Exclusions> {
        self.sites.iter().flat_map(Site::routes).filter_map(|route| route.exclusions.as_ref())
    }

    /// Builds everything the configuration says.
    pub(crate) fn build(sources: Sources<'_>) -> Result<Self, StartError> {
        let Sources { config, inspectors, number, services, origin, old } = sources;
        if inspectors.len() != config.policies.len() {
            return Err(StartError::new("a policy has no compiled rules".to_string()));
        }
        let groups = groups(&sources)?;
        let acme = acme::Settings::build(config)?;
        let listeners = listeners(&sources, acme.as_deref())?;
        let agents = Agent::build(&config.agents, services, old.map_or(&[], |old| &old.agents))?;
        let known = old.map(|old| &old.controls);
        let mut controls = ControlsBuilder::new(config, services, origin.started(), known)?;
        let sites = sites(&sources, &groups, &agents, &mut controls)?;
        let signs_cookies = config.sites.iter().any(|site| !site.cookies.sign.is_empty());
        let unserved = unserved(&sources, &mut controls)?;
        let rule_ids = inspectors.iter().flat_map(|inspector| inspector.rule_ids());
        Ok(Generation {
            number,
            config: config.clone(),
            inspectors: inspectors.to_vec(),
            listeners,
            sites,
            signs_cookies,
            unserved,
            diverted: divert::groups(config, inspectors, &groups, services, origin)?,
            groups,
            acme,
            agents,
            controls: controls.finish(),
            geo: Geo::build(&services.registry, &config.geo_files, old.map(|old| &old.geo))?,
            access_log: AccessLog::build(config.access_log.as_ref(), &services.access_logs)?,
            client_address: config.client_address.clone(),
            tracing: config.tracing.clone(),
            timeouts: config.timeouts,
            caps: config.limits,
            lookups: lookups::Settings::new(&config.lookups, number),
            pause_max: config.limits.pause_max,
            pauses_max: config.limits.pauses_max,
            block_page: block_page(config)?,
            redactor: redactor(config),
            local_time: LocalTime::of_process(),
            rule_matches: RuleCounters::new(&services.registry, rule_ids.map(|id| id.0)),
        })
    }
}

fn block_page(config: &Config) -> Result<BlockPage, StartError> {
    BlockPage::load(config.block_page.as_deref()).map_err(|error| StartError::new(error.to_string()))
}

/// The groups of endpoints, by upstream.
fn groups(sources: &Sources<'_>) -> Result<Vec<Arc<Slot>>, StartError> {
    let Sources { config, services, origin, old, .. } = *sources;
    let old = old.map_or(&[][..], |old| &old.groups);
    config.upstreams.iter().map(|upstream| Slot::build(upstream, services, origin, old)).collect()
}

fn listeners(sources: &Sources<'_>, acme: Option<&acme::Settings>) -> Result<Vec<ListenerState>, StartError> {
    sources.config.listeners.iter().map(|listener| ListenerState::build(sources, listener, acme)).collect()
}

impl ListenerState {
    fn build(
        sources: &Sources<'_>,
        settings: &Listener,
        acme: Option<&acme::Settings>,
    ) -> Result<ListenerState, StartError> {
        let Sources { config, services, old, .. } = *sources;
        let known = old.map_or(&[][..], |old| &old.listeners).iter().find(|old| old.name == settings.name);
        let tls = |tls| {
            let (name, http2) = (&settings.name, settings.http2.enabled);
            let known = known.and_then(|known| known.tls.as_deref());
            ListenerTls::build(tls, name, http2, acme, &services.registry, known).map(Arc::new)
        };
        let mut hosts = Hosts::default();
        for site in &settings.sites {
            hosts.add(&config.sites[*site].hosts, *site);
        }
        Ok(ListenerState {
            tls: settings.tls.as_ref().map(tls).transpose()?,
            name: settings.name.clone(),
            proxy_protocol: settings.proxy_protocol,
            half_close: settings.half_close,
            compat: match settings.compat {
                portcullis_config::Compat::Strict => portcullis_http::h1::Compat::Strict,
                portcullis_config::Compat::Apache => portcullis_http::h1::Compat::Apache,
            },
            http2: settings.http2,
            http3: settings.http3,
            hosts,
        })
    }
}

/// The sites with their routes.
fn sites(
    sources: &Sources<'_>,
    groups: &[Arc<Slot>],
    agents: &[Arc<Agent>],
    controls: &mut ControlsBuilder<'_>,
) -> Result<Vec<Site>, StartError> {
    let mut sites = Vec::with_capacity(sources.config.sites.len());
    for site in &sources.config.sites {
        let builder = RouteBuilder {
            sources,
            groups,
            agents,
            site,
            https: Arc::new(Https::new(&site.https, &sources.services.registry, &site.name)),
            cookie_flags: Some(&site.cookies.flags)
                .filter(|flags| **flags != CookieFlags::default())
                .cloned()
                .map(Arc::new),
            cookies: site.cookies.provenance.then(|| cookies(sources, &site.name)),
            signing: (!site.cookies.sign.is_empty()).then(|| {
                let Services { registry, issued_cookies, .. } = sources.services;
                Arc::new(Signing::new(registry, &site.cookies, &issued_cookies(&site.name)))
            }),
            recognition: Arc::new(recognition(sources, site)),
            access_log: AccessLog::build(site.access_log.as_ref(), &sources.services.access_logs)?,
        };
        let access = controls.site(site)?;
        let routes = site.routes.iter().zip(access).map(|(route, access)| builder.build(route, access));
        sites.push(Site::new(routes.collect::<Result<_, _>>()?, &site.routes));
    }
    Ok(sites)
}

/// The cookies that the upstreams of a site have set so far.
fn cookies(sources: &Sources<'_>, site: &str) -> Arc<SiteCookies> {
    let mut known = sources.old.iter().flat_map(|old| &old.sites).flat_map(Site::routes);
    let known = known.find(|route| *route.names.site == *site).and_then(|route| route.cookies.clone());
    let services = sources.services;
    known.unwrap_or_else(|| Arc::new(SiteCookies::new(&services.registry, (services.issued_cookies)(site))))
}

/// Knowledge of the application behind a site so far.
fn recognition(sources: &Sources<'_>, site: &portcullis_config::Site) -> Recognition {
    let mut known = sources.old.iter().flat_map(|old| &old.sites).flat_map(Site::routes);
    let known = known.find(|route| *route.names.site == *site.name);
    let before = known.and_then(|route| route.recognition.as_deref());
    Recognition::new(site, before, &sources.services.registry, &sources.services.say)
}

/// A route without a place for each listener: it has the controls of the whole document, and where clients
/// can be banned the inspection of the listener's first site, so that attacks on a bare address count.
fn unserved(sources: &Sources<'_>, controls: &mut ControlsBuilder<'_>) -> Result<Vec<Route>, StartError> {
    let Sources { config, inspectors, number, services, .. } = *sources;
    let registry = &services.registry;
    let one = |listener: &Listener| {
        let last = |site: &usize| config.sites[*site].routes.last().filter(|route| route.policy.is_some());
        let inspected = config.unserved.ban.as_ref().and_then(|_| listener.sites.iter().find_map(last));
        let policy = inspected.and_then(|route| route.policy);
        Ok(Route {
            names: PolicyNames { site: "".into(), route: "".into(), generation: number },
            matcher: Matcher::all(),
            target: Target::Respond { status: 404, body: None },
            https: Arc::new(Https::new(&portcullis_config::Https::default(), registry, "")),
            cookies: None,
            expires_cookies: false,
            cookie_flags: None,
            signing: None,
            recognition: None,
            request_headers: HeaderChanges::default(),
            response_headers: HeaderChanges::default(),
            inspector: policy.map(|policy| Arc::clone(&inspectors[policy])),
            failure: inspected.map(|route| route.failure).unwrap_or_default(),
            access: controls.unserved(&config.unserved)?,
            access_log: AccessLog::build(config.access_log.as_ref(), &services.access_logs)?,
            compression: None,
            agents: Box::default(),
            request_trailers: Box::default(),
            metrics: RouteMetrics::new(registry, "", "", Action::NAMES),
            exclusions: None,
        })
    };
    config.listeners.iter().map(one).collect()
}

/// Builds the routes of a site.
struct RouteBuilder<'a> {
    sources: &'a Sources<'a>,
    groups: &'a [Arc<Slot>],
    agents: &'a [Arc<Agent>],
    site: &'a portcullis_config::Site,
    https: Arc<Https>,
    cookies: Option<Arc<SiteCookies>>,
    cookie_flags: Option<Arc<CookieFlags>>,
    signing: Option<Arc<Signing>>,
    recognition: Arc<Recognition>,
    access_log: Option<AccessLog>,
}

impl RouteBuilder<'_> {
    fn build(&self, route: &portcullis_config::Route, access: Access) -> Result<Route, StartError> {
        let Sources { inspectors, number, services, .. } = *self.sources;
        let (registry, site) = (&services.registry, &self.site.name);
        let compression = |settings| Arc::new(Compression::new(registry, site, settings));
        Ok(Route {
            https: Arc::clone(&self.https),
            cookies: self.cookies.clone(),
            expires_cookies: self.site.cookies.expire_refused,
            cookie_flags: self.cookie_flags.clone(),
            signing: self.signing.clone(),
            recognition: Some(Arc::clone(&self.recognition)),
            names: PolicyNames {
                site: site.as_str().into(),
                route: route.name.as_str().into(),
                generation: number,
            },
            matcher: Matcher::new(route)?,
            target: Target::new(&route.target, self.groups),
            request_headers: route.request_headers.clone(),
            response_headers: route.response_headers.clone(),
            inspector: route.policy.map(|policy| Arc::clone(&inspectors[policy])),
            failure: route.failure,
            access,
            access_log: self.access_log,
            compression: route.compression.as_ref().map(compression),
            agents: Agent::uses(self.agents, &route.agents),
            request_trailers: route.request_trailers.clone().into(),
            metrics: RouteMetrics::new(registry, site, &route.name, Action::NAMES),
            exclusions: route.policy.map(|policy| {
                let policy = &self.sources.config.policies[policy];
                let place = (site.as_str(), route.semantic_of.as_deref());
                Exclusions::new(registry, policy, place)
            }),
        })
    }
}
