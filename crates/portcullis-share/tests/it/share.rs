//! Nodes that share a limit through a real redis-server and a real memcached, which must be installed.

use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use portcullis_access::Taken;
use portcullis_metrics::Registry;
use portcullis_share::{Link, ShareMetrics, Shared};
use portcullis_testkit::process::Signal;
use portcullis_testkit::shared_store::{Kind, SharedStore};
use portcullis_testkit::wait::{PATIENCE, until};

struct Node {
    link: Link,
    limit: Arc<Shared>,
    registry: Arc<Registry>,
    started: Instant,
}

fn node(server: &SharedStore, interval: Duration, burst: u64) -> Node {
    let registry = Registry::new();
    let started = Instant::now();
    let say: portcullis_share::Say = Arc::new(|line: &str| println!("{line}"));
    let link = Link::start((&server.url(), "t:"), ShareMetrics::new(&registry), started, &say).unwrap();
    until(|| link.is_up());
    Node { link, limit: Shared::new("site:limit".to_string(), interval, burst, 1024), registry, started }
}

impl Node {
    fn take(&self, client: &str) -> Taken {
        let key = self.limit.leases().table().key([client.as_bytes()]);
        let now = self.started.elapsed().as_nanos() as u64 + 1;
        self.limit.take(&self.link, key, now, || client.as_bytes().to_vec())
    }

    fn metric(&self, name: &str) -> f64 {
        let text = self.registry.render();
        let line = text.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or(0.0)
    }
}

/// Returns the number of requests that two nodes let through together while each is asked all the time.
fn flood(nodes: &[Node; 2], client: &str, time: Duration) -> (u64, Duration) {
    let start = Instant::now();
    let count = |node: &Node| {
        let mut admitted = 0;
        while start.elapsed() < time {
            admitted += u64::from(node.take(client) == Taken::Admitted);
            std::thread::sleep(Duration::from_micros(200));
        }
        admitted
    };
    let admitted = std::thread::scope(|scope| {
        let other = scope.spawn(|| count(&nodes[1]));
        count(&nodes[0]) + other.join().unwrap()
    });
    (admitted, start.elapsed())
}

#[test]
fn two_nodes_share_one_limit() {
    for kind in [Kind::Redis, Kind::Memcached] {
        let server = SharedStore::start(kind, None).unwrap();
        // 200 a second, 160 at once; a lease, or credit, is 40 at most.
        let interval = Duration::from_millis(5);
        let nodes = [node(&server, interval, 160), node(&server, interval, 160)];
        let (admitted, took) = flood(&nodes, "a", Duration::from_secs(3));
        let right = 160 + took.as_millis() as u64 / 5;
        let error = 2 * nodes[0].limit.leases().most();
        println!("{kind:?}: {admitted} of {right}");
        assert!(admitted <= right + error, "{kind:?}: {admitted} of {right}");
        assert!(admitted >= 160 - error, "{kind:?}: {admitted} of {right}");
        // Another key is not affected.
        assert_eq!(nodes[0].take("b"), Taken::Admitted);
        let exchanges = nodes[0].metric("portcullis_limit_store_exchange_seconds_count");
        assert!(exchanges > 0.0 && nodes[0].metric("portcullis_limit_store_leased_total") > 0.0);
    }
}

#[test]
fn a_store_that_dies_is_noticed_and_found_again() {
    for kind in [Kind::Redis, Kind::Memcached] {
        let server = SharedStore::start(kind, None).unwrap();
        let interval = Duration::from_millis(5);
        let node = node(&server, interval, 80);
        assert_eq!(node.take("a"), Taken::Admitted);
        until(|| node.metric("portcullis_limit_store_exchange_seconds_count") >= 1.0);
        let address = server.address();
        drop(server);
        // Under load: no request waits, and none is lost.
        let mut longest = Duration::ZERO;
        until(|| {
            let began = Instant::now();
            let taken = node.take("a");
            longest = longest.max(began.elapsed());
            taken == Taken::Unknown && !node.link.is_up()
        });
        println!("{kind:?}: the longest take took {longest:?}");
        assert!(node.metric("portcullis_limit_store_failures_total") >= 1.0);
        assert_eq!(node.metric("portcullis_limit_store_connected"), 0.0);
        let _server = SharedStore::start(kind, Some(address)).unwrap();
        until(|| node.take("a") == Taken::Admitted);
        assert_eq!(node.metric("portcullis_limit_store_connected"), 1.0);
    }
}

