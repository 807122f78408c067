//! Discovery of sites' interfaces: a thread that takes in what the workers have seen, keeps it in the data
//! folder, and reports endpoints that are new or gone; and what the admin API shows of it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use portcullis_api::interfaces::{
    Interface, InterfaceCount, InterfaceItem, InterfaceLatency, InterfaceList, InterfaceParameter,
    InterfaceSite, InterfaceType, Interfaces, StatusClasses,
};
use portcullis_discovery::{
    Beyond, Endpoint, Found, Inventory, LATENCY_MS, Limits, Parameter, Site, openapi,
};
use portcullis_event::Timestamp;
use portcullis_metrics::{Counter, Gauge, Registry, catalogue};

use crate::discovery_files as files;
use crate::learned_files;

/// Between two looks at what the workers have seen.
const TICK: Duration = Duration::from_secs(2);
/// Between two times that the inventory is written, and that it is looked through for news.
const WRITE_EVERY: Duration = Duration::from_secs(60);
/// Between two reports of the same trouble.
const TELL_EVERY: Duration = Duration::from_secs(3_600);
const DAY_S: u64 = 86_400;

type Sites = Arc<Mutex<BTreeMap<String, Discoverer>>>;

/// All sites that are discovered. Kept over reloads.
pub struct Discovery {
    data: Option<PathBuf>,
    registry: Arc<Registry>,
    sites: Sites,
    thread: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Discovery {
    /// None is discovered yet.
    pub fn new(data: Option<PathBuf>, registry: Arc<Registry>) -> Discovery {
        Discovery { data, registry, sites: Arc::default(), thread: None }
    }

    /// What the admin API shows.
    pub fn shown(&self) -> Arc<dyn Interfaces> {
        Arc::new(Desk(Arc::clone(&self.sites)))
    }

    /// Where the exchanges of a site are shown, with what was kept of it.
    pub fn site_of(&mut self, settings: &portcullis_config::Discovery) -> Arc<Site> {
        let limits = Limits {
            endpoints_max: settings.max,
            learning_s: u64::from(settings.learning_days) * DAY_S,
            idle_s: u64::from(settings.idle_days) * DAY_S,
        };
        let mut sites = locked(&self.sites);
        let discoverer = sites
            .entry(settings.site.clone())
            .or_insert_with(|| Discoverer::open(&settings.site, self.data.clone(), limits, &self.registry));
        discoverer.inventory.set_limits(limits);
        let site = Arc::clone(&discoverer.site);
        drop(sites);
        if self.thread.is_none() {
            let (stop, stopped) = channel();
            let sites = Arc::clone(&self.sites);
            let thread =
                std::thread::Builder::new().name("discover".to_owned()).spawn(move || work(&sites, &stopped));
            match thread {
                Ok(thread) => self.thread = Some((stop, thread)),
                Err(error) => {
                    eprintln!(
                        "portcullis: interfaces are not discovered: no thread could be started: {error}"
                    )
                }
            }
        }
        site
    }
}

impl Drop for Discovery {
    /// Writes what was found last.
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.thread.take() {
            drop(stop);
            let _ = thread.join();
        }
    }
}

fn locked(sites: &Sites) -> MutexGuard<'_, BTreeMap<String, Discoverer>> {
    sites.lock().unwrap_or_else(PoisonError::into_inner)
}

