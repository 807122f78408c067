//! Agents that crash and freeze while requests come in, several at a time: nothing passes that they should
//! have seen, and where they may be passed by, nothing is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::agent::{Agent, grpc, table, unix};
use crate::served::*;
use portcullis_testkit::agent::Address;
use portcullis_testkit::client::Connection;

const CLIENTS: u64 = 8;

/// The answers that clients saw.
#[derive(Default)]
struct Seen {
    passed: AtomicU64,
    refused: AtomicU64,
    other: AtomicU64,
}

impl Seen {
    fn count(&self) -> (u64, u64, u64) {
        (self.passed.load(Relaxed), self.refused.load(Relaxed), self.other.load(Relaxed))
    }
}

/// Sends requests on connections that stay open until told to stop.
fn client(served: &Served, path: &str, seen: &Seen, stop: &AtomicBool) {
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: a\r\nX-Agent: set X-Checked yes\r\nUser-Agent: t\r\n\r\n");
    let mut connection = None;
    while !stop.load(Relaxed) {
        let open = match connection.take().filter(Connection::reusable) {
            Some(open) => Ok(open),
            None => Connection::open(served.address, None, PATIENCE),
        };
        let status = open.and_then(|mut open| {
            let answer = open.exchange(request.as_bytes(), PATIENCE)?;
            connection = Some(open);
            Ok(answer.status)
        });
        match status {
            Ok(200) => &seen.passed,
            Ok(503) => &seen.refused,
            _ => &seen.other,
        }
        .fetch_add(1, Relaxed);
    }
}

/// A program with a route that fails closed and one that fails open; the application counts what no agent has
/// seen.
struct Front {
    served: Served,
    /// Requests that arrived unseen by route.
    leaked: Arc<AtomicU64>,
    bypassed: Arc<AtomicU64>,
    _application: Server,
}

impl Front {
    fn start(address: &Address) -> Front {
        let (leaked, bypassed): (Arc<AtomicU64>, Arc<AtomicU64>) = Default::default();
        let counters = (Arc::clone(&leaked), Arc::clone(&bypassed));
        let application = application(move |request| {
            if request.header("x-checked") != Some(b"yes") {
                let counter = if request.target == "/closed" { &counters.0 } else { &counters.1 };
                counter.fetch_add(1, Relaxed);
            }
            says("hello")
        });
        let site = "mode = \"off\"\nagents = [\"echo\"]\n\
                    routes = [{ path = \"/open\", agents = [{ name = \"echo\", failure = \"open\" }] }]";
        let settings = "timeout = \"250ms\"\nbreaker = { open = \"500ms\" }";
        let served = Served::start_site(&application, site, &table("echo", address, settings));
        Front { served, leaked, bypassed, _application: application }
    }

    /// 0 closed, 1 open, 2 half-open.
    fn breaker(&self) -> f64 {
        self.served.metric("portcullis_agent_circuit_breaker_state{agent=\"echo\"}")
    }

    /// Runs `fault` while clients of both routes are at it, and says what they saw: closed, open.
    fn under_load(&self, fault: impl FnOnce(&Seen, &Seen)) -> (Seen, Seen) {
        let (closed, open, stop) = (Seen::default(), Seen::default(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            for number in 0..CLIENTS {
                let (path, seen) = if number % 2 == 0 { ("/closed", &closed) } else { ("/open", &open) };
                let stop = &stop;
                scope.spawn(move || client(&self.served, path, seen, stop));
            }
            until(|| closed.count().0 > 20 && open.count().0 > 20);
            // A failed assertion of the fault must not leave the clients running.
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| fault(&closed, &open)));
            stop.store(true, Relaxed);
            if let Err(panic) = result {
                std::panic::resume_unwind(panic);
            }
        });
        (closed, open)
    }

    fn check(&self, closed: &Seen, open: &Seen) {
        let (closed, open) = (closed.count(), open.count());
        assert_eq!(self.leaked.load(Relaxed), 0, "no request passed unseen where that is not allowed");
        assert!(self.bypassed.load(Relaxed) > 0, "and some did where it is");
        assert!(closed.1 > 0 && closed.2 == 0, "refused with 503, nothing else: {closed:?}");
        let all = open.0 + open.1 + open.2;
        assert!(open.0 * 100 >= all * 99, "at least 99 % pass: {open:?}");
    }
}

