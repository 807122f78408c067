//! What a person teaches by hand, and how little others gain by it.

use std::net::IpAddr;

use portcullis_learn::{
    FieldPlace, Fields, Form, KindIn, Knowledge, Limits, OpeningState, Order, SESSION_FIELDS_MAX,
    SESSION_SECONDS_MAX, Session, Site, Source, Standing, Store, Teacher,
};
use proptest::prelude::*;

use crate::{Learner, fields};

const DAY: u32 = 20_020;
const KIND: &str = "sqli.statement";

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn session() -> Session {
    Session::new(Teacher::Network(address("192.0.2.7"), 32), 0, 900)
}

fn teacher() -> Source {
    Source { network: 1, session: None, day: DAY, standing: Standing::Anybody }
}

/// What was learned of these values of `id` of `/item`, once each.
fn taught(of: &Store, values: &[&str], kinds: &[&'static str]) -> Store {
    let session = session();
    for value in values {
        let name: &[u8] = b"id";
        let found: Vec<_> =
            kinds.iter().map(|kind| KindIn { place: FieldPlace::Query, name, kind }).collect();
        session.observe(teacher(), (b"GET", b"/item"), &fields(FieldPlace::Query, "id", value), &found);
    }
    let mut store = of.for_session();
    store.learn(&session.take());
    store
}

/// A field that many networks have sent numbers in.
fn of_numbers(networks: u32) -> Learner {
    let mut learner = Learner::new();
    for number in 0..networks.max(40) * 14 {
        learner.sees("/item", "id", &number.to_string(), number % networks, 20_000 + number % 14);
    }
    assert!(learner.judges_get("/item", "id", "4;7").is_some());
    learner
}

/// A request that is not counted, for it has too many fields, and so was not shown, brings no kinds either.
#[test]
fn what_is_not_counted_is_not_taught() {
    let session = session();
    let mut many = Fields::default();
    for number in 0..1_000 {
        many.note(FieldPlace::Query, format!("f{number}").as_bytes(), b"1");
    }
    let kind = KindIn { place: FieldPlace::Query, name: b"id", kind: KIND };
    session.observe(teacher(), (b"GET", b"/item"), &many, &[kind]);
    assert!(session.take().is_empty());
}

/// Once confirmed, one value is enough, however many networks have sent something else; before, none is.
#[test]
fn what_is_confirmed_counts_at_once() {
    for networks in [40, 1_000] {
        let mut learner = of_numbers(networks);
        let shown = taught(&learner.store, &["a text; with signs"], &[]);
        assert!(learner.judges_get("/item", "id", "4;7").is_some(), "it is held apart");
        learner.store.confirm(&shown, DAY);
        assert!(learner.judges_get("/item", "id", "a text; with signs").is_none(), "{networks}");
        // It stays so while others send what they always sent.
        for number in 0..2_000u32 {
            let network = number % networks;
            learner.sees("/item", "id", &number.to_string(), network, DAY + 1 + number % 7);
        }
        assert!(learner.judges_get("/item", "id", "a text; with signs").is_none(), "{networks}");
    }
}

/// What is of the type that the field keeps to changes nothing, and what a session shows of one field nothing
/// of another.
#[test]
fn other_fields_stay_closed() {
    let mut learner = of_numbers(40);
    let before = learner.store.clone();
    learner.store.confirm(&taught(&before, &["12345"], &[]), DAY);
    assert!(learner.judges_get("/item", "id", "4;7").is_some());
    let session = session();
    let of_other = fields(FieldPlace::Query, "note", "a text; with signs");
    session.observe(teacher(), (b"GET", b"/item"), &of_other, &[]);
    let mut shown = learner.store.for_session();
    shown.learn(&session.take());
    learner.store.confirm(&shown, DAY);
    assert!(learner.judges_get("/item", "id", "4;7").is_some());
}

/// A hundred values of one type close no field in which others send another one.
#[test]
fn one_person_does_not_close_the_field_of_others() {
    let mut learner = Learner::new();
    for number in 0..10u32 {
        learner.sees("/item", "id", "a text; with signs", number, DAY - 5);
    }
    let numbers: Vec<String> = (0..150).map(|number: u32| number.to_string()).collect();
    let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
    learner.store.confirm(&taught(&learner.store, &numbers, &[]), DAY);
    assert!(learner.judges_get("/item", "id", "another text, with signs").is_none());
}

/// A list that has no place left is kept open.
#[test]
fn a_full_list_is_kept_open() {
    let mut learner = Learner::new();
    let names: Vec<String> = (b'a'..=b'z').chain(b'A'..=b'F').map(|b| format!("see {}", b as char)).collect();
    for number in 0..64_000u32 {
        learner.sees("/item", "id", &names[number as usize % 32], number % 1_000, DAY - number % 14);
    }
    let form = learner.store.fields().next().expect("a field").1.closed.map(|closed| closed.form);
    assert_eq!(form, Some(Form::Enumeration));
    let shown = taught(&learner.store, &["see; seven"], &[]);
    learner.store.confirm(&shown, DAY);
    assert!(learner.judges_get("/item", "id", "see; seven").is_none());
    assert!(learner.store.fields().next().expect("a field").1.kept_open);
}

/// Kinds count for nothing once confirmed, and those that a person has dismissed stay dismissed.
#[test]
fn kinds_of_findings() {
    let state = |store: &Store| store.openings().next().map(|(.., opening)| opening.state);
    let mut store = Store::new(Limits::default());
    let shown = taught(&store, &["select name from t"], &[KIND]);
    assert_eq!(state(&store), None);
    store.confirm(&shown, DAY);
    assert_eq!(state(&store), Some(OpeningState::Live));
    let id = store.openings().next().expect("an opening").0;
    assert!(store.decide(&id, OpeningState::Dismissed, DAY));
    store.confirm(&shown, DAY);
    assert_eq!(state(&store), Some(OpeningState::Dismissed));
}

/// What an operator keeps open stays so, and a session does not take that over from anywhere.
#[test]
fn decisions_of_operators_stay() {
    let mut learner = of_numbers(40);
    let key = learner.store.fields().next().expect("a field").0.clone();
    learner.store.order(&key, Order::KeepOpen).expect("the field");
    learner.store.confirm(&taught(&learner.store, &["7"], &[]), DAY);
    assert!(learner.store.field(&key).is_some_and(|profile| profile.kept_open));
}

/// Others than the clients of the session, and these at another time, teach as always: by networks and days.
#[test]
fn strangers_teach_nothing() {
    let site = Site::default();
    let session = |client: &str, standing, millis| site.session(address(client), standing, millis).is_some();
    assert!(!session("192.0.2.7", Standing::Trusted, 0), "there is no session");
    let of_network = Session::new(Teacher::Network(address("192.0.2.0"), 24), 1_000, 900);
    site.set_session(Some(std::sync::Arc::new(of_network)));
    for (client, millis, is_taught) in [
        ("192.0.2.7", 1_000, true),
        ("::ffff:192.0.2.7", 1_000, true),
        ("192.0.2.255", 900_999, true),
        ("192.0.2.7", 999, false),
        ("192.0.2.7", 901_000, false),
        ("192.0.3.7", 1_000, false),
        ("c000:207::", 1_000, false),
        ("::1", 1_000, false),
    ] {
        assert_eq!(session(client, Standing::Anybody, millis), is_taught, "{client} {millis}");
    }
    assert!(!session("198.51.100.1", Standing::Trusted, 1_000), "vouched for elsewhere");
    site.set_session(Some(std::sync::Arc::new(Session::new(Teacher::Trusted, 1_000, u64::MAX))));
    assert!(session("198.51.100.1", Standing::Trusted, 1_000));
    assert!(!session("198.51.100.1", Standing::LoggedIn, 1_000));
    assert!(!session("198.51.100.1", Standing::Trusted, 1_000 + SESSION_SECONDS_MAX * 1_000));
    site.set_session(None);
    assert!(!session("198.51.100.1", Standing::Trusted, 1_000));
}

/// Paths and names that somebody invents end at the limit, and what is shown after that changes no field.
#[test]
fn a_session_is_bounded() {
    let mut store = Store::new(Limits::default());
    let mut shown = store.for_session();
    for round in 0..20u32 {
        let session = session();
        for number in 0..1_000u32 {
            let path = format!("/p{}/q{number}/r", round * 50 + number % 50);
            let of_one = fields(FieldPlace::Query, &format!("n{round}-{number}"), &"a; ".repeat(400));
            session.observe(teacher(), (b"GET", path.as_bytes()), &of_one, &[]);
        }
        shown.learn(&session.take());
    }
    assert_eq!(shown.counts().0, SESSION_FIELDS_MAX);
    assert!(shown.beyond().fields > 0 && shown.held_bytes() < 4 << 20, "{}", shown.held_bytes());
    store.confirm(&shown, DAY);
    assert_eq!(store.counts().0, SESSION_FIELDS_MAX);
}

proptest! {
    /// Whatever a session shows, it does not touch what the site knows, and once confirmed nothing of what it
    /// has shown is unusual.
    #[test]
    fn nothing_that_was_confirmed_is_unusual(values in prop::collection::vec("[ -~]{1,30}", 1..12)) {
        let mut learner = of_numbers(40);
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        let shown = taught(&learner.store, &values, &[]);
        learner.store.confirm(&shown, DAY);
        let knowledge = Knowledge::of(&learner.store);
        for value in values {
            let sent = fields(FieldPlace::Query, "id", value);
            let (field, name) = sent.iter().next().expect("a field");
            prop_assert!(knowledge.judge(&mut knowledge.page(b"GET", b"/item"), field, name).is_none(), "{value}");
        }
    }
}
