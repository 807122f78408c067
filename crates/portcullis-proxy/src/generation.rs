//! The settings that serve, built whole and replaced whole.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use portcullis_config::{ClientAddress, Config, Timeouts};
use portcullis_event::{Action, Redactor};
use portcullis_inspect::{Inspector, Origin, PolicyNames};
use portcullis_metrics::{RouteMetrics, RuleCounters};

use crate::access::{Access, Gate, Geo, Jail, Jails, Limit, LimitLink, ListFiles, Lists};
use crate::access_log::AccessLog;
use crate::agents::Agent;
use crate::block_page::BlockPage;
use crate::compress::Compression;
use crate::divert;
use crate::https::Https;
use crate::linger::Linger;
use crate::local_time::LocalTime;
use crate::route::{Matcher, Route, Target};
use crate::site::{Hosts, Site};
use crate::state::{Services, redactor};
use crate::tls::ListenerTls;
use crate::upstream::{Origin as GroupOrigin, Slot};
use crate::{StartError, acme, lookups};

/// All settings that a reload replaces, built whole before the first request sees them.
pub(crate) struct Generation {
    pub(crate) number: u64,
    /// By listener.
    pub(crate) listeners: Vec<ListenerState>,
    pub(crate) sites: Vec<Site>,
    pub(crate) groups: Vec<Arc<Slot>>,
    pub(crate) agents: Vec<Arc<Agent>>,
    /// The rate limits of all sites and routes.
    limits: Vec<Arc<Limit>>,
    /// To the store of shared rate limits.
    limit_link: Option<LimitLink>,
    /// Where clients are.
    pub(crate) geo: Geo,
    /// The bans of all sites and routes.
    pub(crate) jails: Jails,
    /// The address lists of all sites and routes.
    pub(crate) lists: ListFiles,
    /// Of requests that no route serves.
    pub(crate) access_log: Option<AccessLog>,
    /// Where `proxy` actions send requests.
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
    /// Clients are told of HTTP/3.
    pub(crate) http3: bool,
    pub(crate) hosts: Hosts,
}

impl Generation {
    /// How long, and how much, is read after the last answer of a connection.
    pub(crate) fn linger(&self) -> Linger {
        Linger { time_max: self.timeouts.linger, bytes_max: self.caps.linger_bytes_max }
    }

