//! A thread with a connection to Redis, opened anew whenever it breaks, that shares something among nodes.
//!
//! No request waits for it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use portcullis_metrics::{Counter, Gauge};
use portcullis_resp::{Client, Connection, Limits};
use portcullis_types::Outage;

const CONNECT_TIME: Duration = Duration::from_secs(1);
/// The longest time that an answer may take.
pub const ANSWER_TIME: Duration = Duration::from_secs(2);
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_secs(5);

/// What is shared over a connection.
pub trait Session: Send + 'static {
    /// What nodes know while Redis cannot be reached.
    const LOST: &str;
    /// What they do again when it can.
    const BACK: &str;

    /// Works with one connection until it breaks, or, once what is left was sent, until `stop` is set: the
    /// thread is unparked then.
    fn run(&mut self, connection: &mut Connection, health: &mut Health, stop: &AtomicBool) -> io::Result<()>;
}

/// Whether Redis answers, for people.
pub struct Health {
    connected: Gauge,
    failures: Counter,
    outage: Outage,
}

impl Health {
    /// As these metrics show it.
    pub fn new(connected: Gauge, failures: Counter) -> Health {
        Health { connected, failures, outage: Outage::default() }
    }

    /// An exchange has succeeded.
    pub fn works(&mut self, back: &str) {
        self.connected.set(1);
        if self.outage.worked(now()) {
            eprintln!("portcullis: redis is reachable again, {back}");
        }
    }

    fn failed(&mut self, lost: &str, error: &io::Error) {
        self.failures.inc();
        if self.outage.failed() {
            eprintln!("portcullis: redis cannot be reached, {lost}: {error}");
        }
    }
}

/// The thread. Dropped, it has its session sent what is left, and ends.
pub struct Link {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Link {
    /// Starts it; an exchange may bring as much as `limits` allows.
    pub fn start<S: Session>(
        name: &str,
        client: Client,
        limits: Limits,
        mut health: Health,
        mut session: S,
    ) -> io::Result<Link> {
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&stop);
        let work = move || {
            let mut delay = RETRY_FIRST;
            while !asked.load(Ordering::Relaxed) {
                let began = Instant::now();
                let opened = client.connect(CONNECT_TIME, limits);
                let result =
                    opened.and_then(|mut connection| session.run(&mut connection, &mut health, &asked));
                health.connected.set(0);
                let Err(error) = result else { return };
                health.failed(S::LOST, &error);
                if began.elapsed() > ANSWER_TIME {
                    delay = RETRY_FIRST;
                }
                std::thread::park_timeout(delay);
                delay = (delay * 2).min(RETRY_MAX);
            }
        };
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(work)?;
        Ok(Link { stop, thread: Some(thread) })
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

/// Milliseconds since 1970.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
