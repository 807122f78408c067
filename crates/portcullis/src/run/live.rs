//! The settings that serve and the state of their parts, as the admin API shows them.

use std::path::Path;
use std::sync::Arc;

use portcullis_api::live::{
    AccessList, Agent, Application, Certificate, ClassPolicy, Clients, Decisions, Endpoint, EndpointState,
    Inspection, KeptList, LastError, ListFile, LiveState, NETWORKS_SHOWN_MAX, OpenedField, PathKind,
    RateLimit, Route, Rule, RuleState, Site, Snapshot, Target, Upstream,
};
use portcullis_config::{
    AgentAddress, ClassAction, Config, HostPattern, KeyPart, Mode, OpenOrClosed, PathMatch, Recognised,
    RefuseAction, RouteTarget,
};
use portcullis_engine::Plan;
use portcullis_metrics::{Registry, RuleCounters};
use portcullis_proxy::{BreakerState, EndpointStatus, Serving, Status};
use portcullis_types::RuleId;

use crate::decision::decides;
use crate::rule_list::{Entry, State, entries};

/// The state of the proxy.
pub struct Desk {
    pub status: Status,
    /// Where the matches of rules are counted.
    pub registry: Arc<Registry>,
}

impl Desk {
    fn snapshot<T>(&self, read: impl FnOnce(&Serving) -> Vec<T>) -> Snapshot<T> {
        let serving = self.status.serving();
        Snapshot { generation: serving.number(), items: read(&serving) }
    }
}

impl LiveState for Desk {
    fn sites(&self) -> Snapshot<Site> {
        self.snapshot(|serving| (0..serving.config().sites.len()).map(|index| site(serving, index)).collect())
    }

    fn upstreams(&self) -> Snapshot<Upstream> {
        self.snapshot(upstreams)
    }

    fn limits(&self) -> Snapshot<RateLimit> {
        self.snapshot(limits)
    }

    fn lists(&self) -> Snapshot<AccessList> {
        self.snapshot(lists)
    }

    fn certificates(&self) -> Snapshot<Certificate> {
        self.snapshot(certificates)
    }

    fn agents(&self) -> Snapshot<Agent> {
        self.snapshot(agents)
    }

    fn rules(&self, site: &str, route: &str, text: Option<u32>) -> Option<Snapshot<Rule>> {
        let serving = self.status.serving();
        let site = serving.config().sites.iter().find(|each| each.name == site)?;
        let policy = site.routes.iter().find(|each| each.name == route)?.policy?;
        let items = rules(serving.inspectors()[policy].plan(), &self.registry, text);
        Some(Snapshot { generation: serving.number(), items })
    }

    fn decides(&self, rule: u32) -> bool {
        self.status.serving().inspectors().iter().any(|inspector| decides(inspector.plan(), rule))
    }
}

/// The rules of a plan; that with the id `text` with its text.
fn rules(plan: &Plan, registry: &Registry, text: Option<u32>) -> Vec<Rule> {
    let entries = entries(plan);
    let counters =
        RuleCounters::new(registry, plan.rules.iter().filter(|rule| rule.log).map(|rule| rule.id.0));
    let rule = |entry: Entry| Rule {
        rule_id: entry.rule_id,
        phase: entry.phase,
        state: match entry.state {
            State::Active => RuleState::Active,
            State::Overridden => RuleState::Overridden,
            State::Dead => RuleState::Dead,
            State::Excluded => RuleState::Excluded,
        },
        severity: entry.severity,
        message: entry.message,
        paranoia: entry.tags.iter().find_map(|tag| tag.strip_prefix("paranoia-level/")?.parse().ok()),
        tags: entry.tags,
        matches: counters.count(entry.rule_id),
        text: (text == Some(entry.rule_id))
            .then(|| portcullis_load::rule_text(Path::new(&entry.file), entry.line, RuleId(entry.rule_id)))
            .flatten(),
        file: entry.file,
        line: entry.line,
        notes: entry.notes,
    };
    entries.into_iter().map(rule).collect()
}

fn site(serving: &Serving, index: usize) -> Site {
    let config = serving.config();
    let settings = &config.sites[index];
    let hosts = settings.hosts.iter().map(|host| match host {
        HostPattern::Any => "*".to_owned(),
        HostPattern::Exact(host) => host.clone(),
        HostPattern::Under(domain) => format!("*{domain}"),
    });
    let listeners = config.listeners.iter().filter(|listener| listener.sites.contains(&index));
    Site {
        name: settings.name.clone(),
        hosts: hosts.collect(),
        listeners: listeners.map(|listener| listener.name.clone()).collect(),
        routes: settings.routes.iter().map(|settings| route(serving, settings)).collect(),
        limits: settings.rate_limits.iter().map(|limit| limit.name.clone()).collect(),
        looks_like: serving.offers(index).into_iter().map(offer).collect(),
    }
}

