//! Events of attacks that a client repeats many times a second: samples, one that counts the others, and what
//! always has an event of its own.

use std::time::Instant;

use portcullis_event::{Action, Event};

use crate::common::*;

const COALESCED: &str = "portcullis_events_coalesced_total";

/// Sends these requests on one connection, which must be answered with `expected`; the seconds that it took.
fn send(front: &Front, requests: impl Iterator<Item = String>, expected: u16) -> u64 {
    let (begun, mut client) = (Instant::now(), front.client());
    for request in requests {
        client.send(request);
        assert_eq!(status(&client.response().0), expected);
    }
    begun.elapsed().as_secs()
}

fn get(target: &str, fields: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: a\r\n{fields}\r\n")
}

/// The events once they stand for this many requests.
fn standing_for(front: &Front, requests: u64) -> Vec<Event> {
    let sum = |events: &[Event]| events.iter().map(|event| event.count).sum::<u64>();
    portcullis_testkit::wait::becomes(requests, || sum(&front.events(0)));
    front.events(0)
}

#[test]
fn a_flood_has_samples_and_an_exact_count() {
    let backend = Backend::start(|_| ok("ok"));
    let front = Front::coalescing(&document(backend.address, "", "", RULES, ""), 5);
    // Whatever the client varies of what it writes.
    let flood = (0..300).map(|n| get(&format!("/{n}?attack={n}"), &format!("X-Number: {n}\r\n")));
    let seconds = send(&front, flood, 403);
    let events = standing_for(&front, 300);
    assert!((6..=6 * (seconds + 2)).contains(&(events.len() as u64)), "{}", events.len());
    front.counts(COALESCED, 300.0 - events.len() as f64);
    front.counts("portcullis_requests_total{", 300.0);
    for (n, sample) in events.iter().take(5).enumerate() {
        assert_eq!((sample.count, &*sample.request.target), (1, &*format!("/{n}?attack={n}")));
    }
    for event in &events {
        assert_eq!((event.verdict.action, event.matches.len()), (Action::Deny, 1), "{event:?}");
        assert!(event.count == 1 || event.response.status == Some(403), "held ones are complete");
    }
}

#[test]
fn what_differs_is_not_counted_together() {
    let backend = Backend::start(|_| ok("ok"));
    let more = "client_address = { trusted_proxies = [\"127.0.0.1\"], header = \"x-forwarded-for\" }";
    let front = Front::coalescing(&document(backend.address, more, "", RULES, ""), 1);
    let of = |client: usize| format!("X-Forwarded-For: 192.0.2.{client}\r\n");
    // Each of many clients, once by the one rule and once by the other; and what follows from an attack.
    send(&front, (1..100).map(|n| get("/attack", &of(n))), 403);
    send(&front, (1..100).map(|n| get("/moveme", &of(n))), 302);
    send(&front, (0..50).map(|_| get("/attack", "Referer: http://a/attack\r\n")), 403);
    let events = standing_for(&front, 248);
    assert_eq!((events.len(), front.metric(COALESCED)), (248, 0.0));
}

#[test]
fn bans_count_each_request() {
    let backend = Backend::start(|_| ok("ok"));
    let more = "ban = { score = 400, duration = \"1h\" }";
    let front = Front::coalescing(&document(backend.address, more, "", RULES, ""), 1);
    send(&front, (0..40).map(|_| get("/attack", "")), 403);
    let blocked = "portcullis_ban_requests_total{ban=\"all\",action=\"block\"}";
    assert_eq!(front.metric(blocked), 0.0, "ten points each");
    send(&front, (0..3).map(|_| get("/", "")), 403);
    front.counts(blocked, 3.0);
    // Refusals of a ban are no repeats of an attack.
    let events = standing_for(&front, 43);
    assert_eq!(events.iter().filter(|event| event.verdict.control.is_some()).count(), 3);
}

#[test]
fn what_is_held_back_is_given_out_at_the_end() {
    let backend = Backend::start(|_| ok("ok"));
    let front = Front::coalescing(&document(backend.address, "", "", RULES, ""), 1);
    send(&front, (0..100).map(|_| get("/attack", "")), 403);
    let given = front.end();
    assert_eq!(given.iter().map(|event| event.count).sum::<u64>(), 100);
    assert!(given.len() < 100);
}
