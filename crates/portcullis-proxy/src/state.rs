//! State beside the settings: shared by all workers, and owned by one of them.

use std::cell::{Cell, RefCell, RefMut};
use std::collections::HashMap;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use portcullis_config::Config;
use portcullis_event::{Action, Event};
use portcullis_exchange::{Repeats, RequestIds, exception_counters};
use portcullis_inspect::{Memo, PolicyNames, Scratch};
use portcullis_metrics::{Counter, EnumCounters, RouteMetrics, catalogue};
use portcullis_tls::acme::Challenges;
use tokio::sync::Notify;

use crate::StartError;
use crate::access::BanFile;
use crate::agents::Links;
use crate::allocator;
use crate::beside::Beside;
use crate::budget::Budget;
use crate::buffer::Spares;
use crate::descriptors::Descriptors;
use crate::generation::Generation;
use crate::lookups::{self, Lookups};
use crate::network::NetworkKey;
use crate::overload::Overload;
use crate::pause::Pauses;
use crate::services::Services;
use crate::timer::Timers;
use crate::upstream::{Origin as GroupOrigin, Pool, Sessions};

/// Buffers a worker keeps for later inspections.
const SCRATCH_MAX: usize = 32;

/// State that all workers share.
pub(crate) struct Shared {
    pub(crate) current: ArcSwap<Generation>,
    pub(crate) services: Services,
    /// Requests that belong to no site or no route.
    pub(crate) unrouted: RouteMetrics,
    /// The names events give those.
    pub(crate) unrouted_names: PolicyNames,
    /// By cause, then by policy.
    pub(crate) exceptions: Vec<EnumCounters>,
    pub(crate) lookups: lookups::Metrics,
    /// The proofs for ACME authorities.
    pub(crate) challenges: Arc<Challenges>,
    /// The file that keeps bans over a restart.
    pub(crate) ban_file: Option<BanFile>,
    /// The instant at which the clock of rate limits and bans begins.
    pub(crate) started: Instant,
    /// The source of numbers and clocks for groups of endpoints.
    pub(crate) origin: GroupOrigin,
    /// Memory for bodies.
    pub(crate) budget: Arc<Budget>,
    /// The accounts of processor time by client network.
    pub(crate) overload: Overload,
    /// The threads that inspect large bodies.
    pub(crate) beside: Beside,
    /// Connections that were closed, or not taken, for want of room.
    pub(crate) connections_shed: EnumCounters,
    /// Connections that could not be taken for want of descriptors or memory of the system.
    pub(crate) descriptors: Descriptors,
    /// By worker: how often it has looked after its chores.
    pub(crate) beats: Vec<AtomicU64>,
}

impl Shared {
    /// The state at the start, with `generation` as the current one.
    pub(crate) fn new(
        config: &Config,
        services: Services,
        origin: GroupOrigin,
        generation: Generation,
    ) -> Result<Shared, StartError> {
        services.metrics.policy_generation.set(1);
        let unrouted = RouteMetrics::new(&services.registry, "", "", Action::NAMES);
        let exceptions = exception_counters(&services.registry);
        let nameless = || Arc::from("");
        let unrouted_names = PolicyNames { site: nameless(), route: nameless(), generation: 0 };
        let current = ArcSwap::from_pointee(generation);
        let lookups = lookups::Metrics::new(&services.registry);
        let challenges = Arc::new(Challenges::new(&services.registry));
        let ban_file = config.ban_file.as_deref().map(|path| {
            let jails = &current.load().controls.jails;
            BanFile::open(path, &services.registry, jails, 1, &*services.say)
        });
        let budget = Arc::new(Budget::new(&current.load().caps, &services.registry));
        let overload = Overload::new(config.workers, &current.load().caps, &services.registry);
        let connections_shed = services.registry.enum_counters(&catalogue::CONNECTIONS_SHED, &[], SHED);
        let descriptors = Descriptors::new(&services.registry);
        let beside = Beside::start(config.workers, &services.registry)
            .map_err(|error| StartError::new(format!("cannot start a thread: {error}")))?;
        Ok(Shared {
            current,
            budget,
            overload,
            beside,
            connections_shed,
            descriptors,
            ban_file,
            services,
            unrouted,
            unrouted_names,
            exceptions,
            lookups,
            challenges,
            started: origin.started(),
            origin,
            beats: (0..config.workers).map(|_| AtomicU64::new(0)).collect(),
        })
    }

    /// Nanoseconds of that clock, never 0.
    pub(crate) fn clock(&self, at: Instant) -> u64 {
        let since = at.saturating_duration_since(self.started).as_nanos();
        u64::try_from(since).unwrap_or(u64::MAX - 1) + 1
    }
}

