//! The thread that asks for leases.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use portcullis_access::{Grant, Key, Order};
use sha2::{Digest as _, Sha256};

use crate::memcached::Memcached;
use crate::metrics::ShareMetrics;
use crate::redis::Redis;
use crate::{Say, Shared, clock};

/// For a connection, and for an answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1);
/// A request whose key has no credit left is refused while an answer takes this long; then it is as if the
/// store were away.
const LATE_NANOS: u64 = 100_000_000;
/// Between two exchanges, so that one is about many keys.
const PACE: Duration = Duration::from_millis(1);
/// Keys in one exchange.
const BATCH: usize = 256;
/// Orders that wait.
const QUEUE_MAX: usize = 65_536;
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_secs(2);
/// Without orders the store is asked whether it is there, this often.
const PING_EVERY: Duration = Duration::from_secs(1);

/// A connection to the store that is opened again when it breaks. Dropped, it ends, and no thread waits for
/// that.
#[derive(Debug)]
pub struct Link {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    queue: Mutex<VecDeque<Asked>>,
    more: Condvar,
    up: AtomicBool,
    /// The begin of the exchange that is not answered yet, by the clock of limits; 0 without one.
    since: AtomicU64,
    stop: AtomicBool,
    metrics: ShareMetrics,
    started: Instant,
}

#[derive(Debug)]
struct Asked {
    limit: Arc<Shared>,
    key: Key,
    bytes: Vec<u8>,
}

/// The question to the store about one key.
pub(crate) struct Question {
    pub(crate) name: Vec<u8>,
    pub(crate) interval_us: u64,
    pub(crate) burst: u64,
    pub(crate) order: Order,
}

/// Limit on the debt of a limit, in bursts: nodes let requests through on credit, a quarter of the burst
/// each.
const OWED_BURSTS: u64 = 4;

impl Question {
    /// Tokens that may be owed: the burst, and what nodes let through on credit. The script for Redis has the
    /// same number.
    pub(crate) fn owed_max(&self) -> u64 {
        self.burst.saturating_mul(OWED_BURSTS)
    }

    /// The answer as far as it can be true: no more tokens than were asked for, no longer a wait than until
    /// the last token that can be owed is paid.
    fn possible(&self, grant: Grant) -> Grant {
        match grant {
            Grant::Tokens(tokens) => Grant::Tokens(tokens.min(self.order.want)),
            Grant::None(wait) => {
                let owed = self.owed_max().saturating_add(self.order.debt).max(1);
                let most = Duration::from_micros(self.interval_us.saturating_mul(owed));
                Grant::None(wait.min(most))
            }
        }
    }
}

/// A connection.
pub(crate) trait Keeper {
    /// An answer for each question, none where others were faster again and again. After an error the
    /// connection is not used any more.
    fn lease(&mut self, questions: &[Question]) -> io::Result<Vec<Option<Grant>>>;
    /// Returns an error if the store is not there.
    fn ping(&mut self) -> io::Result<()>;
}

impl Link {
    /// Connects to the store at `url`, again and again: `redis://...`, `rediss://...` or
    /// `memcached://host:port`. `prefix` is put before every key, `started` is where the clock of limits
    /// begins. The error says what is wrong with the URL; it does not show it, as there may be a password in
    /// it.
    pub fn start(
        (url, prefix): (&str, &str),
        metrics: ShareMetrics,
        started: Instant,
        say: &Say,
    ) -> io::Result<Link> {
        let inner = Arc::new(Inner {
            queue: Mutex::default(),
            more: Condvar::new(),
            up: AtomicBool::new(false),
            since: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            metrics,
            started,
        });
        let connect = connector(url, prefix.to_string())?;
        let (own, tell) = (Arc::clone(&inner), Arc::clone(say));
        let work = move || own.run(&*connect, &tell);
        std::thread::Builder::new().name("share".to_string()).spawn(work)?;
        Ok(Link { inner })
    }

    /// The store answers.
    pub fn is_up(&self) -> bool {
        self.inner.up.load(Relaxed)
    }

    /// The store has not answered for a while, but may.
    pub(crate) fn is_late(&self, now: u64) -> bool {
        let since = self.inner.since.load(Relaxed);
        since != 0 && now.saturating_sub(since) > LATE_NANOS
    }

    pub(crate) fn ask(&self, limit: &Arc<Shared>, key: Key, bytes: Vec<u8>) {
        let mut queue = self.inner.lock();
        if queue.len() >= QUEUE_MAX {
            self.inner.metrics.dropped.inc();
            drop(queue);
            return limit.leases().fail(key, clock(self.inner.started));
        }
        queue.push_back(Asked { limit: Arc::clone(limit), key, bytes });
        drop(queue);
        self.inner.more.notify_one();
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.inner.stop.store(true, Relaxed);
        self.inner.more.notify_one();
    }
}

type Connect = dyn Fn() -> io::Result<Box<dyn Keeper>> + Send;

