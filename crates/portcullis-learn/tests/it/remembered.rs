//! What is remembered of the requests before: it changes nothing of what is said and learned of the next.

use std::sync::Arc;

use portcullis_learn::{Carried, FieldPlace, Fields, Knowledge, Source};
use proptest::prelude::*;

use crate::Learner;

const NAMES: [&str; 8] =
    ["id", "sort", "page", "category", "next", "value", "key", "a-name-beyond-eight-bytes"];
const VALUES: [&str; 14] = [
    "4711",
    "7",
    "name",
    "price",
    "true",
    "TRUE",
    "a_word",
    "2026-11-30",
    "https://shop.example/a",
    "https://other.example/a",
    "1' or '1'='1",
    "two words",
    "f00d1234f00d1234",
    "-",
];

type Sent = (FieldPlace, usize, usize);

fn sent() -> impl Strategy<Value = Sent> {
    let place = prop_oneof![
        6 => Just(FieldPlace::Query),
        2 => Just(FieldPlace::Form),
        1 => Just(FieldPlace::Json),
        1 => Just(FieldPlace::Header),
        1 => Just(FieldPlace::Cookie),
    ];
    (place, 0..NAMES.len(), 0..VALUES.len())
}

/// A list of fields that many requests have, and what is changed in it.
fn requests() -> impl Strategy<Value = Vec<(usize, usize, Vec<Sent>)>> {
    let usual = prop::collection::vec(sent(), 0..6);
    let request = (0..PATHS.len(), 0..3usize, prop::collection::vec(sent(), 0..3), 0..4usize);
    (usual, prop::collection::vec(request, 1..24)).prop_map(|(usual, requests)| {
        let whole = |(path, method, others, how): (usize, usize, Vec<Sent>, usize)| {
            let mut list = usual.clone();
            match how {
                0 => {}
                1 => list.extend(others),
                2 => list.splice(0..0, others).for_each(drop),
                _ => list.truncate(others.len()),
            }
            (path, method, list)
        };
        requests.into_iter().map(whole).collect()
    })
}

const PATHS: [&str; 4] = ["/item", "/shop/7/item", "/shop/cart", "/long"];
const METHODS: [&[u8]; 3] = [b"GET", b"POST", b"HEAD"];

fn path(number: usize) -> String {
    // Too long to be remembered.
    if PATHS[number] == "/long" { format!("/long{}", "/x".repeat(200)) } else { PATHS[number].to_owned() }
}

fn note(fields: &mut Fields, knowledge: &Arc<Knowledge>, method: &[u8], path: &str, list: &[Sent]) {
    fields.clear();
    fields.judge_by(Arc::clone(knowledge), method, path.as_bytes());
    for (place, name, value) in list {
        fields.note(*place, NAMES[*name].as_bytes(), VALUES[*value].as_bytes());
    }
    fields.set_own_hosts(|host| host == b"shop.example");
}

fn all(fields: &Fields) -> Vec<(FieldPlace, Vec<u8>, Carried)> {
    fields.iter().map(|(field, name)| (field.place, name.to_vec(), field.carried)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// One thread's fields, used for request after request, and new ones for each: the same is noted, judged
    /// and learned.
    #[test]
    fn as_if_nothing_was_remembered(requests in requests()) {
        let (mut learner, mut other) = (Learner::new(), Learner::new());
        let mut reused = Fields::default();
        for round in 0..3u32 {
            // Known from the second round on.
            let knowledge = learner.site.knowledge();
            for (at, (number, method, list)) in requests.iter().enumerate() {
                let (path, method, mut fresh) = (path(*number), METHODS[*method], Fields::default());
                note(&mut reused, &knowledge, method, &path, list);
                note(&mut fresh, &knowledge, method, &path, list);
                prop_assert_eq!(reused.request(), fresh.request());
                prop_assert_eq!(all(&reused), all(&fresh));
                prop_assert_eq!(reused.is_empty(), fresh.is_empty());
                let (judged, expected) = (reused.unusual(), fresh.unusual());
                prop_assert_eq!(judged, expected);
                prop_assert_eq!(all(&reused), all(&fresh), "and after it was judged");
                // Many send it first, and then one after the other, so that each is handed on.
                for network in 0..if round == 0 { 40 } else { 1 } {
                    let source = Source {
                        network: network + if round == 0 { 0 } else { 1_000 * round + at as u32 },
                        day: 100 + (network + at as u32) % 14,
                        ..Source::default()
                    };
                    learner.site.observe(source, method, path.as_bytes(), &reused);
                    other.site.observe(source, method, path.as_bytes(), &fresh);
                }
            }
            let (waiting, expected) = (learner.site.take(), other.site.take());
            prop_assert_eq!(waiting.len(), expected.len());
            learner.store.learn(&waiting);
            other.store.learn(&expected);
            let known: Vec<_> = learner.store.fields().collect();
            let expected: Vec<_> = other.store.fields().collect();
            prop_assert_eq!(format!("{known:?}"), format!("{expected:?}"));
            learner.site.publish(Knowledge::of(&learner.store));
        }
    }
}
