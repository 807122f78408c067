//! The proxy as the rest of the process sees it: start, reload, drain.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use portcullis_config::Config;
use portcullis_event::{Action, ExceptionCause, ExceptionPolicy};
use portcullis_inspect::{Inspector, PolicyNames};
use portcullis_metrics::{RouteMetrics, catalogue};
use tokio::sync::watch;

use crate::state::{Generation, Services, Shared};
use crate::upstream::{Origin, keeper};
use crate::{StartError, listener, lookups, worker};

/// Between two looks at the address lists; a change counts after one or two.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A running proxy. Dropping it lets the workers run on; [`drain`](Proxy::drain) ends them.
pub struct Proxy {
    shared: Arc<Shared>,
    origin: Origin,
    addresses: Vec<SocketAddr>,
    /// What a reload cannot change.
    fixed: Vec<(String, SocketAddr)>,
    workers: Vec<JoinHandle<()>>,
    stop: watch::Sender<Option<Duration>>,
    /// Dropped, it ends the thread that watches files.
    _watching: mpsc::Sender<()>,
}

impl Proxy {
    /// Binds every listener and starts the workers. `inspectors` belong to the policies of `config`, by index.
    pub fn start(
        config: &Config,
        inspectors: &[Arc<Inspector>],
        services: Services,
    ) -> Result<Proxy, StartError> {
        let origin = Origin::default();
        let generation = Generation::build(config, inspectors, 1, &services, &origin, None)?;
        let mut sockets: Vec<Vec<std::net::TcpListener>> = Vec::new();
        for listener in &config.listeners {
            let bound = listener::bind(listener.address, config.workers).map_err(|error| {
                StartError::new(format!("cannot listen on {}: {}", listener.address, explain(&error)))
            })?;
            sockets.push(bound);
        }
        let addresses = sockets.iter().map(|all| all[0].local_addr()).collect::<io::Result<Vec<_>>>();
        let addresses = addresses.map_err(|error| StartError::new(error.to_string()))?;
        services.metrics.policy_generation.set(1);
        let unrouted = RouteMetrics::new(&services.registry, "", "", Action::NAMES);
        let by_policy = |cause: &ExceptionCause| {
            let registry = &services.registry;
            registry.enum_counters(&catalogue::EXCEPTIONS, &[cause.name()], ExceptionPolicy::NAMES)
        };
        let exceptions = ExceptionCause::ALL.iter().map(by_policy).collect();
        let nameless = || Arc::from("");
        let unrouted_names = PolicyNames { site: nameless(), route: nameless(), generation: 0 };
        let current = ArcSwap::from_pointee(generation);
        let lookups = lookups::Metrics::new(&services.registry);
        let shared = Arc::new(Shared {
            current,
            services,
            unrouted,
            unrouted_names,
            exceptions,
            lookups,
            started: Instant::now(),
        });
        let (watching, unwatched) = mpsc::channel();
        let watched = Arc::clone(&shared);
        let watcher = std::thread::Builder::new().name("lists".to_string());
        let watcher = watcher.spawn(move || watch_lists(&watched, &unwatched));
        watcher.map_err(|error| StartError::new(format!("cannot start a thread: {error}")))?;
        let (stop, stopped) = watch::channel(None);
        let mut workers = Vec::with_capacity(config.workers + 1);
        for number in 0..config.workers {
            let own: Vec<_> = sockets.iter_mut().filter_map(Vec::pop).collect();
            let (shared, stopped) = (Arc::clone(&shared), stopped.clone());
            let thread = std::thread::Builder::new()
                .name(format!("worker-{number}"))
                .spawn(move || worker::run(shared, number, own, stopped))
                .map_err(|error| StartError::new(format!("cannot start a worker: {error}")))?;
            workers.push(thread);
        }
        let keeper = (Arc::clone(&shared), stopped);
        let thread = std::thread::Builder::new()
            .name("keeper".to_string())
            .spawn(move || keeper::run(&keeper.0, keeper.1))
            .map_err(|error| StartError::new(format!("cannot start a thread: {error}")))?;
        workers.push(thread);
        let fixed = fixed(config);
        Ok(Proxy { shared, origin, addresses, fixed, workers, stop, _watching: watching })
    }

    /// Where it listens, by listener; a port 0 of the settings is the port the system chose.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Takes new settings. Requests in flight end with the old ones. On an error nothing has changed. Addresses of
    /// listeners stay what they are for the life of the process.
    pub fn reload(&self, config: &Config, inspectors: &[Arc<Inspector>]) -> Result<(), StartError> {
        let result = self.try_reload(config, inspectors);
        match &result {
            Ok(number) => {
                self.shared.services.metrics.policy_generation.set(*number as i64);
                self.shared.services.metrics.reloads_ok.inc();
            }
            Err(_) => self.count_failed_reload(),
        }
        result.map(drop)
    }

    /// Counts a reload that failed before it came here: the document or the rules were bad.
    pub fn count_failed_reload(&self) {
        self.shared.services.metrics.reloads_failed.inc();
    }

    fn try_reload(&self, config: &Config, inspectors: &[Arc<Inspector>]) -> Result<u64, StartError> {
        if fixed(config) != self.fixed {
            let message = "listeners were added, removed, renamed or moved, which takes a restart";
            return Err(StartError::new(message.to_string()));
        }
        let old = self.shared.current.load_full();
        let number = old.number + 1;
        let services = &self.shared.services;
        let new = Generation::build(config, inspectors, number, services, &self.origin, Some(&old))?;
        self.shared.current.store(Arc::new(new));
        Ok(number)
    }

    /// The number of the settings that serve, from 1.
    pub fn generation(&self) -> u64 {
        self.shared.current.load().number
    }

    /// Stops accepting, lets requests in flight end within the `drain` timeout of the settings, and returns when all
    /// workers have ended.
    pub fn drain(self) {
        let deadline = self.shared.current.load().timeouts.drain;
        let _ = self.stop.send(Some(deadline));
        for worker in self.workers {
            let _ = worker.join();
        }
    }
}

fn fixed(config: &Config) -> Vec<(String, SocketAddr)> {
    config.listeners.iter().map(|listener| (listener.name.clone(), listener.address)).collect()
}

/// Reads address lists that have changed, until the proxy is gone.
fn watch_lists(shared: &Shared, unwatched: &mpsc::Receiver<()>) {
    while unwatched.recv_timeout(LOOK_EVERY) == Err(mpsc::RecvTimeoutError::Timeout) {
        for list in shared.current.load_full().lists.values() {
            list.refresh(&*shared.services.say);
        }
    }
}

fn explain(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => "the address is in use by another process".to_string(),
        io::ErrorKind::PermissionDenied => "not permitted (ports below 1024 need a privilege)".to_string(),
        io::ErrorKind::AddrNotAvailable => "this machine does not have that address".to_string(),
        _ => error.to_string(),
    }
}
