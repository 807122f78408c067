use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;
use portcullis_config::{Failure, Network};
use portcullis_event::{Action, Event, IntegrationKind, Redactor};
use portcullis_inspect::{Inspector, KeptFile, Memo, PolicyNames, Scratch};
use portcullis_metrics::{DataPlane, Registry, RouteMetrics, RuleCounters};
use portcullis_proxy::{BlockPage, Exclusions, LocalTime, OnRequest, RequestIds};

use crate::metrics::Metrics;

/// Sets of buffers that are kept for the next exchanges.
const SCRATCH_KEPT: usize = 64;

/// The settings that a reload replaces as a whole.
#[derive(Debug)]
pub struct Settings {
    /// The policy.
    pub inspector: Arc<Inspector>,
    /// Its names in events and metrics.
    pub names: PolicyNames,
    /// The policy where inspection cannot be done.
    pub failure: Failure,
    /// The page of a blocked request.
    pub block_page: BlockPage,
    /// For the events that no inspection makes.
    pub redactor: Redactor,
    pub(crate) exclusions: Exclusions,
    rule_matches: RuleCounters,
    route: RouteMetrics,
}

impl Settings {
    /// Settings that count in `registry`.
    pub fn new(
        registry: &Registry,
        inspector: Arc<Inspector>,
        names: PolicyNames,
        failure: Failure,
        block_page: BlockPage,
        redactor: Redactor,
        exclusions: Exclusions,
    ) -> Settings {
        let rule_matches = RuleCounters::new(registry, inspector.rule_ids().map(|id| id.0));
        let route = RouteMetrics::new(registry, &names.site, &names.route, Action::NAMES);
        Settings { inspector, names, failure, block_page, redactor, exclusions, rule_matches, route }
    }

    pub(crate) fn rule_matches(&self) -> &RuleCounters {
        &self.rule_matches
    }

    pub(crate) fn route(&self) -> &RouteMetrics {
        &self.route
    }
}

/// The limits of a service.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Networks whose peers may ask, and whose word on clients is believed.
    pub trusted: Vec<Network>,
    /// Connections at one time.
    pub connections_max: usize,
    /// Bytes of memory for the bodies of all exchanges.
    pub held_bytes_max: usize,
    /// For the rest of a message whose beginning has come.
    pub message_timeout: Duration,
    /// Between two messages of a connection.
    pub idle_timeout: Duration,
    /// For what is in flight after SIGTERM.
    pub drain_timeout: Duration,
    /// A body of which the asking server sent a part only is refused.
    pub refuses_cut_bodies: bool,
}

/// The receivers of what exchanges leave behind. They are called by the threads that serve and must not wait.
#[derive(Clone)]
pub struct Outputs {
    /// Takes a finished event; none: no events are made.
    pub on_event: Option<Arc<dyn Fn(Event) + Send + Sync>>,
    /// Takes the record of each exchange.
    pub on_request: Option<OnRequest>,
    /// Takes an uploaded file that is to be kept.
    pub on_file: Arc<dyn Fn(KeptFile) + Send + Sync>,
    /// Requests are kept with their events, and of their bodies so many bytes; 0: they are not.
    pub keep_request_bytes: usize,
}

impl fmt::Debug for Outputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outputs").finish_non_exhaustive()
    }
}

/// The state that all connections of one integration share.
#[derive(Debug)]
pub struct Service {
    pub(crate) kind: IntegrationKind,
    pub(crate) limits: Limits,
    pub(crate) outputs: Outputs,
    pub(crate) metrics: Metrics,
    pub(crate) local_time: LocalTime,
    settings: ArcSwap<Settings>,
    ids: Mutex<RequestIds>,
    #[allow(clippy::vec_box, reason = "exchanges take and give boxes")]
    scratch: Mutex<Vec<Box<Scratch>>>,
    /// What all of `scratch` remember together.
    memo: Memo,
    held: AtomicUsize,
}

impl Service {
    /// A service that nothing has asked yet.
    pub fn new(
        kind: IntegrationKind,
        settings: Settings,
        limits: Limits,
        outputs: Outputs,
        registry: &Registry,
        data_plane: DataPlane,
    ) -> Arc<Service> {
        data_plane.policy_generation.set(settings.names.generation as i64);
        Arc::new(Service {
            kind,
            limits,
            outputs,
            metrics: Metrics::new(registry, data_plane, kind),
            local_time: LocalTime::of_process(),
            settings: ArcSwap::from_pointee(settings),
            ids: Mutex::default(),
            scratch: Mutex::default(),
            memo: Memo::default(),
            held: AtomicUsize::new(0),
        })
    }

    /// Serves new exchanges by other settings; those in flight keep theirs.
    pub fn replace(&self, settings: Settings) {
        let metrics = &self.metrics.data_plane;
        metrics.policy_generation.set(settings.names.generation as i64);
        metrics.reloads_ok.inc();
        self.settings.store(Arc::new(settings));
    }

    /// Counts a reload that was refused.
    pub fn count_failed_reload(&self) {
        self.metrics.data_plane.reloads_failed.inc();
    }

    /// The number of the settings that serve.
    pub fn generation(&self) -> u64 {
        self.settings.load().names.generation
    }

    pub(crate) fn settings(&self) -> Arc<Settings> {
        self.settings.load_full()
    }

    pub(crate) fn trusts(&self, peer: IpAddr) -> bool {
        self.limits.trusted.iter().any(|network| network.contains(peer))
    }

    pub(crate) fn request_id(&self, time: SystemTime) -> String {
        locked(&self.ids).make(time)
    }

    pub(crate) fn secret(&self) -> [u8; 16] {
        locked(&self.ids).secret()
    }

    pub(crate) fn take_scratch(&self) -> Box<Scratch> {
        locked(&self.scratch).pop().unwrap_or_else(|| Box::new(Scratch::sharing(&self.memo)))
    }

    pub(crate) fn keep_scratch(&self, scratch: Box<Scratch>) {
        let mut kept = locked(&self.scratch);
        if kept.len() < SCRATCH_KEPT {
            kept.push(scratch);
        }
    }

    /// Changes the account of an exchange from `before` to `now` bytes; false if there is no room for more.
    pub(crate) fn hold(&self, before: usize, now: usize) -> bool {
        if now <= before {
            self.held.fetch_sub(before - now, Ordering::Relaxed);
            return true;
        }
        let more = now - before;
        let grow = |held: usize| held.checked_add(more).filter(|held| *held <= self.limits.held_bytes_max);
        self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grow).is_ok()
    }
}

/// Nothing here leaves a value half changed, so a poisoned lock holds good data.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