fn offer(recognised: Recognised) -> Application {
    let Recognised { profile, signs } = recognised;
    let opened = profile.fields().map(|field| OpenedField {
        location: field.place().to_owned(),
        paths: field.paths.to_vec(),
        opens: field.opens.to_owned(),
        lets_pass: field.lets_pass.to_vec(),
    });
    Application {
        profile: profile.name.clone(),
        application: profile.application.clone(),
        signs,
        exclusions: profile.exclusions("").count(),
        opens: opened.collect(),
    }
}

fn route(serving: &Serving, settings: &portcullis_config::Route) -> Route {
    let config = serving.config();
    let (path_kind, path) = match &settings.path {
        PathMatch::Exact(path) => (PathKind::Exact, path),
        PathMatch::Prefix(path) => (PathKind::Prefix, path),
        PathMatch::Pattern(path) => (PathKind::Pattern, path),
    };
    let target = match &settings.target {
        RouteTarget::Forward { upstream, .. } => {
            Target::Forward { upstream: config.upstreams[*upstream].name.clone() }
        }
        RouteTarget::Redirect { status, .. } => Target::Redirect { status: *status },
        RouteTarget::Respond { status, .. } => Target::Respond { status: *status },
    };
    Route {
        name: settings.name.clone(),
        path_kind,
        path: path.clone(),
        methods: settings.methods.clone(),
        headers: settings.headers.iter().map(|(name, _)| name.clone()).collect(),
        target,
        inspection: settings.policy.map(|policy| inspection(serving, policy)),
        agents: settings.agents.iter().map(|of| config.agents[of.agent].name.clone()).collect(),
        limits: settings.rate_limits.iter().map(|limit| limit.name.clone()).collect(),
    }
}

fn inspection(serving: &Serving, policy: usize) -> Inspection {
    let (settings, inspector) = (&serving.config().policies[policy], &serving.inspectors()[policy]);
    let semantic = settings.mode.has_semantic();
    let classes = settings.semantic.classes.iter().map(|(class, action)| ClassPolicy {
        class: class.name(),
        action: match action {
            ClassAction::Block => "block",
            ClassAction::Log => "log",
            ClassAction::Off => "off",
        },
    });
    Inspection {
        mode: match settings.mode {
            Mode::Crs => "crs",
            Mode::Semantic => "semantic",
            Mode::Both => "both",
        },
        engine: inspector.engine_mode().name(),
        paranoia: settings.paranoia,
        level: semantic.then(|| settings.level.name()),
        rules: inspector.plan().rules.len(),
        response_body: settings.response_body.inspect,
        classes: classes.collect(),
        exclusions: settings.semantic.exclude.len(),
    }
}

fn upstreams(serving: &Serving) -> Vec<Upstream> {
    let upstreams = serving.upstreams().into_iter().zip(&serving.config().upstreams);
    let upstreams = upstreams.map(|(status, settings)| Upstream {
        name: status.name,
        tls: settings.tls.is_some(),
        checked: settings.health.is_some(),
        healthy: status.healthy,
        queued: status.queued,
        endpoints: status.endpoints.into_iter().map(endpoint).collect(),
    });
    upstreams.collect()
}

fn endpoint(status: EndpointStatus) -> Endpoint {
    let state = match status.breaker {
        _ if !status.is_healthy => EndpointState::Unhealthy,
        _ if status.is_ejected => EndpointState::Ejected,
        Some(BreakerState::Open) => EndpointState::Open,
        Some(BreakerState::HalfOpen) => EndpointState::Probing,
        Some(BreakerState::Closed) | None => EndpointState::Healthy,
    };
    Endpoint {
        address: status.place,
        state,
        breaker: status.breaker.map(breaker),
        in_flight: status.active,
        weight: status.weight,
        priority: status.priority,
        last_error: status
            .last_failure
            .map(|failure| LastError { message: failure.why, seconds_ago: failure.ago.as_secs() }),
    }
}

fn breaker(state: BreakerState) -> &'static str {
    match state {
        BreakerState::Closed => "closed",
        BreakerState::Open => "open",
        BreakerState::HalfOpen => "half_open",
    }
}

fn limits(serving: &Serving) -> Vec<RateLimit> {
    let settings = places(serving.config());
    // Both are in the order in which the settings were read: those of a site, then those of its routes.
    let limits = serving.limits().into_iter().zip(settings).map(|(status, (route, settings))| RateLimit {
        site: status.site,
        route: route.map(str::to_owned),
        name: status.name,
        key: settings.key.iter().map(key_part).collect(),
        rate: settings.rate,
        per_seconds: settings.per.as_secs_f64(),
        burst: settings.burst,
        methods: settings.methods.clone(),
        action: action(settings.action),
        status: settings.status,
        shared: settings.shared.is_some(),
        keys_max: settings.keys_max,
        limited: status.limited,
        evicted: status.evicted,
    });
    limits.collect()
}

