//! Nodes that share records through a real redis-server, which must be installed.

use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use portcullis_engine::{Change, Collections, RecordId, Sum, Value, VariableChange};
use portcullis_metrics::Registry;
use portcullis_store::{Options, Redis, Store, StoreMetrics};
use portcullis_testkit::shared_store::{Kind, SharedStore};
use portcullis_testkit::wait::until;

struct Node {
    store: Store,
    registry: Arc<Registry>,
}

fn redis() -> SharedStore {
    SharedStore::start(Kind::Redis, None).unwrap()
}

fn node(server: &SharedStore, prefix: &str) -> Node {
    let registry = Registry::new();
    let redis = Redis { url: server.url(), prefix: prefix.into() };
    let options = Options { redis: Some(redis), ..Options::default() };
    let say = Arc::new(|line: &str| println!("{line}"));
    let node = Node { store: Store::open(options, StoreMetrics::new(&registry), say), registry };
    until(|| node.shows("portcullis_store_redis_connected 1"));
    node
}

impl Node {
    fn shows(&self, line: &str) -> bool {
        self.registry.render().lines().any(|shown| shown == line)
    }

    fn change(&self, key: &str, variable: &str, change: Change<'_>) {
        let changes = [VariableChange { variable: variable.as_bytes(), change }];
        self.store.save(RecordId { name: b"ip", key: key.as_bytes() }, 3600, now(), &changes);
    }

    fn count(&self, key: &str, by: i64) {
        // As a transaction does that read the record before.
        let value = self.get(key, "n").unwrap_or(0) + by;
        self.change(key, "n", Change::Add(Sum { delta: by, decay: 0, seen: 0, value: value.max(0) }));
    }

    fn get(&self, key: &str, variable: &str) -> Option<i64> {
        let mut found = None;
        self.store.load(RecordId { name: b"ip", key: key.as_bytes() }, now(), &mut |name, value| {
            if name.eq_ignore_ascii_case(variable.as_bytes()) {
                found = Some(value.to_int());
            }
        });
        found
    }
}

fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64
}

#[test]
fn what_one_node_changes_the_others_see() {
    let server = redis();
    let (a, b) = (node(&server, "t:"), node(&server, "t:"));
    let elsewhere = node(&server, "other:");
    a.count("k", 3);
    a.change("k", "s", Change::Set(Value::Int(7)));
    let began = Instant::now();
    until(|| b.get("k", "n") == Some(3) && b.get("k", "s") == Some(7));
    println!("seen after {:?}", began.elapsed());
    b.change("k", "s", Change::Unset);
    b.count("k", -10);
    until(|| a.get("k", "n") == Some(0) && a.get("k", "s").is_none());
    // The store's own variables are shared, too.
    until(|| a.get("k", "UPDATE_COUNTER") == Some(4) && b.get("k", "UPDATE_COUNTER") == Some(4));
    assert_eq!(a.get("k", "CREATE_TIME"), b.get("k", "CREATE_TIME"));
    assert_eq!(elsewhere.get("k", "n"), None);
    let later = node(&server, "t:");
    until(|| later.get("k", "UPDATE_COUNTER") == Some(4));
}

#[test]
fn nodes_that_count_at_once_lose_nothing() {
    let server = redis();
    let nodes: Vec<Node> = (0..3).map(|_| node(&server, "t:")).collect();
    std::thread::scope(|scope| {
        for node in &nodes {
            scope.spawn(move || {
                for n in 0..2_000 {
                    node.count(&format!("k{}", n % 5), 1);
                    if n % 100 == 0 {
                        std::thread::sleep(Duration::from_millis(7));
                    }
                }
            });
        }
    });
    for node in &nodes {
        until(|| (0..5).all(|key| node.get(&format!("k{key}"), "n") == Some(1_200)));
    }
}

#[test]
fn a_redis_that_dies_costs_no_count() {
    let server = redis();
    let nodes = [node(&server, "t:"), node(&server, "t:")];
    nodes[0].count("k", 10);
    nodes[1].count("idle", 5);
    until(|| nodes.iter().all(|node| node.get("k", "n") == Some(10) && node.get("idle", "n") == Some(5)));
    let address = server.address();
    drop(server);
    nodes[0].count("k", 1);
    nodes[1].count("k", 2);
    nodes[1].count("new", 4);
    until(|| nodes.iter().all(|node| node.shows("portcullis_store_redis_connected 0")));
    assert_eq!((nodes[0].get("k", "n"), nodes[1].get("k", "n")), (Some(11), Some(12)));
    // It comes back and knows nothing.
    let server = SharedStore::start(Kind::Redis, Some(address)).unwrap();
    nodes[0].count("k", 1);
    until(|| nodes.iter().all(|node| node.get("k", "n") == Some(14) && node.get("new", "n") == Some(4)));
    until(|| nodes.iter().all(|node| node.shows("portcullis_store_redis_unsent 0")));
    let later = node(&server, "t:");
    until(|| later.get("k", "n") == Some(14) && later.get("idle", "n") == Some(5));
}

#[test]
fn an_end_sends_what_is_left() {
    let server = redis();
    let (a, b) = (node(&server, "t:"), node(&server, "t:"));
    a.count("k", 1);
    drop(a);
    until(|| b.get("k", "n") == Some(1));
}

