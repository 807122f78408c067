//! Clients that send requests while something goes wrong, and remember each answer.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use portcullis_testkit::client::{Connection, Failure};

/// The kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A GET with nothing wrong.
    Get,
    /// A POST of a small form with nothing wrong.
    Post,
    /// An SQL injection.
    Attack,
}

/// One request and its outcome.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Its number, unique in the process; the back end saw it as `X-Proof`.
    pub id: u64,
    /// The kind of the request.
    pub kind: Kind,
    /// The path, of those that the load was given.
    pub path: usize,
    /// The time of sending, from the begin of the load.
    pub at: Duration,
    /// Until the end of the answer.
    pub took: Duration,
    /// The status, or why there is none.
    pub answer: Result<u16, Failure>,
    /// True if the body ended as its framing said.
    pub whole: bool,
}

impl Sample {
    /// Returns true if the answer was this status, complete.
    pub fn is(&self, status: u16) -> bool {
        self.answer == Ok(status) && self.whole
    }
}

/// The plan of a load.
#[derive(Clone)]
pub struct Plan {
    /// The address to send to.
    pub address: SocketAddr,
    /// Clients at a time.
    pub clients: usize,
    /// Paths, in turn.
    pub paths: Vec<String>,
    /// Kinds, in turn.
    pub kinds: Vec<Kind>,
    /// Between two requests of a client.
    pub pause: Duration,
    /// For one answer.
    pub patience: Duration,
}

impl Plan {
    /// Eight clients that get `/` every 4 ms.
    pub fn new(address: SocketAddr) -> Self {
        Plan {
            address,
            clients: 8,
            paths: vec!["/".to_owned()],
            kinds: vec![Kind::Get],
            pause: Duration::from_millis(4),
            patience: Duration::from_secs(20),
        }
    }

    /// With these paths.
    pub fn paths(mut self, paths: &[&str]) -> Self {
        self.paths = paths.iter().map(|&path| path.to_owned()).collect();
        self
    }

    /// With these kinds.
    pub fn kinds(mut self, kinds: &[Kind]) -> Self {
        self.kinds = kinds.to_vec();
        self
    }

    /// Starts it.
    pub fn start(self) -> Load {
        let stop = Arc::new(AtomicBool::new(false));
        let done = Arc::new(AtomicU64::new(0));
        let began = Instant::now();
        let clients = (0..self.clients)
            .map(|client| {
                let (plan, stop, done) = (self.clone(), Arc::clone(&stop), Arc::clone(&done));
                thread::spawn(move || run(&plan, client, began, &stop, &done))
            })
            .collect();
        Load { stop, done, began, clients }
    }
}

/// Running clients.
pub struct Load {
    stop: Arc<AtomicBool>,
    /// Requests that came to an end.
    done: Arc<AtomicU64>,
    began: Instant,
    clients: Vec<JoinHandle<Vec<Sample>>>,
}

impl Load {
    /// The time on the clock of its samples.
    pub fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// Lets the clients run for this many seconds, and on a machine that is slow until they have sent enough
    /// to say something of that time (a minute at most).
    pub fn go_on(&self, seconds: f64) {
        let (from, began) = (self.done.load(Ordering::Relaxed), Instant::now());
        thread::sleep(Duration::from_secs_f64(seconds));
        // Those in flight at the begin count for the time before.
        let enough = from + (2 * self.clients.len() + ENOUGH) as u64;
        while self.done.load(Ordering::Relaxed) < enough && began.elapsed() < Duration::from_secs(60) {
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Lets the clients end what they began; their samples by the time they were sent.
    pub fn stop(self) -> Vec<Sample> {
        self.stop.store(true, Ordering::Relaxed);
        let mut all: Vec<Sample> = self
            .clients
            .into_iter()
            .flat_map(|client| client.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect();
        all.sort_by_key(|sample| sample.at);
        all
    }
}

/// Requests that a span of time needs so that something can be said of it: twenty benign ones of each kind.
const ENOUGH: usize = 80;

/// Numbers of requests.
static IDS: AtomicU64 = AtomicU64::new(1);

fn run(plan: &Plan, client: usize, began: Instant, stop: &AtomicBool, done: &AtomicU64) -> Vec<Sample> {
    let mut samples = Vec::new();
    let mut connection: Option<Connection> = None;
    let mut turn = client;
    while !stop.load(Ordering::Relaxed) {
        let kind = plan.kinds[turn % plan.kinds.len()];
        let path = (turn / plan.kinds.len()) % plan.paths.len();
        turn += 1;
        let id = IDS.fetch_add(1, Ordering::Relaxed);
        let request = request(kind, &plan.paths[path], id);
        let at = began.elapsed();
        let open = match connection.take().filter(Connection::reusable) {
            Some(open) => Ok(open),
            None => Connection::open(plan.address, None, plan.patience),
        };
        let mut whole = false;
        let answer = open.and_then(|mut open| {
            let answer = open.exchange(&request, plan.patience)?;
            whole = answer.whole;
            connection = Some(open);
            Ok(answer.status)
        });
        samples.push(Sample { id, kind, path, at, took: began.elapsed() - at, answer, whole });
        done.fetch_add(1, Ordering::Relaxed);
        thread::sleep(plan.pause);
    }
    samples
}

fn request(kind: Kind, path: &str, id: u64) -> Vec<u8> {
    let head = "Host: localhost\r\nUser-Agent: proof\r\nAccept: */*\r\n";
    match kind {
        Kind::Get => format!("GET {path}?n={id} HTTP/1.1\r\n{head}X-Proof: {id}\r\n\r\n"),
        Kind::Attack => {
            format!("GET {path}?n={id}&q=1%27%20OR%20%271%27%3D%271%27%20--%20 HTTP/1.1\r\n{head}X-Proof: {id}\r\n\r\n")
        }
        Kind::Post => {
            let body = format!("title=A+history+of+locks&n={id}");
            format!(
                "POST {path} HTTP/1.1\r\n{head}X-Proof: {id}\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            )
        }
    }
    .into_bytes()
}

/// The part of `samples` sent in a span of time.
pub fn between(samples: &[Sample], from: Duration, to: Duration) -> impl Iterator<Item = &Sample> + Clone {
    samples.iter().filter(move |sample| (from..to).contains(&sample.at))
}

/// The value below which `share` (0 to 1) of them are; zero of none.
pub fn quantile(times: impl Iterator<Item = Duration>, share: f64) -> Duration {
    let mut all: Vec<Duration> = times.collect();
    all.sort_unstable();
    let at = (all.len() as f64 * share) as usize;
    all.get(at.min(all.len().saturating_sub(1))).copied().unwrap_or_default()
}
