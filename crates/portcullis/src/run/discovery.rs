//! Discovery of sites' interfaces: a thread that takes in what the workers have seen, keeps it in the data
//! folder, and reports endpoints that are new or gone; and what the admin API shows of it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use portcullis_api::interfaces::{
    DeviationCounts, Interface, InterfaceCount, InterfaceDeviation, InterfaceDifference, InterfaceItem,
    InterfaceLatency, InterfaceList, InterfaceParameter, InterfaceSite, InterfaceType, Interfaces,
    StatusClasses,
};
use portcullis_discovery::{
    Beyond, Deviation, DeviationKind, Endpoint, Found, Inventory, LATENCY_MS, Limits, News, Parameter, Site,
    endpoint_id, openapi,
};
use portcullis_event::{Action, AgentOutcome, AgentWord, Event, Timestamp};
use portcullis_metrics::{Counter, Gauge, Registry, catalogue};

use crate::discovery_files as files;
use crate::run::declared_apis::DeclaredApis;
use crate::run::kept::{Content, Kept, Sites, Tended, WRITE_EVERY, lock};
use crate::run::redis::now;
use crate::run::sinks::OnEvent;

const DAY_S: u64 = 86_400;
const INVENTORY: Content =
    Content { work: "discovery", title: "the inventory of interfaces", file: files::file };

/// All sites that are discovered. Kept over reloads; dropped, it writes what was found last.
pub struct Discovery {
    data: Option<PathBuf>,
    registry: Arc<Registry>,
    sites: Sites<Discoverer>,
    sinks: Arc<OnceLock<OnEvent>>,
}

impl Discovery {
    /// None is discovered yet.
    pub fn new(data: Option<PathBuf>, registry: Arc<Registry>) -> Discovery {
        Discovery { data, registry, sites: Sites::new(), sinks: Arc::default() }
    }

    /// What the admin API shows.
    pub fn shown(&self) -> Arc<dyn Interfaces> {
        Arc::new(Desk(self.sites.shared()))
    }

    /// Where news is reported, once events are taken.
    pub fn sinks(&self) -> Arc<OnceLock<OnEvent>> {
        Arc::clone(&self.sinks)
    }

    /// Where the exchanges of a site are shown, with what was kept of it.
    pub fn site_of(&mut self, settings: &portcullis_config::Discovery) -> Arc<Site> {
        let limits = Limits {
            endpoints_max: settings.max,
            learning_s: u64::from(settings.learning_days) * DAY_S,
            idle_s: u64::from(settings.idle_days) * DAY_S,
        };
        let sinks = Arc::clone(&self.sinks);
        let open = || Discoverer::open(&settings.site, self.data.clone(), limits, &self.registry, sinks);
        self.sites.with(&settings.site, open, |discoverer| {
            discoverer.inventory.set_limits(limits);
            Arc::clone(&discoverer.site)
        })
    }

    /// Compares what is found at a site with what it declares from now on.
    pub fn declare(&self, site: &str, declared: DeclaredApis) {
        if let Some(discoverer) = lock(&self.sites.shared()).get_mut(site) {
            discoverer.declared = declared;
            discoverer.review();
        }
    }
}

fn now_s() -> u64 {
    now() / 1_000
}

/// One site.
struct Discoverer {
    name: String,
    site: Arc<Site>,
    inventory: Inventory,
    kept: Kept,
    sinks: Arc<OnceLock<OnEvent>>,
    looked: Instant,
    counted: Beyond,
    endpoints: Gauge,
    beyond_endpoints: Counter,
    beyond_parameters: Counter,
    dropped: Counter,
    registry: Arc<Registry>,
    declared: DeclaredApis,
    /// None where nothing is declared.
    deviations: Option<Vec<Deviation>>,
    /// What has come since they were looked for, and the endpoints that there were.
    unreviewed: bool,
    reviewed: usize,
}

