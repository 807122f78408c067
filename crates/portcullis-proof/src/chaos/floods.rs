//! Clients of one network that take what they can get: memory, connections, time. Other clients must not
//! notice, and what was taken comes back. Timeouts are those of the defaults.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use portcullis_testkit::TestkitError;
use portcullis_testkit::proxy::Proxy;

use super::case::{app, document};
use super::{Case, Scenario};
use crate::backend::Backend;
use crate::load::{Kind, Plan, Sample, between, quantile};
use crate::metric;

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "flood-gzip-bodies",
        what: "500 unfinished gzip bodies of one client",
        quick: false,
        run: |case| memory(case, Way::Connections(500)),
    },
    Scenario {
        name: "flood-gzip-streams",
        what: "120 unfinished gzip bodies on one HTTP/2 connection",
        quick: true,
        run: |case| memory(case, Way::Streams(120)),
    },
    Scenario {
        name: "flood-gzip-networks",
        what: "300 unfinished gzip bodies of 100 client networks",
        quick: false,
        run: |case| memory(case, Way::Networks(300)),
    },
    Scenario {
        name: "flood-idle",
        what: "one client opens more connections than there may be, and says nothing",
        quick: true,
        run: |case| connections(case, b""),
    },
    Scenario {
        name: "flood-heads",
        what: "one client opens more connections than there may be, and sends half a head on each",
        quick: false,
        run: |case| connections(case, b"GET / HTTP/1.1\r\nHost: a\r\nX-A: "),
    },
    Scenario {
        name: "flood-inspection",
        what: "four clients send bodies that take long to inspect, as fast as they can",
        quick: false,
        run: inspection,
    },
    Scenario {
        name: "overload-expensive",
        what: "one client sends small messages that take the longest to inspect, as fast as it can",
        quick: true,
        run: |case| overload(case, 1, &expensive()),
    },
    Scenario {
        name: "overload-networks",
        what: "so do 32 client networks",
        quick: false,
        run: |case| overload(case, 32, &expensive()),
    },
    Scenario {
        name: "overload-requests",
        what: "one client sends 200 requests at a time on each of 32 connections, without end",
        quick: false,
        run: |case| overload(case, 1, &[b"GET /?n=1 HTTP/1.1\r\nHost: a\r\n\r\n".repeat(200)]),
    },
    Scenario {
        name: "overload-connections",
        what: "one client sends messages of a kilobyte on each of 600 connections, as soon as the last ones are answered",
        quick: true,
        run: overload_connections,
    },
    Scenario {
        name: "flood-window-updates",
        what: "HTTP/2 WINDOW_UPDATE frames without end",
        quick: false,
        run: window_updates,
    },
];

pub(super) const HONEST: &[Kind] = &[Kind::Get, Kind::Post, Kind::Get, Kind::Attack];
const ATTACKER: Ipv4Addr = Ipv4Addr::new(127, 66, 0, 1);
/// Resident memory, in MiB.
const MEMORY_MAX: f64 = 700.0;
const MEMORY_AFTER_MAX: f64 = 200.0;
const BACK_WITHIN: Duration = Duration::from_secs(60);

#[derive(Clone, Copy)]
enum Way {
    /// Of HTTP/1, from one address.
    Connections(usize),
    /// Of one HTTP/2 connection.
    Streams(usize),
    /// Of HTTP/1, three from each network.
    Networks(usize),
}

fn memory(case: &mut Case, way: Way) -> Result<(), TestkitError> {
    let backend = Backend::start()?;
    let rest = app(&[&backend], "");
    let text = |address, admin| {
        let text = document(address, admin, &rest);
        text + "http2 = { cleartext = true }\n"
    };
    let proxy = Proxy::configured(case.folder()?, text, &[])?;
    let body = packed(&prose(10_000_000, 3))?;
    let load = Plan::new(proxy.address()).kinds(HONEST).start();
    load.go_on(1.0);
    let from = load.now();
    let sockets = match way {
        Way::Connections(count) => unfinished(&proxy, &body, (0..count).map(|_| ATTACKER)),
        Way::Networks(count) => {
            unfinished(&proxy, &body, (0..count).map(|at| Ipv4Addr::new(127, 67, (at / 3) as u8, 1)))
        }
        Way::Streams(count) => vec![streams(&proxy, &body, count)?],
    };
    let mut most = 0.0_f64;
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(8) {
        most = most.max(proxy.memory_kib()? / 1024.0);
        thread::sleep(Duration::from_millis(50));
    }
    let to = load.now();
    let held = metric(&proxy, "portcullis_held_body_bytes")?;
    let refused = metric(&proxy, "portcullis_bodies_refused_total")?;
    drop(sockets);
    let closed = Instant::now();
    let after = loop {
        let now = proxy.memory_kib()? / 1024.0;
        if now <= MEMORY_AFTER_MAX || closed.elapsed() > BACK_WITHIN {
            break now;
        }
        thread::sleep(Duration::from_millis(100));
    };
    case.figure("memory at most", format!("{most:.0} MiB"));
    case.figure("held", format!("{:.0} MB", held / 1e6));
    case.figure("refused", refused);
    case.figure("memory after", format!("{after:.0} MiB in {:.1} s", closed.elapsed().as_secs_f64()));
    case.check(most <= MEMORY_MAX, || format!("{most:.0} MiB are resident"));
    case.check(after <= MEMORY_AFTER_MAX, || format!("{after:.0} MiB stay resident"));
    let samples = load.stop();
    let limit = match way {
        Way::Connections(_) | Way::Streams(_) => Duration::from_millis(50),
        // As many as this decode at a time what they were let send.
        Way::Networks(_) => Duration::from_millis(100),
    };
    judge(case, &samples, (from, to), limit);
    case.nothing_leaked(&samples, &[&backend]);
    Ok(())
}

