//! The inventory as text.

use portcullis_discovery::{Inventory, Limits, StateError};

use crate::Visited;

#[test]
fn it_is_read_back() {
    let mut visited = Visited::new();
    for number in 0..50 {
        visited.answered(number, 0, &format!("GET /a/{number}?id={number}"), 200);
        visited.answered(number, 0, &format!("POST /titles/{number}-and-more-of-it"), 200);
    }
    let text = visited.inventory.to_text();
    let mut again = Visited { site: Default::default(), inventory: read(&text).expect("what was written") };
    assert_eq!(again.inventory.to_text(), text);
    // It goes on where it ended.
    again.answered(1, 1, "POST /titles/another-one-of-them", 200);
    assert_eq!(again.list(), ["GET /a/{number}", "POST /titles/{name}"]);
    let found: Vec<_> = again.inventory.endpoints().collect();
    assert_eq!((found[0].endpoint.requests, found[1].endpoint.requests), (50, 51));
    assert!(found[0].endpoint.networks.count() > 40);
}

/// What a file says that it cannot say is no reason to keep more than the limits allow.
#[test]
fn damaged_text() {
    let mut visited = Visited::new();
    visited.answered(1, 0, "GET /a?id=1", 200);
    let text = visited.inventory.to_text();
    assert!(matches!(read(&text[..text.len() - 5]), Err(StateError::Damaged(_))));
    assert!(matches!(read("{}"), Err(StateError::Format)));
    assert_eq!(read(&text.replace("portcullis-discovery", "other")).err(), Some(StateError::Format));
    assert_eq!(read(&text.replace("\"version\":1", "\"version\":9")).err(), Some(StateError::Version(9)));
    for (old, new) in [("\"/a\"", "\"a\""), ("\"GET\"", "\"GETGETGETGETGETGET\""), ("\"id\"", "7")] {
        assert!(matches!(read(&text.replace(old, new)), Err(StateError::Damaged(_))), "{new}");
    }
    let long = format!("\"/{}\"", "a".repeat(300));
    assert!(matches!(read(&text.replace("\"/a\"", &long)), Err(StateError::Damaged(_))));
}

/// Two nodes' inventories add up.
#[test]
fn two_are_merged() {
    let (mut one, mut other) = (Visited::new(), Visited::new());
    for number in 0..12 {
        one.answered(number, 0, &format!("GET /t/the-title-{number}"), 200);
        other.answered(number + 6, 0, &format!("GET /t/the-title-{}", number + 12), 200);
    }
    other.answered(1, 0, "GET /other", 200);
    one.inventory.merge(&other.inventory);
    assert_eq!(one.list(), ["GET /other", "GET /t/{name}"]);
    let found: Vec<_> = one.inventory.endpoints().collect();
    assert_eq!((found[1].endpoint.requests, found[1].endpoint.networks.count()), (24, 18));
}

fn read(text: &str) -> Result<Inventory, StateError> {
    Inventory::from_text(text.as_bytes(), Limits::default())
}
