//! One measurement: a load, and what came back.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tokio::task::JoinSet;

use crate::Error;
use crate::client::{Client, Peer};
use crate::message::Message;
use crate::schedule::{Schedule, Slot};
use crate::study::Subject;
use crate::thousand::Thousand;
use crate::timer::Timer;

/// The longest time that a due answer may take after the last request.
const PATIENCE: Duration = Duration::from_secs(5);
/// Connections that are made at a time, before the clock starts.
const CONNECTING_MAX: usize = 64;

/// The pace of requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// Each connection sends its next request when it has the answer.
    Closed,
    /// So many requests a second, evenly, whatever becomes of them.
    Open(f64),
}

/// A load.
#[derive(Clone, Debug)]
pub struct Load {
    /// Sent in turn.
    pub messages: Arc<[Message]>,
    /// Kept open; requests that find all of them busy wait.
    pub connections: usize,
    /// The pace of requests.
    pub pace: Pace,
    /// From the first request to the last.
    pub duration: Duration,
}

/// The result of a load.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Nanoseconds from the moment when a request was due to the last byte of its answer.
    pub latency: Histogram<u64>,
    /// The p99 of each 1,000 answers in a row. A moment in which the machine stands still spoils those in
    /// which it falls, and leaves the median alone.
    pub p99s: Histogram<u64>,
    /// Nanoseconds by which the generator sent late although a connection was free.
    pub lag: Histogram<u64>,
    /// Requests with an answer.
    pub answered: u64,
    /// Answers that were not as they should be, by status.
    pub unexpected: BTreeMap<u16, u64>,
    /// Requests whose connection broke, or could not be made.
    pub broken: u64,
    /// Requests that were due and could not be sent in time, or got no answer in time.
    pub unsent: u64,
    /// From the first request to the last answer.
    pub elapsed: Duration,
}

impl Measured {
    /// Nothing yet.
    pub fn new() -> Measured {
        Measured {
            latency: histogram(),
            p99s: histogram(),
            lag: histogram(),
            answered: 0,
            unexpected: BTreeMap::new(),
            broken: 0,
            unsent: 0,
            elapsed: Duration::ZERO,
        }
    }

    /// Adds another one.
    pub fn add(&mut self, other: &Measured) {
        // Both have the same bounds.
        let _ = self.latency.add(&other.latency);
        let _ = self.p99s.add(&other.p99s);
        let _ = self.lag.add(&other.lag);
        self.answered += other.answered;
        for (status, count) in &other.unexpected {
            *self.unexpected.entry(*status).or_default() += count;
        }
        self.broken += other.broken;
        self.unsent += other.unsent;
        self.elapsed += other.elapsed;
    }

    /// Answers a second.
    pub fn throughput(&self) -> f64 {
        self.answered as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }
}

impl Default for Measured {
    fn default() -> Self {
        Measured::new()
    }
}

/// A minute at most, three significant digits.
fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 60_000_000_000, 3).expect("the bounds are constants that fit")
}

/// Sends a load to a subject, on this thread, and waits for its end.
pub fn drive(subject: &Subject, load: &Load) -> Result<Measured, Error> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::System)?;
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, run(subject, load))
}

