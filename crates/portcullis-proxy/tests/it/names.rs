//! Host names of endpoints: every address is an endpoint, and they follow what DNS says.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::*;

/// A DNS server for which every name has these addresses; none: it cannot say. What 512 bytes do not hold it
/// says over TCP only.
fn dns() -> (SocketAddr, Arc<Mutex<Option<Vec<Ipv4Addr>>>>) {
    let address = vacant();
    let socket = UdpSocket::bind(address).unwrap();
    let addresses = Arc::new(Mutex::new(Some(vec![Ipv4Addr::LOCALHOST])));
    let listener = TcpListener::bind(address).unwrap();
    let shared = Arc::clone(&addresses);
    std::thread::spawn(move || {
        let mut packet = [0; 512];
        while let Ok((length, peer)) = socket.recv_from(&mut packet) {
            let mut answer = answer(&packet[..length], shared.lock().unwrap().as_deref());
            if answer.len() > 512 {
                answer.truncate(512);
                answer[2] |= 2; // TC
                answer[6..8].copy_from_slice(&[0, 20]);
            }
            let _ = socket.send_to(&answer, peer);
        }
    });
    let shared = Arc::clone(&addresses);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut length = [0; 2];
            stream.read_exact(&mut length).unwrap();
            let mut packet = vec![0; u16::from_be_bytes(length).into()];
            stream.read_exact(&mut packet).unwrap();
            let answer = answer(&packet, shared.lock().unwrap().as_deref());
            stream.write_all(&(answer.len() as u16).to_be_bytes()).unwrap();
            stream.write_all(&answer).unwrap();
        }
    });
    (address, addresses)
}

fn answer(question: &[u8], addresses: Option<&[Ipv4Addr]>) -> Vec<u8> {
    let end = 12 + question[12..].iter().position(|byte| *byte == 0).unwrap() + 5;
    let failure = if addresses.is_none() { 2 } else { 0 };
    let addresses = addresses.unwrap_or_default();
    let mut answer = question[..2].to_vec();
    answer.extend([0x81, 0x80 | failure, 0, 1, 0, addresses.len() as u8, 0, 0, 0, 0]);
    answer.extend(&question[12..end]);
    for address in addresses {
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4]);
        answer.extend(address.octets());
    }
    answer
}

#[test]
fn more_addresses_than_a_datagram_holds() {
    let backend = Backend::start(|_| ok("one"));
    let (server, addresses) = dns();
    *addresses.lock().unwrap() = Some((1..=40).map(|last| Ipv4Addr::new(127, 0, 0, last)).collect());
    let more = format!("lookups = {{ resolvers = [\"{server}\"], dns_timeout = \"5s\" }}\n");
    let text = document(backend.address, &more, "", "mode = \"off\"", "");
    let front = Front::start(&text.replace("http://127.0.0.1:", "http://app.internal:"));
    until(|| front.metric("portcullis_upstream_healthy_backends{upstream=\"app\"}") == 40.0);
}

