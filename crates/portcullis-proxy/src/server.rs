//! The proxy as the rest of the process sees it: start, reload, drain.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use portcullis_config::{Config, Listener};
use portcullis_exchange::Exclusions;
use portcullis_inspect::Inspector;
use tokio::sync::watch;

use crate::ban_list::BanList;
use crate::generation::{Generation, Sources};
#[cfg(feature = "http3")]
use crate::listener::bind_udp;
use crate::listener::{Inherited, Sharing, Sockets, WorkerSockets, cannot_listen};
use crate::services::Services;
use crate::state::Shared;
use crate::status::Status;
use crate::upstream::{Origin, keeper};
use crate::worker::{self, Stop};
use crate::{StartError, affinity};

/// Between two looks at the files of address lists and certificates, and at bans; a change of a file counts
/// after one or two.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A running proxy. Dropping it lets the workers run on; [`drain`](Proxy::drain) ends them.
pub struct Proxy {
    shared: Arc<Shared>,
    addresses: Vec<SocketAddr>,
    /// The settings that a reload cannot change.
    fixed: Vec<(String, SocketAddr, bool)>,
    /// For a process that takes over.
    sockets: Vec<TcpListener>,
    workers: Vec<JoinHandle<()>>,
    stop: watch::Sender<Option<Stop>>,
    /// Dropped, it ends the thread that watches files.
    _watching: mpsc::Sender<()>,
}

impl Proxy {
    /// Binds every listener and starts the workers. `inspectors` belong to the policies of `config`, by
    /// index.
    pub fn start(
        config: &Config,
        inspectors: &[Arc<Inspector>],
        services: Services,
    ) -> Result<Proxy, StartError> {
        Proxy::start_on(config, inspectors, services, Inherited::default())
    }

    /// As [`start`](Proxy::start), on sockets that are bound already where there are some for an address.
    pub fn start_on(
        config: &Config,
        inspectors: &[Arc<Inspector>],
        services: Services,
        inherited: Inherited,
    ) -> Result<Proxy, StartError> {
        let origin = Origin::default();
        let generation = Generation::build(Sources {
            config,
            inspectors,
            number: 1,
            services: &services,
            origin: &origin,
            old: None,
        })?;
        let cores = config.worker_affinity.then(|| affinity::cores_of(config.workers)).transpose()?;
        let sharing = if inherited.takes_over { Sharing::Shared } else { Sharing::Exclusive };
        let mut sockets = open_steered(config, inherited, cores.as_deref(), &*services.say)?;
        let addresses = sockets.iter().map(|sockets| sockets.address).collect();
        Exclusions::turn_trials(None, generation.exclusions());
        let shared = Arc::new(Shared::new(config, services, origin, generation)?);
        let (watching, unwatched) = mpsc::channel();
        let watched = Arc::clone(&shared);
        spawn("files".to_string(), move || watch(&watched, &unwatched))?;
        let (stop, stopped) = watch::channel(None);
        let mut workers = Vec::with_capacity(config.workers + 1);
        for number in 0..config.workers {
            let own = config.listeners.iter().zip(&mut sockets);
            let own = own.map(|(listener, sockets)| worker_sockets(listener, sockets, number, sharing));
            let own = own.collect::<Result<Vec<_>, _>>()?;
            let (shared, stopped) = (Arc::clone(&shared), stopped.clone());
            let core = cores.as_ref().map(|cores| cores[number]);
            let name = format!("worker-{number}");
            workers.push(spawn(name, move || worker::run(shared, number, core, own, stopped))?);
        }
        let keeper = (Arc::clone(&shared), stopped);
        workers.push(spawn("keeper".to_string(), move || keeper::run(&keeper.0, keeper.1))?);
        let fixed = fixed(config);
        let sockets = sockets.into_iter().flat_map(|sockets| sockets.all).collect();
        Ok(Proxy { shared, addresses, fixed, sockets, workers, stop, _watching: watching })
    }

    /// The addresses that it listens on, by listener; a port 0 of the settings is the port the system chose.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Takes new settings. Requests in flight end with the old ones. On an error nothing has changed.
    /// Addresses of listeners stay what they are for the life of the process.
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
            let message =
                "listeners were added, removed, renamed, moved or changed in `http3`: restart to apply this";
            return Err(StartError::new(message.to_string()));
        }
        let old = self.shared.current.load_full();
        let number = old.number + 1;
        let (services, origin) = (&self.shared.services, &self.shared.origin);
        let sources = Sources { config, inspectors, number, services, origin, old: Some(&old) };
        let new = Generation::build(sources)?;
        Exclusions::turn_trials(old.exclusions(), new.exclusions());
        self.shared.current.store(Arc::new(new));
        Ok(number)
    }

    /// The number of the settings that serve, from 1.
    pub fn generation(&self) -> u64 {
        self.shared.current.load().number
    }

    /// Its listening sockets, for a process that takes over. They are to be served by it before this one
    /// drains.
    pub fn sockets(&self) -> io::Result<Vec<TcpListener>> {
        self.sockets.iter().map(TcpListener::try_clone).collect()
    }

    /// A counter for each worker that rises as long as the worker does not hang.
    pub fn beats(&self) -> impl Fn() -> Vec<u64> + Send + use<> {
        let shared = Arc::clone(&self.shared);
        move || shared.beats.iter().map(|beats| beats.load(Ordering::Relaxed)).collect()
    }

    /// Stops accepting, lets requests in flight end within the `drain` timeout of the settings, and returns
    /// when all workers have ended.
    pub fn drain(self) {
        self.end(false);
    }

    /// As [`drain`](Proxy::drain), after another process has taken over. What waits to be accepted is left to
    /// it, and clients that keep their connection are notified with the next answer, not in the middle of a
    /// request.
    pub fn hand_over(self) {
        self.end(true);
    }

    fn end(self, handed_over: bool) {
        drop(self.sockets);
        let drain = self.shared.current.load().timeouts.drain;
        let _ = self.stop.send(Some(Stop { drain, handed_over }));
        for worker in self.workers {
            let _ = worker.join();
        }
        let (shared, jails) = (&self.shared, &self.shared.current.load().controls.jails);
        if let Some(file) = &shared.ban_file {
            file.close(jails, shared.clock(Instant::now()), &*shared.services.say);
        }
    }

    /// The clients that are banned.
    pub fn bans(&self) -> BanList {
        BanList { shared: Arc::clone(&self.shared) }
    }

    /// The state of its parts, for those who look at it.
    pub fn status(&self) -> Status {
        Status::new(Arc::clone(&self.shared))
    }
}

