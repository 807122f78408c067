//! The admin listener over a real socket.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use portcullis_admin::{Bans, Health, Limits, Pages, Reload, serve_with};
use portcullis_metrics::{Registry, catalogue};

/// 192.0.2.1 is banned at `shop`.
struct OneBan;

impl Bans for OneBan {
    fn list(&self) -> String {
        "{\"bans\":[1]}\n".to_string()
    }

    fn impose(&self, ban: Option<&str>, client: std::net::IpAddr, length: Duration) -> usize {
        let is_known = ban.is_none_or(|ban| ban == "shop/a b") && client.to_string() != "192.0.2.9";
        usize::from(is_known && length.as_secs() <= 365 * 86_400)
    }

    fn lift(&self, ban: Option<&str>, client: std::net::IpAddr) -> usize {
        usize::from(ban.is_none_or(|ban| ban == "shop/a b") && client.to_string() == "192.0.2.1")
    }
}

struct Server {
    address: SocketAddr,
    registry: Arc<Registry>,
    draining: Arc<AtomicBool>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Server {
    fn start(limits: Limits) -> Server {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.set_nonblocking(true).expect("a non-blocking listener");
        let address = listener.local_addr().expect("an address");
        let registry = Registry::new();
        let draining = Arc::new(AtomicBool::new(false));
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let (reloads, mut asked) = tokio::sync::mpsc::channel::<Reload>(1);
        let (shared, flag) = (registry.clone(), draining.clone());
        let health = move || match flag.load(Ordering::Relaxed) {
            true => Health::NotReady("draining".into()),
            false => Health::Ready,
        };
        let thread = std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async move {
                tokio::spawn(async move {
                    let mut count = 0;
                    while let Some(reload) = asked.recv().await {
                        count += 1;
                        reload.answer(if count == 1 {
                            Ok("done".to_string())
                        } else {
                            Err("bad".to_string())
                        });
                    }
                });
                let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
                let shutdown = async {
                    let _ = stopped.await;
                };
                let (health, bans) = (Box::new(health), Some(Arc::new(OneBan) as Arc<dyn Bans>));
                let pages = Pages {
                    registry: shared,
                    health,
                    bans,
                    reloads: Some(reloads),
                    hosts: vec!["waf.internal".to_owned()],
                };
                serve_with(listener, pages, shutdown, limits).await;
            });
        });
        Server { address, registry, draining, stop: Some(stop), thread: Some(thread) }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
        stream
    }

    /// Sends `request`, returns all that comes until the server closes.
    fn ask(&self, request: &str) -> String {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).expect("sending");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    }

    fn get(&self, path: &str) -> (u16, String) {
        let answer =
            self.ask(&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"));
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        (head[9..12].parse().expect("a status"), body.to_owned())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the server does not panic");
        }
    }
}

#[test]
fn pages() {
    let server = Server::start(Limits::default());
    server.registry.gauge(&catalogue::POLICY_GENERATION, &[]).set(7);
    let (status, metrics) = server.get("/metrics");
    assert_eq!(status, 200);
    assert!(metrics.contains("\nportcullis_policy_generation 7\n"), "{metrics}");
    assert_eq!(server.get("/metrics?x=1").0, 200);
    assert_eq!(server.get("/healthz"), (200, "ok\n".into()));
    assert_eq!(server.get("/readyz"), (200, "ready\n".into()));
    server.draining.store(true, Ordering::Relaxed);
    assert_eq!(server.get("/readyz"), (503, "not ready: draining\n".into()));
    assert_eq!(server.get("/healthz").0, 200);
    assert_eq!(server.get("/").0, 404);
    assert_eq!(server.get("/metrics/").0, 404);
}