impl Discoverer {
    fn open(
        name: &str,
        data: Option<PathBuf>,
        limits: Limits,
        registry: &Arc<Registry>,
        sinks: Arc<OnceLock<OnEvent>>,
    ) -> Discoverer {
        let (kept, inventory) = Kept::open(&INVENTORY, name, data, |text| Inventory::from_text(text, limits));
        let inventory = inventory.unwrap_or_else(|| Inventory::new(limits));
        let beyond = |kind| registry.counter(&catalogue::DISCOVERY_BEYOND_LIMIT, &[name, kind]);
        let discoverer = Discoverer {
            name: name.to_owned(),
            site: Arc::default(),
            kept,
            sinks,
            looked: Instant::now(),
            counted: inventory.beyond(),
            endpoints: registry.gauge(&catalogue::DISCOVERED_ENDPOINTS, &[name]),
            beyond_endpoints: beyond("endpoint"),
            beyond_parameters: beyond("parameter"),
            dropped: registry.counter(&catalogue::DISCOVERY_DROPPED, &[name]),
            registry: Arc::clone(registry),
            declared: DeclaredApis::default(),
            deviations: None,
            unreviewed: false,
            reviewed: 0,
            inventory,
        };
        discoverer.endpoints.set(discoverer.inventory.len() as i64);
        discoverer
    }

    /// Looks for endpoints that deviate from what is declared.
    fn review(&mut self) {
        let before = self.deviations.take();
        self.deviations = self.declared.deviations(&self.inventory, &self.name);
        (self.unreviewed, self.reviewed) = (false, self.inventory.len());
        if before.is_none() && self.deviations.is_none() {
            return;
        }
        for kind in DeviationKind::ALL {
            let gauge = self.registry.gauge(&catalogue::DEVIATING_ENDPOINTS, &[&self.name, kind.name()]);
            gauge.set(count(self.deviations.iter().flatten(), kind) as i64);
        }
    }

    /// Reports an endpoint that is new or gone: in the log, and as an event.
    fn tell(&self, news: &News) {
        let (tag, what) = match news.is_new {
            true => ("new-endpoint", "a new endpoint".to_owned()),
            false => {
                let days = self.inventory.limits().idle_s / DAY_S;
                ("gone-endpoint", format!("nobody has asked for {days} days"))
            }
        };
        eprintln!("portcullis: site {}: {what}: {} {}", self.name, news.method, news.path);
        let Some(on_event) = self.sinks.get() else { return };
        let at = now();
        // As ids of requests are: of 32 digits, and in the order of time.
        let id = format!("{at:016x}{}", endpoint_id(&self.name, &news.method, &news.path));
        let mut event = Event::new(id, Timestamp::from_epoch_millis(at));
        event.site = self.name.as_str().into();
        event.request.method = news.method.clone();
        event.request.target = news.path.clone();
        event.verdict.action = Action::Pass;
        event.verdict.reason = format!("{what}: {} {}", news.method, news.path);
        event.agents.push(AgentWord {
            name: "discovery".into(),
            outcome: AgentOutcome::Allow,
            score: 0,
            tags: vec![tag.to_owned()],
            reason: what,
        });
        on_event(event);
    }
}

impl Tended for Discoverer {
    const THREAD: &str = "discover";
    const WITHOUT: &str = "interfaces are not discovered";

    /// Takes in what waits; looks for news and writes, if it is time or the last one.
    fn turn(&mut self, is_last: bool) {
        let batch = self.site.take();
        self.dropped.add(batch.dropped);
        if !batch.is_empty() {
            self.inventory.learn(&batch);
            self.kept.is_new = true;
            self.unreviewed = true;
            self.endpoints.set(self.inventory.len() as i64);
            let beyond = self.inventory.beyond();
            let before = std::mem::replace(&mut self.counted, beyond);
            self.beyond_endpoints.add(beyond.endpoints.saturating_sub(before.endpoints));
            self.beyond_parameters.add(beyond.parameters.saturating_sub(before.parameters));
        }
        // New endpoints show at once; how others are asked changes slowly.
        if self.inventory.len() != self.reviewed {
            self.review();
        }
        if !is_last && self.looked.elapsed() < WRITE_EVERY {
            return;
        }
        if self.unreviewed {
            self.review();
        }
        self.looked = Instant::now();
        for news in self.inventory.news(now_s()) {
            self.kept.is_new = true;
            self.tell(&news);
        }
        if self.kept.is_new {
            self.kept.write(|| self.inventory.to_text());
        }
    }
}

/// The inventories, as the admin API shows them.
struct Desk(Arc<Mutex<BTreeMap<String, Discoverer>>>);

