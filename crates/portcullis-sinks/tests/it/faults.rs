//! Receivers of syslog that are away, slow, or break off in the middle of a message.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crate::common::*;

fn sink(address: &str, more: &str) -> String {
    format!("[[events.sinks]]\nkind = \"syslog\"\naddress = \"{address}\"\n{more}\n")
}

/// Whole messages of a stream with octet counting, and the bytes behind the last of them.
pub fn frames(mut bytes: &[u8]) -> (Vec<String>, usize) {
    let mut frames = Vec::new();
    while let Some(space) = bytes.iter().position(|byte| *byte == b' ') {
        let length: usize = std::str::from_utf8(&bytes[..space]).unwrap().parse().unwrap();
        let Some(message) = bytes.get(space + 1..space + 1 + length) else { break };
        frames.push(String::from_utf8(message.to_vec()).unwrap());
        bytes = &bytes[space + 1 + length..];
    }
    (frames, bytes.len())
}

fn id(message: &str) -> String {
    message.split("request_id=\"").nth(1).unwrap().split('"').next().unwrap().to_owned()
}

/// Each connection holds whole messages and at most one part of one, at its end; none comes twice.
#[test]
fn a_receiver_that_breaks_off_gets_no_half_message_before_a_whole_one() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let receiver = std::thread::spawn(move || {
        let mut connections = Vec::new();
        for number in 0..6 {
            let (mut stream, _) = listener.accept().unwrap();
            let mut bytes = Vec::new();
            if number < 5 {
                stream.take(20_000 + 777 * number).read_to_end(&mut bytes).unwrap();
            } else {
                stream.read_to_end(&mut bytes).unwrap();
            }
            connections.push(bytes);
        }
        connections
    });
    let mut sinks = start(&sink(&format!("tcp://{address}"), "message_bytes = \"60KiB\""));
    for number in 0..2000 {
        let mut event = event(&format!("r{number}"));
        event.verdict.reason = "x".repeat(20_000);
        sinks.submit(event);
    }
    let dropped = || sinks.dropped("syslog", "queue_full") + sinks.dropped("syslog", "queue_bytes");
    eventually("all are settled", || (sinks.sent("syslog") + dropped() == 2000).then_some(()));
    assert_eq!(sinks.end(PATIENCE), 0);
    let connections = receiver.join().unwrap();
    let mut seen = BTreeSet::new();
    for bytes in &connections {
        for message in frames(bytes).0 {
            assert!(seen.insert(id(&message)), "{} came twice", id(&message));
        }
    }
    assert_eq!(frames(connections.last().unwrap()).1, 0);
    assert!(seen.len() > 500, "{}", seen.len());
}

/// A full queue from which nothing has gone for so long does not move any more.
const STUCK: Duration = Duration::from_secs(3);

/// One that does not read costs its own events, no time of a worker, and no event of another sink.
#[test]
fn a_receiver_that_hangs_costs_only_its_own_events() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let other = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let tables = sink(
        &format!("tcp://{}", silent.local_addr().unwrap()),
        "queue = 50\nqueue_memory = \"1MiB\"\nmessage_bytes = \"60KiB\"",
    ) + &sink(
        &format!("udp://{}", other.local_addr().unwrap()),
        "queue = 100000\nqueue_memory = \"1GiB\"",
    );
    let mut sinks = start(&tables);
    let refused =
        |sinks: &Running| sinks.dropped("syslog", "queue_full") + sinks.dropped("syslog", "queue_bytes");
    // Until the system keeps no more for the connection: the queue is full and nothing leaves it. How many
    // events that takes depends on the system, and on who gets the processor.
    let (mut total, mut sent, mut since) = (0, 0, Instant::now());
    while since.elapsed() < STUCK {
        let (before, mut event) = (refused(&sinks), event(&format!("r{total}")));
        event.verdict.reason = "x".repeat(20_000);
        sinks.submit(event);
        total += 1;
        assert!(total < 20_000, "{} of {total} were sent to who does not read", sinks.sent("syslog"));
        if refused(&sinks) > before {
            std::thread::sleep(Duration::from_millis(10));
        }
        if sent != sinks.sent("syslog") || refused(&sinks) == before {
            (sent, since) = (sinks.sent("syslog"), Instant::now());
        }
    }
    // It would not end if one of them waited.
    for _ in 0..16_000 {
        sinks.submit(event(&format!("r{total}")));
        total += 1;
    }
    eventually("the other sink", || (sinks.sent("syslog-2") == total).then_some(()));
    assert!(sinks.metric("portcullis_sink_events_queued{sink=\"syslog\"}") <= 50);
    let begin = Instant::now();
    let lost = sinks.end(Duration::from_millis(500)) as i64;
    assert!(begin.elapsed() < Duration::from_secs(30));
    let dropped: i64 =
        ["queue_full", "queue_bytes", "shutdown"].iter().map(|why| sinks.dropped("syslog", why)).sum();
    assert!(lost > 0 && sinks.dropped("syslog", "shutdown") == lost, "{lost}");
    assert_eq!(sinks.sent("syslog") + dropped, total);
}

/// A server that takes the connection and says a byte now and then does not hold up the handshake for ever.
#[test]
fn a_slow_handshake_ends() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || {
                let mut stream: TcpStream = stream.unwrap();
                // A handshake record of 16 KiB, a byte at a time.
                for byte in [22u8, 3, 3, 64, 0].into_iter().chain(std::iter::repeat(0)) {
                    if std::io::Write::write_all(&mut stream, &[byte]).is_err() {
                        return;
                    }
                    std::thread::sleep(Duration::from_millis(50));
                }
            });
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    let issued = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(&ca, issued.cert.pem()).unwrap();
    let more = format!("ca = \"{}\"\ntimeout = \"300ms\"\nretry = \"1s\"", ca.display());
    let mut sinks = start(&sink(&format!("tls://localhost:{port}"), &more));
    sinks.submit(event("r1"));
    eventually("it gives up", || (sinks.dropped("syslog", "retry") == 1).then_some(()));
    sinks.end(PATIENCE);
    assert!(sinks.said()[0].contains("timed out"), "{:?}", sinks.said());
}

/// An event that is too long is sent without its long parts; one that is too long even so is counted.
#[test]
fn long_events_are_shortened() {
    let receiver = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    receiver.set_read_timeout(Some(PATIENCE)).unwrap();
    let address = format!("udp://{}", receiver.local_addr().unwrap());
    let mut sinks = start(&sink(&address, ""));
    let mut long = event("r1");
    long.matches = (0..200).map(|number| rule(900_000 + number, "ARGS:x", &"v".repeat(1000))).collect();
    sinks.submit(long);
    let mut endless = event("r2");
    endless.upstream = Some("u".repeat(5000));
    sinks.submit(endless);
    assert_eq!(sinks.end(PATIENCE), 0);
    assert_eq!((sinks.sent("syslog"), sinks.dropped("syslog", "too_large")), (1, 1));
    let mut bytes = [0; 65_536];
    let length = receiver.recv(&mut bytes).unwrap();
    assert!(length <= 2048, "{length}");
    let text = String::from_utf8_lossy(&bytes[..length]);
    let json: serde_json::Value = serde_json::from_str(&text[text.find("{\"schema\"").unwrap()..]).unwrap();
    assert_eq!((&json["matches_omitted"], &json["findings"][0]["kind"]), (&200.into(), &"sqli.union".into()));
}