#[test]
fn endpoints_follow_what_dns_says() {
    let slow = |request: &Recorded| match request.line().contains("/slow") {
        true => Reply::Slowly(
            vec![b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nsl".to_vec(), b"ow".to_vec()],
            Duration::from_secs(1),
        ),
        false => ok("one"),
    };
    let one = Backend::start(slow);
    let other = Backend::start_at(SocketAddr::from(([127, 0, 0, 2], one.address.port())), |_| ok("other"));
    let (server, addresses) = dns();
    let more = format!("lookups = {{ resolvers = [\"{server}\"], dns_timeout = \"5s\" }}\n");
    let group = "resolve = { min = \"50ms\", max = \"100ms\" }\nhealth = { path = \"/health\", interval = \"100ms\" }\n";
    let text = document(one.address, &more, "", "mode = \"off\"", group);
    let text = text.replace("http://127.0.0.1:", "http://app.internal:");
    let front = Front::start(&text);
    let ask = || front.once("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    until(|| ask().ends_with("one"));

    let healthy = || front.metric("portcullis_upstream_healthy_backends{upstream=\"app\"}");
    *addresses.lock().unwrap() = Some(vec![Ipv4Addr::LOCALHOST, Ipv4Addr::new(127, 0, 0, 2)]);
    until(|| ask().ends_with("other") && healthy() == 2.0);
    assert!(other.seen().iter().any(|seen| seen.header("host") == Some("a")));
    let check = || other.seen().into_iter().find(|seen| seen.line().contains("/health"));
    until(|| check().is_some());
    let expected = format!("app.internal:{}", one.address.port());
    assert_eq!(check().and_then(|seen| seen.header("host").map(str::to_string)), Some(expected));
    let mut answers: Vec<String> = (0..4).map(|_| ask()).collect();
    answers.sort();
    assert!(answers[0].ends_with("one") && answers[3].ends_with("other"), "both in turn: {answers:?}");

    // One address goes while it answers a request: that ends, new ones go elsewhere.
    let asked_slowly =
        |backend: &Backend| backend.seen().iter().filter(|seen| seen.line().contains("/slow")).count();
    let mut client = loop {
        let before = asked_slowly(&other);
        let mut client = front.client();
        client.send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
        until(|| asked_slowly(&one) > 0 || asked_slowly(&other) > before);
        if asked_slowly(&one) > 0 {
            break client;
        }
    };
    *addresses.lock().unwrap() = Some(vec![Ipv4Addr::new(127, 0, 0, 2)]);
    until(|| healthy() == 1.0);
    for _ in 0..6 {
        assert!(ask().ends_with("other"));
    }
    let (_, body) = client.response();
    assert_eq!(body, b"slow");

    // Without an answer everything stays.
    let count = |result: &str| {
        front
            .metric(&format!("portcullis_upstream_resolutions_total{{upstream=\"app\",result=\"{result}\"}}"))
    };
    *addresses.lock().unwrap() = None;
    until(|| count("failed") > 2.0);
    assert!(ask().ends_with("other"));
    until(|| count("changed") == 3.0 && count("unchanged") > 0.0);
    let failures = front.lines().iter().filter(|line| line.contains("cannot resolve")).count();
    assert_eq!(failures, 1, "told once: {:?}", front.lines());
}

#[test]
fn the_retry_budget_outlives_the_addresses() {
    // Nothing listens at any address of the name, so that each request is tried twice while the budget lasts.
    let port = vacant().port();
    let (server, addresses) = dns();
    let place = |last| Ipv4Addr::new(127, 0, 0, last);
    *addresses.lock().unwrap() = Some(vec![place(1), place(2)]);
    let more = format!("lookups = {{ resolvers = [\"{server}\"], dns_timeout = \"5s\" }}\n");
    // A hundred retries are saved up, and a hundred requests earn one more.
    let group = "resolve = { min = \"50ms\", max = \"100ms\" }\nejection = { failures = 0 }\n\
                 retry = { attempts = 1, budget = 1, per_second = 0 }\n";
    let text = document(SocketAddr::from(([127, 0, 0, 1], port)), &more, "", "mode = \"off\"", group);
    let front = Front::start(&text.replace("http://127.0.0.1:", "http://app.internal:"));
    let endpoints = || front.metric("portcullis_upstream_healthy_backends{upstream=\"app\"}");
    let retries = || front.metric("portcullis_upstream_retries_total{upstream=\"app\"");
    let ask = |times: usize| {
        for _ in 0..times {
            front.once("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        }
    };
    until(|| endpoints() == 2.0);
    ask(120);
    until(|| retries() == 101.0);

    *addresses.lock().unwrap() = Some(vec![place(1), place(2), place(3)]);
    until(|| endpoints() == 3.0);
    ask(10);
    until(|| retries() == 101.0); // there is no new budget
}
