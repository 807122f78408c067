//! Nodes that share records through a real redis-server, which must be installed.

use std::sync::Arc;
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
    // What the store itself keeps is shared, too.
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