#[test]
fn a_crash_and_a_new_start() {
    let folder = tempfile::tempdir().unwrap();
    crash(&unix(folder.path()));
}

#[test]
fn a_crash_and_a_new_start_over_grpc() {
    crash(&grpc());
}

fn crash(address: &Address) {
    let agent = Agent::echo(address);
    let front = Front::start(address);
    let (closed, open) = front.under_load(|closed, open| {
        agent.kill();
        until(|| front.breaker() == 1.0);
        let (refused, passed) = (closed.count().1, open.count().0);
        until(|| closed.count().1 > refused + 50 && open.count().0 > passed + 50);
        let passed = closed.count().0;
        let _again = Agent::echo(address);
        until(|| front.breaker() == 0.0);
        until(|| closed.count().0 > passed + 50);
    });
    front.check(&closed, &open);
    let failures = |reason: &str| {
        let series = format!("portcullis_agent_failures_total{{agent=\"echo\",reason=\"{reason}\"}}");
        front.served.metric(&series)
    };
    assert!(failures("connect") + failures("closed") >= 5.0, "{}", front.served.metrics());
    front.served.stop();
}

#[test]
fn a_freeze_and_a_thaw() {
    let folder = tempfile::tempdir().unwrap();
    freeze(&unix(folder.path()));
}

#[test]
fn a_freeze_and_a_thaw_over_grpc() {
    freeze(&grpc());
}

fn freeze(address: &Address) {
    let agent = Agent::echo(address);
    let front = Front::start(address);
    let (closed, open) = front.under_load(|closed, open| {
        agent.freeze();
        until(|| front.breaker() == 1.0);
        let (refused, passed) = (closed.count().1, open.count().0);
        until(|| closed.count().1 > refused + 50 && open.count().0 > passed + 50);
        // Probes are lost while it stays frozen; that wedges nothing.
        std::thread::sleep(Duration::from_millis(1500));
        let passed = closed.count().0;
        agent.thaw();
        until(|| front.breaker() == 0.0);
        until(|| closed.count().0 > passed + 50);
    });
    front.check(&closed, &open);
    until(|| front.served.metric("portcullis_agent_timeouts_total{agent=\"echo\"}") >= 5.0);
    front.served.stop();
}

#[test]
fn an_agent_that_is_away_does_not_flood_events() {
    let folder = tempfile::tempdir().unwrap();
    let application = application(|_| says("hello"));
    let site = format!(
        "agents = [\"gone\"]\n{}",
        rules("SecRule REQUEST_URI \"@contains probe\" \"id:1,phase:1,pass,log\"")
    );
    let more = table("gone", &unix(folder.path()), "failure = \"open\"");
    let served = Served::start_site(&application, &site, &more);
    let omitted = || served.metric("portcullis_agent_events_omitted_total{agent=\"gone\"}");
    let mut sent = 0;
    until(|| {
        for _ in 0..50 {
            assert_eq!(served.get("/").status(), 200);
        }
        sent += 50;
        omitted() > 0.0
    });
    // Events with other content are always written.
    for _ in 0..20 {
        assert_eq!(served.get("/probe").status(), 200);
    }
    let told = sent + 20 - omitted() as usize;
    let events = served.events(told);
    assert_eq!(events.len(), told);
    assert_eq!(events.iter().filter(|event| event.contains("\"/probe\"")).count(), 20);
    let exceptions = served.metric("portcullis_exceptions_total{cause=\"agent_failed\",policy=\"open\"}");
    assert_eq!(exceptions as usize, sent + 20, "all are counted");
    served.stop();
}