async fn run(subject: &Subject, load: &Load) -> Result<Measured, Error> {
    let peer = subject.peer();
    let clients = connect(&peer, load.connections).await;
    let clients = clients.map_err(|error| Error::Connect(subject.name.clone(), error))?;
    let mut timer = Timer::new().map_err(Error::System)?;
    let begin = Instant::now();
    let schedule = match load.pace {
        Pace::Closed => Schedule::closed(begin, load.duration),
        Pace::Open(per_second) => Schedule::open(begin, load.duration, per_second),
    };
    let driver = Rc::new(Driver {
        schedule,
        peer,
        messages: Arc::clone(&load.messages),
        refuses: subject.role.refuses_attacks(),
        measured: RefCell::new(Measured::new()),
        thousand: RefCell::default(),
        in_flight: Cell::new(0),
    });
    let mut tasks = JoinSet::new();
    for client in clients {
        tasks.spawn_local(Rc::clone(&driver).connection(client));
    }
    let work = async {
        driver.schedule.tick(&mut timer).await.map_err(Error::System)?;
        while tasks.join_next().await.is_some() {}
        Ok(())
    };
    let limit = load.duration + load.duration / 2 + PATIENCE;
    match tokio::time::timeout(limit, work).await {
        Ok(result) => result?,
        // Requests still on their way count as unsent below.
        Err(_) => tasks.abort_all(),
    }
    let mut measured = driver.measured.take();
    measured.unsent = driver.schedule.unsent() + driver.in_flight.get();
    measured.elapsed = begin.elapsed();
    match measured.answered {
        0 => Err(Error::Silent(subject.name.clone())),
        _ => Ok(measured),
    }
}

/// All connections, made before the clock starts.
async fn connect(peer: &Peer, count: usize) -> std::io::Result<Vec<Client>> {
    let mut clients = Vec::with_capacity(count);
    let mut pending = JoinSet::new();
    for _ in 0..count {
        if pending.len() == CONNECTING_MAX
            && let Some(Ok(done)) = pending.join_next().await
        {
            clients.push(done?);
        }
        let peer = peer.clone();
        pending.spawn_local(async move { Client::connect(&peer).await });
    }
    while let Some(done) = pending.join_next().await {
        clients.push(done.map_err(std::io::Error::other)??);
    }
    Ok(clients)
}

struct Driver {
    schedule: Schedule,
    peer: Peer,
    messages: Arc<[Message]>,
    /// True if attacks are to be refused; `None` where that is not known.
    refuses: Option<bool>,
    measured: RefCell<Measured>,
    thousand: RefCell<Thousand>,
    in_flight: Cell<u64>,
}

impl Driver {
    async fn connection(self: Rc<Self>, client: Client) {
        let mut client = Some(client);
        while let Some(slot) = self.schedule.next().await {
            if slot.is_free {
                self.measured.borrow_mut().lag.saturating_record(nanoseconds(slot.due.elapsed()));
            }
            self.in_flight.set(self.in_flight.get() + 1);
            client = self.exchange(client, slot).await;
            self.in_flight.set(self.in_flight.get() - 1);
        }
    }

    async fn exchange(&self, client: Option<Client>, slot: Slot) -> Option<Client> {
        let message = &self.messages[(slot.index % self.messages.len() as u64) as usize];
        let answer = async {
            let mut client = match client {
                Some(client) => client,
                None => Client::connect(&self.peer).await?,
            };
            let answer = client.exchange(&message.bytes).await?;
            Ok::<_, std::io::Error>((client, answer))
        };
        let result = answer.await;
        let took = slot.due.elapsed();
        let measured = &mut *self.measured.borrow_mut();
        match result {
            Ok((client, answer)) => {
                let took = nanoseconds(took);
                measured.latency.saturating_record(took);
                if let Some(p99) = self.thousand.borrow_mut().p99_with(took) {
                    measured.p99s.saturating_record(p99);
                }
                measured.answered += 1;
                if !self.is_expected(message, answer.status) {
                    *measured.unexpected.entry(answer.status).or_default() += 1;
                }
                answer.keeps.then_some(client)
            }
            Err(_) => {
                measured.broken += 1;
                None
            }
        }
    }

    fn is_expected(&self, message: &Message, status: u16) -> bool {
        match (message.is_attack, self.refuses) {
            (true, Some(true)) => status == 403,
            (true, None) => status == 403 || status == 200,
            (false, _) | (true, Some(false)) => status == 200,
        }
    }
}

fn nanoseconds(took: Duration) -> u64 {
    u64::try_from(took.as_nanos()).unwrap_or(u64::MAX)
}
