//! Fields that carry code: what opens one, who decides, and what attackers with many addresses gain.

use portcullis_learn::{
    FieldPlace, KindIn, KindNews, Knowledge, Limits, OpeningState, Source, Standing, Store, TryResult,
};

use crate::Learner;

const KIND: &str = "sqli.statement";
const DAY: u32 = 20_000;

impl Learner {
    /// A request with a finding of `kind` in the form field `report` was let through.
    fn carries(&mut self, kind: &'static str, from: Source) {
        let found = [KindIn { place: FieldPlace::Form, name: b"report", kind }];
        self.site.observe_kinds(from, b"POST", b"/reports", &found, KindNews::Carried);
        self.learn();
    }

    fn tried(&mut self, result: TryResult, day: u32) {
        let found = [KindIn { place: FieldPlace::Form, name: b"report", kind: KIND }];
        let from = Source { network: 1, day, ..Source::default() };
        self.site.observe_kinds(from, b"POST", b"/reports", &found, KindNews::Tried(result));
        self.learn();
    }

    /// The users of an application: so many networks, each with a session, in so many days.
    fn users(&mut self, networks: u32, days: u32, from: u32) {
        for at in 0..networks.max(days) {
            let network = at % networks;
            self.carries(KIND, user(network, from + at % days));
        }
    }

    fn state(&mut self, day: u32) -> Option<OpeningState> {
        self.store.advance(day);
        let mut openings = self.store.openings();
        openings.find(|(_, _, kind, _)| *kind == KIND).map(|(.., opening)| opening.state)
    }

    fn id(&self) -> String {
        self.store.openings().next().expect("an opening").0
    }

    /// Whether findings of the kind count for nothing in a field.
    fn opens(&self, method: &str, path: &str, place: FieldPlace, name: &str, kind: &str) -> bool {
        let knowledge = Knowledge::of(&self.store);
        let page = knowledge.page(method.as_bytes(), path.as_bytes());
        knowledge.opened(&page, place, name.as_bytes(), kind).is_some_and(|opened| opened.is_live)
    }
}

fn user(network: u32, day: u32) -> Source {
    Source { network, session: Some(network * 31 + 7), day, standing: Standing::LoggedIn }
}

fn of_auto(days: u32) -> Learner {
    Learner { store: Store::new(Limits { auto: Some(days), ..Limits::default() }), ..Learner::new() }
}

/// What many users send is proposed; a person says yes, and no again; it ends when nobody sends it any more.
#[test]
fn proposed_accepted_revoked_and_gone() {
    let mut learner = Learner::new();
    learner.users(30, 7, DAY);
    assert_eq!(learner.state(DAY + 7), Some(OpeningState::Proposed));
    assert!(!learner.opens("POST", "/reports", FieldPlace::Form, "report", KIND), "nobody has agreed");
    let id = learner.id();
    assert!(learner.store.decide(&id, OpeningState::Live, DAY + 8));
    assert!(!learner.store.decide(&id, OpeningState::Live, DAY + 8), "it is so already");
    assert!(!learner.store.decide("0000000000", OpeningState::Live, DAY + 8), "there is no such one");
    for (method, path, place, name, kind, expected) in [
        ("POST", "/reports", FieldPlace::Form, "report", KIND, true),
        ("POST", "/Reports/", FieldPlace::Form, "Report", KIND, true),
        ("POST", "/reports", FieldPlace::Form, "report", "sqli.union-select", false),
        ("POST", "/reports", FieldPlace::Form, "title", KIND, false),
        ("POST", "/reports", FieldPlace::Query, "report", KIND, false),
        ("GET", "/reports", FieldPlace::Form, "report", KIND, false),
        ("POST", "/reports/x", FieldPlace::Form, "report", KIND, false),
        ("POST", "/", FieldPlace::Form, "report", KIND, false),
    ] {
        assert_eq!(learner.opens(method, path, place, name, kind), expected, "{method} {path} {name} {kind}");
    }
    // Kept and read again, it is the same.
    let text = learner.store.to_text();
    assert_eq!(Store::from_text(text.as_bytes(), Limits::default()).expect("a store"), learner.store);
    assert!(learner.store.decide(&id, OpeningState::Dismissed, DAY + 9));
    assert!(!learner.opens("POST", "/reports", FieldPlace::Form, "report", KIND));
    assert_eq!(learner.state(DAY + 10), Some(OpeningState::Dismissed), "it is not proposed again");
    assert!(learner.store.decide(&id, OpeningState::Live, DAY + 10));
    assert_eq!(learner.state(DAY + 36), Some(OpeningState::Live));
    assert_eq!(learner.state(DAY + 37), None, "nobody has sent it for 30 days");
    assert!(!learner.opens("POST", "/reports", FieldPlace::Form, "report", KIND));
}

/// By itself it goes on trial first, and stays there as long as the trial has lost a request.
#[test]
fn trials_end_by_themselves_without_losses() {
    for (result, expected) in
        [(TryResult::Passes, OpeningState::Live), (TryResult::Lost, OpeningState::Trial)]
    {
        let mut learner = of_auto(7);
        learner.users(30, 7, DAY);
        assert_eq!(learner.state(DAY + 7), Some(OpeningState::Trial));
        learner.tried(result, DAY + 8);
        assert_eq!(learner.state(DAY + 13), Some(OpeningState::Trial));
        assert_eq!(learner.state(DAY + 14), Some(expected), "{result:?}");
    }
}

