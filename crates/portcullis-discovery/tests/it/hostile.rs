//! What hostile clients can do to an inventory: little, in bounded memory.

use portcullis_discovery::{
    BYTES_MAX, Details, FOUNDER_SHARE, Inventory, Limits, NETWORK_SHARE, Observation, PARAMETERS_MAX,
    ParameterPlace, REQUESTS_MAX, Site, TEMPLATE_BYTES_MAX, WORDS_MAX,
};
use proptest::prelude::*;

use crate::{START_S, Visited};

/// Words that do not look alike in a row.
fn word(number: u64) -> String {
    let mut hash = number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let letters = (0..8).map(|_| {
        hash = hash.rotate_left(7).wrapping_mul(31).wrapping_add(number);
        char::from(b'a' + (hash >> 33) as u8 % 26)
    });
    letters.collect()
}

/// A site that answers everything with 200, and one network that asks for 100,000 different paths: what
/// others ask for has its place, and nothing grows without bound.
#[test]
fn one_network_with_100_000_paths() {
    let mut visited = Visited::new();
    for number in 0..100_000u64 {
        // At different depths, so that they do not become one.
        let line = match number % 3 {
            0 => format!("GET /{}", word(number)),
            1 => format!("GET /{}/{}", word(number), word(number + 7)),
            _ => format!("GET /{}/{}/{}", word(number % 64), word(number + 5), word(number)),
        };
        let (method, path) = line.split_once(' ').expect("a line");
        let seen = Observation {
            network: 1,
            at_s: START_S,
            method: method.as_bytes(),
            path: path.as_bytes(),
            status: 200,
            ..Observation::default()
        };
        visited.site.observe(&seen, Some(Details::default()));
        if number % 2_000 == 1_999 {
            visited.inventory.learn(&visited.site.take());
        }
    }
    let max = Limits::default().endpoints_max;
    assert!(visited.inventory.len() <= max / FOUNDER_SHARE, "{}", visited.inventory.len());
    assert!(visited.inventory.held_bytes() < 4 << 20, "{}", visited.inventory.held_bytes());
    for number in 0..1_000 {
        visited.answered(
            2 + number,
            0,
            &format!("GET /api/{}/{}", number % 7, word(u64::from(number % 20))),
            200,
        );
    }
    let known = visited.list().iter().filter(|line| line.starts_with("GET /api/{number}/")).count();
    assert_eq!(known, 20);
}

/// Many networks together fill the places and no more; those that nobody else has asked give way the next
/// day.
#[test]
fn many_networks() {
    let limits = Limits { endpoints_max: 200, ..Limits::default() };
    let mut visited = Visited::within(limits);
    for number in 0..500 {
        let line = format!("GET /{}/{}", word(number % 20), word(1_000 + number));
        visited.answered(number as u32, 0, &line, 200);
    }
    assert!(visited.inventory.len() <= 200 && visited.inventory.beyond().endpoints > 0);
    for network in [1_000, 1_001] {
        visited.answered(network, 2, "GET /shop/cart/items", 200);
    }
    assert!(visited.list().contains(&"GET /shop/cart/items".to_owned()), "{:?}", visited.list());
}

/// Names that stand where a site answers everything become one.
#[test]
fn random_names_in_one_place() {
    let mut visited = Visited::new();
    for number in 0..5_000u32 {
        visited.answered(number % 9, 0, &format!("GET /{}", word(u64::from(number))), 200);
    }
    assert!(visited.inventory.len() <= WORDS_MAX + 1, "{:?}", visited.list());
}

/// One network's parameters do not push out those of others, and do not show.
#[test]
fn invented_parameters() {
    let mut visited = Visited::new();
    for number in 0..200 {
        visited.answered(number, 0, "GET /search?q=x&page=1", 200);
    }
    for number in 0..2_000u64 {
        visited.answered(1, 0, &format!("GET /search?q=x&{}=1", word(number)), 200);
    }
    for network in [2, 3, 4] {
        visited.answered(network, 0, "GET /search?q=x&sort=name", 200);
    }
    let found: Vec<_> = visited.inventory.endpoints().collect();
    let names: Vec<_> = found[0].endpoint.parameters().map(|own| &*own.name).collect();
    assert_eq!(names, ["page", "q", "sort"]);
    // Of many networks they are bounded all the same.
    for number in 0..2_000u32 {
        visited.answered(number, 1, &format!("GET /search?{}=1", word(u64::from(number))), 200);
    }
    let found: Vec<_> = visited.inventory.endpoints().collect();
    assert!(found[0].endpoint.parameters().count() <= PARAMETERS_MAX);
    assert!(visited.inventory.beyond().parameters > 1_000);
}

