//! What an operator decides about fields holds against whatever clients send.

use portcullis_learn::{
    FieldPlace, Form, Key, Knowledge, Limits, Missing, Order, OrderError, Store, ValueType,
};
use proptest::prelude::*;

use crate::Learner;

fn key(template: &str, name: &str) -> Key {
    Key {
        template: template.to_owned(),
        name: name.to_owned(),
        method: "GET".to_owned(),
        place: FieldPlace::Query,
    }
}

fn id() -> Key {
    key("/item", "id")
}

#[test]
fn a_field_kept_open_is_never_closed() {
    let mut learner = Learner::of_numbers();
    learner.store.order(&id(), Order::KeepOpen).expect("it is there");
    assert!(learner.judges_get("/item", "id", "1'--").is_none());
    for number in 0..2_000u32 {
        learner.sees("/item", "id", &number.to_string(), number % 200, 20_000 + number % 30);
    }
    assert!(learner.judges_get("/item", "id", "1'--").is_none());
    // Nor by a restart, by other limits, or by what another node knows.
    let mut again = Store::from_text(learner.store.to_text().as_bytes(), Limits::default()).expect("its own");
    again.set_limits(Limits { fields_max: 2_001, ..Limits::default() });
    again.merge(Learner::of_numbers().store);
    let (_, profile) = again.find(b"GET", b"/item", FieldPlace::Query, b"id").expect("it is there");
    assert!(profile.kept_open && profile.closed.is_none());
    let mut other = Learner::of_numbers();
    other.store.merge(again);
    assert!(other.judges_get("/item", "id", "1'--").is_none());
    // Until the operator says so.
    learner.store.order(&id(), Order::Learn).expect("it is there");
    assert!(learner.judges_get("/item", "id", "1'--").is_some());
}

/// Neither new fields nor new names in paths push out what an operator has decided.
#[test]
fn a_decision_outlasts_a_flood_of_fields() {
    let limits = Limits { fields_max: 100, ..Limits::default() };
    let mut learner = Learner { store: Store::new(limits), ..Learner::new() };
    learner.sees("/team/ours", "note", "7", 1, 100);
    learner.store.order(&key("/team/ours", "note"), Order::KeepOpen).expect("it is there");
    for at in 0..2_000u32 {
        learner.sees(&format!("/team/name-{at}x"), &format!("f{at}"), "7", 10 + at % 40, 101 + at / 20);
    }
    let found = learner.store.find(b"GET", b"/team/ours", FieldPlace::Query, b"note");
    assert!(found.is_some_and(|(_, profile)| profile.kept_open));
}

#[test]
fn closed_at_once() {
    let mut learner = Learner::new();
    learner.sees("/item", "id", "7", 1, 100);
    let (_, profile) = learner.store.find(b"GET", b"/item", FieldPlace::Query, b"id").expect("it is there");
    let thresholds = learner.store.limits().thresholds;
    assert_eq!(profile.missing(&thresholds), Missing { values: 199, networks: 29, sessions: 0, days: 6 });
    assert_eq!(profile.form_so_far(), Some(Form::Type(ValueType::Whole)));
    assert!(learner.judges_get("/item", "id", "1'--").is_none());
    learner.store.order(&id(), Order::Close).expect("a number");
    assert!(learner.judges_get("/item", "id", "1'--").is_some());
    let again = Store::from_text(learner.store.to_text().as_bytes(), Limits::default()).expect("its own");
    assert!(again.fields().all(|(_, profile)| profile.closed.is_some()));
    // A text in it, beyond the values of a list, is no plain type.
    for at in 0..40u32 {
        learner.sees("/item", "note", &format!("a 'text' {at}"), at, 100 + at);
    }
    let close = |learner: &mut Learner, name| learner.store.order(&key("/item", name), Order::Close);
    assert_eq!(close(&mut learner, "note"), Err(OrderError::NotPlain));
    assert_eq!(close(&mut learner, "none"), Err(OrderError::NoField));
}

