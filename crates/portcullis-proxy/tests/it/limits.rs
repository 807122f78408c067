//! Everything has a limit: bodies, memory, time, connections.

use std::io::{Read, Write};
use std::time::Duration;

use crate::common::*;
use portcullis_event::ExceptionPolicy;

fn post(length: usize) -> Vec<u8> {
    let head = format!(
        "POST /upload HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\r\n"
    );
    [head.as_bytes(), &vec![b'x'; length]].concat()
}

fn chunked(length: usize) -> Vec<u8> {
    let head =
        "POST /upload HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n";
    let chunks: Vec<u8> = std::iter::repeat_n(*b"5\r\nxxxxx\r\n", length / 5).flatten().collect();
    [head.as_bytes(), &chunks, b"0\r\n\r\n"].concat()
}

#[test]
fn a_body_over_the_limit_is_refused() {
    let backend = Backend::start(|_| ok("never"));
    let site = format!("{RULES}request_body = {{ limit = 1000, over_limit = \"reject\" }}\n");
    let front = Front::start(&document(backend.address, "", "", &site, ""));
    for request in [post(1005), chunked(1005)] {
        let answer = front.once(request);
        assert_eq!(status(&answer), 413, "{answer}");
        assert_eq!(header(&answer, "connection"), Some("close"));
    }
    assert!(backend.seen().is_empty());
    let events = front.events(2);
    assert_eq!(events[0].exceptions[0].policy, ExceptionPolicy::Closed);
    let mut client = front.client();
    for request in [post(1000), chunked(1000)] {
        client.send(request);
        assert_eq!(status(&client.response().0), 200, "the limit itself fits");
    }
}

#[test]
fn or_its_rest_passes_uninspected_and_counted() {
    let backend = Backend::start(|request| ok(&request.body.len().to_string()));
    let site = format!("{RULES}request_body = {{ limit = 1000, over_limit = \"pass_uninspected\" }}\n");
    let front = Front::start(&document(backend.address, "", "", &site, ""));
    let mut client = front.client();
    for request in [post(300_000), chunked(300_000)] {
        client.send(request);
        assert_eq!(client.response().1, b"300000");
    }
    let seen = backend.seen();
    assert_eq!(seen[0].header("content-length"), Some("300000"));
    assert_eq!(seen[1].header("transfer-encoding"), Some("chunked"));
    let events = front.events(2);
    assert_eq!(events[0].exceptions[0].policy, ExceptionPolicy::Open);
    front.counts("portcullis_bytes_not_inspected_total{reason=\"over_limit\"}", 2.0 * 299_000.0);
    // What is within the limit is still inspected.
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 2000\r\n\r\na=attack&");
    client.send(vec![b'x'; 1991]);
    assert_eq!(status(&client.response().0), 403);
}

#[test]
fn held_bodies_share_one_budget() {
    let backend = Backend::start(|_| ok("ok"));
    let limits =
        "limits = { held_bodies = 2000000, network_held_bodies = 700000, held_bodies_wait = \"50ms\" }";
    let front = Front::start(&document(backend.address, limits, "", RULES, ""));
    let mut first = front.client();
    let request = post(400_000);
    first.send(&request[..350_000]);
    // Only once what was sent of the first is held: another that comes before could take its place, and
    // nothing would be held.
    until(|| front.metric("portcullis_held_body_bytes") >= 350_000.0);
    until(|| {
        let other = String::from_utf8(post(300_000)).unwrap();
        let answer = front.once(other.replace("Host: a\r\n", "Host: a\r\nConnection: close\r\n"));
        status(&answer) == 503 && header(&answer, "retry-after").is_some()
    });
    let refused =
        |reason: &str| front.metric(&format!("portcullis_bodies_refused_total{{reason=\"{reason}\"}}"));
    assert!(refused("process") + refused("network") >= 1.0);
    first.send(&request[350_000..]);
    assert_eq!(status(&first.response().0), 200);
    let mut third = front.client();
    third.send(post(400_000));
    assert_eq!(status(&third.response().0), 200, "what was held is given back");
}

#[test]
fn response_bodies_are_held_when_the_rules_ask() {
    let answer = |body: &str| {
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n", body.len());
        Reply::Bytes((head + body).into_bytes())
    };
    let backend = Backend::start(move |request| {
        match request.line().split(' ').nth(1) {
        Some("/bad") => answer("a secret"),
        Some("/long") => answer(&format!("{}secret", "x".repeat(5000))),
        Some("/chunked") => Reply::Bytes(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n".to_vec(),
        ),
        _ => answer("fine"),
    }
    });
    for (over, expected) in [("pass_uninspected", 200), ("reject", 500)] {
        let site =
            format!("{RULES}response_body = {{ inspect = true, limit = 1000, over_limit = \"{over}\" }}\n");
        let front = Front::start(&document(backend.address, "", "", &site, ""));
        let mut client = front.client();
        for (path, code, length) in
            [("/good", 200, "4"), ("/bad", 403, ""), ("/chunked", 200, "3"), ("/long", expected, "")]
        {
            client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
            let (head, body) = client.response();
            assert_eq!(status(&head), code, "{path}");
            assert!(!String::from_utf8_lossy(&body).starts_with("a secret"));
            if !length.is_empty() {
                assert_eq!(header(&head, "content-length"), Some(length));
            }
        }
    }
}