/// Others are all answered, and the slowest hundredth of them within `limit`.
pub(super) fn judge(case: &mut Case, samples: &[Sample], span: (Duration, Duration), limit: Duration) {
    case.all("others", samples, span, &[200]);
    let p99 = quantile(between(samples, span.0, span.1).map(|sample| sample.took), 0.99);
    case.figure("others p99", format!("{:.1} ms", p99.as_secs_f64() * 1e3));
    case.check_time(p99 <= limit, || format!("the p99 of others is {p99:?}, wanted {limit:?}"));
}

/// Connections from these addresses, each with all of a POST but its last byte.
fn unfinished(proxy: &Proxy, body: &[u8], from: impl Iterator<Item = Ipv4Addr>) -> Vec<TcpStream> {
    let head = format!(
        "POST /form HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\n\
         Content-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let request = [head.as_bytes(), &body[..body.len() - 1]].concat();
    let request = Arc::new(request);
    let opened: Vec<TcpStream> = from.filter_map(|address| connect(proxy.address(), address).ok()).collect();
    // Eight at a time: it is their amount that counts.
    let each = opened.len().div_ceil(8).max(1);
    let senders: Vec<JoinHandle<()>> = opened
        .chunks(each)
        .map(|part| {
            let part: Vec<TcpStream> = part.iter().filter_map(|stream| stream.try_clone().ok()).collect();
            let request = Arc::clone(&request);
            thread::spawn(move || {
                for mut stream in part {
                    let _ = stream.set_write_timeout(Some(Duration::from_millis(500)));
                    let _ = stream.write_all(&request);
                }
            })
        })
        .collect();
    senders.into_iter().for_each(|sender| drop(sender.join()));
    opened
}

pub(super) fn connect(to: SocketAddr, from: Ipv4Addr) -> std::io::Result<TcpStream> {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)?;
    socket.bind(&SocketAddr::from((from, 0)).into())?;
    socket.connect(&to.into())?;
    Ok(socket.into())
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// An HTTP/2 connection with the preface and empty settings sent, that reads and forgets what comes, and
/// opens its windows.
fn http2(proxy: &Proxy) -> Result<TcpStream, TestkitError> {
    let trouble = |error: std::io::Error| TestkitError::Run(format!("HTTP/2 client: {error}"));
    let mut stream = connect(proxy.address(), ATTACKER).map_err(trouble)?;
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").map_err(trouble)?;
    stream.write_all(&frame(4, 0, 0, b"")).map_err(trouble)?;
    Ok(stream)
}

/// `count` POST requests on one connection, their bodies sent as far as the windows let them.
fn streams(proxy: &Proxy, body: &[u8], count: usize) -> Result<TcpStream, TestkitError> {
    let trouble = |error: std::io::Error| TestkitError::Run(format!("HTTP/2 client: {error}"));
    let mut stream = http2(proxy)?;
    // Literal fields without indexing (RFC 7541, section 6.2.2).
    let mut head = vec![0x83, 0x86, 0x84];
    for (name, value) in [
        (":authority", "a"),
        ("content-type", "application/x-www-form-urlencoded"),
        ("content-encoding", "gzip"),
    ] {
        head.push(0);
        head.push(name.len() as u8);
        head.extend_from_slice(name.as_bytes());
        head.push(value.len() as u8);
        head.extend_from_slice(value.as_bytes());
    }
    let mut reader = stream.try_clone().map_err(trouble)?;
    // The remaining credit: of the connection, then of each stream.
    let (told, credits) = std::sync::mpsc::channel::<(u32, i64)>();
    thread::spawn(move || {
        let mut header = [0; 9];
        while reader.read_exact(&mut header).is_ok() {
            let length = u32::from_be_bytes([0, header[0], header[1], header[2]]) as usize;
            let stream = u32::from_be_bytes([header[5], header[6], header[7], header[8]]);
            let mut payload = vec![0; length];
            if reader.read_exact(&mut payload).is_err() {
                return;
            }
            if let (8, Ok(more)) = (header[3], <[u8; 4]>::try_from(payload.as_slice()))
                && told.send((stream, u32::from_be_bytes(more).into())).is_err()
            {
                return;
            }
        }
    });
    let ids: Vec<u32> = (0..count as u32).map(|at| 2 * at + 1).collect();
    for id in &ids {
        stream.write_all(&frame(1, 4, *id, &head)).map_err(trouble)?;
    }
    let (mut window, mut sent) = (65_535_i64, vec![(0_usize, 65_535_i64); count]);
    let mut sender = stream.try_clone().map_err(trouble)?;
    let body = body[..body.len() - 1].to_vec();
    thread::spawn(move || {
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(8) {
            for (id, (at, room)) in ids.iter().zip(&mut sent) {
                let piece = body.len().saturating_sub(*at).min(8192);
                if piece == 0 || (piece as i64) > window.min(*room) {
                    continue;
                }
                if sender.write_all(&frame(0, 0, *id, &body[*at..*at + piece])).is_err() {
                    return;
                }
                (*at, *room, window) = (*at + piece, *room - piece as i64, window - piece as i64);
            }
            while let Ok((id, more)) = credits.recv_timeout(Duration::from_millis(5)) {
                match id {
                    0 => window += more,
                    id => {
                        if let Some((_, room)) = sent.get_mut((id as usize - 1) / 2) {
                            *room += more;
                        }
                    }
                }
            }
        }
    });
    Ok(stream)
}

fn connections(case: &mut Case, begun: &[u8]) -> Result<(), TestkitError> {
    let backend = Backend::start()?;
    let proxy = case.proxy(&format!("[limits]\nconnections = 50\n{}", app(&[&backend], "")))?;
    let load = Plan::new(proxy.address()).kinds(HONEST).start();
    load.go_on(1.0);
    let from = load.now();
    // More than all workers may have, and new ones all the time.
    let stop = Arc::new(AtomicBool::new(false));
    let (ended, address, begun) = (Arc::clone(&stop), proxy.address(), begun.to_vec());
    let flood = thread::spawn(move || {
        let mut open = std::collections::VecDeque::new();
        while !ended.load(Ordering::Relaxed) {
            if let Ok(mut stream) = connect(address, ATTACKER) {
                let _ = stream.write_all(&begun);
                open.push_back(stream);
            }
            if open.len() > 300 {
                open.pop_front();
            }
            thread::sleep(Duration::from_millis(2));
        }
    });
    // Others come with new connections, too.
    let began = Instant::now();
    let mut slowest = Duration::ZERO;
    while began.elapsed() < Duration::from_secs(5) {
        let at = Instant::now();
        let answered = connect(proxy.address(), Ipv4Addr::new(127, 68, 0, 1)).and_then(|mut stream| {
            stream.set_read_timeout(Some(Duration::from_secs(20)))?;
            stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")?;
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer)?;
            Ok(answer.starts_with(b"HTTP/1.1 200"))
        });
        case.check(matches!(answered, Ok(true)), || format!("a new client got {answered:?}"));
        slowest = slowest.max(at.elapsed());
        thread::sleep(Duration::from_millis(20));
    }
    let to = load.now();
    stop.store(true, Ordering::Relaxed);
    let _ = flood.join();
    let closed = metric(&proxy, "portcullis_connections_shed_total")?;
    case.figure("connections closed", closed);
    case.check(closed > 50.0, || format!("{closed} connections of the flood were closed"));
    case.figure("new clients", format!("{:.0} ms at most", slowest.as_secs_f64() * 1e3));
    case.check_time(slowest <= Duration::from_millis(100), || format!("a new client waited {slowest:?}"));
    let samples = load.stop();
    judge(case, &samples, (from, to), Duration::from_millis(100));
    case.nothing_leaked(&samples, &[&backend]);
    Ok(())
}

