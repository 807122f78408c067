//! What senders can teach who want a field to take what it never took.

use portcullis_learn::{
    FieldPlace, Fields, KindIn, KindNews, Knowledge, Limits, NEW_SHARE, REFUSED_WINDOW_DAYS, Site, Source,
    Standing, Store, USUAL_SHARE,
};

use proptest::prelude::*;

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

/// Sends values of `/item` as the proxy has them learned: judged by what is known of `learner` now.
struct Sender {
    known: std::sync::Arc<Knowledge>,
    handed_on: usize,
}

impl Sender {
    fn to(learner: &Learner) -> Sender {
        Sender { known: std::sync::Arc::new(Knowledge::of(&learner.store)), handed_on: 0 }
    }

    fn send(&mut self, learner: &mut Learner, value: &str, source: Source) {
        let mut fields = Fields::default();
        fields.judge_by(self.known.clone(), b"GET", b"/item");
        fields.note(FieldPlace::Query, b"id", value.as_bytes());
        fields.unusual();
        learner.site.observe(source, b"GET", b"/item", &fields);
        let batch = learner.site.take();
        self.handed_on += batch.len();
        learner.store.learn(&batch);
    }
}

/// Requests that show nothing new are handed on sixteen at a time: values are counted all the same, and each
/// network, session and day at once.
#[test]
fn usual_requests_stand_for_others() {
    let mut learner = Learner::of_numbers();
    let mut sender = Sender::to(&learner);
    let of = |learner: &Learner| {
        let (_, profile) = learner.store.fields().next().expect("a field");
        (profile.all.values, profile.all.days.count(), profile.session_count())
    };
    assert_eq!(of(&learner), (560, 14, 0));
    for at in 0..1_640u32 {
        let group = at / 82;
        let source = Source {
            network: group % 10,
            day: 20_014 + group / 10,
            session: Some(group % 5),
            ..Source::default()
        };
        sender.send(&mut learner, &(at % 500).to_string(), source);
    }
    // Each of twenty networks and days is handed on at once, and then for each sixteen more.
    assert_eq!(of(&learner), (560 + 20 * (1 + 5 * u64::from(USUAL_SHARE)), 16, 5));
    assert_eq!(sender.handed_on, 20 * 6);
    let before = sender.handed_on;
    for value in ["seven", "12345678901234567890", "1'"] {
        for _ in 0..40 {
            sender.send(&mut learner, value, Source { network: 1, day: 20_015, ..Source::default() });
        }
    }
    assert_eq!(sender.handed_on - before, 120, "what is unlike the field or longer is new");
    let trusted = Source { network: 1, day: 20_015, standing: Standing::Trusted, ..Source::default() };
    for _ in 0..40 {
        sender.send(&mut learner, "7", trusted);
    }
    assert_eq!(sender.handed_on - before, 160, "each request of a trusted source counts");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever is sent, and whenever what is known is told: that one request stands for others loses no
    /// network, session or day of any type or class of bytes, and closes and opens what it did without.
    #[test]
    fn handing_on_fewer_loses_nothing_but_counts(
        sent in proptest::collection::vec((0..6usize, 0..40u32, 0..20u32, proptest::option::of(0..4u32)), 100..500),
        every in 1..80usize,
    ) {
        let values = ["7", "123", "12345", "seven", "a b", "1'"];
        let (mut whole, mut few) = (Learner::of_numbers(), Learner::of_numbers());
        let (mut sender, mut day) = (Sender::to(&few), 20_014);
        for (number, (value, network, next, session)) in sent.into_iter().enumerate() {
            day += u32::from(next == 0);
            let source = Source { network: 8_000 + network, day, session, ..Source::default() };
            whole.site.observe(source, b"GET", b"/item", &fields(FieldPlace::Query, "id", values[value]));
            whole.learn();
            sender.send(&mut few, values[value], source);
            if number.is_multiple_of(every) {
                sender = Sender::to(&few);
            }
        }
        let of = |learner: &Learner| {
            let (_, profile) = learner.store.fields().next().expect("a field");
            let types = profile.types.iter().map(|(kind, seen)| (*kind, seen.networks.clone(), seen.days));
            let types: Vec<_> = types.collect();
            let all = (profile.all.networks.clone(), profile.all.days, profile.sessions.clone());
            (all, types, profile.closed, profile.reopened, profile.bytes)
        };
        prop_assert_eq!(of(&few), of(&whole));
    }
}

