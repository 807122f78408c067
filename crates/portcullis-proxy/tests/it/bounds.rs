//! What clients of one network may take of the process, and that others are served all the while.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use crate::common::*;
use portcullis_event::{ControlKind, Event};

/// A client with an address of its own, all of which are this host's.
fn client_from(front: &Front, address: [u8; 4]) -> Client {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((Ipv4Addr::from(address), 0)).into()).unwrap();
    socket.connect(&front.address().into()).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    Client { stream, input: Vec::new() }
}

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const ATTACKER: [u8; 4] = [127, 0, 0, 1];
const OTHER: [u8; 4] = [127, 0, 9, 1];

fn post(fields: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: application/x-www-form-urlencoded\r\n{fields}\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

fn packed(coding: &str, plain: &[u8]) -> Vec<u8> {
    match coding {
        "gzip" => {
            let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
            writer.write_all(plain).unwrap();
            writer.finish().unwrap()
        }
        "deflate" => {
            let mut writer = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
            writer.write_all(plain).unwrap();
            writer.finish().unwrap()
        }
        "br" => {
            let mut out = Vec::new();
            let mut writer = brotli::CompressorWriter::new(&mut out, 4096, 5, 22);
            writer.write_all(plain).unwrap();
            drop(writer);
            out
        }
        "zstd" => zstd::encode_all(plain, 9).unwrap(),
        "gzip, gzip" => packed("gzip", &packed("gzip", plain)),
        other => panic!("{other}"),
    }
}

/// Compresses about `ratio` to one: words drawn by chance, each a few times.
fn text(bytes: usize, repeat: usize) -> Vec<u8> {
    let mut state = 7u64;
    let mut out = b"a=".to_vec();
    while out.len() < bytes {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let word = format!("{:012x}", state >> 16);
        (0..repeat).for_each(|_| out.extend_from_slice(word.as_bytes()));
    }
    out.truncate(bytes);
    out
}

/// Threads that take the processor from the proxy, up to the drop.
struct BusyLoops(Arc<AtomicBool>);

impl BusyLoops {
    fn start(count: usize) -> BusyLoops {
        let done = Arc::new(AtomicBool::new(false));
        for _ in 0..count {
            let done = Arc::clone(&done);
            std::thread::spawn(move || {
                while !done.load(Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        BusyLoops(done)
    }
}

impl Drop for BusyLoops {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

#[test]
fn every_copy_of_a_body_is_charged_and_given_back() {
    let backend = Backend::start(|_| ok("ok"));
    let front = Front::start(&document(backend.address, "", "", RULES, ""));
    let plain = text(2_000_000, 3);
    for coding in ["", "gzip", "deflate", "br", "zstd"] {
        let (fields, body) = match coding {
            "" => (String::new(), plain.clone()),
            coding => (format!("Content-Encoding: {coding}\r\n"), packed(coding, &plain)),
        };
        let request = post(&fields, &body);
        let mut client = front.client();
        client.send(&request[..request.len() - 1]);
        // What came, and what is shown of it.
        let least = body.len() as f64 + 1_500_000.0;
        until(|| front.metric("portcullis_held_body_bytes") > least);
        drop(client);
        until(|| front.metric("portcullis_held_body_bytes") == 0.0);
    }
}

/// Buffers that a large body has left behind are the worker's: a network with a small body would else hold
/// more than what finds room where heavy ones have taken the rest.
#[test]
fn a_small_body_behind_a_large_one_is_charged_as_a_small_one() {
    let backend = Backend::start(|_| ok("ok"));
    let front = Front::start(&document(backend.address, "", "", RULES, ""));
    let small = post("", &text(100_000, 3));
    let held = || {
        let mut client = front.client();
        client.send(&small[..small.len() - 1]);
        until(|| front.metric("portcullis_held_body_bytes") > 9e4);
        // The gauge is set now and then; by now it has seen all of it.
        std::thread::sleep(Duration::from_millis(200));
        let held = front.metric("portcullis_held_body_bytes");
        drop(client);
        until(|| front.metric("portcullis_held_body_bytes") == 0.0);
        held
    };
    let before = held();
    assert_eq!(status(&front.once(post("", &text(3_000_000, 3)))), 200);
    let behind = held();
    assert!(before < 1e6 && behind < 1e6, "{before} and {behind} bytes");
}

#[test]
fn one_network_cannot_take_the_memory_that_others_need() {
    let backend = Backend::start(|_| ok("ok"));
    let limits = "limits = { held_bodies = \"16MiB\", network_held_bodies = \"8MiB\", held_bodies_wait = \"50ms\", \
                  overload_lag = \"1h\" }";
    let front = Front::start(&document(backend.address, limits, "", RULES, ""));
    let body = packed("gzip", &text(1_000_000, 3));
    let request = post("Content-Encoding: gzip\r\n", &body);
    let mut flood: Vec<Client> = (0..40).map(|_| client_from(&front, ATTACKER)).collect();
    for client in &mut flood {
        client.send(&request[..request.len() - 1]);
    }
    until(|| front.metric("portcullis_bodies_refused_total{reason=\"network\"}") >= 20.0);
    let held = front.metric("portcullis_held_body_bytes");
    assert!((4e6..10e6).contains(&held), "{held} bytes are held");
    let mut other = client_from(&front, OTHER);
    other.send(&request);
    assert_eq!(status(&other.response().0), 200);
    let refused = |client: &mut Client| {
        client.stream.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
        let mut line = [0; 32];
        client.stream.read(&mut line).is_ok() && line.starts_with(b"HTTP/1.1 503")
    };
    let refused: usize = flood.iter_mut().map(|client| usize::from(refused(client))).sum();
    assert!(refused >= 20, "{refused}");
    drop(flood);
    until(|| front.metric("portcullis_held_body_bytes") == 0.0);
}

#[test]
fn many_networks_together_give_way_to_a_lighter_one() {
    let backend = Backend::start(|_| ok("ok"));
    // Of memory alone: beside other work the workers are late, and an overload would refuse, too.
    let limits = "limits = { held_bodies = \"16MiB\", held_bodies_wait = \"2s\", overload_lag = \"1h\" }";
    let front = Front::start(&document(backend.address, limits, "", RULES, ""));
    let _busy = BusyLoops::start(2);
    let body = packed("gzip", &text(1_000_000, 3));
    let request = post("Content-Encoding: gzip\r\n", &body);
    let mut flood = Vec::new();
    for network in 0..8 {
        for host in 1..4 {
            let mut client = client_from(&front, [127, 1, network, host]);
            client.send(&request[..request.len() - 1]);
            flood.push(client);
        }
    }
    until(|| front.metric("portcullis_held_body_bytes") >= 13e6);
    let light = post("", &text(100_000, 3));
    for host in 1..4 {
        let mut other = client_from(&front, [127, 0, 9, host]);
        other.send(&light);
        let (head, body) = other.response();
        assert_eq!(status(&head), 200, "{}", String::from_utf8_lossy(&body));
    }
}

#[test]
fn a_network_has_so_many_unfinished_bodies() {
    let backend = Backend::start(|_| ok("ok"));
    let front = Front::start(&document(backend.address, "limits = { network_bodies = 5 }", "", RULES, ""));
    let request = post("", b"a=1");
    let mut begun: Vec<Client> = (0..5).map(|_| client_from(&front, ATTACKER)).collect();
    for client in &mut begun {
        client.send(&request[..request.len() - 1]);
    }
    until(|| {
        let mut one_more = client_from(&front, ATTACKER);
        one_more.send(&request[..request.len() - 1]);
        one_more.stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let mut line = [0; 12];
        one_more.stream.read(&mut line).is_ok() && &line == b"HTTP/1.1 503"
    });
    assert!(front.metric("portcullis_bodies_refused_total{reason=\"count\"}") >= 1.0);
    // One that comes whole waits for nothing, and other networks have their own.
    assert_eq!(status(&front.once(&request)), 200);
    let mut other = client_from(&front, OTHER);
    other.send(&request[..request.len() - 1]);
    std::thread::sleep(Duration::from_millis(50));
    other.send(&request[request.len() - 1..]);
    assert_eq!(status(&other.response().0), 200);
    for mut client in begun {
        client.send(&request[request.len() - 1..]);
        assert_eq!(status(&client.response().0), 200);
    }
}

#[test]
fn idle_connections_of_one_network_do_not_delay_others() {
    let backend = Backend::start(|_| ok("ok"));
    let front = Front::start(&document(backend.address, "limits = { connections = 20 }", "", RULES, ""));
    for begun in ["", "GET / HTTP/1.1\r\nHost: "] {
        let mut flood: Vec<Client> = (0..40).map(|_| client_from(&front, ATTACKER)).collect();
        for client in &mut flood {
            let _ = client.stream.write_all(begun.as_bytes());
        }
        for host in 1..30 {
            let began = Instant::now();
            let mut other = client_from(&front, [127, 0, 9, host]);
            other.send(GET);
            assert_eq!(status(&other.response().0), 200);
            assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
        }
        // Its own newcomers are served, too: the oldest of its connections that carry nothing make room.
        let mut own = client_from(&front, ATTACKER);
        own.send(GET);
        assert_eq!(status(&own.response().0), 200);
    }
    let closed =
        |reason: &str| front.metric(&format!("portcullis_connections_shed_total{{reason=\"{reason}\"}}"));
    assert!(closed("idle") >= 1.0 && closed("idle") + closed("network") >= 20.0);
}

#[test]
fn a_network_whose_connections_all_carry_requests_gets_no_more() {
    let backend = Backend::start(|_| ok("ok"));
    let front = Front::start(&document(backend.address, "limits = { connections = 20 }", "", RULES, ""));
    let request = post("", b"a=1");
    let mut busy: Vec<Client> = (0..10).map(|_| client_from(&front, ATTACKER)).collect();
    for client in &mut busy {
        client.send(&request[..request.len() - 1]);
    }
    until(|| {
        let mut one_more = client_from(&front, ATTACKER);
        let _ = one_more.stream.write_all(GET.as_bytes());
        let mut answer = Vec::new();
        let _ = one_more.stream.read_to_end(&mut answer);
        !answer.starts_with(b"HTTP/1.1 200")
    });
    assert!(front.metric("portcullis_connections_shed_total{reason=\"network\"}") >= 1.0);
    let mut other = client_from(&front, OTHER);
    other.send(GET);
    assert_eq!(status(&other.response().0), 200);
    for mut client in busy {
        client.send(&request[request.len() - 1..]);
        assert_eq!(status(&client.response().0), 200);
    }
}

#[test]
fn a_body_that_grows_out_of_proportion_is_told_why() {
    let backend = Backend::start(|_| ok("ok"));
    let front = Front::start(&document(backend.address, "", "", RULES, ""));
    // 40 to 1 and more, in all codings; gzip of gzip does not help.
    let plain = text(600_000, 400);
    for coding in ["gzip", "deflate", "br", "zstd", "gzip, gzip"] {
        let body = packed(coding, &plain);
        assert!(plain.len() / body.len() > 30, "{coding}: {}", plain.len() / body.len());
        let answer = front.once(post(&format!("Content-Encoding: {coding}\r\n"), &body));
        assert_eq!(status(&answer), 413, "{coding}");
        assert!(answer.contains("request_body.decoded_ratio"), "{answer}");
    }
    // What is small is never too much, and what is usual passes.
    for plain in [text(60_000, 400), text(600_000, 3)] {
        for coding in ["gzip", "deflate", "br", "zstd"] {
            let body = packed(coding, &plain);
            let answer = front.once(post(&format!("Content-Encoding: {coding}\r\n"), &body));
            assert_eq!(status(&answer), 200, "{coding}");
        }
    }
}

/// `failure.pattern_limit`: rules that use up the work that a message brings with it, or a pattern its steps,
/// decide nothing silently.
#[test]
fn work_that_is_used_up_refuses_or_is_counted() {
    let backend = Backend::start(|_| ok("ok"));
    let every_byte =
        |n: usize| format!("SecRule ARGS \"@rx [a-z]{{{}}}0$\" \"id:{n},phase:2,pass\"\n", n + 2);
    let many = (1..=300).map(every_byte).collect::<String>();
    let steps = "SecPcreMatchLimit 100\n\
                 SecRule ARGS:a \"@rx ^(?:(\\w+)+)(?=!)\\1?\" \"id:1,phase:2,pass\"\n";
    let work = format!("a={}", "abcdefgh01".repeat(20_000));
    let backtracking = "a=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-!".to_owned();
    let denied = format!("SecRule ARGS:b \"@streq x\" \"id:900,phase:2,deny,status:409\"\n{many}");
    let rules =
        format!("rules = {{ directives = '''\nSecRuleEngine On\nSecRequestBodyAccess On\n{denied}''' }}");
    let front = Front::start(&document(backend.address, "", "", &rules, ""));
    let fields = "Content-Type: application/x-www-form-urlencoded\r\n";
    assert_eq!(
        status(&front.once(post(fields, format!("b=x&{work}").as_bytes()))),
        409,
        "a rule comes first"
    );
    let told = format!("{:?}", front.events(1)[0].exceptions);
    assert!(told.contains("BudgetSpent") && told.contains("Closed"), "{told}");
    for (rules, body) in [(many.as_str(), &work), (steps, &backtracking)] {
        let answer = |engine: &str, site: &str, body: &str| {
            let rules = format!(
                "rules = {{ directives = '''\nSecRuleEngine {engine}\nSecRequestBodyAccess On\n{rules}''' }}\n{site}"
            );
            let front = Front::start(&document(backend.address, "", "", &rules, ""));
            let fields = "Content-Type: application/x-www-form-urlencoded\r\n";
            let status = status(&front.once(post(fields, body.as_bytes())));
            let counted = front.metric("portcullis_pattern_errors_total{kind=\"limit\"}");
            let told: Vec<String> = match counted > 0.0 {
                true => front.events(1)[0].exceptions.iter().map(|e| format!("{e:?}")).collect(),
                false => Vec::new(),
            };
            (status, counted, told.join(" "))
        };
        let open = "failure = { pattern_limit = \"open\" }";
        assert_eq!(answer("On", "", "a=1"), (200, 0.0, String::new()));
        for (engine, site, expected, policy) in
            [("On", "", 403, "Closed"), ("On", open, 200, "Open"), ("DetectionOnly", "", 200, "DetectOnly")]
        {
            let (status, counted, told) = answer(engine, site, body);
            assert_eq!((status, counted > 0.0), (expected, true), "{engine} {site}");
            assert!(told.contains("BudgetSpent") && told.contains(policy), "{engine} {site}: {told}");
        }
    }
}

/// Programs that take the processor away from the workers make nobody's requests look expensive: short ones
/// stay on their worker.
#[test]
fn short_requests_stay_on_their_worker_beside_busy_programs() {
    let backend = Backend::start(|_| ok("ok"));
    let front = Front::start(&document(backend.address, "", "", RULES, ""));
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let busy = BusyLoops::start(2 * cores);
    let mut client = front.client();
    for number in 0..1000 {
        client.send(format!("GET /?number={number} HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert_eq!(status(&client.response().0), 200);
    }
    drop(busy);
    assert_eq!(front.metric(OFFLOADED), 0.0);
}

const OFFLOADED: &str = "portcullis_inspections_offloaded_total";

/// A network whose short messages are expensive has those leave the worker that can be, and its shortest
/// stay.
#[test]
fn short_messages_leave_the_worker_once_one_was_expensive() {
    let backend = Backend::start(|_| ok("ok"));
    let every_byte =
        |n: usize| format!("SecRule ARGS \"@rx [a-z]{{{}}}0$\" \"id:{n},phase:2,pass\"\n", n + 2);
    let many = (1..=200).map(every_byte).collect::<String>();
    let rules =
        format!("rules = {{ directives = '''\nSecRuleEngine On\nSecRequestBodyAccess On\n{many}''' }}");
    let front = Front::start(&document(backend.address, "", "", &rules, ""));
    let expensive = post("", format!("a={}", "abcdefgh01".repeat(600)).as_bytes());
    let mut client = client_from(&front, OTHER);
    let mut offloaded = |bytes: &[u8]| {
        let before = front.metric(OFFLOADED);
        client = client_from(&front, OTHER);
        client.send(bytes);
        assert_eq!(status(&client.response().0), 200);
        front.metric(OFFLOADED) - before
    };
    assert_eq!(offloaded(&expensive), 0.0, "nothing is known of it");
    // A slow machine may take longer than it is remembered.
    until(|| offloaded(&expensive) == 1.0);
    assert_eq!(offloaded(GET.as_bytes()), 0.0);
    assert_eq!(offloaded(&post("", &[b'a'; 20_000])), 1.0);
}

/// Texts that rules make of macros stop growing at `SecExpansionLimit`; what happens then is a policy.
#[test]
fn texts_that_rules_make_are_bounded() {
    let backend = Backend::start(|_| ok("ok"));
    let doubles = "SecRule ARGS \"@rx .\" \"id:1,phase:2,pass,nolog,setvar:'tx.a=%{tx.a}%{tx.a}x'\"\n";
    let open = "failure = { pattern_limit = \"open\" }";
    let get = |query: &str| format!("GET /?{query} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let query = vec!["a=1"; 60].join("&");
    for (engine, site, limit, expected) in [
        ("On", "", "", 403),
        ("On", open, "", 200),
        ("DetectionOnly", "", "", 200),
        ("On", "", "SecExpansionLimit 100 150", 403),
    ] {
        let rules =
            format!("rules = {{ directives = '''\nSecRuleEngine {engine}\n{limit}\n{doubles}''' }}\n{site}");
        let front = Front::start(&document(backend.address, "", "", &rules, ""));
        let cut = || front.metric("portcullis_pattern_errors_total{kind=\"expansion\"}");
        assert_eq!((status(&front.once(get("a=1&a=2"))), cut()), (200, 0.0));
        assert_eq!(status(&front.once(get(&query))), expected, "{engine} {site} {limit}");
        let told = format!("{:?}", front.events(1)[0].exceptions);
        assert!(told.contains("BudgetSpent") && cut() > 0.0, "{engine} {site}: {told}");
    }
}

/// A rule of phase 5 counts what was refused by the status.
#[test]
fn rules_see_the_status_of_refusals() {
    let backend = Backend::start(|_| ok("ok"));
    let rules = "rules = { directives = '''\nSecRuleEngine On\n\
                 SecRule ARGS:a \"@streq x\" \"id:1,phase:2,deny,status:409\"\n\
                 SecRule RESPONSE_STATUS \"@rx ^(?:409|413)$\" \"id:2,phase:5,pass,log,msg:'refused'\"\n''' }\n\
                 request_body = { limit = \"1KiB\" }";
    let front = Front::start(&document(backend.address, "", "", rules, ""));
    let get = |query: &str| format!("GET /?{query} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert_eq!(status(&front.once(get("a=y"))), 200);
    assert_eq!(status(&front.once(get("a=x"))), 409);
    assert_eq!(status(&front.once(post("", "b".repeat(5_000).as_bytes()))), 413);
    for event in front.events(2) {
        assert!(event.matches.iter().any(|found| found.rule.rule_id.0 == 2), "{event:?}");
    }
}

/// The part of a processor that a thread gets here which always has something to do.
fn share_of_a_processor() -> f64 {
    // Ticks of 10 ms: the time of the thread itself, then that of the system for it, behind its name.
    let ticks = || {
        let text = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        let fields = text.rsplit(") ").next().unwrap().split(' ').skip(11).take(2);
        fields.map(|ticks| ticks.parse::<u64>().unwrap()).sum::<u64>()
    };
    let (began, before) = (Instant::now(), ticks());
    while began.elapsed() < Duration::from_secs(2) {
        std::hint::spin_loop();
    }
    (ticks() - before) as f64 / 100.0 / began.elapsed().as_secs_f64()
}

/// A worker that cannot keep up refuses the network that costs the most, and no other. Where other programs
/// leave it less than a part of a core, it is not for its requests that it is late, and nobody is refused:
/// nothing can be said of it there.
#[test]
fn an_overload_is_shed_by_those_who_make_it() {
    let backend = Backend::start(|_| ok("ok"));
    let every_byte =
        |n: usize| format!("SecRule ARGS \"@rx [a-z]{{{}}}0$\" \"id:{n},phase:2,pass\"\n", n + 2);
    let many = (1..=60).map(every_byte).collect::<String>();
    let rules =
        format!("rules = {{ directives = '''\nSecRuleEngine On\nSecRequestBodyAccess On\n{many}''' }}");
    let body = format!("a={}", "abcdefgh01".repeat(400));
    let head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\n";
    let request = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
    let flood = |limits: &str, wanted: f64| {
        let front = Front::start(&document(backend.address, limits, "", &rules, ""));
        let refused = || front.metric("portcullis_overload_refused_total");
        let mut clients: Vec<Client> = (0..50).map(|_| client_from(&front, ATTACKER)).collect();
        let mut other = client_from(&front, OTHER);
        // A connection that is accepted during the overload may be closed at once: these are from before it.
        for client in &mut clients {
            client.send(GET);
            assert_eq!(status(&client.response().0), 200);
        }
        let (began, mut was_told) = (Instant::now(), false);
        for round in 1.. {
            // Some requests for each answer that is waited for: what waits is the worker's.
            clients.iter_mut().for_each(|client| client.send(&request));
            other.send(GET);
            assert_eq!(status(&other.response().0), 200, "round {round}");
            was_told |= front.metric("portcullis_overloaded") == 1.0;
            // One that waits between two requests may be closed, as a new one may.
            clients.retain_mut(|client| {
                if client.is_closed() {
                    return false;
                }
                let (answer, _) = client.response();
                if status(&answer) == 503 {
                    assert_eq!(header(&answer, "retry-after"), Some("2"), "{answer}");
                }
                true
            });
            assert!(clients.len() >= 25, "{} clients of 50 are left", clients.len());
            let enough = if wanted > 0.0 { refused() >= wanted && was_told } else { round == 30 };
            if enough {
                break;
            }
            if began.elapsed() >= PATIENCE {
                let share = share_of_a_processor();
                assert!(share < 0.5, "nothing was refused, with {share} of a processor");
                eprintln!("an overload was not tried: only {share} of a processor is free");
                return None;
            }
        }
        Some((refused(), front))
    };
    if let Some((_, front)) = flood("limits = { overload_lag = \"1ms\" }", 20.0) {
        let by_overload = |event: &Event| {
            event.verdict.control.as_ref().is_some_and(|control| control.by == ControlKind::Overload)
        };
        until(|| front.events(1).iter().any(by_overload));
    }
    let calm = flood("limits = { overload_lag = \"1h\" }", 0.0);
    assert!(calm.is_none_or(|(refused, _)| refused == 0.0));
}

/// Heads are not exempt, and a long one is inspected beside the worker.
#[test]
fn long_heads_are_inspected_as_short_ones() {
    let backend = Backend::start(|_| ok("ok"));
    let rules = "rules = { directives = '''\nSecRuleEngine On\n\
                 SecRule REQUEST_HEADERS:X-Last \"@streq attack\" \"id:1,phase:1,deny,status:403\"\n''' }";
    let front = Front::start(&document(backend.address, "", "", rules, ""));
    for length in [10, 7_000, 9_000, 15_000] {
        for (last, expected) in [("attack", 403), ("harmless", 200)] {
            let long = "x".repeat(length);
            let head = format!(
                "GET / HTTP/1.1\r\nHost: a\r\nX-Long: {long}\r\nX-More: {long}\r\nX-Last: {last}\r\n\
                                Connection: close\r\n\r\n"
            );
            assert_eq!(status(&front.once(head)), expected, "{length} {last}");
        }
    }
}