/// All rate limits, each with the name of its route if it is one of a route.
fn places(config: &Config) -> impl Iterator<Item = (Option<&str>, &portcullis_config::RateLimit)> {
    config.sites.iter().flat_map(|site| {
        let of_routes = site
            .routes
            .iter()
            .flat_map(|route| route.rate_limits.iter().map(|limit| (Some(route.name.as_str()), limit)));
        site.rate_limits.iter().map(|limit| (None, limit)).chain(of_routes)
    })
}

fn key_part(part: &KeyPart) -> String {
    match part {
        KeyPart::Rule => "rule".to_owned(),
        KeyPart::Client => "client".to_owned(),
        KeyPart::Path => "path".to_owned(),
        KeyPart::Header(name) => format!("header:{name}"),
        KeyPart::Cookie(name) => format!("cookie:{name}"),
        KeyPart::Country => "country".to_owned(),
        KeyPart::Continent => "continent".to_owned(),
        KeyPart::Asn => "asn".to_owned(),
    }
}

fn action(action: RefuseAction) -> &'static str {
    match action {
        RefuseAction::Block => "block",
        RefuseAction::Log => "log",
    }
}

fn lists(serving: &Serving) -> Vec<AccessList> {
    let mut lists = Vec::new();
    for (site_index, site) in serving.config().sites.iter().enumerate() {
        for (place, route) in site.routes.iter().enumerate() {
            let Some(access) = &route.access else { continue };
            let decisions = serving.list_decisions(site_index, place).unwrap_or_default();
            let [bypassed, allowed, denied, logged] = decisions;
            lists.push(AccessList {
                site: site.name.clone(),
                route: route.name.clone(),
                place,
                bypass: clients(serving, &access.bypass),
                allow: clients(serving, &access.allow),
                deny: clients(serving, &access.deny),
                deny_others: access.deny_others,
                action: action(access.action),
                status: access.status,
                site_decisions: Decisions { bypassed, allowed, denied, logged },
            });
        }
    }
    lists
}

fn clients(serving: &Serving, settings: &portcullis_config::Clients) -> Clients {
    let network = |network: &portcullis_config::Network| {
        let (address, prefix) = (network.address(), network.prefix());
        match (address.is_ipv4(), prefix) {
            (true, 32) | (false, 128) => address.to_string(),
            _ => format!("{address}/{prefix}"),
        }
    };
    let file = |path: &Path| ListFile {
        path: path.display().to_string(),
        ranges: serving.list_ranges(path).unwrap_or_default(),
    };
    let list = |name: &str| KeptList {
        name: name.to_owned(),
        ranges: serving
            .config()
            .list_file(name)
            .and_then(|path| serving.list_ranges(&path))
            .unwrap_or_default(),
    };
    Clients {
        networks: settings.networks.iter().take(NETWORKS_SHOWN_MAX).map(network).collect(),
        networks_total: settings.networks.len(),
        files: settings.files.iter().map(|path| file(path)).collect(),
        lists: settings.lists.iter().map(|name| list(name)).collect(),
        countries: settings.countries.iter().map(ToString::to_string).collect(),
        continents: settings.continents.iter().map(ToString::to_string).collect(),
        asns: settings.asns.clone(),
    }
}

fn certificates(serving: &Serving) -> Vec<Certificate> {
    let listeners = serving.config().listeners.iter().enumerate();
    let certificates = listeners.flat_map(|(index, listener)| {
        serving.certificates(index).into_iter().map(|status| {
            let life = status.issued.as_ref().map(|issued| issued.life);
            Certificate {
                listener: listener.name.clone(),
                source: if status.is_ordered { "acme" } else { "file" },
                file: status.file.display().to_string(),
                issued: status.issued.is_some(),
                names: status.issued.as_ref().map_or_else(Vec::new, |issued| issued.names.clone()),
                issuer: status.issued.map(|issued| issued.issuer),
                not_before: life.map(|life| life.from),
                not_after: life.map(|life| life.until),
            }
        })
    });
    certificates.collect()
}

fn agents(serving: &Serving) -> Vec<Agent> {
    let agents = serving.agents().into_iter().zip(&serving.config().agents);
    let agents = agents.map(|(status, settings)| Agent {
        name: status.name,
        address: match &settings.address {
            AgentAddress::Unix(path) => format!("unix:{}", path.display()),
            AgentAddress::Grpc(endpoint, None) => format!("grpc://{endpoint}"),
            AgentAddress::Grpc(endpoint, Some(_)) => format!("grpcs://{endpoint}"),
        },
        breaker: breaker(status.breaker),
        in_flight: status.active,
        waiting: status.waiting,
        concurrency: settings.concurrency,
        timeout_seconds: settings.timeout.as_secs_f64(),
        failure: match settings.failure {
            OpenOrClosed::Open => "open",
            OpenOrClosed::Closed => "closed",
        },
    });
    agents.collect()
}