fn inspection(case: &mut Case) -> Result<(), TestkitError> {
    let backend = Backend::start()?;
    let proxy = case.proxy(&app(&[&backend], ""))?;
    // Many short values, each with something to look at.
    let value = "q=select+a+from+b+where+c%3D%27&p=%3Cb+c%3D%22d%22%3E&r=..%2F..%2Fe&";
    let body = packed(value.repeat(20_000).as_bytes())?;
    let head = format!(
        "POST /form HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\n\
         Content-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let plain = value.repeat(400);
    let plain_head = format!(
        "POST /form HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n",
        plain.len()
    );
    let requests =
        Arc::new([[head.as_bytes(), &body].concat(), [plain_head.as_bytes(), plain.as_bytes()].concat()]);
    let load = Plan::new(proxy.address()).kinds(HONEST).start();
    load.go_on(1.0);
    let from = load.now();
    let stop = Arc::new(AtomicBool::new(false));
    let flood: Vec<JoinHandle<usize>> = (0..4)
        .map(|_| {
            let (ended, address, requests) = (Arc::clone(&stop), proxy.address(), Arc::clone(&requests));
            thread::spawn(move || {
                let mut sent = 0;
                while !ended.load(Ordering::Relaxed) {
                    let request = &requests[sent % requests.len()];
                    let answered = connect(address, ATTACKER).and_then(|mut stream| {
                        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
                        stream.write_all(request)?;
                        stream.read(&mut [0; 1024])
                    });
                    sent += usize::from(answered.is_ok());
                }
                sent
            })
        })
        .collect();
    load.go_on(5.0);
    let to = load.now();
    stop.store(true, Ordering::Relaxed);
    let sent: usize = flood.into_iter().filter_map(|client| client.join().ok()).sum();
    case.figure("large bodies", sent);
    case.check(sent > 10, || format!("only {sent} large bodies were sent"));
    let samples = load.stop();
    judge(case, &samples, (from, to), Duration::from_millis(50));
    case.nothing_leaked(&samples, &[&backend]);
    Ok(())
}

/// Messages below the size that is inspected beside the workers, each of which the detectors take long for.
fn expensive() -> Vec<Vec<u8>> {
    let shapes =
        ["in`", "a'or(b,", "<a b=c'", "..%2F..%2Fa;", "{{a.b|c(", "$(a b;c", "a)(|(b=*", "a=1-1 union("];
    let form = |shape: &&str| {
        let body = format!("q={}", shape.repeat(7_500 / shape.len()));
        let head = "POST /form HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\n";
        format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
    };
    shapes.iter().map(form).collect()
}

/// 32 connections of so many client networks send `requests` in turn, as fast as these are read.
fn overload(case: &mut Case, networks: u8, requests: &[Vec<u8>]) -> Result<(), TestkitError> {
    let backend = Backend::start()?;
    let proxy = case.proxy(&app(&[&backend], ""))?;
    let load = Plan::new(proxy.address()).kinds(HONEST).start();
    load.go_on(1.0);
    let stop = Arc::new(AtomicBool::new(false));
    let from = load.now();
    let flood: Vec<JoinHandle<(usize, usize)>> = (0..32)
        .map(|number: u8| {
            let (ended, address, requests) = (Arc::clone(&stop), proxy.address(), requests.to_vec());
            thread::spawn(move || {
                flood(address, Ipv4Addr::new(127, 69, number % networks, 1), &requests, &ended)
            })
        })
        .collect();
    load.go_on(8.0);
    let to = load.now();
    stop.store(true, Ordering::Relaxed);
    let sent = flood.into_iter().filter_map(|client| client.join().ok());
    let (sent, refused) = sent.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
    case.figure("sent", sent);
    case.figure("answered 503", format!("{refused} and more"));
    case.figure("refused", metric(&proxy, "portcullis_overload_refused_total")?);
    case.check(sent > 100, || format!("only {sent} were sent"));
    let samples = load.stop();
    judge(case, &samples, (from, to), Duration::from_millis(100));
    case.nothing_leaked(&samples, &[&backend]);
    Ok(())
}

/// More than workers can do, though each message alone takes little: the client is refused, and no other
/// client.
fn overload_connections(case: &mut Case) -> Result<(), TestkitError> {
    let backend = Backend::start()?;
    let proxy = case.proxy(&app(&[&backend], ""))?;
    let body = format!("q={}", "in`".repeat(330));
    let head = "POST /form HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\n";
    let request = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
    let load = Plan::new(proxy.address()).kinds(HONEST).start();
    load.go_on(1.0);
    let stop = Arc::new(AtomicBool::new(false));
    let from = load.now();
    let flood: Vec<JoinHandle<usize>> = (0..6)
        .map(|_| {
            let (ended, address, request) = (Arc::clone(&stop), proxy.address(), request.clone());
            thread::spawn(move || {
                let mut open: Vec<TcpStream> =
                    (0..100).filter_map(|_| connect(address, ATTACKER).ok()).collect();
                let mut sent = 0;
                let mut answer = vec![0; 8 << 10];
                while !ended.load(Ordering::Relaxed) {
                    open.retain_mut(|stream| {
                        let _ = stream.set_read_timeout(Some(Duration::from_secs(2)));
                        stream.write_all(request.as_bytes()).is_ok()
                    });
                    open.retain_mut(|stream| matches!(stream.read(&mut answer), Ok(1..)));
                    sent += open.len();
                    while open.len() < 100 && !ended.load(Ordering::Relaxed) {
                        open.extend(connect(address, ATTACKER).ok());
                    }
                }
                sent
            })
        })
        .collect();
    load.go_on(8.0);
    let to = load.now();
    stop.store(true, Ordering::Relaxed);
    let sent: usize = flood.into_iter().filter_map(|client| client.join().ok()).sum();
    let refused = metric(&proxy, "portcullis_overload_refused_total")?
        + metric(&proxy, "portcullis_connections_shed_total{reason=\"overload\"}")?;
    case.figure("sent", sent);
    case.figure("refused", refused);
    case.check(sent > 1_000, || format!("only {sent} were sent"));
    let samples = load.stop();
    judge(case, &samples, (from, to), Duration::from_millis(100));
    case.nothing_leaked(&samples, &[&backend]);
    Ok(())
}

/// Returns the number of requests sent, and the number of parts of answers that began with 503.
fn flood(to: SocketAddr, from: Ipv4Addr, requests: &[Vec<u8>], ended: &AtomicBool) -> (usize, usize) {
    let (mut sent, mut refused) = (0, 0);
    while !ended.load(Ordering::Relaxed) {
        let Ok(mut stream) = connect(to, from) else { continue };
        let Ok(mut answers) = stream.try_clone() else { continue };
        let _ = stream.set_write_timeout(Some(Duration::from_millis(500)));
        let reader = thread::spawn(move || {
            let (mut part, mut refused) = (vec![0; 64 << 10], 0);
            while let Ok(count @ 1..) = answers.read(&mut part) {
                refused += usize::from(part[..count].starts_with(b"HTTP/1.1 503"));
            }
            refused
        });
        while !ended.load(Ordering::Relaxed) && stream.write_all(&requests[sent % requests.len()]).is_ok() {
            sent += 1;
        }
        let _ = stream.shutdown(std::net::Shutdown::Both);
        refused += reader.join().unwrap_or_default();
    }
    (sent, refused)
}

fn window_updates(case: &mut Case) -> Result<(), TestkitError> {
    let backend = Backend::start()?;
    let rest = app(&[&backend], "");
    let text = |address, admin| document(address, admin, &rest) + "http2 = { cleartext = true }\n";
    let proxy = Proxy::configured(case.folder()?, text, &[])?;
    let load = Plan::new(proxy.address()).kinds(HONEST).start();
    load.go_on(1.0);
    let from = load.now();
    let mut stream = http2(&proxy)?;
    let _ = stream.set_write_timeout(Some(Duration::from_secs(2)));
    let updates: Vec<u8> = std::iter::repeat_n(frame(8, 0, 0, &[0, 0, 0, 1]), 1_000).flatten().collect();
    let taken = (0..200).take_while(|_| stream.write_all(&updates).is_ok()).count();
    load.go_on(1.0);
    let limit = "portcullis_http2_limits_total{limit=\"control_frames\"}";
    case.figure("thousands of frames sent", taken);
    case.check(metric(&proxy, limit)? >= 1.0, || "no limit was reached".to_owned());
    let to = load.now();
    let samples = load.stop();
    judge(case, &samples, (from, to), Duration::from_millis(50));
    case.nothing_leaked(&samples, &[&backend]);
    Ok(())
}

/// Words drawn by chance, each `repeat` times, as a form: gzip makes about a `2 * repeat`th of it.
fn prose(bytes: usize, repeat: usize) -> Vec<u8> {
    let mut state = 7_u64;
    let mut out = b"text=".to_vec();
    while out.len() < bytes {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let word = format!("{:09x}+", state >> 28);
        (0..repeat).for_each(|_| out.extend_from_slice(word.as_bytes()));
    }
    out.truncate(bytes);
    out
}

fn packed(plain: &[u8]) -> Result<Vec<u8>, TestkitError> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    let packed = writer.write_all(plain).and_then(|()| writer.finish());
    packed.map_err(|error| TestkitError::Run(format!("gzip: {error}")))
}
