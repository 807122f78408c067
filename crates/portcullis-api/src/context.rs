//! State that all routes share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portcullis_event::Timestamp;
use portcullis_identity::{Identities, IdentityError, Throttle};
use portcullis_metrics::{EnumCounters, catalogue};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::oidc::PendingLogins;
use crate::problem::{Kind, Problem, of_identity};
use crate::routes::login::Failures;
use crate::routes::oidc;
use crate::settings::{Limits, Supplies};
use crate::supplies::Trials;

/// Reasons of failed logins, as they are counted.
pub(crate) const LOGIN_FAILURES: [&str; 4] = ["wrong", "throttled", "busy", "setup"];

/// State that all routes share.
pub(crate) struct Context {
    pub(crate) supplies: Supplies,
    pub(crate) limits: Limits,
    pub(crate) requests: Arc<Semaphore>,
    /// Bodies with a whole document that are being read.
    pub(crate) document_bodies: Arc<Semaphore>,
    /// Queries of the event store of this process.
    pub(crate) queries: Arc<Semaphore>,
    /// Queries of the database of events.
    pub(crate) database_queries: Arc<Semaphore>,
    /// The time of the last complaint about that database.
    pub(crate) database_complained_ms: Mutex<Option<u64>>,
    trials: Arc<Semaphore>,
    /// Test events on their way, each as long as its receiver takes.
    sink_tests: Arc<Semaphore>,
    /// Looks at the document: one at a time. The others wait here, not on threads, which logins and queries
    /// need, too.
    document: Arc<Semaphore>,
    /// The change of the document that is made; it may take as long as a reload does.
    change: Arc<Semaphore>,
    /// Changes of the document that are made or wait.
    changes: Arc<Semaphore>,
    /// Looks of streams for new events: one at a time, beside the queries.
    pub(crate) looks: Arc<Semaphore>,
    pub(crate) streams: Arc<Semaphore>,
    /// Streams by identity; those without one are not listed.
    pub(crate) streams_of: Mutex<HashMap<String, usize>>,
    pub(crate) throttle: Mutex<Throttle>,
    /// One login at a time of users where they have logged in before, and of administrators who set
    /// passwords.
    pub(crate) known_lane: Arc<Semaphore>,
    /// One login at a time of everybody else.
    pub(crate) stranger_lane: Arc<Semaphore>,
    /// Logins that wait for one of the lanes.
    pub(crate) waiting: Arc<Semaphore>,
    pub(crate) login_failures: EnumCounters,
    pub(crate) failures: Mutex<Failures>,
    /// Requests to the provider.
    pub(crate) at_provider: Arc<Semaphore>,
    pub(crate) pending_logins: Mutex<PendingLogins>,
    pub(crate) oidc_logins: EnumCounters,
    /// The time of the start, in seconds since 1970.
    pub(crate) started: u64,
}

impl Context {
    pub(crate) fn new(supplies: Supplies, limits: Limits) -> Context {
        let semaphore = |permits: usize| Arc::new(Semaphore::new(permits.max(1)));
        let login_failures =
            supplies.registry.enum_counters(&catalogue::API_LOGIN_FAILURES, &[], &LOGIN_FAILURES);
        let oidc_logins = supplies.registry.enum_counters(&catalogue::API_OIDC_LOGINS, &[], &oidc::RESULTS);
        Context {
            requests: semaphore(limits.requests_max),
            document_bodies: semaphore(limits.document_bodies_max),
            queries: semaphore(limits.queries_max),
            database_queries: semaphore(limits.queries_max),
            database_complained_ms: Mutex::default(),
            trials: semaphore(1),
            sink_tests: semaphore(1),
            document: semaphore(1),
            change: semaphore(1),
            changes: semaphore(limits.changes_max),
            looks: semaphore(1),
            streams: semaphore(limits.streams_max),
            streams_of: Mutex::default(),
            throttle: Mutex::default(),
            known_lane: semaphore(1),
            stranger_lane: semaphore(1),
            waiting: semaphore(limits.logins_waiting_max),
            login_failures,
            failures: Mutex::default(),
            at_provider: semaphore(limits.provider_logins_max),
            pending_logins: Mutex::default(),
            oidc_logins,
            started: (supplies.now)() / 1000,
            supplies,
            limits,
        }
    }

    /// The time in milliseconds since 1970.
    pub(crate) fn now_ms(&self) -> u64 {
        (self.supplies.now)()
    }

    /// The time in seconds since 1970.
    pub(crate) fn now(&self) -> u64 {
        self.now_ms() / 1000
    }

    /// Has the engine try something, on a thread that may block: one at a time, since it may take a core for
    /// a while.
    pub(crate) async fn trial<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Trials) -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let trials = Arc::clone(&self.supplies.trials);
        one_at_a_time(&self.trials, move || work(&*trials)).await
    }

    /// Sends a test event, on a thread that may block: one at a time, and none waits, for its receiver may.
    pub(crate) async fn sink_test<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Trials) -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let trials = Arc::clone(&self.supplies.trials);
        let permit = Arc::clone(&self.sink_tests).try_acquire_owned();
        let permit = permit.map_err(|_| Problem::with(Kind::Busy, "another test event is on its way"))?;
        blocking(move || {
            let _permit = permit;
            work(&*trials)
        })
        .await
    }

    /// Looks at the revisions, on a thread that may block: one at a time.
    pub(crate) async fn on_document<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        one_at_a_time(&self.document, work).await
    }

    /// Changes the document, or tries that, on a thread that may block: one at a time. Looks do not wait for
    /// it.
    pub(crate) async fn on_change<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        one_at_a_time(&self.change, work).await
    }

    /// A place among the changes that are made or wait.
    pub(crate) fn place_for_change(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let message = "other changes of the document wait already; try again in a second";
        Arc::clone(&self.changes).try_acquire_owned().map_err(|_| Problem::with(Kind::Busy, message))
    }

    pub(crate) fn say(&self, text: &str) {
        (self.supplies.say)(text);
    }

    /// Works on the identities, on a thread that may block.
    pub(crate) async fn identities<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Identities) -> Result<T, IdentityError> + Send + 'static,
    ) -> Result<T, Problem> {
        let identities = Arc::clone(&self.supplies.identities);
        let result = blocking(move || work(&identities)).await?;
        result.map_err(|error| of_identity(error, &*self.supplies.say))
    }
}

/// Runs `work` on a thread that may block, when nothing else with this permit is being done.
async fn one_at_a_time<T: Send + 'static>(
    permit: &Arc<Semaphore>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Problem> {
    let permit = Arc::clone(permit).acquire_owned().await;
    let permit = permit.map_err(|_| Problem::of(Kind::Draining))?;
    let work = move || {
        // Held until the work ends, even if the client has gone.
        let _permit = permit;
        work()
    };
    blocking(work).await
}

/// Runs `work` on a thread that may block.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Problem> {
    tokio::task::spawn_blocking(work).await.map_err(|_| Problem::of(Kind::Internal))
}

/// A lock whose holders do not panic in between.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A time in seconds as RFC 3339.
pub(crate) fn time(seconds: u64) -> String {
    Timestamp::from_epoch_millis(seconds.saturating_mul(1000)).rfc3339()
}
