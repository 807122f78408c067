//! Inspection agents that crash, freeze and say nothing sensible.

use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use portcullis_testkit::process::{Process, Signal};
use portcullis_testkit::proxy::Proxy;
use portcullis_testkit::{TestkitError, agent};

use super::Scenario;
use super::case::{Case, until_metric};
use crate::backend::Backend;
use crate::load::{Kind, Load, Plan, Sample, between, quantile};

const STATE: &str = "portcullis_agent_circuit_breaker_state";
/// That a request waits for the agent.
const TIMEOUT: Duration = Duration::from_millis(250);
/// The paths of the load: the agent fails closed at the first and open at the second.
const PATHS: &[&str] = &["/", "/open"];

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "agent-crash",
        what: "an agent is killed and comes back: closed passes nothing, open passes all",
        quick: true,
        run: crash,
    },
    Scenario {
        name: "agent-freeze",
        what: "the same with one that stops and goes on",
        quick: true,
        run: freeze,
    },
    Scenario {
        name: "agent-breaker",
        what: "an agent takes connections and says nothing: the breaker spares it, fails fast, closes",
        quick: true,
        run: breaker,
    },
];

fn crash(case: &mut Case) -> Result<(), TestkitError> {
    let (backend, folder) = (Backend::start()?, case.folder()?);
    let (socket, log) = (folder.file("agent.sock"), folder.file("agent.txt"));
    let address = agent::Address::Unix(socket.clone());
    let alive = agent::start(&address, &log)?;
    let (proxy, load) = serve(case, &backend, &socket)?;
    load.go_on(0.5);
    // Killed and waited for.
    drop(alive);
    let fault = Fault::watch(load, &proxy)?;
    let _agent = agent::start(&address, &log)?;
    fault.mended(case, &proxy, &backend)
}

fn freeze(case: &mut Case) -> Result<(), TestkitError> {
    let (backend, folder) = (Backend::start()?, case.folder()?);
    let socket = folder.file("agent.sock");
    let frozen = agent::start(&agent::Address::Unix(socket.clone()), &folder.file("agent.txt"))?;
    let (proxy, load) = serve(case, &backend, &socket)?;
    load.go_on(0.5);
    frozen.signal(Signal::STOP)?;
    until_stopped(&frozen)?;
    let fault = Fault::watch(load, &proxy)?;
    frozen.signal(Signal::CONT)?;
    fault.mended(case, &proxy, &backend)
}

fn breaker(case: &mut Case) -> Result<(), TestkitError> {
    let (backend, folder) = (Backend::start()?, case.folder()?);
    let socket = folder.file("agent.sock");
    let deaf = Deaf::start(&socket)?;
    let (proxy, load) = serve(case, &backend, &socket)?;
    let fault = Fault::watch(load, &proxy)?;
    // A connection of each worker until it opens, and then two probes each second.
    let (asked, allowed) = (deaf.asked(), 16 + 4 * fault.load.now().as_secs() as usize);
    case.figure("connections", asked);
    case.check(asked <= allowed, || format!("the agent was asked {asked} times, {allowed} are enough"));
    deaf.stop()?;
    let _agent = agent::start(&agent::Address::Unix(socket.clone()), &folder.file("agent.txt"))?;
    fault.mended(case, &proxy, &backend)
}

/// A proxy that asks the agent at `socket`, and load on it.
fn serve(case: &Case, backend: &Backend, socket: &Path) -> Result<(Proxy, Load), TestkitError> {
    let proxy = case.proxy(&format!(
        "[agents.echo]\naddress = \"unix:{}\"\ntimeout = \"{}ms\"\nbreaker = {{ open = \"1s\" }}\n\
         [[sites]]\nname = \"app\"\nhosts = [\"*\"]\nupstream = \"app\"\nagents = [\"echo\"]\n\
         [[sites.routes]]\npath = \"/open\"\nagents = [{{ name = \"echo\", failure = \"open\" }}]\n\
         [upstreams.app]\nendpoints = [\"http://{}\"]\n",
        socket.display(),
        TIMEOUT.as_millis(),
        backend.address()
    ))?;
    let kinds = [Kind::Get, Kind::Post, Kind::Get, Kind::Attack];
    let load = Plan::new(proxy.address()).paths(PATHS).kinds(&kinds).start();
    Ok((proxy, load))
}