fn connector(url: &str, prefix: String) -> io::Result<Box<Connect>> {
    if let Some(address) = url.strip_prefix("memcached://") {
        let address = address.trim_end_matches('/').to_string();
        return Ok(Box::new(move || Ok(Box::new(Memcached::connect(&address, &prefix)?))));
    }
    let client = portcullis_resp::Client::new(url).map_err(io::Error::other)?;
    Ok(Box::new(move || Ok(Box::new(Redis::connect(&client, &prefix)?))))
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Asked>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, connect: &Connect, say: &Say) {
        let mut delay = RETRY_FIRST;
        let mut told = false;
        while !self.stop.load(Relaxed) {
            let result = connect().and_then(|mut keeper| {
                keeper.ping()?;
                self.up.store(true, Relaxed);
                self.metrics.connected.set(1);
                if std::mem::take(&mut told) {
                    say("the rate limit store is reachable again");
                }
                delay = RETRY_FIRST;
                self.session(&mut *keeper)
            });
            self.up.store(false, Relaxed);
            self.metrics.connected.set(0);
            let Err(error) = result else { return };
            self.metrics.failures.inc();
            if !std::mem::replace(&mut told, true) {
                say(&format!("the rate limit store cannot be reached: {error}"));
            }
            // No request waits for these; they will be asked for again.
            for asked in std::mem::take(&mut *self.lock()) {
                asked.limit.leases().fail(asked.key, clock(self.started));
            }
            let queue = self.lock();
            if !self.stop.load(Relaxed) {
                drop(self.more.wait_timeout(queue, delay));
            }
            delay = (delay * 2).min(RETRY_MAX);
        }
    }

    /// One connection, until it breaks or we are to stop.
    fn session(&self, keeper: &mut dyn Keeper) -> io::Result<()> {
        loop {
            let batch = self.next_batch();
            if self.stop.load(Relaxed) {
                return Ok(());
            }
            if batch.is_empty() {
                keeper.ping()?;
                continue;
            }
            self.exchange(keeper, &batch)?;
            std::thread::sleep(PACE);
        }
    }

    fn next_batch(&self) -> Vec<Asked> {
        let queue = self.lock();
        let wait = |queue: &mut VecDeque<Asked>| queue.is_empty() && !self.stop.load(Relaxed);
        let (mut queue, _) =
            self.more.wait_timeout_while(queue, PING_EVERY, wait).unwrap_or_else(PoisonError::into_inner);
        let count = queue.len().min(BATCH);
        queue.drain(..count).collect()
    }

    fn exchange(&self, keeper: &mut dyn Keeper, batch: &[Asked]) -> io::Result<()> {
        let now = clock(self.started);
        let question = |asked: &Asked| Question {
            name: name(&asked.limit.name, &asked.bytes),
            interval_us: u64::try_from(asked.limit.interval.as_micros()).unwrap_or(u64::MAX >> 16),
            burst: asked.limit.burst,
            order: asked.limit.leases().order(asked.key, now),
        };
        let questions: Vec<Question> = batch.iter().map(question).collect();
        let began = Instant::now();
        self.since.store(now, Relaxed);
        let grants = keeper.lease(&questions);
        self.since.store(0, Relaxed);
        let now = clock(self.started);
        match grants {
            Ok(grants) => {
                self.metrics.exchange.observe(began.elapsed());
                for ((asked, question), grant) in batch.iter().zip(&questions).zip(grants) {
                    let leases = asked.limit.leases();
                    let grant = grant.map(|grant| question.possible(grant));
                    match grant {
                        Some(grant) => leases.settle(asked.key, question.order, grant, now),
                        None => leases.fail(asked.key, now),
                    }
                    if let Some(Grant::Tokens(tokens)) = grant {
                        self.metrics.leased.add(tokens);
                    }
                }
                Ok(())
            }
            Err(error) => {
                for asked in batch {
                    asked.limit.leases().fail(asked.key, now);
                }
                Err(error)
            }
        }
    }
}

/// Returns the name of a key in the store. Values of headers and cookies may be secret, so it is a hash.
fn name(limit: &str, bytes: &[u8]) -> Vec<u8> {
    let mut hash = Sha256::new();
    hash.update((limit.len() as u64).to_le_bytes());
    hash.update(limit);
    hash.update(bytes);
    let hash = hash.finalize();
    let mut name = b"l:".to_vec();
    for byte in &hash[..16] {
        name.extend_from_slice(format!("{byte:02x}").as_bytes());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_counts_as_far_as_it_can_be_true() {
        let order = Order { debt: 2, want: 5 };
        let question = Question { name: Vec::new(), interval_us: 1_000, burst: 20, order };
        assert_eq!(question.possible(Grant::Tokens(i64::MAX as u64)), Grant::Tokens(5));
        assert_eq!(question.possible(Grant::Tokens(3)), Grant::Tokens(3));
        let day = Duration::from_secs(86_400);
        assert_eq!(question.possible(Grant::None(day)), Grant::None(Duration::from_millis(82)));
    }
}
