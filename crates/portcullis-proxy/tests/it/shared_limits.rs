//! Rate limits that two nodes share through a real redis-server, and what happens when it is gone.

use std::time::{Duration, Instant};

use crate::common::*;
use portcullis_testkit::shared_store::{Kind, SharedStore};

fn redis(address: std::net::SocketAddr) -> SharedStore {
    SharedStore::start(Kind::Redis, Some(address)).unwrap()
}

fn node(backend: &Backend, redis: std::net::SocketAddr, limits: &str) -> Front {
    let more = format!("limit_store = {{ url = \"redis://{redis}\", prefix = \"t:\" }}");
    Front::start(&document(backend.address, &more, "", &format!("{RULES}rate_limits = [{limits}]"), ""))
}

fn connected(node: &Front) -> bool {
    node.metric("portcullis_limit_store_connected") == 1.0
}

/// Requests that go through, one after the other, until `time` is over.
fn flood(node: &Front, path: &str, time: Duration) -> usize {
    let start = Instant::now();
    let mut passed = 0;
    while start.elapsed() < time {
        passed += ask(node, path, 20);
    }
    passed
}

/// How many of so many requests go through.
fn ask(node: &Front, path: &str, requests: usize) -> usize {
    let mut client = node.client();
    let mut passes = || {
        client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
        let head = client.response().0;
        assert!(matches!(status(&head), 200 | 429), "{head}");
        status(&head) == 200
    };
    (0..requests).filter(|_| passes()).count()
}

#[test]
fn two_nodes_let_through_what_one_may() {
    let backend = Backend::start(|_| ok("ok"));
    let address = vacant();
    let _redis = redis(address);
    // 20 a second, 80 at once; a lease, or credit, is 20 at most.
    let limit = "{ name = \"all\", rate = 20, burst = 80, shared = true, unavailable = \"closed\" }";
    let nodes = [node(&backend, address, limit), node(&backend, address, limit)];
    until(|| nodes.iter().all(connected));
    let start = Instant::now();
    let passed: usize = std::thread::scope(|scope| {
        let floods = nodes.each_ref().map(|node| scope.spawn(|| flood(node, "/", Duration::from_secs(3))));
        floods.into_iter().map(|flood| flood.join().unwrap()).sum()
    });
    let right = 80 + 20 * start.elapsed().as_secs() as usize + 20;
    println!("{passed} of {right}");
    assert!((40..=right + 2 * 20).contains(&passed), "{passed} of {right}");
    let limited = "portcullis_rate_limited_total{site=\"site\",limit=\"all\",action=\"block\"}";
    until(|| nodes.iter().all(|node| node.metric(limited) > 0.0));
}

#[test]
fn without_the_store_each_limit_does_what_it_says() {
    let backend = Backend::start(|_| ok("ok"));
    let address = vacant();
    let store = redis(address);
    let limit = |name: &str, path: &str, unavailable: &str| {
        format!(
            "[[sites.routes]]\npath = \"{path}\"\n[[sites.routes.rate_limits]]\nname = \"{name}\"\nrate = 1000\nburst = 50\n\
             per = \"1h\"\nshared = true\nunavailable = \"{unavailable}\"\n"
        )
    };
    let routes =
        [limit("o", "/open", "open"), limit("c", "/closed", "closed"), limit("l", "/local", "local")];
    let more = format!("limit_store = {{ url = \"redis://{address}\" }}");
    let site = format!("{RULES}{}", routes.concat());
    let front = Front::start(&document(backend.address, &more, "", &site, ""));
    until(|| connected(&front));
    for path in ["/open", "/closed", "/local"] {
        let mut client = front.client();
        client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert_eq!(status(&client.response().0), 200, "{path}");
    }
    // Killed under load.
    std::thread::scope(|scope| {
        let load = scope.spawn(|| flood(&front, "/open", Duration::from_secs(2)));
        drop(store);
        until(|| !connected(&front));
        load.join().unwrap();
    });
    until(|| front.metric("portcullis_limit_store_failures_total") >= 1.0);
    assert!(front.lines().iter().any(|line| line.contains("the rate limit store cannot be reached")));
    assert_eq!(ask(&front, "/open", 100), 100, "open: all go on");
    assert_eq!(ask(&front, "/closed", 100), 0, "closed: none does");
    let passed = ask(&front, "/local", 100);
    assert!((40..=51).contains(&passed), "local: the burst of this node: {passed}");
    for (limit, policy) in [("o", "open"), ("c", "closed"), ("l", "local")] {
        let unshared = format!(
            "portcullis_rate_limit_unshared_total{{site=\"site\",limit=\"{limit}\",policy=\"{policy}\"}}"
        );
        until(|| front.metric(&unshared) > 0.0);
    }
    let _redis = redis(address);
    until(|| connected(&front));
    until(|| ask(&front, "/closed", 1) == 1);
    assert!(front.lines().iter().any(|line| line.contains("is reachable again")));
}
