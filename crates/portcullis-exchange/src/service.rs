//! The state that all exchanges of one integration share.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use arc_swap::ArcSwap;
use portcullis_event::IntegrationKind;
use portcullis_inspect::{Memo, Scratch};
use portcullis_metrics::{DataPlane, Registry};

use crate::exclusions::Exclusions;
use crate::local_time::LocalTime;
use crate::metrics::{Metrics, Unanswered};
use crate::outputs::Outputs;
use crate::request_id::RequestIds;
use crate::settings::Settings;

/// Sets of buffers that are kept for the next exchanges.
const SCRATCH_KEPT: usize = 64;

/// The limits of all exchanges together.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of memory for the bodies of all exchanges.
    pub held_bytes_max: usize,
    /// A body of which only a part was shown is refused.
    pub refuses_cut_bodies: bool,
}

/// The state that all exchanges of one integration share.
#[derive(Debug)]
pub struct Service {
    pub(crate) kind: IntegrationKind,
    pub(crate) limits: Limits,
    pub(crate) outputs: Outputs,
    pub(crate) metrics: Metrics,
    pub(crate) local_time: LocalTime,
    settings: ArcSwap<Settings>,
    ids: Mutex<RequestIds>,
    scratch: Mutex<Vec<Scratch>>,
    /// Bytes that all of `scratch` remember together.
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
        Exclusions::turn_trials(None, [&settings.exclusions]);
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
        Exclusions::turn_trials([&self.settings.load().exclusions], [&settings.exclusions]);
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

    /// Counts a question that gets no verdict.
    pub fn unanswered(&self, why: Unanswered) {
        self.metrics.unanswered(why);
    }

    /// Counters of the process.
    pub fn counters(&self) -> &DataPlane {
        &self.metrics.data_plane
    }

    /// The kind of integration.
    pub fn kind(&self) -> IntegrationKind {
        self.kind
    }

    pub(crate) fn request_id(&self, time: SystemTime) -> String {
        locked(&self.ids).make(time)
    }

    pub(crate) fn secret(&self) -> [u8; 16] {
        locked(&self.ids).secret()
    }

    pub(crate) fn take_scratch(&self) -> Scratch {
        locked(&self.scratch).pop().unwrap_or_else(|| Scratch::sharing(&self.memo))
    }

    pub(crate) fn keep_scratch(&self, scratch: Scratch) {
        let mut kept = locked(&self.scratch);
        if kept.len() < SCRATCH_KEPT {
            kept.push(scratch);
        }
    }

    /// Changes the account of an exchange from `before` to `now` bytes; false if there is no room for more.
    pub fn hold(&self, before: usize, now: usize) -> bool {
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