    /// Builds everything `config` says. `inspectors` belong to its policies, by index.
    pub(crate) fn build(
        config: &Config,
        inspectors: &[Arc<Inspector>],
        number: u64,
        services: &Services,
        origin: &GroupOrigin,
        old: Option<&Generation>,
    ) -> Result<Self, StartError> {
        if inspectors.len() != config.policies.len() {
            return Err(StartError::new("a policy without its compiled rules".to_string()));
        }
        let groups = config
            .upstreams
            .iter()
            .map(|upstream| Slot::build(upstream, services, origin, old.map_or(&[], |old| &old.groups)))
            .collect::<Result<Vec<_>, _>>()?;
        let acme = acme::Settings::build(config)?;
        let listeners = config
            .listeners
            .iter()
            .map(|listener| {
                let mut hosts = Hosts::default();
                for site in &listener.sites {
                    hosts.add(&config.sites[*site].hosts, *site);
                }
                Ok(ListenerState {
                    tls: {
                        let old = old.and_then(|old| {
                            let same = |known: &&ListenerState| known.name == listener.name;
                            old.listeners.iter().find(same)?.tls.as_deref()
                        });
                        let build = |tls| {
                            ListenerTls::build(
                                tls,
                                &listener.name,
                                listener.http2.enabled,
                                acme.as_deref(),
                                &services.registry,
                                old,
                            )
                        };
                        listener.tls.as_ref().map(build).transpose()?.map(Arc::new)
                    },
                    name: listener.name.clone(),
                    proxy_protocol: listener.proxy_protocol,
                    half_close: listener.half_close,
                    compat: match listener.compat {
                        portcullis_config::Compat::Strict => portcullis_http::h1::Compat::Strict,
                        portcullis_config::Compat::Apache => portcullis_http::h1::Compat::Apache,
                    },
                    http2: listener.http2,
                    http3: listener.http3,
                    hosts,
                })
            })
            .collect::<Result<Vec<_>, StartError>>()?;
        let agents = Agent::build(&config.agents, services, old.map_or(&[], |old| &old.agents))?;
        let mut limits = Vec::new();
        let known = old.and_then(|old| old.limit_link.as_ref());
        let limit_link = LimitLink::build(config.limit_store.as_ref(), services, origin.started(), known)?;
        let mut jails = Jails::new();
        let mut lists = Lists {
            registry: &services.registry,
            old: old.map(|old| &old.lists),
            files: ListFiles::default(),
        };
        let old_generation = old;
        let mut access = |site: &portcullis_config::Site| {
            let name = site.name.as_str().into();
            let old = old.map_or(&[][..], |old| &old.limits);
            let mut build = |settings: &[_], lists: &mut Lists<'_>| {
                let built =
                    Limit::build(&services.registry, &name, settings, old, lists, limit_link.as_ref())?;
                limits.extend_from_slice(&built);
                Ok::<_, StartError>(built)
            };
            let of_site = build(&site.rate_limits, &mut lists)?;
            let of_route = |route: &portcullis_config::Route| {
                let limits: Vec<_> =
                    of_site.iter().cloned().chain(build(&route.rate_limits, &mut lists)?).collect();
                let gate = route.access.as_ref();
                let gate = gate
                    .map(|gate| Gate::build(&services.registry, &site.name, gate, &mut lists))
                    .transpose()?;
                let old = old_generation.map(|old| &old.jails);
                let jail = route.ban.as_ref();
                let jail =
                    jail.map(|ban| Jail::build(&services.registry, ban, &mut jails, old, &services.say));
                let any = gate.is_some() || jail.is_some() || !limits.is_empty();
                Ok(any.then(|| Box::new(Access { gate, jail, limits })))
            };
            site.routes.iter().map(of_route).collect::<Result<Vec<_>, StartError>>()
        };
        let route = |site: &portcullis_config::Site,
                     (route, access): (&portcullis_config::Route, Option<Box<Access>>),
                     https: &Arc<Https>,
                     access_log: Option<AccessLog>| {
            Ok(Route {
                https: Arc::clone(https),
                names: PolicyNames {
                    site: site.name.as_str().into(),
                    route: route.name.as_str().into(),
                    generation: number,
                },
                matcher: Matcher::new(route)?,
                target: Target::new(&route.target, &groups),
                request_headers: route.request_headers.clone(),
                response_headers: route.response_headers.clone(),
                inspector: route.policy.map(|policy| Arc::clone(&inspectors[policy])),
                failure: route.failure,
                access,
                access_log,
                compression: route
                    .compression
                    .as_ref()
                    .map(|settings| Arc::new(Compression::new(&services.registry, &site.name, settings))),
                agents: Agent::uses(&agents, &route.agents),
                request_trailers: route.request_trailers.clone().into(),
                metrics: RouteMetrics::new(&services.registry, &site.name, &route.name, Action::NAMES),
            })
        };
        let mut site = |site: &portcullis_config::Site| {
            let log = AccessLog::build(site.access_log.as_ref(), &services.access_logs)?;
            let https = Arc::new(Https::new(&site.https, &services.registry, &site.name));
            let routes = site.routes.iter().zip(access(site)?);
            let routes = routes.map(|each| route(site, each, &https, log));
            Ok(Site { routes: routes.collect::<Result<Vec<_>, StartError>>()? })
        };
        let sites = config.sites.iter().map(&mut site).collect::<Result<Vec<_>, StartError>>()?;
        Ok(Generation {
            number,
            listeners,
            sites,
            diverted: divert::groups(config, inspectors, &groups, services, origin)?,
            groups,
            acme,
            agents,
            limits,
            jails,
            limit_link,
            geo: Geo::build(&services.registry, &config.geo_files, old.map(|old| &old.geo))?,
            lists: lists.files,
            access_log: AccessLog::build(config.access_log.as_ref(), &services.access_logs)?,
            client_address: config.client_address.clone(),
            tracing: config.tracing.clone(),
            timeouts: config.timeouts,
            caps: config.limits,
            lookups: lookups::Settings::new(&config.lookups, number),
            pause_max: config.limits.pause_max,
            pauses_max: config.limits.pauses_max,
            block_page: BlockPage::load(config.block_page.as_deref())?,
            redactor: redactor(config),
            local_time: LocalTime::of_process(),
            rule_matches: {
                let ids = inspectors.iter().flat_map(|inspector| inspector.rule_ids());
                RuleCounters::new(&services.registry, ids.map(|id| id.0))
            },
        })
    }
}