/// State that one worker owns. Connections of other workers never see it, so nothing in it is locked.
pub(crate) struct Worker {
    pub(crate) shared: Arc<Shared>,
    pub(crate) timers: Timers,
    pub(crate) spares: Rc<Spares>,
    pub(crate) pool: RefCell<Pool>,
    pub(crate) sessions: RefCell<Sessions>,
    pub(crate) lookups: Lookups,
    pub(crate) agents: Links,
    pub(crate) draining: Cell<bool>,
    /// Another process has taken over: connections end with their next answer.
    pub(crate) handed_over: Cell<bool>,
    number: usize,
    pub(crate) pauses: Pauses,
    pub(crate) request_ids: RefCell<RequestIds>,
    repeats: RefCell<Repeats>,
    /// Buffers of finished inspections, for the next ones.
    scratch: RefCell<Vec<Scratch>>,
    /// The number of them that were not used since they were last looked through.
    scratch_unused: Cell<usize>,
    /// The prefilter results that they share.
    memo: Memo,
    connections: Cell<usize>,
    /// Connections of each client network.
    networks: RefCell<HashMap<NetworkKey, usize>>,
    accepted: Counter,
    /// Told whenever a connection ends.
    pub(crate) ended: Notify,
}

impl Worker {
    /// Worker number `number`.
    pub(crate) fn new(shared: Arc<Shared>, number: usize) -> Rc<Self> {
        let above = shared.services.on_event.as_ref().map_or(0, |_| shared.services.coalesce_above);
        let coalesced = shared.services.registry.counter(&catalogue::EVENTS_COALESCED, &[]);
        let accepted =
            shared.services.registry.counter(&catalogue::WORKER_CONNECTIONS, &[&number.to_string()]);
        Rc::new(Worker {
            shared,
            timers: Timers::default(),
            spares: Rc::default(),
            pool: RefCell::new(Pool::new(number as u64)),
            sessions: RefCell::default(),
            lookups: Lookups::default(),
            agents: Links::default(),
            draining: Cell::new(false),
            handed_over: Cell::new(false),
            number,
            pauses: Pauses::default(),
            request_ids: RefCell::default(),
            repeats: RefCell::new(Repeats::new(above, coalesced)),
            scratch: RefCell::default(),
            scratch_unused: Cell::default(),
            memo: Memo::default(),
            connections: Cell::new(0),
            networks: RefCell::default(),
            accepted,
            ended: Notify::new(),
        })
    }

    /// Counts a connection of a client network for as long as the result lives.
    pub(crate) fn count(self: &Rc<Self>, network: Option<NetworkKey>) -> Counted {
        self.connections.set(self.connections.get() + 1);
        self.accepted.inc();
        self.shared.services.metrics.connections_active.add(1);
        self.enter(network);
        Counted { worker: Rc::clone(self), network: Cell::new(network) }
    }

    /// The network that a connection of `peer` counts for; none for a trusted proxy, which stands for many.
    pub(crate) fn network_of(&self, peer: IpAddr) -> Option<NetworkKey> {
        let trusted = self.shared.current.load().client_address.trusts(peer);
        (!trusted).then(|| self.shared.budget.network_of(peer))
    }

    /// True if a client network may have one more connection; if it has its share, its oldest ones without a
    /// request make room.
    pub(crate) fn admits(&self, network: Option<NetworkKey>) -> bool {
        let Some(key) = network else { return true };
        let overload = &self.shared.overload;
        if overload.is_overloaded()
            && overload.is_too_much(overload.key(key), self.shared.clock(Instant::now()))
        {
            self.shared.connections_shed.inc(Shed::Overload as usize);
            return false;
        }
        let most = self.shared.current.load().caps.network_connections_max;
        if self.connections_of(key) < most {
            return true;
        }
        let ended = self.timers.evict(Some(key), |_| 0, evicted_at_once(most));
        self.shared.connections_shed.add(Shed::Idle as usize, ended as u64);
        if ended == 0 {
            self.shared.connections_shed.inc(Shed::Network as usize);
        }
        ended > 0
    }

    /// Has the client network with the most connections give some up that carry no request.
    pub(crate) fn make_room(&self) {
        let most = evicted_at_once(self.connections.get());
        let ended = self.timers.evict(None, |key| self.connections_of(key), most);
        self.shared.connections_shed.add(Shed::Idle as usize, ended as u64);
    }

    /// Open connections of a client network.
    pub(crate) fn connections_of(&self, key: NetworkKey) -> usize {
        self.networks.borrow().get(&key).copied().unwrap_or(0)
    }

    fn enter(&self, network: Option<NetworkKey>) {
        if let Some(key) = network {
            *self.networks.borrow_mut().entry(key).or_insert(0) += 1;
        }
    }

