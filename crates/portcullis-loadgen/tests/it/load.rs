//! Loads against servers of the test's own, on loopback. Nothing here asserts that something is fast.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use portcullis_loadgen::{
    Certificates, Error, Load, Pace, Role, Study, Subject, Traffic, Transport, Upstream, drive, messages,
};

fn subject(address: SocketAddr, role: Role) -> Subject {
    Subject {
        name: "test".into(),
        transport: Transport::Plain,
        role,
        address,
        tls: None,
        processes: vec![std::process::id()],
    }
}

fn load(traffic: Traffic, connections: usize, pace: Pace, millis: u64) -> Load {
    let duration = Duration::from_millis(millis);
    Load { messages: messages(traffic, 32).into(), connections, pace, duration }
}

/// Answers requests without a body; before the one with this number it sleeps.
fn server(status: &'static str, stall: Option<(usize, Duration)>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let (mut head, mut byte, mut count) = (Vec::new(), [0], 0);
        while stream.read(&mut byte).is_ok_and(|read| read > 0) {
            head.push(byte[0]);
            if !head.ends_with(b"\r\n\r\n") {
                continue;
            }
            head.clear();
            count += 1;
            if let Some((_, time)) = stall.filter(|(at, _)| *at == count) {
                std::thread::sleep(time);
            }
            let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\nok");
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    address
}

#[test]
fn a_stall_is_seen_by_all_requests_that_were_due_in_it() {
    let stall = Duration::from_millis(400);
    let at = subject(server("200 OK", Some((100, stall))), Role::Direct);
    let open = drive(&at, &load(Traffic::Get, 1, Pace::Open(500.0), 1000)).unwrap();
    assert_eq!(open.answered + open.unsent, 500);
    // Of the 200 that were due while nothing came, those of the first half waited for 200 ms or more.
    let slow = open.latency.len() - open.latency.count_between(0, 190_000_000);
    assert!(slow >= 95, "{slow} requests of 500 saw a stall of {stall:?}");
    assert!(open.latency.max() >= 390_000_000);

    // The same in a closed loop: one request, however long it took.
    let at = subject(server("200 OK", Some((10, stall))), Role::Direct);
    let closed = drive(&at, &load(Traffic::Get, 1, Pace::Closed, 600)).unwrap();
    assert!(closed.latency.max() >= 390_000_000);
    assert_eq!(closed.unsent, 0);
}

#[test]
fn every_kind_of_request_is_answered_with_and_without_tls() {
    let certificates = Certificates::new().unwrap();
    let upstream = Upstream::start(&certificates, 5000).unwrap();
    for traffic in Traffic::ALL {
        let plain = subject(upstream.plain, Role::Off);
        let tls = Subject {
            transport: Transport::Tls,
            tls: Some(certificates.client().unwrap()),
            ..subject(upstream.tls, Role::Off)
        };
        for subject in [plain, tls] {
            let measured = drive(&subject, &load(traffic, 4, Pace::Open(100.0), 200)).unwrap();
            assert_eq!(measured.answered + measured.unsent, 20, "{}", traffic.name());
            assert!(measured.unexpected.is_empty() && measured.broken == 0, "{measured:?}");
            assert_eq!(measured.latency.len(), measured.answered);
        }
    }
}

#[test]
fn answers_that_should_be_others_are_counted() {
    let certificates = Certificates::new().unwrap();
    let upstream = Upstream::start(&certificates, 100).unwrap();
    let at = subject(upstream.plain, Role::Inspecting);
    let passed = drive(&at, &load(Traffic::Attack, 2, Pace::Open(100.0), 100)).unwrap();
    assert_eq!(passed.unexpected.get(&200), Some(&passed.answered));

    let at = subject(server("503 Busy", None), Role::Target);
    let refused = drive(&at, &load(Traffic::Get, 1, Pace::Open(100.0), 100)).unwrap();
    assert_eq!(refused.unexpected.get(&503), Some(&refused.answered));
}

#[test]
fn what_is_not_there_is_an_error() {
    // A port that the kernel assigns to no socket by chance.
    let gone = ([127, 0, 0, 1], 1).into();
    let to_nobody = drive(&subject(gone, Role::Target), &load(Traffic::Get, 1, Pace::Closed, 100));
    assert!(matches!(to_nobody, Err(Error::Connect(..))), "{to_nobody:?}");

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = subject(listener.local_addr().unwrap(), Role::Target);
    let silent = drive(&at, &load(Traffic::Get, 1, Pace::Closed, 100));
    assert!(matches!(silent, Err(Error::Silent(_))), "{silent:?}");
}

#[test]
fn a_study_compares_and_says_what_is_weak() {
    let certificates = Certificates::new().unwrap();
    let upstream = Upstream::start(&certificates, 500).unwrap();
    let named = |name: &str, role| Subject { name: name.into(), ..subject(upstream.plain, role) };
    let study = Study {
        subjects: vec![
            named("no proxy", Role::Direct),
            named("off", Role::Off),
            named("crs", Role::Inspecting),
            named("nginx", Role::Target),
        ],
        traffic: Traffic::Browser,
        connections: 2,
        duration: Duration::from_secs(4),
        load: 0.5,
        rate: Some(50.0),
    };
    let mut said = Vec::new();
    let report = study.run("1.2.3", &mut |line| said.push(line.to_owned())).unwrap();
    assert!(said.len() >= 5, "{said:?}");
    assert!(report.is_sound(), "{report}");
    let [group] = &report.groups[..] else { panic!("{report}") };
    assert_eq!(group.rate, 50.0);
    let rows: Vec<_> = group
        .rows
        .iter()
        .map(|row| (row.name.as_str(), row.added_by_proxy.is_some(), row.added_by_inspection.is_some()))
        .collect();
    let expected =
        [("no proxy", false, false), ("off", true, false), ("crs", true, true), ("nginx", true, false)];
    assert_eq!(rows, expected);
    for row in &group.rows {
        assert!(
            row.capacity > 0.0 && row.answered > 0 && row.latency.p999_us >= row.latency.p50_us,
            "{row:?}"
        );
    }
    assert!(report.notes.iter().any(|note| note.contains("p99.9 rests on")), "{:?}", report.notes);
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["groups"][0]["rows"][2]["role"], "inspecting");
    assert!(json["groups"][0]["rows"][2]["added_by_inspection"]["p99_us"].is_number());
    let text = report.to_string();
    for part in ["HTTP/1.1: 50 requests/s", "added by inspection", "added by the proxy", "p99.9", "notes"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}