#[test]
fn a_forgotten_field_is_learned_anew() {
    let mut learner = Learner::of_numbers();
    learner.store.order(&id(), Order::Forget).expect("it is there");
    assert_eq!(learner.store.order(&id(), Order::Forget), Err(OrderError::NoField));
    assert!(learner.judges_get("/item", "id", "1'--").is_none());
    learner.sees("/item", "id", "seven", 1, 30_000);
    let (_, profile) = learner.store.find(b"GET", b"/item", FieldPlace::Query, b"id").expect("it is there");
    assert_eq!((profile.all.values, profile.types.len()), (1, 1));
}

/// Whatever name a client has chosen, a field is found by the key that it is listed under.
#[test]
fn found_as_it_is_listed() {
    let mut learner = Learner::new();
    for name in ["a[[0]]", "B", " c.d ", "[7]e", "id[0]", "\u{202e}x", "<script>a=1</script>"] {
        learner.sees("/item/7", name, "7", 1, 100);
    }
    let keys: Vec<Key> = learner.store.fields().map(|(key, _)| key.clone()).collect();
    assert_eq!(keys.len(), 7);
    for key in &keys {
        let found = learner.store.find(b"GET", key.template.as_bytes(), key.place, key.name.as_bytes());
        assert_eq!(found.map(|(found, _)| found), Some(key));
    }
}

/// A field that opens again says so until it is closed.
#[test]
fn drift_is_told() {
    let mut learner = Learner::of_numbers();
    for at in 0..200u32 {
        learner.sees("/item", "id", "seven of 'them'", 500 + at % 40, 20_020 + at % 5);
    }
    let profile = |learner: &Learner| {
        let found = learner.store.find(b"GET", b"/item", FieldPlace::Query, b"id");
        found.map(|(_, profile)| profile.clone()).expect("it is there")
    };
    let reopened = profile(&learner).reopened.expect("it has opened");
    assert_eq!(reopened.form, Form::Type(ValueType::Whole));
    assert!((20_020..20_025).contains(&reopened.day));
    let text = learner.store.to_text();
    let again = Store::from_text(text.as_bytes(), Limits::default()).expect("its own");
    assert_eq!(again.to_text(), text);
    learner.store.order(&id(), Order::Forget).expect("it is there");
    learner.sees("/item", "id", "7", 1, 30_000);
    learner.store.order(&id(), Order::Close).expect("a number");
    assert_eq!(profile(&learner).reopened, None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// The field that is shown for a request is the one that it was judged by.
    #[test]
    fn found_as_it_is_judged(
        segments in prop::collection::vec(prop::sample::select(&SEGMENTS[..]), 0..4),
        name in prop::sample::select(&["id", "ID", " id ", "id[0]", "other", ""][..]),
        method in prop::sample::select(&["GET", "HEAD", "POST"][..]),
        place in prop::sample::select(&[FieldPlace::Query, FieldPlace::Form, FieldPlace::Json][..]),
    ) {
        let path = format!("/{}", segments.join("/"));
        let (knowledge, store) = &*KNOWN;
        let fields = crate::fields(place, name, "1' or '1'='1");
        let judged = fields.iter().next().and_then(|(field, name)| {
            knowledge.judge(&mut knowledge.page(method.as_bytes(), path.as_bytes()), field, name)
        });
        let found = store.find(method.as_bytes(), path.as_bytes(), place, name.as_bytes());
        let judged = judged.map(|unusual| unusual.evidence.to_string());
        prop_assert_eq!(judged, found.map(|(_, found)| found.evidence()));
    }
}

const SEGMENTS: [&str; 9] = ["item", "ITEM", "users", "7", "12", "x.php", "..", "unheard-of", "%69tem"];

/// Fields that differ in what is known of them.
static KNOWN: std::sync::LazyLock<(Knowledge, Store)> = std::sync::LazyLock::new(|| {
    let mut learner = Learner::new();
    let paths = ["/", "/item", "/item/users", "/users/7", "/users/7/item", "/x.php/item"];
    for (at, path) in paths.iter().enumerate() {
        for number in 0..=at {
            learner.sees(path, "id", "7", number as u32, 100);
        }
    }
    let keys: Vec<Key> = learner.store.fields().map(|(key, _)| key.clone()).collect();
    assert_eq!(keys.len(), paths.len());
    keys.iter().for_each(|key| learner.store.order(key, Order::Close).expect("numbers"));
    (Knowledge::of(&learner.store), learner.store)
});
