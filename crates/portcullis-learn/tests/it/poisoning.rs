//! What senders can teach who want a field to take what it never took.

use portcullis_learn::{FieldPlace, Fields, Limits, NEW_SHARE, Site, Source, Store};

use crate::{Learner, fields};

const ATTACK: &str = "1' or '1'='1";

/// The field still says that the attack is unlike it, and which bytes it never had.
fn is_closed(learner: &mut Learner) -> bool {
    learner.judges_get("/item", "id", ATTACK).is_some_and(|unusual| !unusual.syntax.is_empty())
}

#[test]
fn one_network_teaches_nothing() {
    let mut learner = Learner::of_numbers();
    for at in 0..100_000u32 {
        learner.sees("/item", "id", ATTACK, 7_777, 20_014 + at % 5);
    }
    assert!(is_closed(&mut learner));
}

#[test]
fn ten_networks_teach_nothing() {
    let mut learner = Learner::of_numbers();
    for at in 0..20_000u32 {
        learner.sees("/item", "id", ATTACK, 9_000 + at % 10, 20_014 + at % 30);
    }
    assert!(is_closed(&mut learner));
}

/// One user, from one network after the other: no more than fifteen of them, in a month.
#[test]
fn a_month_of_slow_drift_teaches_nothing() {
    let mut learner = Learner::of_numbers();
    for day in 0..30u32 {
        // Letters first, then a sign, then the attack: a little more each day.
        let value = &["seven", "seven of", "1 of", "1 '", ATTACK][day as usize / 6];
        learner.sees("/item", "id", value, 9_000 + day / 2, 20_014 + day);
        for number in 0..20u32 {
            learner.sees("/item", "id", &number.to_string(), number, 20_014 + day);
        }
    }
    assert!(is_closed(&mut learner));
}

/// What the application's own users send from many networks on several days opens a field: this is what an
/// attacker with so many networks gains, too.
#[test]
fn many_networks_over_days_open_a_field() {
    let mut learner = Learner::of_numbers();
    for at in 0..48u32 {
        learner.sees("/item", "id", "a text with words", 9_000 + at % 16, 20_014 + at % 2);
    }
    assert!(is_closed(&mut learner), "two days are not enough");
    for at in 0..16u32 {
        learner.sees("/item", "id", "a text with words", 9_000 + at, 20_017);
    }
    assert!(!is_closed(&mut learner));
}

/// A field that is not closed yet: up to one network in two hundred does not keep it from being.
#[test]
fn strays_do_not_keep_a_field_open() {
    for (strays, expected) in [(5, true), (30, false)] {
        let mut learner = Learner::new();
        for at in 0..strays {
            learner.sees("/item", "id", ATTACK, 90_000 + at, 20_000);
        }
        for at in 0..3_000u32 {
            learner.sees("/item", "id", &at.to_string(), at % 1_500, 20_000 + at % 14);
        }
        assert_eq!(is_closed(&mut learner), expected, "{strays}");
    }
}

/// Whatever one network makes up, it takes one in sixteen of the fields, and those of others stay.
#[test]
fn made_up_fields_do_not_fill_the_store() {
    let limits = Limits { fields_max: 160, ..Limits::default() };
    let (site, mut store) = (Site::default(), Store::new(limits));
    let mut fields = Fields::default();
    for at in 0..5_000u32 {
        fields.clear();
        fields.note(FieldPlace::Query, format!("n{at}").as_bytes(), b"1");
        let path = format!("/made-up-{at}");
        site.observe(
            Source { network: 1, day: 1 + at % 3, ..Source::default() },
            b"GET",
            path.as_bytes(),
            &fields,
        );
        store.learn(&site.take());
    }
    assert!(store.counts().0 <= 160 / NEW_SHARE, "{:?}", store.counts());
    assert!(store.beyond().fields > 4_000);
}

/// One network takes one in eight of the requests that wait to be learned.
#[test]
fn a_flood_does_not_crowd_others_out() {
    let site = Site::default();
    for _ in 0..100_000 {
        let source = Source { network: 1, day: 1, ..Source::default() };
        site.observe(source, b"GET", b"/", &fields(FieldPlace::Query, "a", "1"));
    }
    site.observe(
        Source { network: 2, day: 1, ..Source::default() },
        b"GET",
        b"/",
        &fields(FieldPlace::Query, "b", "1"),
    );
    let batch = site.take();
    assert_eq!((batch.len(), batch.dropped), (1_024 + 1, 100_000 - 1_024));
}