/// What waits is bounded, and one network has a part of it.
#[test]
fn what_waits_is_bounded() {
    let site = Site::default();
    let seen =
        Observation { at_s: START_S, method: b"GET", path: b"/a", status: 200, ..Observation::default() };
    for _ in 0..REQUESTS_MAX {
        site.observe(&seen, None);
    }
    assert_eq!(site.take().len(), REQUESTS_MAX / NETWORK_SHARE);
    for network in 0..20_000 {
        site.observe(&Observation { network, ..seen }, None);
    }
    let batch = site.take();
    assert_eq!((batch.len(), batch.dropped), (REQUESTS_MAX, 20_000 - REQUESTS_MAX as u64));
    let path = vec![b'a'; 60_000];
    for network in 0..1_000 {
        let mut details = Details::default();
        for number in 0..400 {
            details.note(ParameterPlace::Form, format!("name{number}").as_bytes(), b"1");
        }
        site.observe(&Observation { network, path: &path, ..seen }, Some(details));
    }
    let batch = site.take();
    assert!(batch.len() * path.len() <= BYTES_MAX && batch.dropped > 900);
    // Only some are looked at closely.
    let wants = |number: &u64| site.wants_details(b"GET", format!("/{}", word(*number)).as_bytes());
    let wanted = (0..10_000).filter(wants).count();
    assert!(wanted < 1_000, "{wanted}");
    assert!((0..10_000).filter(|_| site.wants_answer()).count() < 100);
}

/// No spelling of a path, method or name gets into a list as it is sent if a person could not read it there.
#[test]
fn hostile_names() {
    let mut visited = Visited::new();
    for line in [
        "GET /<script>alert(1)</script>",
        "GET /a'b\"c",
        "GET /%3Cimg%20src=x%3E",
        "GET /{number}",
        "GET /{{7*7}}",
        "GET /../../etc/passwd",
        "GET /..%2f..%2fetc%2fpasswd",
        "GET /%00/\u{202e}gpj",
        "GET /\u{1f600}",
        "GET /a%0d%0aSet-Cookie:x",
        "FOO /x",
        "get /x",
        "OPTIONS /x",
        "TRACE /x",
        "CONNECT /x",
    ] {
        visited.answered(1, 0, line, 200);
    }
    visited.answered(1, 0, &format!("GET /{}", "a/".repeat(500)), 200);
    visited.answered(1, 0, &format!("GET /{}", "long-name-of-a-segment/".repeat(11)), 200);
    let name = "n".repeat(5_000);
    visited.answered(1, 0, &format!("GET /q?{name}=1&<b>=2&\u{0}=3&%27=4&ok=5"), 200);
    for line in visited.list() {
        let is_plain = |c: char| c.is_ascii_graphic() && !"<>\"'`\\%&".contains(c) || c == ' ';
        assert!(line.chars().all(is_plain), "{line}");
        assert!(line.len() <= TEMPLATE_BYTES_MAX + 8, "{line}");
        assert!(!line.contains("..") && !line.contains("{number}") && !line.contains("/x"), "{line}");
    }
    let found: Vec<_> = visited.inventory.endpoints().filter(|found| found.path == "/q").collect();
    let names: Vec<_> = found[0].endpoint.parameters().map(|own| &*own.name).collect();
    assert_eq!(names, ["%27", "ok"].into_iter().filter(|name| !name.contains('%')).collect::<Vec<_>>());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever comes: no panic, everything bounded, and what is written is read back the same.
    #[test]
    fn anything(exchanges in prop::collection::vec(
        ("[A-Z]{0,8}|GET|POST", prop::collection::vec(any::<u8>(), 0..80), 0u16..600, 0u32..5, any::<bool>()), 0..60))
    {
        let limits = Limits { endpoints_max: 20, ..Limits::default() };
        let mut inventory = Inventory::new(limits);
        let site = Site::default();
        for (at, (method, path, status, network, is_refused)) in exchanges.iter().enumerate() {
            let mut details = Details::default();
            details.note(ParameterPlace::Query, path, path);
            details.note(ParameterPlace::Json, path, path);
            let seen = Observation {
                network: *network, at_s: START_S + at as u64 * 10_000, method: method.as_bytes(), path,
                status: *status, is_refused: *is_refused, took_us: u64::from(*status) * 1_000,
            };
            site.observe(&seen, at.is_multiple_of(2).then_some(details));
            inventory.learn(&site.take());
        }
        prop_assert!(inventory.len() <= 20);
        let text = inventory.to_text();
        let again = Inventory::from_text(text.as_bytes(), limits).expect("what was written");
        prop_assert_eq!(again.to_text(), text);
        prop_assert_eq!(again.len(), inventory.len());
        let document = portcullis_discovery::openapi(&inventory, "s");
        let read = portcullis_discovery::Interface::of(&document).expect("an OpenAPI document");
        prop_assert!(portcullis_discovery::compare(&read, &read).is_empty());
    }
}
