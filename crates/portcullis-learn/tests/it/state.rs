//! What was learned, kept and read again.

use portcullis_learn::{Limits, StateError, Store};
use proptest::prelude::*;

use crate::Learner;

fn learned() -> Store {
    let mut learner = Learner::of_numbers();
    for at in 0..600u32 {
        learner.sees("/sort", "by", ["low to high", "high to low"][at as usize % 2], at % 50, at % 14);
        learner.sees(&format!("/wiki/page-{at}"), "q", "a 'text' (of words)", at, at % 14);
    }
    learner.store
}

#[test]
fn what_is_kept_is_what_was_learned() {
    let store = learned();
    let again = Store::from_text(store.to_text().as_bytes(), Limits::default()).expect("its own text");
    assert_eq!(again.fields().collect::<Vec<_>>(), store.fields().collect::<Vec<_>>());
    assert_eq!(again.to_text(), store.to_text());
}

#[test]
fn mistakes_have_names() {
    let read = |text: &str| Store::from_text(text.as_bytes(), Limits::default()).map(|_| ());
    assert_eq!(read("{}"), Err(StateError::Format));
    assert_eq!(read(r#"{"format":"something","version":1}"#), Err(StateError::Format));
    assert_eq!(read(r#"{"format":"portcullis-learned","version":2}"#), Err(StateError::Version(2)));
    assert!(matches!(read("{"), Err(StateError::Damaged(_))));
    assert!(matches!(read(r#"{"format":"portcullis-learned","version":1}"#), Err(StateError::Damaged(_))));
    let text = learned().to_text();
    let sketch = text.find("\"networks\":\"").expect("a sketch") + 12;
    let damaged = format!("{}zz{}", &text[..sketch], &text[sketch + 2..]);
    assert!(matches!(read(&damaged), Err(StateError::Damaged(_))));
    let damaged = format!("{}ff{}", &text[..sketch], &text[sketch + 2..]);
    assert!(matches!(read(&damaged), Err(StateError::Damaged(_))));
}

/// What does not fit into smaller limits is counted.
#[test]
fn smaller_limits() {
    let store = learned();
    let (fields, _) = store.counts();
    let limits = Limits { fields_max: 3, ..Limits::default() };
    let small = Store::from_text(store.to_text().as_bytes(), limits).expect("its own text");
    assert!(fields > 3);
    assert_eq!(small.counts().0, 3);
    assert!(small.beyond().fields > store.beyond().fields);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// A text that is damaged somewhere is refused or read, and what was read can be worked with.
    #[test]
    fn damaged_text(at in any::<proptest::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()) {
        let mut text = TEXT.clone();
        let at = at.index(text.len());
        match cut {
            true => text.truncate(at),
            false => text[at] = byte,
        }
        if let Ok(store) = Store::from_text(&text, Limits::default()) {
            let mut learner = Learner { store, ..Learner::new() };
            for number in 0..40 {
                learner.sees("/item", "id", "5", number, number);
            }
            let _ = learner.judges_get("/item", "id", "1'");
            let _ = learner.store.to_text();
        }
    }
}

static TEXT: std::sync::LazyLock<Vec<u8>> = std::sync::LazyLock::new(|| {
    let mut learner = Learner::of_numbers();
    for at in 0..60u32 {
        learner.sees("/sort", "by", "a 'b' (c)", at, at % 14);
    }
    learner.store.to_text().into_bytes()
});