/// One network that sends very many requests does not keep those of others from being learned, and drift is
/// seen as it is without.
#[test]
fn drift_is_seen_behind_usual_requests() {
    let mut learner = Learner::of_numbers();
    for day in 0..3 {
        let mut sender = Sender::to(&learner);
        for network in 0..16u32 {
            for at in 0..500u32 {
                let source = Source { network: 5_000, day: 20_014 + day, ..Source::default() };
                sender.send(&mut learner, &at.to_string(), source);
            }
            let source = Source { network: 9_000 + network, day: 20_014 + day, ..Source::default() };
            sender.send(&mut learner, "some text", source);
            assert_eq!(is_closed(&mut learner), day < 2, "day {day}, network {network}");
        }
    }
}

/// Of a field that takes numbers and, from `editors`, code that is refused on each of `days` days, for five
/// weeks: whether it is closed at the end.
fn is_closed_beside_refused(editors: u32, days: u32, is_trusted: bool) -> bool {
    let mut learner = Learner::new();
    let standing = if is_trusted { Standing::Trusted } else { Standing::Anybody };
    for day in 0..35u32 {
        for network in 0..40u32 {
            learner.sees("/item", "id", &network.to_string(), network, 20_000 + day);
        }
        for editor in 0..editors * u32::from(day < days) {
            let source = Source { network: 9_000 + editor, day: 20_000 + day, standing, ..Source::default() };
            let found = [KindIn { place: FieldPlace::Query, name: b"id", kind: "" }];
            for _ in 0..20 {
                learner.site.observe_kinds(source, b"GET", b"/item", &found, KindNews::Refused);
            }
            learner.learn();
        }
    }
    is_closed(&mut learner)
}

/// A field for which requests of several networks are refused again and again stays open. One or two networks
/// do not keep it so, however much they send; nor do several that have stopped.
#[test]
fn refused_requests_keep_a_field_open() {
    for (editors, days, is_trusted, expected) in [
        (3, 35, false, false),
        (5, 5, false, false),
        (1, 10, true, false),
        (1, 35, false, true),
        (2, 35, false, true),
        (30, 2, false, true),
        (0, 0, false, true),
    ] {
        assert_eq!(
            is_closed_beside_refused(editors, days, is_trusted),
            expected,
            "{editors} {days} {is_trusted}"
        );
    }
}

/// What has kept a field open does not do so for ever, even if one network goes on.
#[test]
fn one_network_does_not_prolong_what_others_began() {
    let mut learner = Learner::new();
    let mut closed_on = None;
    for day in 0..4 * REFUSED_WINDOW_DAYS {
        for network in 0..40u32 {
            learner.sees("/item", "id", &network.to_string(), network, 20_000 + day);
        }
        for network in 9_000..if day < 5 { 9_005 } else { 9_001 } {
            let source = Source { network, day: 20_000 + day, ..Source::default() };
            let found = [KindIn { place: FieldPlace::Query, name: b"id", kind: "" }];
            learner.site.observe_kinds(source, b"GET", b"/item", &found, KindNews::Refused);
        }
        learner.learn();
        if closed_on.is_none() && is_closed(&mut learner) {
            closed_on = Some(day);
        }
    }
    let closed_on = closed_on.expect("it is closed at last");
    assert!((REFUSED_WINDOW_DAYS..=2 * REFUSED_WINDOW_DAYS).contains(&closed_on), "day {closed_on}");
}

/// Refused requests open no closed field, and make no field or page known.
#[test]
fn refused_requests_open_nothing() {
    let mut learner = Learner::of_numbers();
    for network in 0..200u32 {
        for (path, name) in [("/item", "id"), ("/item", "extra"), ("/extra", "id")] {
            let source = Source { network, day: 20_014 + network % 10, ..Source::default() };
            let found = [KindIn { place: FieldPlace::Query, name: name.as_bytes(), kind: "" }];
            learner.site.observe_kinds(source, b"GET", path.as_bytes(), &found, KindNews::Refused);
        }
        learner.learn();
    }
    assert!(is_closed(&mut learner));
    assert_eq!(learner.store.counts(), (1, 1));
    assert!(!learner.store.to_text().contains("extra"));
}
