//! Groups of endpoints: who is asked, who is left out, and what the operator gets to know of it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use crate::common::*;

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// A document with one site without inspection; `group` is the text of the upstream.
fn upstream(group: &str) -> String {
    format!(
        "workers = 1\n[[listeners]]\naddress = \"127.0.0.1:0\"\n\
         [[sites]]\nname = \"site\"\nhosts = [\"*\"]\nupstream = \"app\"\nmode = \"off\"\n[upstreams.app]\n{group}\n"
    )
}

fn urls(addresses: &[SocketAddr]) -> String {
    let urls: Vec<String> = addresses.iter().map(|address| format!("\"http://{address}\"")).collect();
    format!("endpoints = [{}]", urls.join(", "))
}

fn get(client: &mut Client) -> u16 {
    client.send(GET);
    status(&client.response().0)
}

fn sent(front: &Front, endpoint: SocketAddr, result: &str) -> f64 {
    front.metric(&format!(
        "portcullis_upstream_requests_total{{upstream=\"app\",endpoint=\"{endpoint}\",result=\"{result}\"}}"
    ))
}

fn healthy(front: &Front) -> f64 {
    front.metric("portcullis_upstream_healthy_backends{upstream=\"app\"}")
}

#[test]
fn endpoints_take_turns_by_weight() {
    let (one, three) = (Backend::start(|_| ok("one")), Backend::start(|_| ok("three")));
    let front = Front::start(&upstream(&format!(
        "endpoints = [\"http://{}\", {{ url = \"http://{}\", weight = 3 }}]",
        one.address, three.address
    )));
    let mut client = front.client();
    for _ in 0..40 {
        assert_eq!(get(&mut client), 200);
    }
    assert_eq!((one.seen().len(), three.seen().len()), (10, 30));
    until(|| {
        sent(&front, one.address, "answered") == 10.0 && sent(&front, three.address, "answered") == 30.0
    });
    until(|| healthy(&front) == 2.0);
}

#[test]
fn the_endpoint_with_the_fewest_requests_is_asked() {
    for balance in ["least_connections", "power_of_two"] {
        let slow = Backend::start(|_| Reply::Silence);
        let quick = Backend::start(|_| ok("quick"));
        // The first request goes to the backend that keeps it, which the priority sees to; then both are
        // equals.
        let group = |priority: u8| {
            let (slow, quick) = (slow.address, quick.address);
            format!(
                "endpoints = [\"http://{slow}\", {{ url = \"http://{quick}\", priority = {priority} }}]\n\
                 balance = \"{balance}\""
            )
        };
        let front = Front::start(&upstream(&group(1)));
        let mut waiting = front.client();
        waiting.send(GET);
        until(|| slow.seen().len() == 1);
        until(|| front.metric("portcullis_upstream_requests_active") == 1.0);
        front.proxy.reload(&parse(&upstream(&group(0))), &[]).unwrap();
        let mut client = front.client();
        for _ in 0..20 {
            assert_eq!(get(&mut client), 200, "{balance}");
        }
        assert_eq!((slow.seen().len(), quick.seen().len()), (1, 20), "{balance}");
    }
}

#[test]
fn a_hash_keeps_a_session_at_its_endpoint() {
    let backends: Vec<Backend> = (0..3).map(|_| Backend::start(|_| ok("ok"))).collect();
    let addresses: Vec<SocketAddr> = backends.iter().map(|backend| backend.address).collect();
    for (by, header) in [("cookie:session", "Cookie: a=b; session="), ("header:X-User", "x-user: ")] {
        let group = format!("{}\nbalance = \"hash\"\nhash_by = \"{by}\"", urls(&addresses));
        let front = Front::start(&upstream(&group));
        let counts = || backends.iter().map(|backend| backend.seen().len()).collect::<Vec<_>>();
        let mut users_at = [0; 3];
        let mut client = front.client();
        for user in 0..30 {
            let before = counts();
            for _ in 0..3 {
                client.send(format!("GET / HTTP/1.1\r\nHost: a\r\n{header}{user}\r\n\r\n"));
                assert_eq!(status(&client.response().0), 200);
            }
            let rose: Vec<usize> =
                counts().iter().zip(before).map(|(after, before)| after - before).collect();
            let at = rose.iter().position(|count| *count == 3);
            users_at[at.unwrap_or_else(|| panic!("{by}: user {user} went to several: {rose:?}"))] += 1;
        }
        assert!(users_at.iter().all(|count| *count > 2), "{by}: {users_at:?}");
    }
}

