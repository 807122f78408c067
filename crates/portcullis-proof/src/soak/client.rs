//! Clients of different habits that send at a fixed rate.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use portcullis_testkit::client::{Connection, Failure};
use rustls::ClientConfig;

use super::tls;

/// For one request.
const PATIENCE: Duration = Duration::from_secs(30);
/// Every so many requests of a client are an attack.
const ATTACK_EVERY: u64 = 16;
/// Requests on a connection of a client that keeps it.
const KEPT_MAX: u64 = 500;

/// The way a client uses its connections.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Habit {
    KeptTls,
    Kept,
    OneTls,
    One,
}

/// Half of the clients keep TLS connections; one in eight opens a TLS connection for each request.
const HABITS: [Habit; 8] = [
    Habit::KeptTls,
    Habit::Kept,
    Habit::KeptTls,
    Habit::OneTls,
    Habit::KeptTls,
    Habit::Kept,
    Habit::KeptTls,
    Habit::One,
];

pub(super) struct Client {
    number: usize,
    plain: SocketAddr,
    secure: SocketAddr,
    config: Arc<ClientConfig>,
    interval: Duration,
}

/// The results of all clients, and the latencies since the last look.
#[derive(Default)]
pub(super) struct Board(Mutex<(Totals, Vec<Duration>)>);

/// Counts since the begin.
#[derive(Clone, Debug, Default)]
pub(super) struct Totals {
    pub(super) requests: u64,
    pub(super) refused: u64,
    pub(super) failed: u64,
    pub(super) wrong: u64,
    pub(super) connections: u64,
    /// The first ones, in words.
    pub(super) troubles: Vec<String>,
}

impl Board {
    /// The latencies since the last call.
    pub(super) fn window(&self) -> Vec<Duration> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner).1)
    }

    /// Takes an answer, its status and whether it was whole, where `wanted` is the right one.
    pub(super) fn note(
        &self,
        took: Option<Duration>,
        is_new: bool,
        answer: Result<(u16, bool), String>,
        wanted: u16,
    ) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (totals, window) = &mut *all;
        window.extend(took);
        totals.requests += 1;
        totals.connections += u64::from(is_new);
        let trouble = match answer {
            Ok((status, true)) if status == wanted => {
                totals.refused += u64::from(wanted == 403);
                return;
            }
            Ok((status, whole)) => {
                totals.wrong += 1;
                format!("wanted {wanted}, got {status} (whole: {whole})")
            }
            Err(failure) => {
                totals.failed += 1;
                failure
            }
        };
        if totals.troubles.len() < 10 {
            totals.troubles.push(trouble);
        }
    }

    pub(super) fn totals(&self) -> Totals {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0.clone()
    }
}

impl Client {
    pub(super) fn new(
        number: usize,
        plain: SocketAddr,
        secure: SocketAddr,
        config: Arc<ClientConfig>,
        interval: Duration,
    ) -> Client {
        Client { number, plain, secure, config, interval }
    }

    /// Sends a request at each tick of its clock until `end`. A latency counts from the tick: one that waits
    /// for the answer before it is late itself.
    pub(super) fn run(self, end: Instant, board: &Board) {
        let habit = HABITS[self.number % HABITS.len()];
        let mut connection: Option<Connection> = None;
        let mut sent = 0;
        let mut due = Instant::now() + self.interval.mul_f64(self.number as f64 / 16.0);
        while due < end {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            let (request, wanted) = self.request(sent, habit);
            sent += 1;
            let fresh = sent.is_multiple_of(KEPT_MAX) || matches!(habit, Habit::One | Habit::OneTls);
            let kept = connection.take().filter(|it| it.reusable() && !fresh);
            let is_new = kept.is_none();
            let answer = kept.map_or_else(|| self.open(habit), Ok).and_then(|mut open| {
                let answer = open.exchange(request.as_bytes(), PATIENCE)?;
                connection = Some(open);
                Ok(answer)
            });
            let answer = answer.map(|answer| (answer.status, answer.whole)).map_err(|why| why.to_string());
            board.note(Some(due.elapsed()), is_new, answer, wanted);
            due += self.interval;
        }
    }

    fn open(&self, habit: Habit) -> Result<Connection, Failure> {
        match habit {
            Habit::Kept | Habit::One => Connection::open(self.plain, None, PATIENCE),
            Habit::KeptTls | Habit::OneTls => {
                tls::open(self.secure, &self.config, PATIENCE).map(Connection::over)
            }
        }
    }

    /// A request and the status that it deserves.
    fn request(&self, sent: u64, habit: Habit) -> (String, u16) {
        let close = if matches!(habit, Habit::One | Habit::OneTls) { "Connection: close\r\n" } else { "" };
        let head = format!("Host: localhost\r\nUser-Agent: soak\r\nAccept: */*\r\n{close}");
        let number = sent * 16 + self.number as u64;
        if sent.is_multiple_of(ATTACK_EVERY) {
            let attack = "1%27%20OR%20%271%27%3D%271%27%20--%20";
            return (format!("GET /search?q={attack}&n={number} HTTP/1.1\r\n{head}\r\n"), 403);
        }
        let (kind, body) = match sent % 4 {
            0 => (
                "application/json",
                format!("{{\"title\":\"A history of locks\",\"n\":{number},\"tags\":[\"iron\",\"oak\"]}}"),
            ),
            1 => (
                "application/x-www-form-urlencoded",
                format!("title=A+history+of+locks&n={number}&note=two+copies"),
            ),
            _ => return (format!("GET /search?q=garden&n={number} HTTP/1.1\r\n{head}\r\n"), 200),
        };
        let length = body.len();
        let head = format!("{head}Content-Type: {kind}\r\nContent-Length: {length}\r\n");
        (format!("POST /orders HTTP/1.1\r\n{head}\r\n{body}"), 200)
    }
}