/// A key of another type, where a record should be, is a mistake: it costs no other record anything,
/// and it is mended.
#[test]
fn a_key_of_another_type_harms_no_other_record() {
    let server = redis();
    let address = server.url();
    let redis = portcullis_resp::Client::new(&address).unwrap();
    let limits = portcullis_resp::Limits { bytes_max: 1 << 20, values_max: 1_000 };
    let mut direct = redis.connect(Duration::from_secs(5), limits).unwrap();
    let mut ask = |words: &[&str]| {
        let command = words[1..]
            .iter()
            .fold(portcullis_resp::Command::new(words[0]), |all, word| all.arg(word.as_bytes()));
        direct.ask(&command, Duration::from_secs(5)).unwrap()
    };
    for key in ["p:r:2:ip:wrong", "p:r:2:ip:other", "p:r:9:ip"] {
        ask(&["SET", key, "text"]);
    }
    let nodes = [node(&server, "p:"), node(&server, "p:")];
    nodes[0].count("wrong", 2);
    nodes[0].count("right", 3);
    until(|| nodes[1].get("right", "n") == Some(3) && nodes[1].get("wrong", "n") == Some(2));
    // While they are connected, too.
    ask(&["DEL", "p:r:2:ip:right"]);
    ask(&["RPUSH", "p:r:2:ip:right", "a"]);
    nodes[1].count("right", 1);
    nodes[1].count("more", 5);
    until(|| nodes[0].get("more", "n") == Some(5) && nodes[0].get("right", "n") == Some(4));
    assert!(nodes.iter().all(|node| node.shows("portcullis_store_redis_failures_total 0")));
}

/// A server that answers without an end, or not at all, ends with the process.
#[test]
fn a_hostile_redis_holds_nobody_up() {
    let hostile: [(&str, &[u8], u64); 4] = [
        ("SCAN", b"*2\r\n$1\r\n7\r\n*1\r\n$11\r\nr:2:ip:aaaa\r\n", 0),
        ("XREVRANGE", b"*12000000\r\n:1\r\n", 0),
        ("XREVRANGE", b"*1", 20),
        ("HGETALL", b"$1000000000\r\nx", 0),
    ];
    for (command, answer, pause) in hostile {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                std::thread::spawn(move || serve(stream, command, answer, Duration::from_millis(pause)));
            }
        });
        let registry = Registry::new();
        let redis = Redis { url: format!("redis://{address}"), prefix: String::new() };
        let options = Options { redis: Some(redis), ..Options::default() };
        let say = Arc::new(|line: &str| println!("{line}"));
        let node = Node { store: Store::open(options, StoreMetrics::new(&registry), say), registry };
        if command == "SCAN" {
            std::thread::sleep(Duration::from_millis(300));
        } else {
            let failed = |line: &&str| {
                line.starts_with("portcullis_store_redis_failures_total") && !line.ends_with(" 0")
            };
            until(|| node.registry.render().lines().any(|line| failed(&line)));
        }
        node.count("a", 1);
        assert_eq!(node.get("a", "n"), Some(1), "{command}: the node goes on alone");
        let began = Instant::now();
        drop(node);
        assert!(began.elapsed() < Duration::from_secs(5), "{command}: {:?}", began.elapsed());
    }
}

/// A SCAN that never ends is asked for on and on, so that the records are found in the end where a server has
/// very many keys; but at a bounded rate, and the end of the process does not wait for it.
#[test]
fn a_scan_without_end_is_asked_for_at_a_bounded_rate() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let count = Arc::clone(&count);
            std::thread::spawn(move || {
                let mut bytes = [0; 64 << 10];
                while let Ok(length @ 1..) = stream.read(&mut bytes) {
                    let text = String::from_utf8_lossy(&bytes[..length]).into_owned();
                    // Another place to go on from each time.
                    let answer = match text.contains("SCAN") {
                        true => {
                            format!("*2\r\n$8\r\n{:08}\r\n*0\r\n", 1 + count.fetch_add(1, Ordering::Relaxed))
                        }
                        false => "*0\r\n".to_owned(),
                    };
                    if stream.write_all(answer.as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    let registry = Registry::new();
    let redis = Redis { url: format!("redis://{address}"), prefix: String::new() };
    let options = Options { redis: Some(redis), ..Options::default() };
    let say = Arc::new(|line: &str| println!("{line}"));
    let node = Node { store: Store::open(options, StoreMetrics::new(&registry), say), registry };
    until(|| asked.load(Ordering::Relaxed) > 500);
    let (before, began) = (asked.load(Ordering::Relaxed), Instant::now());
    std::thread::sleep(Duration::from_secs(1));
    let rate = (asked.load(Ordering::Relaxed) - before) as f64 / began.elapsed().as_secs_f64();
    assert!((1.0..600.0).contains(&rate), "{rate} a second");
    let began = Instant::now();
    drop(node);
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

/// Answers as an empty Redis does, but `hostile` as told, again and again.
fn serve(mut stream: std::net::TcpStream, hostile: &str, answer: &[u8], pause: Duration) {
    let mut asked = [0; 64 << 10];
    while let Ok(count @ 1..) = stream.read(&mut asked) {
        let text = String::from_utf8_lossy(&asked[..count]).into_owned();
        let commands = text.matches("HGETALL").count().max(1);
        let wrote = match text.contains(hostile) {
            true if hostile == "SCAN" => stream.write_all(answer),
            true => loop {
                if let Err(error) = stream.write_all(answer) {
                    break Err(error);
                }
                std::thread::sleep(pause);
            },
            false if text.contains("SCAN") => {
                stream.write_all(b"*2\r\n$1\r\n0\r\n*1\r\n$11\r\nr:2:ip:aaaa\r\n")
            }
            false => stream.write_all(&b"*0\r\n".repeat(commands)),
        };
        if wrote.is_err() {
            return;
        }
    }
}