#[test]
fn an_endpoint_that_fails_is_ejected_and_comes_back() {
    let (dead, alive) = (vacant(), Backend::start(|_| ok("ok")));
    let group = format!("{}\nejection = {{ failures = 2, time = \"3s\" }}", urls(&[dead, alive.address]));
    let front = Front::start(&upstream(&group));
    let mut client = front.client();
    for _ in 0..20 {
        assert_eq!(get(&mut client), 200, "no client notices");
    }
    until(|| sent(&front, dead, "failed") == 2.0); // and nobody tries any longer
    front.counts("portcullis_upstream_ejections_total", 1.0);
    until(|| healthy(&front) == 1.0);
    assert_eq!(front.lines(), [format!("upstream `app`: {dead}: ejected for 3 s: connect")]);
    let back = Backend::start_at(dead, |_| ok("back"));
    until(|| front.lines().contains(&format!("upstream `app`: {dead}: back after its ejection")));
    until(|| healthy(&front) == 2.0);
    for _ in 0..4 {
        assert_eq!(get(&mut client), 200);
    }
    assert_eq!(back.seen().len(), 2);
}

#[test]
fn answers_of_a_broken_gateway_eject_and_those_of_a_broken_application_do_not() {
    let answer = |status: u16| {
        move |_: &Recorded| {
            Reply::Bytes(format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n").into_bytes())
        }
    };
    for (bad, ejected) in [(500, 0.0), (502, 1.0), (503, 1.0), (504, 1.0)] {
        let (broken, good) = (Backend::start(answer(bad)), Backend::start(|_| ok("ok")));
        let front = Front::start(&upstream(&urls(&[broken.address, good.address])));
        let mut client = front.client();
        for _ in 0..20 {
            get(&mut client);
        }
        front.counts("portcullis_upstream_ejections_total", ejected);
        let expected = if ejected > 0.0 { 3 } else { 10 };
        assert_eq!(broken.seen().len(), expected, "{bad}");
    }
}

#[test]
fn an_ejected_endpoint_is_better_than_none() {
    let both = [vacant(), vacant()];
    let group = format!("{}\nejection = {{ failures = 1, time = \"1h\", time_max = \"1h\" }}", urls(&both));
    let front = Front::start(&upstream(&group));
    let mut client = front.client();
    assert_eq!([get(&mut client), get(&mut client)], [502; 2]);
    front.counts("portcullis_upstream_ejections_total", 1.0); // the last one is never ejected
    let ejected = both.into_iter().find(|one| front.lines()[0].contains(&format!("{one}: ejected")));
    let back = Backend::start_at(ejected.expect("one was ejected"), |_| ok("back"));
    assert_eq!([get(&mut client), get(&mut client)], [200; 2]);
    assert_eq!(back.seen().len(), 2);
}

#[test]
fn a_backup_is_asked_only_without_the_others() {
    let (primary, backup) = (vacant(), Backend::start(|_| ok("backup")));
    let group = format!(
        "endpoints = [\"http://{primary}\", {{ url = \"http://{}\", priority = 1 }}]\n\
         ejection = {{ failures = 1, time = \"1s\" }}",
        backup.address
    );
    let front = Front::start(&upstream(&group));
    let mut client = front.client();
    assert_eq!([get(&mut client), get(&mut client)], [200; 2]);
    assert_eq!(backup.seen().len(), 2);
    until(|| healthy(&front) == 1.0); // the gauge is brought up to date ten times a second
    let primary = Backend::start_at(primary, |_| ok("primary"));
    until(|| healthy(&front) == 2.0);
    for _ in 0..5 {
        assert_eq!(get(&mut client), 200);
    }
    assert_eq!((primary.seen().len(), backup.seen().len()), (5, 2));
}

#[test]
fn a_breaker_stops_asking_and_finds_out_when_to_begin_again() {
    let address = vacant();
    let group = format!("{}\nbreaker = {{ failures = 3, open = \"500ms\", probes = 1 }}", urls(&[address]));
    let front = Front::start(&upstream(&group));
    let mut client = front.client();
    let state = || front.metric("portcullis_upstream_circuit_breaker_state");
    assert_eq!([get(&mut client), get(&mut client), get(&mut client)], [502; 3]);
    assert_eq!([get(&mut client), get(&mut client)], [503; 2], "answered without asking");
    until(|| sent(&front, address, "failed") == 3.0);
    until(|| state() == 1.0 && healthy(&front) == 0.0);
    let event = front.events(5).pop().unwrap();
    assert_eq!(event.upstream_error, Some(portcullis_event::UpstreamError::NoEndpoint));
    // Probes that fail open it again; those that succeed close it.
    until(|| get(&mut client) == 502);
    let backend = Backend::start_at(address, |_| ok("ok"));
    until(|| get(&mut client) == 200);
    assert_eq!([get(&mut client), get(&mut client)], [200; 2]);
    until(|| state() == 0.0 && healthy(&front) == 1.0);
    assert_eq!(backend.seen().len(), 3);
    let said = |what: &str| front.lines().iter().filter(|line| line.contains(what)).count();
    assert_eq!((said("circuit breaker open: connect"), said("circuit breaker closed: probes")), (2, 1));
}

#[test]
fn a_reload_keeps_what_is_known_of_endpoints_that_stay() {
    let (dead, alive) = (vacant(), Backend::start(|_| ok("ok")));
    let group = format!(
        "{}\nejection = {{ failures = 1, time = \"1h\", time_max = \"1h\" }}",
        urls(&[dead, alive.address])
    );
    let front = Front::start(&upstream(&group));
    let mut client = front.client();
    assert_eq!([get(&mut client), get(&mut client)], [200; 2]);
    until(|| sent(&front, dead, "failed") == 1.0);
    let added = Backend::start(|_| ok("added"));
    let group = group.replace("endpoints = [", &format!("endpoints = [\"http://{}\", ", added.address));
    front.proxy.reload(&parse(&upstream(&group)), &[]).unwrap();
    for _ in 0..10 {
        assert_eq!(get(&mut client), 200);
    }
    until(|| sent(&front, dead, "failed") == 1.0); // it is still ejected
    assert_eq!(added.seen().len(), 5);
    assert!(alive.seen().iter().all(|request| request.connection == 0), "kept connections are used on");
    // An endpoint that is gone gets nothing, and its gauges are empty.
    front.proxy.reload(&parse(&upstream(&urls(&[added.address]))), &[]).unwrap();
    let before = alive.seen().len();
    assert_eq!([get(&mut client), get(&mut client)], [200; 2]);
    assert_eq!((alive.seen().len(), added.seen().len()), (before, 7));
    until(|| healthy(&front) == 1.0);
}

/// A backend whose health a test turns on and off.
struct Patient {
    backend: Backend,
    well: Arc<AtomicBool>,
}

impl Patient {
    fn start() -> Patient {
        let well = Arc::new(AtomicBool::new(true));
        let asked = Arc::clone(&well);
        let backend = Backend::start(move |request| match request.line().contains("/healthz") {
            true if !asked.load(Relaxed) => {
                Reply::Bytes(b"HTTP/1.1 503 Sick\r\nContent-Length: 0\r\n\r\n".to_vec())
            }
            _ => ok("ok"),
        });
        Patient { backend, well }
    }

    /// Requests of clients that came here.
    fn served(&self) -> usize {
        self.backend.seen().iter().filter(|request| !request.line().contains("/healthz")).count()
    }
}

#[test]
fn an_endpoint_that_does_not_pass_its_checks_gets_no_requests() {
    let (first, second) = (Patient::start(), Patient::start());
    let group = format!(
        "{}\nhealth = {{ path = \"/healthz\", host = \"app.example\", interval = \"50ms\", unhealthy = 3 }}",
        urls(&[first.backend.address, second.backend.address])
    );
    let front = Front::start(&upstream(&group));
    let mut client = front.client();
    assert_eq!([get(&mut client), get(&mut client)], [200; 2]);
    assert_eq!((first.served(), second.served()), (1, 1));
    first.well.store(false, Relaxed);
    until(|| healthy(&front) == 1.0);
    for _ in 0..10 {
        assert_eq!(get(&mut client), 200);
    }
    assert_eq!((first.served(), second.served()), (1, 11));
    second.well.store(false, Relaxed);
    until(|| healthy(&front) == 0.0);
    assert_eq!(get(&mut client), 503);
    // A reload does not forget, although the settings of the checks changed.
    let slower = group.replace("50ms", "70ms");
    front.proxy.reload(&parse(&upstream(&slower)), &[]).unwrap();
    assert_eq!(get(&mut client), 503);
    first.well.store(true, Relaxed);
    until(|| healthy(&front) == 1.0);
    assert_eq!(get(&mut client), 200);
    let name = |patient: &Patient| format!("upstream `app`: {}: ", patient.backend.address);
    let expected = [
        format!("{}unhealthy: answered 503", name(&first)),
        format!("{}unhealthy: answered 503", name(&second)),
        format!("{}healthy", name(&first)),
    ];
    assert_eq!(front.lines(), expected, "each change is said once");
    let checks = |result: &str| {
        let of = format!("endpoint=\"{}\",result=\"{result}\"", first.backend.address);
        front.metric(&format!("portcullis_upstream_health_checks_total{{upstream=\"app\",{of}}}"))
    };
    until(|| checks("passed") >= 3.0 && checks("failed") >= 3.0);
    let probe = first.backend.seen().into_iter().find(|request| request.line().contains("healthz")).unwrap();
    assert_eq!(probe.line(), "GET /healthz HTTP/1.1");
    assert_eq!((probe.header("host"), probe.header("connection")), (Some("app.example"), Some("close")));
    // Without checks nothing speaks against the other one.
    front.proxy.reload(&parse(&upstream(&urls(&[second.backend.address]))), &[]).unwrap();
    until(|| get(&mut client) == 200);
}

#[test]
fn checks_find_what_requests_have_not_met() {
    let (dead, alive) = (vacant(), Backend::start(|_| ok("ok")));
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    for (bad, health, why) in [
        (dead, "{ tcp = true, interval = \"50ms\" }", "connect"),
        (silent.local_addr().unwrap(), "{ path = \"/\", timeout = \"2s\" }", "no answer in 2s"),
    ] {
        let group = format!("{}\nhealth = {health}", urls(&[bad, alive.address]));
        let front = Front::start(&upstream(&group));
        // The first check decides alone.
        until(|| healthy(&front) == 1.0);
        assert_eq!(front.lines(), [format!("upstream `app`: {bad}: unhealthy: {why}")]);
        let mut client = front.client();
        assert_eq!([get(&mut client), get(&mut client), get(&mut client)], [200; 3]);
        until(|| sent(&front, bad, "failed") == 0.0);
    }
}

fn retries(front: &Front, reason: &str) -> f64 {
    front.metric(&format!("portcullis_upstream_retries_total{{upstream=\"app\",reason=\"{reason}\"}}"))
}

/// A backend that takes a while for every answer.
fn slow(time: Duration) -> Backend {
    Backend::start(move |_| {
        std::thread::sleep(time);
        ok("slow")
    })
}

#[test]
fn requests_wait_for_a_place_and_the_queue_has_an_end() {
    // Until the queue has been seen.
    let backend = slow(Duration::from_secs(2));
    let group = format!("{}\nlimits = {{ requests = 1, queue = 2 }}", urls(&[backend.address]));
    // The place is one for all workers.
    let front = Front::start(&upstream(&group).replace("workers = 1", "workers = 4"));
    let mut clients: Vec<Client> = (0..3).map(|_| front.client()).collect();
    for client in &mut clients {
        client.send(GET);
    }
    until(|| front.metric("portcullis_upstream_requests_queued") == 2.0);
    assert_eq!(get(&mut front.client()), 503, "the queue is full");
    let refused = "portcullis_upstream_queue_refused_total{upstream=\"app\",reason=\"full\"}";
    front.counts(refused, 1.0);
    assert_eq!(front.events(1)[0].upstream_error, Some(portcullis_event::UpstreamError::Overloaded));
    for client in &mut clients {
        assert_eq!(status(&client.response().0), 200);
    }
    until(|| front.metric("portcullis_upstream_requests_queued") == 0.0);
    until(|| front.metric("portcullis_upstream_requests_active") == 0.0);
    assert_eq!(get(&mut front.client()), 200);
}

#[test]
fn nobody_waits_in_the_queue_for_ever() {
    let backend = Backend::start(|_| Reply::Silence);
    let limits = "limits = { requests = 1, queue_timeout = \"100ms\" }";
    let front = Front::start(&upstream(&format!("{}\n{limits}", urls(&[backend.address]))));
    let mut first = front.client();
    first.send(GET);
    until(|| backend.seen().len() == 1);
    assert_eq!(get(&mut front.client()), 503);
    let refused = "portcullis_upstream_queue_refused_total{upstream=\"app\",reason=\"timeout\"}";
    front.counts(refused, 1.0);
    // A client that goes away while it waits leaves the line.
    front.client().send(GET);
    until(|| front.metric(refused) == 2.0);
    assert_eq!(backend.seen().len(), 1);
}

/// A site that holds bodies, with a route whose requests may be repeated.
fn inspected(group: &str) -> String {
    let route = "[[sites.routes]]\npath = \"/again\"\nidempotent = true\n[upstreams.app]";
    upstream(group).replace("mode = \"off\"\n", RULES).replace("[upstreams.app]", route)
}

fn post(front: &Front, path: &str) -> u16 {
    let request =
        format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n");
    let mut client = front.client();
    client.send(format!("{request}\r\nhello"));
    status(&client.response().0)
}

#[test]
fn only_what_may_be_repeated_is_sent_again() {
    let (bad, good) = (Backend::start(|_| Reply::Close(Vec::new())), Backend::start(|_| ok("good")));
    let group = |more: &str| {
        let (bad, good) = (bad.address, good.address);
        format!(
            "endpoints = [\"http://{bad}\", {{ url = \"http://{good}\", priority = 1 }}]\n\
             ejection = {{ failures = 0 }}\n{more}"
        )
    };
    let front = Front::start(&inspected(&group("retry = { on = [\"closed\"] }")));
    let mut client = front.client();
    assert_eq!(get(&mut client), 200);
    until(|| (retries(&front, "closed"), bad.seen().len(), good.seen().len()) == (1.0, 1, 1));
    assert_eq!(post(&front, "/"), 502, "the application may have acted on it");
    assert_eq!((bad.seen().len(), good.seen().len()), (2, 1));
    assert_eq!(post(&front, "/again"), 200, "the route says that this does no harm");
    assert_eq!((bad.seen().len(), good.seen().len()), (3, 2));
    assert_eq!(good.seen()[1].body, b"hello");
    // Without being told so, not even a GET.
    let front = Front::start(&inspected(&group("")));
    assert_eq!(get(&mut front.client()), 502);
    assert_eq!(good.seen().len(), 2);
    // A body that was not held is gone.
    let front = Front::start(&upstream(&group("retry = { on = [\"closed\"] }")));
    let mut client = front.client();
    client.send("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
    assert_eq!(status(&client.response().0), 502);
    assert_eq!(good.seen().len(), 2);
}

#[test]
fn answers_that_are_not_to_be_passed_on_are_asked_for_elsewhere() {
    let answer = |_: &Recorded| Reply::Bytes(b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy".to_vec());
    let (busy, good) = (Backend::start(answer), Backend::start(|_| ok("good")));
    let group = format!(
        "endpoints = [\"http://{}\", {{ url = \"http://{}\", priority = 1 }}]\n\
         retry = {{ statuses = [503] }}\nejection = {{ failures = 0 }}",
        busy.address, good.address
    );
    let front = Front::start(&upstream(&group));
    assert_eq!(get(&mut front.client()), 200);
    until(|| retries(&front, "status") == 1.0);
    // Where there is nobody else to ask, the answer is what it is.
    let alone = format!("{}\nretry = {{ statuses = [503] }}", urls(&[busy.address]));
    let front = Front::start(&upstream(&alone));
    let mut client = front.client();
    client.send(GET);
    let (head, body) = client.response();
    assert_eq!((status(&head), &body[..]), (503, &b"busy"[..]));
    until(|| retries(&front, "status") == 0.0);
}

#[test]
fn tries_and_all_of_them_together_have_a_time() {
    let (silent, good) = (Backend::start(|_| Reply::Silence), Backend::start(|_| ok("good")));
    let group = format!(
        "endpoints = [\"http://{}\", {{ url = \"http://{}\", priority = 1 }}]\n\
         try_timeout = \"1s\"\nretry = {{ on = [\"timeout\"] }}\nejection = {{ failures = 0 }}",
        silent.address, good.address
    );
    let front = Front::start(&upstream(&group));
    assert_eq!(get(&mut front.client()), 200);
    until(|| retries(&front, "timeout") == 1.0);
    let others: Vec<Backend> = (0..4).map(|_| Backend::start(|_| Reply::Silence)).collect();
    let addresses: Vec<SocketAddr> = others.iter().map(|backend| backend.address).collect();
    let group = format!(
        "{}\ntry_timeout = \"1s\"\ntotal_timeout = \"1500ms\"\nretry = {{ attempts = 3, on = [\"timeout\"] }}",
        urls(&addresses)
    );
    let front = Front::start(&upstream(&group));
    assert_eq!(get(&mut front.client()), 504);
    until(|| retries(&front, "timeout") == 1.0); // the second try had what was left
}

#[test]
fn retries_stay_within_their_budget() {
    let (bad, good) = (vacant(), Backend::start(|_| ok("good")));
    let group = format!(
        "endpoints = [\"http://{bad}\", {{ url = \"http://{}\", priority = 1 }}]\n\
         retry = {{ budget = 0, per_second = 1 }}\nejection = {{ failures = 0 }}",
        good.address
    );
    let front = Front::start(&upstream(&group));
    let mut client = front.client();
    let good = (0..40).filter(|_| get(&mut client) == 200).count();
    // Ten seconds' worth were saved up; the machine may be slow.
    assert!((10..30).contains(&good), "{good} were tried again");
    let denied = || front.metric("portcullis_upstream_retries_denied_total{upstream=\"app\"}");
    until(|| (retries(&front, "connect"), denied()) == (good as f64, 40.0 - good as f64));
}

#[test]
fn a_cookie_keeps_a_client_at_its_endpoint() {
    let answer = |name: &'static str| {
        move |_: &Recorded| {
            let head =
                format!("HTTP/1.1 200 OK\r\nSet-Cookie: own={name}\r\nContent-Length: 1\r\n\r\n{name}");
            Reply::Bytes(head.into_bytes())
        }
    };
    let backends = [Backend::start(answer("a")), Backend::start(answer("b"))];
    let addresses = [backends[0].address, backends[1].address];
    let group = format!("{}\nsticky_cookie = \"node\"", urls(&addresses));
    let front = Front::start(&upstream(&group));
    let mut client = front.client();
    let mut cookies = Vec::new();
    for _ in 0..2 {
        client.send(GET);
        let (head, body) = client.response();
        let set: Vec<&str> = head.lines().filter_map(|line| line.strip_prefix("Set-Cookie: ")).collect();
        assert!(set[0].starts_with("own="), "{head}");
        let cookie =
            set[1].strip_suffix("; Path=/; HttpOnly; SameSite=Lax").unwrap_or_else(|| panic!("{head}"));
        // It tells no address: as many digits for every endpoint.
        let value = cookie.strip_prefix("node=").unwrap();
        assert!(value.len() == 16 && value.bytes().all(|byte| byte.is_ascii_hexdigit()), "{cookie}");
        cookies.push((cookie.to_string(), body));
    }
    assert_ne!(cookies[0].1, cookies[1].1);
    for (cookie, body) in &cookies {
        for _ in 0..3 {
            client.send(format!("GET / HTTP/1.1\r\nHost: a\r\nCookie: x=y; {cookie}\r\n\r\n"));
            let (head, came) = client.response();
            assert_eq!((&came, head.matches("Set-Cookie").count()), (body, 1), "{head}");
        }
    }
    // An endpoint that is gone is replaced, and the client gets another cookie.
    let gone = cookies.iter().find(|(_, body)| body == b"a").unwrap();
    let rest = format!(
        "endpoints = [\"http://{}\", \"http://{}\"]\nsticky_cookie = \"node\"",
        addresses[1],
        vacant()
    );
    front.proxy.reload(&parse(&upstream(&rest)), &[]).unwrap();
    client.send(format!("GET / HTTP/1.1\r\nHost: a\r\nCookie: {}\r\n\r\n", gone.0));
    let (head, came) = client.response();
    assert_eq!(came, b"b");
    assert!(
        head.contains(&format!("Set-Cookie: {}", cookies.iter().find(|(_, body)| body == b"b").unwrap().0))
    );
}