#[test]
fn a_response_without_memory_is_refused_for_a_while() {
    let backend = Backend::start(|_| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 1500000\r\n\r\n";
        Reply::Bytes((head.to_owned() + &"x".repeat(1_500_000)).into_bytes())
    });
    let limits = "limits = { held_bodies = 2000000, network_held_bodies = 700000 }";
    let site = format!("{RULES}response_body = {{ inspect = true, limit = 10000000 }}\n");
    let front = Front::start(&document(backend.address, limits, "", &site, ""));
    let answer = front.once("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert_eq!(status(&answer), 503);
    assert_eq!(header(&answer, "retry-after"), Some("2"));
}

#[test]
fn slow_clients_do_not_hold_on() {
    let backend = Backend::start(|_| ok("ok"));
    let timeouts = "timeouts = { header = \"300ms\", body = \"300ms\", idle = \"300ms\" }";
    let front = Front::start(&document(backend.address, timeouts, "", RULES, ""));
    // A head that drips: each byte comes in time, the whole does not.
    let mut client = front.client();
    let mut stream = client.stream.try_clone().unwrap();
    let dripping = std::thread::spawn(move || {
        let head = b"GET / HTTP/1.1\r\nHost: a\r\nX: ".iter().copied();
        for byte in head.chain(std::iter::repeat(b'y')) {
            if stream.write_all(&[byte]).is_err() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    assert_eq!(status(&client.rest()), 408);
    drop(client);
    dripping.join().unwrap();
    let mut client = front.client();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc");
    assert_eq!(status(&client.rest()), 408);
    let mut client = front.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    client.response();
    assert_eq!(client.rest(), "", "an idle connection is closed without a word");
    assert_eq!(front.client().rest(), "", "so is one on which nothing ever came");
}

#[test]
fn a_client_that_does_not_read_is_cut_off() {
    let backend = Backend::start(|_| {
        let mut bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n".to_vec();
        bytes.resize(100_000_000, b'x');
        Reply::Bytes(bytes)
    });
    let front = Front::start(&document(backend.address, "timeouts = { write = \"300ms\" }", "", RULES, ""));
    let mut client = front.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    until(|| front.metric("portcullis_connections_active") == 1.0);
    until(|| front.metric("portcullis_connections_active") == 0.0);
}

#[test]
fn connections_beyond_the_limit_wait() {
    let backend = Backend::start(|_| ok("ok"));
    let limits = "limits = { connections = 2, network_connections = 2 }";
    let front = Front::start(&document(backend.address, limits, "", RULES, ""));
    // Each has a request in flight.
    let (mut first, mut second) = (front.client(), front.client());
    for client in [&mut first, &mut second] {
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\na");
    }
    until(|| front.metric("portcullis_connections_active") == 2.0);
    let mut third = front.client();
    third.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    std::thread::sleep(Duration::from_millis(150));
    front.counts("portcullis_connections_active", 2.0);
    drop(second);
    assert_eq!(status(&third.response().0), 200);
}

#[test]
fn an_early_answer_reaches_a_client_that_still_sends() {
    // The backend answers and closes without reading the body; the body passes unheld.
    let backend = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = backend.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in backend.incoming().flatten() {
            let _ = stream.read(&mut [0; 512]);
            let _ = stream.write_all(
                b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno",
            );
            std::thread::sleep(Duration::from_millis(300));
        }
    });
    let site = format!("{RULES}request_body = {{ inspect = false }}\n");
    let front = Front::start(&document(address, "", "", &site, ""));
    let mut client = front.client();
    let stream = client.stream.try_clone().unwrap();
    let sender = std::thread::spawn(move || {
        let mut stream = stream;
        let _ = stream.write_all(&post(20_000_000));
    });
    assert_eq!(status(&client.rest()), 413);
    sender.join().unwrap();
}

/// A client that sends its whole body before it looks for an answer sees the 413, as long as it keeps within
/// the limits of lingering.
#[test]
fn who_sends_on_still_sees_the_refusal() {
    let backend = Backend::start(|_| ok("never"));
    let site = format!("{RULES}request_body = {{ limit = 1000, over_limit = \"reject\" }}\n");
    let front = Front::start(&document(backend.address, "", "", &site, ""));
    for length in [300_000, 4 << 20, 15 << 20] {
        for _ in 0..11 {
            let mut client = front.client();
            client.stream.write_all(&post(length)).unwrap();
            assert_eq!(status(&client.rest()), 413, "{length}");
        }
    }
    assert!(backend.seen().is_empty());
}

#[test]
fn lingering_ends_after_its_bytes_or_its_time() {
    let backend = Backend::start(|_| ok("never"));
    let site = format!("{RULES}request_body = {{ limit = 1000, over_limit = \"reject\" }}\n");
    let keys = "timeouts = { linger = \"300ms\" }\nlimits = { linger = \"1MiB\" }\n";
    let front = Front::start(&document(backend.address, keys, "", &site, ""));
    // More than a socket's buffers hold, and far more than what is read.
    let mut client = front.client();
    let length = 64 << 20;
    client.stream.write_all(&post(length)).unwrap_err();
    // A drip does not keep the connection.
    let mut client = front.client();
    client.stream.write_all(&post(length)[..2000]).unwrap();
    let started = std::time::Instant::now();
    while client.stream.write_all(b"x").is_ok() {
        assert!(started.elapsed() < PATIENCE, "it lingers for ever");
        std::thread::sleep(Duration::from_millis(20));
    }
    front.counts("portcullis_connections_active", 0.0);
}