/// Three requests of a source that the operator vouches for are enough.
#[test]
fn trusted_sources_teach_at_once() {
    let mut learner = of_auto(7);
    let trusted = Source { network: 1, session: None, day: DAY, standing: Standing::Trusted };
    learner.carries(KIND, trusted);
    learner.carries(KIND, trusted);
    assert_eq!(learner.state(DAY), Some(OpeningState::Seen));
    learner.carries(KIND, trusted);
    assert_eq!(learner.state(DAY), Some(OpeningState::Live));
    // A closed field opens for the type that they send; so does one that is known by them alone.
    let mut learner = Learner::of_numbers();
    let send = |learner: &mut Learner, value: &str, times: usize| {
        for _ in 0..times {
            let fields = crate::fields(FieldPlace::Query, "id", value);
            learner.site.observe(trusted, b"GET", b"/item", &fields);
        }
    };
    send(&mut learner, "a text", 2);
    assert!(learner.judges_get("/item", "id", "another text").is_some());
    send(&mut learner, "a text", 1);
    assert!(learner.judges_get("/item", "id", "another text").is_none());
    let mut learner = Learner::new();
    send(&mut learner, "7", 99);
    assert!(learner.judges_get("/item", "id", "1'--").is_none());
    send(&mut learner, "7", 1);
    assert!(learner.judges_get("/item", "id", "1'--").is_some());
}

/// A field in which code is live is not closed, whatever else it carries; nor while that is to be decided.
#[test]
fn what_carries_code_is_not_closed() {
    let mut learner = Learner::new();
    learner.users(30, 7, DAY);
    learner.state(DAY + 7);
    for at in 0..560u32 {
        let fields = crate::fields(FieldPlace::Form, "report", "word");
        let source = Source { network: at % 40, day: DAY + at % 14, ..Source::default() };
        learner.site.observe(source, b"POST", b"/reports", &fields);
    }
    learner.learn();
    assert_eq!(learner.store.counts(), (1, 0));
    let id = learner.id();
    assert!(learner.store.decide(&id, OpeningState::Dismissed, DAY + 14));
    assert_eq!(learner.store.counts(), (1, 1), "a person has said that it is no code");
}

/// What an attacker gains who has so many networks, sessions and days; `of` other networks use the field.
#[test]
fn what_attackers_open() {
    let anybody = |network, day| Source { session: None, standing: Standing::Anybody, ..user(network, day) };
    // 100,000 requests of one network, with a new session each.
    let mut learner = of_auto(7);
    for at in 0..100_000u32 {
        learner.carries(KIND, Source { session: Some(at), ..user(1, DAY + at % 30) });
    }
    assert_eq!(learner.state(DAY + 30), Some(OpeningState::Seen));
    // Ten networks, thirty sessions, a month.
    let mut learner = of_auto(7);
    for at in 0..20_000u32 {
        learner.carries(KIND, Source { session: Some(at % 30), ..user(at % 10, DAY + at % 30) });
    }
    assert_eq!(learner.state(DAY + 30), Some(OpeningState::Seen));
    // A thousand networks of one user, and a thousand of nobody.
    for of_user in [true, false] {
        let mut learner = of_auto(7);
        for at in 0..1_000u32 {
            let source = if of_user {
                Source { session: Some(1), ..user(at, DAY + at % 30) }
            } else {
                anybody(at, DAY + at % 30)
            };
            learner.carries(KIND, source);
        }
        assert_ne!(learner.state(DAY + 30), Some(OpeningState::Trial), "{of_user}");
        assert_ne!(learner.state(DAY + 40), Some(OpeningState::Live), "{of_user}");
    }
    // A year of slow drift: a new network with a new user every third day.
    let mut learner = of_auto(7);
    for at in 0..122u32 {
        learner.carries(KIND, user(at, DAY + 3 * at));
        assert_eq!(learner.state(DAY + 3 * at), Some(OpeningState::Seen));
    }
    // Forty networks of a field that a thousand use; sixty are one in twenty of all.
    let mut learner = of_auto(7);
    for at in 0..1_000u32 {
        let fields = crate::fields(FieldPlace::Form, "report", "a line of text");
        learner.site.observe(anybody(10_000 + at, DAY), b"POST", b"/reports", &fields);
    }
    learner.users(40, 14, DAY);
    assert_eq!(learner.state(DAY + 14), Some(OpeningState::Seen));
    learner.users(65, 14, DAY);
    assert_eq!(learner.state(DAY + 14), Some(OpeningState::Trial));
    // Thirty with a user each, on seven days: a proposal, as for thirty users.
    for (networks, days, expected) in
        [(30, 6, OpeningState::Seen), (29, 7, OpeningState::Seen), (30, 7, OpeningState::Proposed)]
    {
        let mut learner = Learner::new();
        learner.users(networks, days, DAY);
        assert_eq!(learner.state(DAY + 7), Some(expected), "{networks} networks, {days} days");
    }
}

/// What one network makes up does not keep the field from learning what others send.
#[test]
fn made_up_kinds_give_way() {
    let made_up = ["a.a", "a.b", "a.c", "a.d", "a.e", "a.f", "a.g"];
    let mut learner = Learner::new();
    made_up.iter().for_each(|kind| learner.carries(kind, user(9_999, DAY)));
    learner.users(30, 7, DAY);
    assert_eq!(learner.state(DAY + 7), None, "no room yet");
    learner.users(30, 7, DAY + 9);
    assert_eq!(learner.state(DAY + 17), Some(OpeningState::Proposed));
}