impl Interfaces for Desk {
    fn list(&self, site: Option<&str>, text: &str) -> InterfaceList {
        let (text, now_s) = (text.to_lowercase(), now_s());
        let mut list = InterfaceList::default();
        for (name, discoverer) in
            lock(&self.0).iter().filter(|(name, _)| site.is_none_or(|site| site == *name))
        {
            let inventory = &discoverer.inventory;
            let fits = |found: &Found<'_>| {
                text.is_empty() || format!("{} {}", found.method, found.path).to_lowercase().contains(&text)
            };
            let found = inventory.endpoints().filter(fits);
            list.items.extend(found.map(|found| item(name, inventory, &found, now_s)));
            list.sites.push(InterfaceSite {
                site: name.clone(),
                endpoints: inventory.len(),
                max: inventory.limits().endpoints_max,
                beyond: inventory.beyond().endpoints,
                since: inventory.since_s().map(time),
                deviations: discoverer.deviations.as_deref().map(counts),
            });
        }
        list
    }

    fn one(&self, id: &str) -> Option<Interface> {
        let sites = lock(&self.0);
        sites.iter().find_map(|(name, discoverer)| {
            let inventory = &discoverer.inventory;
            let found = inventory.endpoints().find(|found| found.id(name) == id)?;
            Some(interface(item(name, inventory, &found, now_s()), found.endpoint))
        })
    }

    fn deviations(&self, site: Option<&str>) -> Vec<InterfaceDeviation> {
        let sites = lock(&self.0);
        let asked = sites.iter().filter(|(name, _)| site.is_none_or(|site| site == *name));
        let of_site = |(name, discoverer): (&String, &Discoverer)| -> Vec<InterfaceDeviation> {
            discoverer.deviations.iter().flatten().map(|deviation| of_deviation(name, deviation)).collect()
        };
        asked.flat_map(of_site).collect()
    }

    fn document(&self, site: &str) -> Option<String> {
        let sites = lock(&self.0);
        Some(openapi(&sites.get(site)?.inventory, site).to_string())
    }
}

fn count<'d>(deviations: impl Iterator<Item = &'d Deviation>, kind: DeviationKind) -> usize {
    deviations.filter(|deviation| deviation.kind == kind).count()
}

fn counts(deviations: &[Deviation]) -> DeviationCounts {
    let of = |kind| count(deviations.iter(), kind);
    DeviationCounts {
        shadow: of(DeviationKind::Shadow),
        drifted: of(DeviationKind::Drifted),
        zombie: of(DeviationKind::Zombie),
        unseen: of(DeviationKind::Unseen),
    }
}

fn of_deviation(site: &str, deviation: &Deviation) -> InterfaceDeviation {
    let Deviation { kind, method, path, differences } = deviation.clone();
    let differences = differences.into_iter();
    InterfaceDeviation {
        site: site.to_owned(),
        kind: kind.name(),
        method,
        path,
        differences: differences
            .map(|each| InterfaceDifference { what: each.what, declared: each.old, seen: each.new })
            .collect(),
    }
}

fn time(seconds: u64) -> String {
    Timestamp::from_epoch_millis(seconds.saturating_mul(1_000)).rfc3339()
}

fn item(site: &str, inventory: &Inventory, found: &Found<'_>, now_s: u64) -> InterfaceItem {
    let endpoint = found.endpoint;
    let mut statuses = StatusClasses::default();
    for (status, answers) in &endpoint.statuses {
        let class = match status {
            200..300 => &mut statuses.success,
            ..400 => &mut statuses.redirection,
            400..500 => &mut statuses.client_error,
            500.. => &mut statuses.server_error,
        };
        *class += answers;
    }
    InterfaceItem {
        id: found.id(site),
        site: site.to_owned(),
        method: found.method.to_owned(),
        path: found.path.clone(),
        first_seen: time(endpoint.first_s),
        last_seen: time(endpoint.last_s),
        is_new: inventory.is_new(endpoint, now_s),
        is_idle: inventory.is_idle(endpoint, now_s),
        is_confirmed: endpoint.is_confirmed(),
        requests: endpoint.requests,
        refused: endpoint.refused,
        networks: endpoint.networks.count(),
        days: endpoint.days.count(),
        statuses,
        authentication: endpoint.authentication.keys().map(|kind| kind.name()).collect(),
        sensitive: endpoint.sensitive.keys().map(|kind| kind.name()).collect(),
        parameters: endpoint.parameters().count(),
        p50_ms: endpoint.latency_ms(50),
        p95_ms: endpoint.latency_ms(95),
    }
}