fn work(sites: &Sites, stopped: &Receiver<()>) {
    loop {
        let ends = stopped.recv_timeout(TICK) != Err(RecvTimeoutError::Timeout);
        for discoverer in locked(sites).values_mut() {
            discoverer.turn(ends, now_s());
        }
        if ends {
            return;
        }
    }
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// One site.
struct Discoverer {
    name: String,
    site: Arc<Site>,
    inventory: Inventory,
    data: Option<PathBuf>,
    /// Something was found that is not written.
    is_new: bool,
    looked: Instant,
    told: Option<Instant>,
    counted: Beyond,
    endpoints: Gauge,
    beyond_endpoints: Counter,
    beyond_parameters: Counter,
    dropped: Counter,
}

impl Discoverer {
    fn open(name: &str, mut data: Option<PathBuf>, limits: Limits, registry: &Registry) -> Discoverer {
        let path = data.as_ref().map(|data| files::file(data, name));
        let text = path.as_ref().map(|path| learned_files::read(path).map_err(|error| (path, error)));
        let text = text.transpose().map(Option::flatten).unwrap_or_else(|(path, error)| {
            eprintln!(
                "portcullis: site {name}: {}: {error}; discovery begins anew, and nothing is written until the next \
                 start, so that the file stays as it is",
                path.display()
            );
            data = None;
            None
        });
        let inventory = path.as_ref().zip(text).and_then(|(path, text)| {
            Inventory::from_text(&text, limits)
                .inspect_err(|error| match learned_files::set_aside(path) {
                    Ok(aside) => eprintln!(
                        "portcullis: site {name}: {}: {error}; discovery begins anew, the file is {} now",
                        path.display(),
                        aside.display()
                    ),
                    Err(moving) => eprintln!(
                        "portcullis: site {name}: {}: {error}; it cannot be set aside: {moving}",
                        path.display()
                    ),
                })
                .ok()
        });
        let inventory = inventory.unwrap_or_else(|| Inventory::new(limits));
        let beyond = |kind| registry.counter(&catalogue::DISCOVERY_BEYOND_LIMIT, &[name, kind]);
        let discoverer = Discoverer {
            name: name.to_owned(),
            site: Arc::default(),
            data,
            is_new: false,
            looked: Instant::now(),
            told: None,
            counted: inventory.beyond(),
            endpoints: registry.gauge(&catalogue::DISCOVERED_ENDPOINTS, &[name]),
            beyond_endpoints: beyond("endpoint"),
            beyond_parameters: beyond("parameter"),
            dropped: registry.counter(&catalogue::DISCOVERY_DROPPED, &[name]),
            inventory,
        };
        discoverer.endpoints.set(discoverer.inventory.len() as i64);
        discoverer
    }

    /// Takes in what waits; looks for news and writes, if it is time or the last one.
    fn turn(&mut self, is_last: bool, now_s: u64) {
        let batch = self.site.take();
        self.dropped.add(batch.dropped);
        if !batch.is_empty() {
            self.inventory.learn(&batch);
            self.is_new = true;
            self.endpoints.set(self.inventory.len() as i64);
            let beyond = self.inventory.beyond();
            let before = std::mem::replace(&mut self.counted, beyond);
            self.beyond_endpoints.add(beyond.endpoints.saturating_sub(before.endpoints));
            self.beyond_parameters.add(beyond.parameters.saturating_sub(before.parameters));
        }
        if !is_last && self.looked.elapsed() < WRITE_EVERY {
            return;
        }
        self.looked = Instant::now();
        for news in self.inventory.news(now_s) {
            self.is_new = true;
            let what = match news.is_new {
                true => "a new endpoint".to_owned(),
                false => format!("nobody has asked for {} days", self.inventory.limits().idle_s / DAY_S),
            };
            eprintln!("portcullis: site {}: {what}: {} {}", self.name, news.method, news.path);
        }
        if self.is_new {
            self.write();
        }
    }

    fn write(&mut self) {
        let Some(data) = &self.data else { return };
        match learned_files::write(&files::file(data, &self.name), &self.inventory.to_text()) {
            Ok(()) => (self.is_new, self.told) = (false, None),
            // Not more often than this.
            Err(error) if self.told.is_none_or(|told| told.elapsed() >= TELL_EVERY) => {
                self.told = Some(Instant::now());
                eprintln!(
                    "portcullis: site {}: the inventory of interfaces cannot be written to {}: {error}",
                    self.name,
                    files::folder(data).display()
                );
            }
            Err(_) => {}
        }
    }
}

/// The inventories, as the admin API shows them.
struct Desk(Sites);

impl Interfaces for Desk {
    fn list(&self, site: Option<&str>, text: &str) -> InterfaceList {
        let (text, now_s) = (text.to_lowercase(), now_s());
        let mut list = InterfaceList::default();
        for (name, discoverer) in
            locked(&self.0).iter().filter(|(name, _)| site.is_none_or(|site| site == *name))
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
            });
        }
        list
    }

    fn one(&self, id: &str) -> Option<Interface> {
        let sites = locked(&self.0);
        sites.iter().find_map(|(name, discoverer)| {
            let inventory = &discoverer.inventory;
            let found = inventory.endpoints().find(|found| found.id(name) == id)?;
            Some(interface(item(name, inventory, &found, now_s()), found.endpoint))
        })
    }

    fn document(&self, site: &str) -> Option<String> {
        let sites = locked(&self.0);
        Some(openapi(&sites.get(site)?.inventory, site).to_string())
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
        let open = |registry: &Registry| {
            let limits = Limits { endpoints_max: 100, ..Limits::default() };
            Discoverer::open("s", Some(data.path().to_owned()), limits, registry)
        };
        let kept = files::file(data.path(), "s");
        std::fs::create_dir_all(&kept).expect("a folder in place of the file");
        assert!(open(&Registry::new()).data.is_none() && kept.is_dir());
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
        discoverer.turn(true, 0);
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