    fn leave(&self, network: Option<NetworkKey>) {
        let Some(key) = network else { return };
        let mut networks = self.networks.borrow_mut();
        if let Some(count) = networks.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                networks.remove(&key);
            }
        }
    }

    /// Buffers for an inspection.
    pub(crate) fn take_scratch(&self) -> Scratch {
        let mut kept = self.scratch.borrow_mut();
        let scratch = kept.pop().unwrap_or_else(|| Scratch::sharing(&self.memo));
        self.scratch_unused.set(self.scratch_unused.get().min(kept.len()));
        scratch
    }

    /// Gives up half of the buffers that were not needed since the last time, the last of them too: large
    /// bodies have made them large.
    fn drop_unused_scratch(&self) {
        let mut kept = self.scratch.borrow_mut();
        let unused = self.scratch_unused.get().min(kept.len());
        drop(kept.drain(..unused.div_ceil(2)));
        self.scratch_unused.set(kept.len());
    }

    /// Gives buffers back. A few are kept: as many as inspections run at one time in ordinary traffic.
    pub(crate) fn keep_scratch(&self, scratch: Scratch) {
        let mut kept = self.scratch.borrow_mut();
        if kept.len() < SCRATCH_MAX {
            kept.push(scratch);
        }
    }

    /// The events that repeat others at this moment, without those of a second that is over: these are given
    /// out.
    pub(crate) fn repeats(&self, now: Instant) -> RefMut<'_, Repeats> {
        let mut repeats = self.repeats.borrow_mut();
        if repeats.is_on() {
            let second = self.shared.clock(now) / 1_000_000_000;
            self.give_out(repeats.due(second));
        }
        repeats
    }

    /// Gives out the events that are held back.
    pub(crate) fn end_repeats(&self) {
        let held = self.repeats.borrow_mut().flush();
        self.give_out(held);
    }

    fn give_out(&self, events: Vec<Event>) {
        if let Some(on_event) = &self.shared.services.on_event {
            events.into_iter().for_each(|event| on_event(event));
        }
    }

    /// Open client connections.
    pub(crate) fn connections(&self) -> usize {
        self.connections.get()
    }

    /// Takes note of how late a tick came, for work of the worker.
    pub(crate) fn came(&self, late: Duration) {
        let shared = &self.shared;
        if !shared.overload.worker_came(self.number, late, shared.clock(Instant::now())) {
            return;
        }
        let line = match shared.overload.is_overloaded() {
            true => {
                "workers cannot keep up: requests of the client networks that cost the most are refused \
                 (limits.overload_lag, portcullis_overload_refused_total)"
            }
            false => "workers keep up again: no client network is refused any more",
        };
        (shared.services.say)(line);
    }

    /// The chores of a tick: expired timers, and now and then old upstream connections.
    pub(crate) fn tick(&self, now: Instant, sweep: bool) {
        self.shared.beats[self.number].fetch_add(1, Ordering::Relaxed);
        self.timers.expire(now);
        drop(self.repeats(now));
        if self.shared.budget.look(now) {
            // What was given back is to reach the system.
            allocator::touch();
        }
        if sweep {
            let generation = self.shared.current.load();
            self.shared.budget.resize(&generation.caps);
            self.shared.overload.resize(&generation.caps);
            self.pool.borrow_mut().sweep(now);
            self.sessions.borrow_mut().sweep(now);
            self.agents.sweep();
            self.drop_unused_scratch();
            allocator::touch();
        }
    }
}

/// Connections that are ended together, where `all` are too many: looking for them takes time.
fn evicted_at_once(all: usize) -> usize {
    (all / 64).max(1)
}

/// Why a connection was closed, or not taken.
#[derive(Clone, Copy, Debug)]
enum Shed {
    /// It carried no request, and others needed its place.
    Idle,
    /// Its client network has its share.
    Network,
    /// Its client network has cost the most of a processor that cannot keep up.
    Overload,
}

/// Label values of `portcullis_connections_shed_total`.
pub(crate) const SHED: &[&str] = &["idle", "network", "overload"];

/// A counted connection.
pub(crate) struct Counted {
    worker: Rc<Worker>,
    network: Cell<Option<NetworkKey>>,
}

impl Counted {
    /// The client network that it counts for.
    pub(crate) fn network(&self) -> Option<NetworkKey> {
        self.network.get()
    }

    /// It turned out to be of another client. False if that client's network may not have it.
    pub(crate) fn is_of(&self, peer: IpAddr) -> bool {
        let network = self.worker.network_of(peer);
        let admitted = self.worker.admits(network);
        self.worker.enter(network);
        self.worker.leave(self.network.replace(network));
        admitted
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.worker.connections.set(self.worker.connections.get() - 1);
        self.worker.leave(self.network.get());
        self.worker.shared.services.metrics.connections_active.add(-1);
        self.worker.ended.notify_one();
    }
}