/// An agent that does not decide, under load.
struct Fault {
    load: Load,
    /// It was broken by then.
    broken: Duration,
    /// The breaker was open then, and for a while.
    opened: Duration,
    still: Duration,
    /// Before it was mended.
    ended: Duration,
}

impl Fault {
    /// The agent is broken now: waits for the breaker to open, and for some probes that fail.
    fn watch(load: Load, proxy: &Proxy) -> Result<Fault, TestkitError> {
        let broken = load.now();
        until_metric(proxy, STATE, |state| state == 1.0)?;
        let opened = load.now();
        load.go_on(0.7); // less than the breaker stays open
        let still = load.now();
        load.go_on(2.0);
        let ended = load.now();
        Ok(Fault { load, broken, opened, still, ended })
    }

    /// The agent is well again: what must have held, and must now.
    fn mended(self, case: &mut Case, proxy: &Proxy, backend: &Backend) -> Result<(), TestkitError> {
        let Fault { load, broken, opened, still, ended } = self;
        until_metric(proxy, STATE, |state| state == 0.0)?;
        load.go_on(1.0);
        let samples = load.stop();
        let of = |path: usize| samples.iter().filter(move |sample| sample.path == path).cloned().collect();
        let (closed, open): (Vec<Sample>, Vec<Sample>) = (of(0), of(1));
        // Requests that still waited when it was mended may have been decided.
        let undecided = ended.saturating_sub(TIMEOUT);
        case.all("closed", &closed, (broken, undecided), &[503]);
        let leaked = between(&closed, broken, undecided).filter(|it| backend.arrivals(it.id) > 0).count();
        case.check(leaked == 0, || format!("{leaked} requests arrived that no agent had seen"));
        case.mostly("open", &open, (broken, ended), Kind::Get, 0.99);
        case.mostly("open POST", &open, (broken, ended), Kind::Post, 0.99);
        let refused = between(&closed, opened, still).filter(|sample| sample.is(503));
        let fast = quantile(refused.map(|sample| sample.took), 0.5);
        case.figure("fast fail p50", format!("{:.2} ms", fast.as_secs_f64() * 1e3));
        case.check_time(fast < Duration::from_millis(5), || {
            format!("failing takes {fast:?}, 5 ms is too much")
        });
        case.recovered("closed passes again", &closed, ended, Duration::from_secs(4));
        case.nothing_leaked(&samples, &[backend]);
        Ok(())
    }
}

/// A signal is sent before it has done its work.
fn until_stopped(agent: &Process) -> Result<(), TestkitError> {
    let path = PathBuf::from(format!("/proc/{}/stat", agent.id()));
    let began = Instant::now();
    loop {
        let stat = std::fs::read_to_string(&path).map_err(|source| TestkitError::io(&path, source))?;
        if stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T')) {
            return Ok(());
        }
        if began.elapsed() > Duration::from_secs(20) {
            return Err(TestkitError::Run(format!("the agent does not stop: {stat}")));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// An agent that takes connections and says nothing.
struct Deaf {
    socket: PathBuf,
    stop: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
    thread: JoinHandle<()>,
}

impl Deaf {
    fn start(socket: &Path) -> Result<Deaf, TestkitError> {
        let listener = UnixListener::bind(socket).map_err(|source| TestkitError::io(socket, source))?;
        let (stop, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (stopped, count) = (Arc::clone(&stop), Arc::clone(&asked));
        let thread = std::thread::spawn(move || {
            let mut kept = Vec::new();
            for stream in listener.incoming() {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                count.fetch_add(1, Ordering::Relaxed);
                kept.push(stream);
            }
        });
        Ok(Deaf { socket: socket.to_path_buf(), stop, asked, thread })
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    fn stop(self) -> Result<(), TestkitError> {
        self.stop.store(true, Ordering::Relaxed);
        let woken = std::os::unix::net::UnixStream::connect(&self.socket);
        woken.map_err(|source| TestkitError::io(&self.socket, source))?;
        self.thread.join().map_err(|_| TestkitError::Run("the silent agent panicked".to_owned()))
    }
}
