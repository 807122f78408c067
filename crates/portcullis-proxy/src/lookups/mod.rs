//! Answers to what rules ask of the world outside: DNS block lists, virus scanners.
//!
//! ```text
//! Step::Ask ──> questions ──> cache ──> resolver (UDP) or clamd, all at once, each within its timeout
//!                                              │
//!                 next step <── resume <───────┴── answers; none in time: as `failure.lookup` of the route says
//! ```
//!
//! Only the request that asks waits. A worker keeps its own cache and its own places in the queue, so nothing is locked.

mod cache;
mod clamd;
mod dns;
mod resolver;

use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::task::Poll;
use std::time::{Duration, Instant};

use portcullis_config::OpenOrClosed;
use portcullis_event::{ExceptionCause, ExceptionPolicy};
use portcullis_inspect::{Answer, Interruption, Question, QuestionId, Scanner, Step};
use portcullis_metrics::{EnumCounters, Histogram, Registry, catalogue};
use tokio::sync::Semaphore;

use crate::generation::Generation;
use crate::state::Worker;
use crate::transaction::Transaction;

use resolver::Resolver;

/// Files that one worker has scanned at one time; more wait, within their timeout.
const SCANS_MAX: usize = 16;

/// Where and how to ask, from the configuration.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// At least one.
    pub(crate) resolvers: Vec<SocketAddr>,
    /// The operator named them; else they are those of the system.
    pub(crate) named: bool,
    /// For a DNS answer, all tries together.
    pub(crate) dns_timeout: Duration,
    /// For a scanner's answer.
    pub(crate) scan_timeout: Duration,
    /// DNS answers that a worker remembers.
    pub(crate) dns_cache_entries_max: usize,
    /// The number of the settings: answers of earlier ones are forgotten.
    pub(crate) generation: u64,
}

impl Settings {
    /// What `config` says; without resolvers, those of the system.
    pub(crate) fn new(config: &portcullis_config::Lookups, generation: u64) -> Settings {
        let mut resolvers = config.resolvers.clone();
        if resolvers.is_empty() {
            let system = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
            resolvers = dns::name_servers(&system);
        }
        Settings {
            resolvers,
            named: !config.resolvers.is_empty(),
            dns_timeout: config.dns_timeout,
            scan_timeout: config.scan_timeout,
            dns_cache_entries_max: config.dns_cache_entries_max,
            generation,
        }
    }
}

pub(crate) use dns::Family;
pub(crate) use resolver::exchange;

/// How a lookup ended. The order is that of [`RESULTS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Found,
    Nothing,
    Cached,
    Timeout,
    Failed,
    Resting,
}

/// The values of the label `result`.
const RESULTS: &[&str] = &["found", "nothing", "cached", "timeout", "failed", "resting"];

/// What is counted. Shared by all workers.
pub(crate) struct Metrics {
    dns: EnumCounters,
    scan: EnumCounters,
    dns_duration: Histogram,
    scan_duration: Histogram,
}

impl Metrics {
    pub(crate) fn new(registry: &Registry) -> Metrics {
        Metrics {
            dns: registry.enum_counters(&catalogue::LOOKUPS, &["dns"], RESULTS),
            scan: registry.enum_counters(&catalogue::LOOKUPS, &["scan"], RESULTS),
            dns_duration: registry.histogram(&catalogue::LOOKUP_DURATION, &["dns"]),
            scan_duration: registry.histogram(&catalogue::LOOKUP_DURATION, &["scan"]),
        }
    }
}

/// What one worker has for lookups.
pub(crate) struct Lookups {
    resolver: Resolver,
    scans: Semaphore,
}

impl Default for Lookups {
    fn default() -> Self {
        Lookups { resolver: Resolver::default(), scans: Semaphore::new(SCANS_MAX) }
    }
}

/// Takes a step that asks to one that does not.
pub(crate) async fn settle(
    worker: &Worker,
    generation: &Generation,
    transaction: &mut Transaction,
    mut step: Step,
) -> Step {
    while step == Step::Ask {
        let answers = match transaction.inspection.running() {
            Some(inspection) => {
                let asked = inspection.questions();
                let work =
                    asked.map(|(id, question)| answer(worker, &generation.lookups, id, question)).collect();
                all(work).await
            }
            None => Vec::new(),
        };
        let unknown = answers.iter().any(|(_, answer)| *answer == Answer::Unknown);
        transaction.inspection.answer(answers);
        if unknown || transaction.inspection.running().is_some_and(|i| i.questions_not_asked() > 0) {
            if transaction.lookup_failure == OpenOrClosed::Closed {
                transaction.exception(ExceptionCause::LookupFailed, ExceptionPolicy::Closed);
                transaction.reject(503, "A lookup that the rules ask for failed.");
                return Step::Interrupt(Interruption::Deny { status: 503 });
            }
            transaction.exception_once(ExceptionCause::LookupFailed, ExceptionPolicy::Open);
        }
        step = transaction.inspection.resume();
    }
    step
}

async fn answer(
    worker: &Worker,
    settings: &Settings,
    id: QuestionId,
    question: Question<'_>,
) -> (QuestionId, Answer) {
    let metrics = &worker.shared.lookups;
    let begin = Instant::now();
    let (answer, ended) = match question {
        Question::Address(name) => {
            let (answer, ended) = worker.lookups.resolver.ask(name, settings).await;
            metrics.dns.inc(ended as usize);
            if !matches!(ended, Ended::Cached | Ended::Resting) {
                metrics.dns_duration.observe(begin.elapsed());
            }
            (answer, ended)
        }
        Question::Scan { scanner, content } => {
            let (answer, ended) = scan(&worker.lookups.scans, settings, scanner, content).await;
            metrics.scan.inc(ended as usize);
            metrics.scan_duration.observe(begin.elapsed());
            (answer, ended)
        }
    };
    debug_assert_eq!(answer == Answer::Unknown, ended as usize >= Ended::Timeout as usize);
    (id, answer)
}

async fn scan(places: &Semaphore, settings: &Settings, scanner: &Scanner, content: &[u8]) -> (Answer, Ended) {
    let work = async {
        let _place = places.acquire().await;
        clamd::scan(scanner, content).await
    };
    match tokio::time::timeout(settings.scan_timeout, work).await {
        Ok(Ok(Some(name))) => (Answer::Found(name), Ended::Found),
        Ok(Ok(None)) => (Answer::Nothing, Ended::Nothing),
        Ok(Err(_)) => (Answer::Unknown, Ended::Failed),
        Err(_) => (Answer::Unknown, Ended::Timeout),
    }
}

/// Runs all of `work` at once; the results are in its order.
pub(crate) async fn all<F: Future>(work: Vec<F>) -> Vec<F::Output> {
    let mut waiting: Vec<_> = work.into_iter().map(Box::pin).collect();
    let mut done: Vec<Option<F::Output>> = waiting.iter().map(|_| None).collect();
    poll_fn(|context| {
        for (future, result) in waiting.iter_mut().zip(&mut done) {
            if result.is_none()
                && let Poll::Ready(value) = future.as_mut().poll(context)
            {
                *result = Some(value);
            }
        }
        match done.iter().all(Option::is_some) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
    done.into_iter().flatten().collect()
}