/// Starts a thread of that name.
fn spawn<T: Send + 'static>(
    name: String,
    run: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, StartError> {
    let failed = |error| StartError::new(format!("cannot start the thread `{name}`: {error}"));
    std::thread::Builder::new().name(name.clone()).spawn(run).map_err(failed)
}

fn fixed(config: &Config) -> Vec<(String, SocketAddr, bool)> {
    let fixed = |listener: &Listener| (listener.name.clone(), listener.address, listener.http3);
    config.listeners.iter().map(fixed).collect()
}

/// The sockets of all listeners, in their order. An address that another process has is an error. Those of
/// one document may overlap, as `0.0.0.0:80` and `127.0.0.1:80` do: the wider one is bound first, which tells
/// whether anybody else is there.
fn open_all(config: &Config, inherited: &mut Vec<TcpListener>) -> Result<Vec<Sockets>, StartError> {
    let mut order: Vec<usize> = (0..config.listeners.len()).collect();
    order.sort_by_key(|&index| !config.listeners[index].address.ip().is_unspecified());
    let mut opened: Vec<(usize, Sockets)> = Vec::with_capacity(order.len());
    for index in order {
        let address = config.listeners[index].address;
        let is_ours = |own: SocketAddr| own.port() == address.port() && own.ip().is_unspecified();
        let sharing = match opened.iter().any(|(_, sockets)| is_ours(sockets.address)) {
            true => Sharing::Shared,
            false => Sharing::Exclusive,
        };
        let sockets = Sockets::open(address, config.workers, inherited, sharing);
        let sockets = sockets.map_err(|error| StartError::new(cannot_listen(address, &error)))?;
        opened.push((index, sockets));
    }
    opened.sort_by_key(|&(index, _)| index);
    Ok(opened.into_iter().map(|(_, sockets)| sockets).collect())
}

/// The sockets of all listeners, each on its core where workers have one.
fn open_steered(
    config: &Config,
    inherited: Inherited,
    cores: Option<&[usize]>,
    say: &(dyn Fn(&str) + Send + Sync),
) -> Result<Vec<Sockets>, StartError> {
    let mut inherited = inherited.sockets;
    let mut sockets = Vec::new();
    for opened in open_all(config, &mut inherited)? {
        let address = opened.address;
        let steered = opened.steer(cores);
        let steered = steered.map_err(|error| StartError::new(cannot_listen(address, &error)))?;
        if cores.is_some() && !steered {
            say(&format!(
                "workers share the inherited socket for {address}: its connections are not steered to cores"
            ));
        }
        sockets.push(opened);
    }
    for unused in inherited.iter().filter_map(|socket| socket.local_addr().ok()) {
        say(&format!("an inherited socket on {unused} is not used by any listener"));
    }
    Ok(sockets)
}

/// The sockets of a listener that a worker serves. `sharing` is that of the first worker's socket for HTTP/3.
fn worker_sockets(
    listener: &Listener,
    sockets: &mut Sockets,
    number: usize,
    sharing: Sharing,
) -> Result<WorkerSockets, StartError> {
    #[cfg(not(feature = "http3"))]
    let _ = (listener, sharing);
    #[cfg(feature = "http3")]
    let udp = {
        let sharing = if number == 0 { sharing } else { Sharing::Shared };
        listener.http3.then(|| bind_udp(sockets.address, sharing)).transpose().map_err(|error| {
            StartError::new(format!("HTTP/3 (UDP): {}", cannot_listen(sockets.address, &error)))
        })?
    };
    Ok(WorkerSockets {
        tcp: sockets.of_worker(number),
        #[cfg(feature = "http3")]
        udp,
    })
}

/// Reads address lists and certificates that have changed and writes bans down, until the proxy is gone.
fn watch(shared: &Shared, unwatched: &mpsc::Receiver<()>) {
    while unwatched.recv_timeout(LOOK_EVERY) == Err(mpsc::RecvTimeoutError::Timeout) {
        let (generation, say) = (shared.current.load_full(), &*shared.services.say);
        for list in generation.controls.lists.values() {
            list.refresh(say);
        }
        generation.geo.refresh(say);
        for tls in generation.listeners.iter().filter_map(|listener| listener.tls.as_ref()) {
            tls.refresh(say);
        }
        for slot in &generation.groups {
            if let Some(tls) = &slot.group().tls {
                tls.refresh(say);
            }
        }
        for tls in generation.agents.iter().filter_map(|agent| agent.tls.as_ref()) {
            tls.refresh(say);
        }
        let now = shared.clock(Instant::now());
        for table in generation.controls.jails.values() {
            table.measure(now);
        }
        if let Some(file) = &shared.ban_file {
            file.keep(&generation.controls.jails, now, say);
        }
    }
}
