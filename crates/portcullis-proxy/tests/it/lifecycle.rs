//! Reload and drain: no request is lost.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::common::*;

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

#[test]
fn a_good_reload_holds_from_the_next_request_and_a_bad_one_not_at_all() {
    let old = Backend::start(|_| ok("old"));
    let new = Backend::start(|_| ok("new"));
    let first = document(old.address, "", "", RULES, "");
    let front = Front::start(&first);
    let mut client = front.client();
    client.send(GET);
    assert_eq!(client.response().1, b"old");

    let second = parse(&document(new.address, "", "", RULES, ""));
    front.proxy.reload(&second, &inspectors(&second)).unwrap();
    client.send(GET);
    assert_eq!(client.response().1, b"new", "on the same connection");
    front.counts("portcullis_policy_generation", 2.0);

    let page = document(old.address, "block_page = { file = \"missing.html\" }", "", RULES, "");
    let moved = first.replace("127.0.0.1:0", "127.0.0.1:1");
    for bad in [page, moved] {
        let bad = parse(&bad);
        front.proxy.reload(&bad, &inspectors(&bad)).unwrap_err();
        client.send(GET);
        assert_eq!(client.response().1, b"new");
    }
    assert_eq!(front.proxy.generation(), 2);
    front.counts("portcullis_reloads_total{result=\"failed\"}", 2.0);
    front.counts("portcullis_reloads_total{result=\"ok\"}", 1.0);
}

#[test]
fn reloads_under_load_lose_nothing() {
    let backend = Backend::start(|_| ok("ok"));
    let text = document(backend.address, "", "", RULES, "").replace("workers = 1", "workers = 2");
    let front = Front::start(&text);
    let stop = Arc::new(AtomicBool::new(false));
    let done = Arc::new(AtomicUsize::new(0));
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let (stop, done, address) = (Arc::clone(&stop), Arc::clone(&done), front.address());
            std::thread::spawn(move || {
                let mut client = Client::connect(address);
                while !stop.load(Ordering::Relaxed) {
                    client.send(GET);
                    assert_eq!(status(&client.response().0), 200);
                    done.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    let config = parse(&text);
    for _ in 0..20 {
        front.proxy.reload(&config, &inspectors(&config)).unwrap();
        std::thread::sleep(Duration::from_millis(10));
    }
    until(|| done.load(Ordering::Relaxed) > 100);
    stop.store(true, Ordering::Relaxed);
    for client in clients {
        client.join().unwrap();
    }
}

#[test]
fn draining_finishes_what_is_in_flight() {
    let (goes_on, step) = std::sync::mpsc::channel();
    let step = Arc::new(Mutex::new(step));
    let backend = Backend::start(move |_| {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nslow".to_vec();
        Reply::Steps(vec![Vec::new(), answer], Arc::clone(&step))
    });
    let front = Front::plain(&backend);
    let address = front.address();
    let mut busy = front.client();
    busy.send(GET);
    let mut idle = front.client();
    idle.send("GET /attack HTTP/1.1\r\nHost: a\r\n\r\n");
    idle.response();
    until(|| backend.seen().len() == 1);
    let proxy = front.proxy;
    let start = Instant::now();
    let drain = std::thread::spawn(move || proxy.drain());
    assert_eq!(idle.rest(), "", "an idle connection is closed, and does not wait for the busy one");
    until(|| std::net::TcpStream::connect(address).is_err());
    goes_on.send(()).unwrap();
    let (head, body) = busy.response();
    assert_eq!((status(&head), header(&head, "connection"), body), (200, Some("close"), b"slow".to_vec()));
    drop(busy);
    drain.join().unwrap();
    assert!(start.elapsed() < Duration::from_secs(25), "well before the deadline");
}

#[test]
fn draining_ends_at_its_deadline() {
    let backend = Backend::start(|_| Reply::Silence);
    let front = Front::start(&document(backend.address, "timeouts = { drain = \"200ms\" }", "", RULES, ""));
    let mut client = front.client();
    client.send(GET);
    until(|| backend.seen().len() == 1);
    let start = Instant::now();
    front.proxy.drain();
    assert!((150..20_000).contains(&(start.elapsed().as_millis() as u64)));
    assert_eq!(client.rest(), "");
}

#[test]
fn hosts_and_paths_select_site_and_route() {
    let app = Backend::start(|_| ok("app"));
    let api = Backend::start(|_| ok("api"));
    let text = format!(
        "workers = 1\n[[listeners]]\nname = \"main\"\naddress = \"127.0.0.1:0\"\n\
         [[sites]]\nname = \"shop\"\nhosts = [\"shop.example\", \"*.shop.example\"]\nupstream = \"app\"\n{RULES}\
         routes = [{{ path = \"/api/\", upstream = \"api\", engine = \"detection_only\" }}, \
         {{ path = \"/static/\", mode = \"off\" }}]\n\
         [upstreams.app]\nendpoints = [\"http://{}\"]\n[upstreams.api]\nendpoints = [\"http://{}\"]\n",
        app.address, api.address
    );
    let front = Front::start(&text);
    let mut client = front.client();
    for (host, path, code, body) in [
        ("shop.example", "/", 200, "app"),
        ("WWW.shop.example:80", "/", 200, "app"),
        ("shop.example", "/attack", 403, ""),
        ("shop.example", "/api/attack", 200, "api"),
        ("shop.example", "/static/attack", 200, "app"),
        ("shop.example", "/static/../attack", 400, ""),
        ("shop.example", "/static/%2e%2e/attack", 400, ""),
        ("other.example", "/", 404, ""),
    ] {
        client.send(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        let (head, got) = client.response();
        assert_eq!(status(&head), code, "{host} {path}");
        if !body.is_empty() {
            assert_eq!(got, body.as_bytes(), "{host} {path}");
        }
    }
    let detected =
        "portcullis_requests_total{site=\"shop\",route=\"/api/\",status=\"200\",verdict=\"detect\"}";
    until(|| front.metric(detected) == 1.0);
    until(|| {
        front.metric("portcullis_requests_total{site=\"\",route=\"\",status=\"404\",verdict=\"deny\"}") == 1.0
    });
}