#[test]
fn methods_and_headers() {
    let server = Server::start(Limits::default());
    let answer = server.ask("POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nhi");
    assert!(answer.starts_with("HTTP/1.1 405 ") && answer.contains("\r\nAllow: GET, HEAD\r\n"), "{answer}");
    let answer = server.ask("HEAD /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert!(answer.contains("\r\nContent-Length: 3\r\n") && answer.ends_with("\r\n\r\n"), "{answer}");
    let answer = server.ask("GET /metrics HTTP/1.0\r\n\r\n");
    assert!(answer.contains("\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"), "{answer}");
}

#[test]
fn connections_are_kept_and_requests_may_come_in_one_packet() {
    let server = Server::start(Limits::default());
    let one = "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n";
    let answer = server.ask(&format!("{one}{one}GET /none HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
    assert_eq!(
        (answer.matches("200 OK").count(), answer.matches("404 Not Found").count()),
        (2, 1),
        "{answer}"
    );
}

#[test]
fn what_is_not_http_is_refused() {
    let server = Server::start(Limits::default());
    for (request, status) in [
        ("nonsense\r\n\r\n".to_owned(), "400"),
        ("GET /metrics HTTP/1.1\r\n\r\n".to_owned(), "400"),
        (
            "GET /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n".to_owned(),
            "400",
        ),
        (format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(9000)), "414"),
        (format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(9000)), "431"),
    ] {
        let mut stream = server.connect();
        // The server may answer and close before it has read everything.
        let _ = stream.write_all(request.as_bytes());
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).expect("a status line");
        assert_eq!(&answer[9..], status.as_bytes(), "{}", &request[..request.len().min(40)]);
    }
}

#[test]
fn slow_clients_are_sent_away() {
    let limits = Limits { head_time_max: Duration::from_millis(200), ..Limits::default() };
    let server = Server::start(limits);
    let mut slow = server.connect();
    slow.write_all(b"GET /met").expect("sending");
    let mut rest = Vec::new();
    assert_eq!(slow.read_to_end(&mut rest).unwrap_or(0), 0, "closed without an answer");
}

#[test]
fn silent_clients_make_room_for_a_health_check() {
    let server = Server::start(Limits { connections_max: 8, ..Limits::default() });
    for begun in ["", "GET /met"] {
        let mut silent: Vec<TcpStream> = (0..20).map(|_| server.connect()).collect();
        for stream in &mut silent {
            let _ = stream.write_all(begun.as_bytes());
        }
        for _ in 0..10 {
            let began = std::time::Instant::now();
            assert_eq!(server.get("/healthz").0, 200);
            assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
        }
    }
}

/// Clients that ask and do not read the answers, or have it reload, keep no health check out.
#[test]
fn clients_that_do_not_read_make_room_for_a_health_check() {
    let long = Duration::from_secs(600);
    let server = Server::start(Limits { connections_max: 8, write_time_max: long, ..Limits::default() });
    for request in ["GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", "GET /none HTTP/1.1\r\nHost: a\r\n\r\n"] {
        let held: Vec<TcpStream> = (0..20)
            .map(|_| {
                let mut stream = server.connect();
                stream.set_nonblocking(true).expect("a non-blocking stream");
                // More answers than buffers hold, as far as they are taken.
                for _ in 0..40 {
                    let _ = stream.write_all(request.repeat(500).as_bytes());
                }
                stream
            })
            .collect();
        for _ in 0..10 {
            assert_eq!(server.get("/healthz").0, 200);
        }
        drop(held);
    }
}

#[test]
fn shutdown_does_not_wait_for_idle_connections() {
    let server = Server::start(Limits { drain_time_max: Duration::from_millis(100), ..Limits::default() });
    let _idle = server.connect();
    std::thread::sleep(Duration::from_millis(20));
    // It would never end, since the client stays.
    drop(server);
}

