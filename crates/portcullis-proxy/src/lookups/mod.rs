//! Lookups that rules ask for: DNS block lists, virus scanners.
//!
//! ```text
//! Step::Ask ──> questions ──> cache ──> resolver (UDP) or clamd, all at once, each within its timeout
//!                                              │
//!                 next step <── resume <───────┴── answers; none in time: as `failure.lookup` of the route says
//! ```
//!
//! Only the request that asks waits. A worker keeps its own cache and its own places in the queue, so nothing
//! is locked.

mod cache;
mod clamd;
mod dns;
mod resolver;
mod settings;

use std::future::{Future, poll_fn};
use std::task::Poll;
use std::time::Instant;

use portcullis_inspect::{Answer, Question, Scanner};
use portcullis_metrics::{EnumCounters, Histogram, Registry, catalogue};
use tokio::sync::Semaphore;

use resolver::Resolver;
use settings::{Ended, RESULTS};

/// Files that one worker has scanned at one time; more wait, within their timeout.
const SCANS_MAX: usize = 16;

pub(crate) use dns::Family;
pub(crate) use resolver::exchange;
pub(crate) use settings::Settings;

/// The metrics of lookups, shared by all workers.
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

/// The resolver and the scans of one worker.
pub(crate) struct Lookups {
    resolver: Resolver,
    scans: Semaphore,
}

impl Default for Lookups {
    fn default() -> Self {
        Lookups { resolver: Resolver::default(), scans: Semaphore::new(SCANS_MAX) }
    }
}

impl Lookups {
    /// Has a question answered, and counts how that ended.
    pub(crate) async fn ask(&self, metrics: &Metrics, settings: &Settings, question: Question<'_>) -> Answer {
        let begin = Instant::now();
        let (answer, ended) = match question {
            Question::Address(name) => {
                let (answer, ended) = self.resolver.ask(name, settings).await;
                metrics.dns.inc(ended as usize);
                if !matches!(ended, Ended::Cached | Ended::Resting) {
                    metrics.dns_duration.observe(begin.elapsed());
                }
                (answer, ended)
            }
            Question::Scan { scanner, content } => {
                let (answer, ended) = scan(&self.scans, settings, scanner, content).await;
                metrics.scan.inc(ended as usize);
                metrics.scan_duration.observe(begin.elapsed());
                (answer, ended)
            }
        };
        debug_assert_eq!(answer == Answer::Unknown, ended as usize >= Ended::Timeout as usize);
        answer
    }
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
