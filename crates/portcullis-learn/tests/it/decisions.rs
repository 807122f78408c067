//! What people have decided about kinds in fields, over nodes and time.

use portcullis_learn::{
    DECISIONS_MAX, FieldPlace, KIND_IDLE_DAYS, Key, KindIn, KindNews, Limits, OpeningState, Order, Source,
    Standing, Store, opening_id,
};

use crate::Learner;

const KIND: &str = "sqli.statement";
const DAY: u32 = 20_000;

fn key() -> Key {
    Key {
        template: "/reports".to_owned(),
        name: "report".to_owned(),
        method: "POST".to_owned(),
        place: FieldPlace::Form,
    }
}

/// Somebody trusted sends the kind to this node.
fn carries(learner: &mut Learner, day: u32) {
    let found = [KindIn { place: FieldPlace::Form, name: b"report", kind: KIND }];
    let source = Source { network: 1, session: None, day, standing: Standing::Trusted };
    learner.site.observe_kinds(source, b"POST", b"/reports", &found, KindNews::Carried);
    learner.learn();
}

fn state(store: &Store) -> Option<OpeningState> {
    store.openings().next().map(|(.., opening)| opening.state)
}

/// A decision about a field that was never seen is kept, over restarts, and holds when the field appears;
/// after 30 days it is over.
#[test]
fn before_the_field_appears() {
    let id = opening_id(&key(), KIND);
    for (later, expected) in [
        (0, OpeningState::Live),
        (KIND_IDLE_DAYS, OpeningState::Live),
        (KIND_IDLE_DAYS + 1, OpeningState::Seen),
    ] {
        let mut learner = Learner::new();
        learner.store.decide_for_others(&id, OpeningState::Live, DAY);
        learner.store.advance(DAY + later);
        let text = learner.store.to_text();
        learner.store = Store::from_text(text.as_bytes(), Limits::default()).expect("its own text");
        carries(&mut learner, DAY + later);
        assert_eq!(state(&learner.store), Some(expected), "{later} days later");
    }
}

/// Whatever order stores are merged in, the later decision holds in all of them.
#[test]
fn the_later_one_holds() {
    let nodes = || {
        let (mut a, mut b) = (Learner::new(), Learner::new());
        carries(&mut a, DAY);
        carries(&mut b, DAY);
        (a.store, b.store)
    };
    let id = opening_id(&key(), KIND);
    let merged = |one: &Store, other: &Store| {
        let mut all = one.clone();
        all.merge(other.clone());
        state(&all)
    };
    for last in [OpeningState::Dismissed, OpeningState::Live, OpeningState::Trial] {
        let (mut a, mut b) = nodes();
        assert!(a.decide(&id, OpeningState::Live, DAY) && b.take_decisions(&a, DAY));
        assert_eq!(state(&b), Some(OpeningState::Live));
        assert!(b.decide(&id, OpeningState::Dismissed, DAY) && a.take_decisions(&b, DAY));
        if last != OpeningState::Dismissed {
            assert!(a.decide(&id, last, DAY));
        }
        assert_eq!((merged(&a, &b), merged(&b, &a)), (Some(last), Some(last)));
        assert!(!a.take_decisions(&b, DAY), "what is older changes nothing");
    }
    // Two at the same time: what was dismissed is not opened.
    let (mut a, mut b) = nodes();
    assert!(a.decide(&id, OpeningState::Live, DAY) && b.decide(&id, OpeningState::Dismissed, DAY));
    assert_eq!(
        (merged(&a, &b), merged(&b, &a)),
        (Some(OpeningState::Dismissed), Some(OpeningState::Dismissed))
    );
}

/// Who closes a field, or has it forgotten, decides about its kinds, too.
#[test]
fn orders_about_the_field() {
    let id = opening_id(&key(), KIND);
    let opened = || {
        let mut learner = Learner::new();
        carries(&mut learner, DAY);
        for at in 0..40u32 {
            let fields = crate::fields(FieldPlace::Form, "report", "7");
            let source = Source { network: at, day: DAY, ..Source::default() };
            learner.site.observe(source, b"POST", b"/reports", &fields);
        }
        learner.learn();
        assert!(learner.store.decide(&id, OpeningState::Live, DAY));
        learner
    };
    let mut closed = opened();
    let before = closed.store.clone();
    assert_eq!(closed.store.order(&key(), Order::Close), Ok(()));
    let mut all = closed.store.clone();
    all.merge(before);
    assert_eq!(state(&all), Some(OpeningState::Dismissed));
    let mut forgotten = opened();
    assert_eq!(forgotten.store.order(&key(), Order::Forget), Ok(()));
    carries(&mut forgotten, DAY);
    assert_eq!(state(&forgotten.store), Some(OpeningState::Seen));
}

/// What is not bounded by a node is bounded by the one that reads it.
#[test]
fn bounded() {
    let mut store = Store::new(Limits::default());
    for at in 0..2 * DECISIONS_MAX as u32 {
        store.decide_for_others(&format!("{at:010x}"), OpeningState::Live, DAY + at);
    }
    let text = store.to_text();
    let again = Store::from_text(text.as_bytes(), Limits::default()).expect("its own text");
    assert_eq!(again.to_text(), text);
    assert_eq!(text.matches("\"live\"").count(), DECISIONS_MAX);
    let last = format!("{:010x}", 2 * DECISIONS_MAX - 1);
    let longer = text.replace(&last, &"f".repeat(17));
    assert!(Store::from_text(longer.as_bytes(), Limits::default()).is_err());
    let one_more = text.replacen(
        "\"decisions\":{",
        "\"decisions\":{\"0\":{\"number\":1,\"state\":\"live\",\"day\":1},",
        1,
    );
    assert_ne!(one_more, text);
    assert!(Store::from_text(one_more.as_bytes(), Limits::default()).is_err());
}