#[test]
fn bans_are_listed_and_lifted() {
    let server = Server::start(Limits::default());
    let ask = |line: &str, host: &str| {
        let answer = server.ask(&format!("{line} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"));
        let status = answer[9..12].parse::<u16>().unwrap();
        (status, answer.rsplit("\r\n\r\n").next().unwrap_or_default().to_string())
    };
    assert_eq!(ask("GET /bans", "127.0.0.1"), (200, "{\"bans\":[1]}\n".into()));
    // Under a name that others may have given to our address, only health is reported.
    for (line, host, status) in [
        ("GET /bans", "rebound.example", 403),
        ("GET /metrics", "rebound.example", 403),
        ("GET /metrics", "127.0.0.1.rebound.example:9090", 403),
        ("GET /metrics", "localhost.rebound.example", 403),
        ("POST /reload", "rebound.example", 403),
        ("GET /metrics", "WAF.internal:9090", 200),
        ("GET /metrics", "localhost:9090", 200),
        ("GET /metrics", "[::1]:9090", 200),
        ("GET /healthz", "rebound.example", 200),
        ("GET /readyz", "rebound.example", 200),
    ] {
        assert_eq!(ask(line, host).0, status, "{line} as {host}");
    }
    assert_eq!(ask("POST /bans", "127.0.0.1").0, 405);
    for (query, host, status) in [
        ("client=192.0.2.1&seconds=60", "127.0.0.1", 200),
        ("client=192.0.2.1&seconds=60&ban=shop%2fa+b", "127.0.0.1", 200),
        ("client=192.0.2.1&seconds=60", "rebound.example", 403),
        ("client=192.0.2.1&seconds=60&ban=other", "127.0.0.1", 409),
        ("client=192.0.2.9&seconds=60", "127.0.0.1", 409),
        ("client=192.0.2.0%2f24&seconds=60", "127.0.0.1", 400),
        ("client=192.0.2.1", "127.0.0.1", 400),
        ("client=192.0.2.1&seconds=0", "127.0.0.1", 400),
        ("client=192.0.2.1&seconds=31536001", "127.0.0.1", 400),
        ("client=192.0.2.1&second=60", "127.0.0.1", 400),
        ("seconds=60", "127.0.0.1", 400),
    ] {
        let (got, text) = ask(&format!("PUT /bans?{query}"), host);
        assert_eq!(got, status, "{query}: {text}");
    }
    for (query, host, status) in [
        ("client=192.0.2.1", "127.0.0.1:9090", 200),
        ("client=192.0.2.1", "localhost", 200),
        ("client=192.0.2.1", "[::1]:9090", 200),
        ("client=192.0.2.1", "rebound.example", 403),
        ("client=192.0.2.1&ban=shop%2fa+b", "127.0.0.1", 200),
        ("client=192.0.2.1&ban=other", "127.0.0.1", 404),
        ("client=192.0.2.9", "127.0.0.1", 404),
        ("client=somebody", "127.0.0.1", 400),
        ("clint=192.0.2.1", "127.0.0.1", 400),
        ("", "127.0.0.1", 400),
    ] {
        let (got, text) = ask(&format!("DELETE /bans?{query}"), host);
        assert_eq!(got, status, "{query}: {text}");
    }
}

#[test]
fn reloads_are_asked_for_by_post_and_not_by_pages() {
    let server = Server::start(Limits::default());
    let ask = |method: &str, more: &str| {
        let head =
            format!("{method} /reload HTTP/1.1\r\nHost: 127.0.0.1:9090\r\nConnection: close\r\n{more}\r\n");
        let answer = server.ask(&head);
        answer.split(' ').nth(1).and_then(|status| status.parse::<u16>().ok()).map(|status| (status, answer))
    };
    let (status, answer) = ask("GET", "").expect("an answer");
    assert!(status == 405 && answer.contains("Allow: POST\r\n"), "{answer}");
    for more in ["Origin: http://evil.example\r\n", "Sec-Fetch-Site: cross-site\r\n"] {
        assert_eq!(ask("POST", more).expect("an answer").0, 403);
    }
    for (expected, text) in [(200, "\r\n\r\ndone\n"), (422, "\r\n\r\nbad\n")] {
        let (status, answer) = ask("POST", "Content-Length: 0\r\n").expect("an answer");
        assert!(status == expected && answer.ends_with(text), "{answer}");
    }
}