#[test]
fn more_questions_than_may_wait_are_dropped_and_counted() {
    let server = SharedStore::start(Kind::Redis, None).unwrap();
    let mut node = node(&server, Duration::from_millis(5), 80);
    node.limit = Shared::new("site:limit".to_string(), Duration::from_millis(5), 80, 1 << 20);
    let signal = |what: Signal| server.signal(what).unwrap();
    let (begin, mut client) = (Instant::now(), 0u32);
    // The queue holds 65,536, as long as an answer is waited for.
    while node.metric("portcullis_limit_store_dropped_total") == 0.0 {
        assert!(begin.elapsed() < PATIENCE, "waited too long");
        until(|| node.link.is_up());
        signal(Signal::STOP);
        for _ in 0..66_000 {
            client += 1;
            node.take(&client.to_string());
        }
        signal(Signal::CONT);
    }
}

/// An answer that no store gives: it is counted as a failure, costs no memory, and delays no request.
#[test]
fn a_hostile_store_costs_nothing() {
    let endless = |begin: &'static [u8], piece: &'static [u8], pause: Duration| {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                std::thread::spawn(move || {
                    let mut asked = [0; 64 << 10];
                    // The ping is answered as it should be, by both kinds.
                    let _ = stream.read(&mut asked).and_then(|count| {
                        match asked[..count].starts_with(b"version") {
                            true => stream.write_all(b"VERSION 1\r\n"),
                            false => stream.write_all(b"+PONG\r\n"),
                        }
                    });
                    let _ = stream.read(&mut asked).and_then(|_| stream.write_all(begin));
                    while stream.write_all(piece).is_ok() {
                        std::thread::sleep(pause);
                    }
                });
            }
        });
        address
    };
    let (fast, slow) = (Duration::ZERO, Duration::from_millis(20));
    let hostile: [(&str, &[u8], &[u8], Duration); 6] = [
        ("redis", b"*12000000\r\n", b":1\r\n", fast),
        ("redis", b"*1\r\n", b"*1\r\n", slow),
        ("redis", b"$1000000000\r\n", b"x", slow),
        ("memcached", b"", b"VALUE a 0 1 1\r\n1\r\n", fast),
        ("memcached", b"", b"x", fast),
        ("memcached", b"", b"E", slow),
    ];
    for (kind, begin, piece, pause) in hostile {
        let url = format!("{kind}://{}", endless(begin, piece, pause));
        let registry = Registry::new();
        let started = Instant::now();
        let say: portcullis_share::Say = Arc::new(|line: &str| println!("{line}"));
        let link = Link::start((&url, "t:"), ShareMetrics::new(&registry), started, &say).unwrap();
        let limit = Shared::new("site:limit".to_string(), Duration::from_secs(1), 20, 1024);
        let node = Node { link, limit, registry, started };
        until(|| node.link.is_up());
        let began = Instant::now();
        // Without an answer from there the node decides alone, and no client gets more than there is.
        until(|| {
            node.take("a");
            node.metric("portcullis_limit_store_failures_total") >= 1.0
        });
        assert!(began.elapsed() < Duration::from_secs(5), "{kind}: {:?}", began.elapsed());
        assert_eq!(node.metric("portcullis_limit_store_leased_total"), 0.0, "{kind}");
    }
}

#[test]
fn an_address_that_cannot_be_used_is_an_error() {
    let say: portcullis_share::Say = Arc::new(|_: &str| ());
    let start = |url| Link::start((url, ""), ShareMetrics::default(), Instant::now(), &say);
    let error = start("http://:secret@127.0.0.1").unwrap_err().to_string();
    assert!(!error.contains("secret"), "{error}");
}
