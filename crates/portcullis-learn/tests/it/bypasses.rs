//! The sender does not choose the profile by which a value is judged.

use portcullis_learn::{FieldPlace, Fields, Source};
use proptest::prelude::*;

use crate::{Learner, fields};

const ATTACK: &str = "1' or '1'='1";

/// Spellings of a path that some server takes for `/shop/item`.
#[test]
fn spellings_of_paths() {
    let mut learner = Learner::new();
    for number in 0..560u32 {
        learner.sees("/shop/item", "id", &number.to_string(), number % 40, number % 14);
    }
    for path in [
        "/shop/item",
        "/shop/item/",
        "//shop///item",
        "/Shop/ITEM",
        "/sh%6fp/item",
        "/sh%256fp/item",
        "/shop/./item",
        "/shop/x/../item",
        "/shop%2Fitem",
        "/shop\\item",
        "/shop/item;jsessionid=1",
        "/shop;a=b/item",
        "/shop/item/and/what/follows",
        "/shop/item/7",
        "/shop/item%20",
        "shop/item",
    ] {
        assert!(learner.judges_get(path, "id", ATTACK).is_some(), "{path}");
    }
    assert!(learner.judges_get("/elsewhere", "id", ATTACK).is_none());
}

/// Spellings of a name, other methods, other places.
#[test]
fn spellings_of_names_and_places() {
    let mut learner = Learner::new();
    for number in 0..560u32 {
        learner.sees("/item", "user.id", &number.to_string(), number % 40, number % 14);
    }
    for name in
        ["user.id", "USER.ID", "user_id", "user id", " user.id ", "user.id[]", "user.id[0]", "user.id\0x"]
    {
        assert!(learner.judges_get("/item", name, ATTACK).is_some(), "{name}");
    }
    for method in ["GET", "HEAD", "POST", "PUT", "FOO"] {
        for place in [FieldPlace::Query, FieldPlace::Form] {
            assert!(
                learner.judges(method, "/item", place, "user.id", ATTACK).is_some(),
                "{method} {place:?}"
            );
            assert!(learner.judges(method, "/item", place, "user.id", "7").is_none(), "{method} {place:?}");
        }
    }
}

/// What programs take for data behind their name comes with parameters of queries and forms, not with JSON.
#[test]
fn other_places_below_a_known_path() {
    let mut learner = Learner::of_numbers();
    for place in [FieldPlace::Query, FieldPlace::Form] {
        assert!(learner.judges("POST", "/item/x", place, "id", ATTACK).is_some(), "{place:?}");
    }
    assert!(learner.judges("PUT", "/item", FieldPlace::Json, "id", ATTACK).is_some());
    assert!(learner.judges("PUT", "/item/report.txt", FieldPlace::Json, "id", ATTACK).is_none());
}

/// Elements of an array of JSON are judged as the value that stands there otherwise.
#[test]
fn arrays_of_json() {
    let mut learner = Learner::new();
    for number in 0..560u32 {
        let mut fields = Fields::default();
        fields.note(FieldPlace::Json, b"filter.id", number.to_string().as_bytes());
        let source = Source { network: number % 40, day: number % 14, ..Source::default() };
        learner.site.observe(source, b"POST", b"/api", &fields);
    }
    for name in ["filter.id", "filter.id.id", "filter.id.id.id", "filter.ID", "filter.id.0", "filter.0.id"] {
        assert!(learner.judges("POST", "/api", FieldPlace::Json, name, ATTACK).is_some(), "{name}");
    }
}

/// A place that carries something else in its own right is judged by that.
#[test]
fn a_place_with_a_profile_of_its_own() {
    let mut learner = Learner::of_numbers();
    for number in 0..560u32 {
        let source = Source { network: number % 40, day: number % 14, ..Source::default() };
        learner.site.observe(
            source,
            b"POST",
            b"/item",
            &fields(FieldPlace::Form, "id", &format!("a 'text' {number}")),
        );
    }
    assert!(learner.judges("POST", "/item", FieldPlace::Form, "id", ATTACK).is_none());
    assert!(learner.judges("GET", "/item", FieldPlace::Query, "id", ATTACK).is_some());
}

/// One letter of a path, as a sender may write it.
fn spelled(letter: char) -> impl Strategy<Value = String> {
    let byte = letter as u32;
    prop_oneof![
        Just(letter.to_string()),
        Just(letter.to_ascii_uppercase().to_string()),
        Just(format!("%{byte:02x}")),
        Just(format!("%{byte:02X}")),
        Just(format!("%25{byte:02x}")),
    ]
}

fn spelled_word(word: &'static str) -> impl Strategy<Value = String> {
    word.chars()
        .map(|letter| spelled(letter).boxed())
        .collect::<Vec<_>>()
        .prop_map(|letters| letters.concat())
}

fn slash() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("/"), Just("//"), Just("/./"), Just("/x/../"), Just("\\"), Just("%2f"), Just(";x=y/")]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// However a path is spelled, the value is judged by what is known of the page.
    #[test]
    fn any_spelling(
        first in spelled_word("shop"), second in spelled_word("item"), between in slash(),
        end in prop_oneof![Just(""), Just("/"), Just("//"), Just(";a"), Just("/%2e"), Just("/more")],
    ) {
        let mut learner = Learner::new();
        for number in 0..240u32 {
            learner.sees("/shop/item", "id", "5", number % 40, number % 14);
        }
        let path = format!("/{first}{between}{second}{end}");
        prop_assert!(learner.judges_get(&path, "id", ATTACK).is_some(), "{path}");
    }
}

/// Whatever is sent before a value, and as much of it, the value is judged.
#[test]
fn values_behind_many_others() {
    let mut learner = Learner::of_numbers();
    learner.learn();
    let knowledge = std::sync::Arc::new(portcullis_learn::Knowledge::of(&learner.store));
    for (name, value) in [("junk", "1"), ("id", "1"), ("id", "letters"), ("ID", "two words")] {
        let mut fields = Fields::default();
        fields.judge_by(std::sync::Arc::clone(&knowledge), b"GET", b"/item");
        for _ in 0..5_000 {
            fields.note(FieldPlace::Query, name.as_bytes(), value.as_bytes());
        }
        fields.note(FieldPlace::Query, b"iD", ATTACK.as_bytes());
        let unusual = fields.unusual();
        assert!(unusual.iter().any(|(_, _, unusual)| !unusual.syntax.is_empty()), "{name}={value}");
        assert!(unusual.len() <= 258, "{}", unusual.len());
        assert!(fields.held_bytes() < 64 << 10);
    }
    let long = format!("{}{ATTACK}", "1".repeat(100_000));
    let unusual = learner.judges_get("/item", "id", &long).expect("a long value");
    assert!(!unusual.syntax.is_empty());
}