fn interface(item: InterfaceItem, endpoint: &Endpoint) -> Interface {
    fn counts<K: ToString>(counts: impl Iterator<Item = (K, u64)>) -> Vec<InterfaceCount> {
        counts.map(|(name, requests)| InterfaceCount { name: name.to_string(), requests }).collect()
    }
    let bounds = LATENCY_MS.iter().copied().map(Some).chain([None]);
    Interface {
        parameters: endpoint.parameters().map(|parameter| of_parameter(endpoint, parameter)).collect(),
        authentication: counts(endpoint.authentication.iter().map(|(kind, count)| (kind.name(), *count))),
        sensitive: counts(endpoint.sensitive.iter().map(|(kind, count)| (kind.name(), *count))),
        answers_inspected: endpoint.answers,
        request_types: counts(endpoint.request_types.iter().map(|(kind, count)| (kind, *count))),
        response_types: counts(endpoint.response_types.iter().map(|(kind, count)| (kind, *count))),
        status_codes: counts(endpoint.statuses.iter().map(|(status, count)| (status, *count))),
        latency: bounds
            .zip(endpoint.latency)
            .map(|(up_to_ms, requests)| InterfaceLatency { up_to_ms, requests })
            .collect(),
        endpoint: item,
    }
}

fn of_parameter(endpoint: &Endpoint, parameter: &Parameter) -> InterfaceParameter {
    let types = parameter.types.iter();
    InterfaceParameter {
        place: parameter.place.name(),
        name: parameter.name.clone(),
        required: endpoint.is_required(parameter),
        requests: parameter.requests,
        types: types.map(|(kind, values)| InterfaceType { kind: kind.name(), values: *values }).collect(),
        bytes_min: parameter.bytes.0,
        bytes_max: parameter.bytes.1,
        number_min: parameter.numbers.map(|(least, _)| least),
        number_max: parameter.numbers.map(|(_, most)| most),
    }
}

#[cfg(test)]
mod tests {
    use portcullis_discovery::{Details, NETWORK_SHARE, Observation, ParameterPlace, REQUESTS_MAX};

    use super::*;

    /// An unreadable file is not written over; a damaged one is set aside; what does not fit in is counted.
    #[test]
    fn files_and_counters() {
        let data = tempfile::tempdir().expect("a folder");
        let open = |registry: &Arc<Registry>| {
            let limits = Limits { endpoints_max: 100, ..Limits::default() };
            Discoverer::open("s", Some(data.path().to_owned()), limits, registry, Arc::default())
        };
        let kept = files::file(data.path(), "s");
        std::fs::create_dir_all(&kept).expect("a folder in place of the file");
        assert!(open(&Registry::new()).kept.data.is_none() && kept.is_dir());
        std::fs::remove_dir(&kept).expect("no folder");
        std::fs::write(&kept, "{\"format\":\"portcullis-discovery\"").expect("a damaged file");
        let registry = Registry::new();
        let mut discoverer = open(&registry);
        assert!(!kept.exists() && kept.with_file_name("s.json.damaged").exists());
        let most = REQUESTS_MAX / NETWORK_SHARE;
        for number in 0..most + 7 {
            let path = format!("/{}/a", ["x", "y"][number % 2].repeat(number % 30 + 1));
            let seen = Observation {
                network: 1,
                method: b"GET",
                path: path.as_bytes(),
                status: 200,
                ..Default::default()
            };
            let mut details = Details::default();
            details.note(ParameterPlace::Query, b"<name>", b"1");
            discoverer.site.observe(&seen, Some(details));
        }
        discoverer.turn(true);
        let text = registry.render();
        for line in [
            "portcullis_discovery_dropped_requests_total{site=\"s\"} 7",
            "portcullis_discovery_beyond_limit_total{site=\"s\",kind=\"parameter\"} ",
            &format!("portcullis_discovered_endpoints{{site=\"s\"}} {}", discoverer.inventory.len()),
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert!(discoverer.inventory.len() <= 25 && discoverer.inventory.beyond().endpoints > 0);
        assert_eq!(open(&Registry::new()).inventory.len(), discoverer.inventory.len());
    }
}
