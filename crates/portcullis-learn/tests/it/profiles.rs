//! What closes a field, and what it says of itself.

use portcullis_learn::{
    Carried, FIELD_BYTES_MAX, FIELD_KINDS_MAX, FieldPlace, Fields, Form, KindIn, KindNews, Knowledge, Limits,
    PAGE_FIELDS_MAX, Site, Source, Standing, Store, Syntax, Thresholds, ValueType,
};
use proptest::prelude::*;

use crate::{Learner, fields};

/// As many kinds of findings as a field may have.
const KINDS: [&str; FIELD_KINDS_MAX] =
    ["sqli.statement", "sqli.whole", "sqli.select-from", "xss.event-code", "template.whole", "code.callback"];

fn form(values: &[&str]) -> Option<Form> {
    let mut learner = Learner::new();
    for at in 0..560u32 {
        let value = values[at as usize % values.len()].replace('#', &at.to_string());
        learner.sees("/page", "x", &value, at % 40, 100 + at % 14);
    }
    let (_, profile) = learner.store.fields().next()?;
    profile.closed.map(|closed| closed.form)
}

#[test]
fn forms_of_fields() {
    use ValueType::*;
    for (values, expected) in [
        (&["#"][..], Some(Form::Type(Whole))),
        (&["#", "#.5"], Some(Form::Type(Decimal))),
        (&["asc", "desc", "name#"], Some(Form::Type(Word))),
        (&["en-GB", "page#"], Some(Form::Type(Slug))),
        (&["2026-11-01", "2026-11-02"], Some(Form::Type(Date))),
        (&["ann#@shop.example"], Some(Form::Type(Email))),
        (&["https://shop.example/#", "/cart/#"], Some(Form::Type(OwnUrl))),
        (&["ab#+/cd=="], Some(Form::Type(Token))),
        (&["price: low to high", "price: high to low"], Some(Form::Enumeration)),
        (&["price: low to high", "awk '{print $1}' {file}"], None),
        (&["garden chairs", "river", "if (a > b) { return a[0]; }"], None),
        (&["text number #"], None),
        (&["/files/#"], None),
        (&["https://other.example/#"], None),
        (&["<b>#</b>"], None),
    ] {
        assert_eq!(form(values), expected, "{values:?}");
    }
}

#[test]
fn a_closed_field_names_its_evidence() {
    let mut learner = Learner::of_numbers();
    let unusual = learner.judges_get("/item", "id", "1' or 2>1").expect("unlike a number");
    assert_eq!(&*unusual.evidence, "whole numbers only: 560 values of 40 networks in 14 days");
    assert_eq!(unusual.syntax, Syntax::QUOTE.with(Syntax::ANGLE));
    assert_eq!(unusual.kind, ValueType::Line);
    let letters = learner.judges_get("/item", "id", "seven").expect("unlike a number");
    assert!(letters.syntax.is_empty());
    assert!(learner.judges_get("/other", "id", "1'").is_none(), "another page");
    assert!(learner.judges_get("/item", "q", "1'").is_none(), "another field");
}

/// A list is told by more than the hashes of its values, which whoever likes can find another value for: by
/// its types, its lengths and its bytes of code.
#[test]
fn values_of_a_list_have_its_shape() {
    let mut learner = Learner::new();
    for at in 0..560u32 {
        let value = ["price: low to high", "price: high to low"][at as usize % 2];
        learner.sees("/page", "x", value, at % 40, 100 + at % 14);
    }
    learner.learn();
    let knowledge = Knowledge::of(&learner.store);
    let sent = fields(FieldPlace::Query, "x", "price: low to high");
    let (field, name) = sent.iter().next().expect("a field");
    let judged = |change: fn(&mut Carried)| {
        let mut field = field.clone();
        change(&mut field.carried);
        knowledge.judge(&mut knowledge.page(b"GET", b"/page"), &field, name)
    };
    assert_eq!(judged(|_| {}), None);
    let with_quotes = judged(|carried| carried.shape.syntax = Syntax::QUOTE).expect("unlike the list");
    assert_eq!(with_quotes.syntax, Syntax::QUOTE);
    assert!(judged(|carried| carried.shape.kind = ValueType::Binary).is_some());
    assert!(judged(|carried| carried.bytes = 40).is_some());
}

/// What is told of a field never has more networks or sessions than values, and nothing of a field without
/// values.
#[test]
fn evidence_adds_up() {
    let (site, mut store) = (Site::default(), Store::new(Limits::default()));
    for at in 0..400u32 {
        let source = Source { network: at, session: Some(at), day: 100, standing: Standing::LoggedIn };
        site.observe(source, b"GET", b"/", &fields(FieldPlace::Query, "id", "5"));
        let kind = [KindIn { place: FieldPlace::Query, name: b"id", kind: KINDS[0] }];
        site.observe_kinds(source, b"GET", b"/", &kind, KindNews::Carried);
        store.learn(&site.take());
        let (_, profile) = store.fields().next().expect("a field");
        let opening = profile.openings.values().next().expect("a kind");
        for count in [
            profile.all.network_count(),
            profile.session_count(),
            profile.types[&ValueType::Whole].network_count(),
            opening.seen.network_count(),
            opening.session_count(),
        ] {
            assert!(count <= u64::from(at) + 1, "{count} of {} values", at + 1);
        }
    }
    let kind = [KindIn { place: FieldPlace::Query, name: b"q", kind: KINDS[0] }];
    let source = Source { network: 1, day: 100, standing: Standing::LoggedIn, ..Source::default() };
    site.observe_kinds(source, b"GET", b"/q", &kind, KindNews::Carried);
    store.learn(&site.take());
    let evidence: Vec<String> = store.fields().map(|(_, profile)| profile.evidence()).collect();
    assert!(evidence.contains(&"no value was learned yet".to_owned()), "{evidence:?}");
}

/// Each threshold is needed: values, networks and days, and sessions where values come with them.
#[test]
fn a_field_is_closed_when_all_thresholds_are_passed() {
    let closed = |values: u32, networks: u32, days: u32, sessions: Option<u32>| {
        let (site, mut store) = (Site::default(), Store::new(Limits::default()));
        for at in 0..values {
            let session = sessions.map(|sessions| at % sessions);
            let source =
                Source { network: at % networks, session, day: 100 + at % days, ..Source::default() };
            site.observe(source, b"GET", b"/", &fields(FieldPlace::Query, "id", "5"));
            store.learn(&site.take());
        }
        store.counts().1 == 1
    };
    assert!(closed(210, 30, 7, None));
    assert!(!closed(199, 30, 7, None));
    assert!(!closed(210, 29, 7, None));
    assert!(!closed(210, 30, 6, None));
    assert!(!closed(210, 30, 7, Some(5)));
    assert!(closed(210, 30, 7, Some(30)));
}

/// Bytes of code that many have sent in a field are usual in it.
#[test]
fn bytes_that_a_field_has_shown() {
    let mut learner = Learner::new();
    for at in 0..560u32 {
        learner.sees("/page", "t", &format!("ab{at}/cd=="), at % 40, 100 + at % 14);
    }
    let syntax =
        |learner: &mut Learner, value| learner.judges_get("/page", "t", value).map(|unusual| unusual.syntax);
    assert_eq!(syntax(&mut learner, "a b=c/d"), Some(Syntax::NONE));
    assert_eq!(syntax(&mut learner, "a b=c/d'"), Some(Syntax::QUOTE));
}

/// A field takes no more than 9 KiB, whatever is in it, and one of numbers hardly more than one.
#[test]
fn memory_of_a_field() {
    let (site, mut store) = (Site::default(), Store::new(Limits::default()));
    let values: Vec<String> = (0..64)
        .flat_map(|at| {
            [
                format!("{at}"),
                format!("{at}.5"),
                "true".into(),
                format!("a{at}"),
                format!("a-{at}"),
                format!("a{at}@b.example"),
                "123e4567-e89b-12d3-a456-426614174000".into(),
                "d41d8cd98f00b204e9800998ecf8427e".into(),
                "2026-01-01".into(),
                "https://shop.example/".into(),
                "https://x.example/".into(),
                "/a/b".into(),
                "a+b==".into(),
                format!("a b {at}"),
                "a\nb".into(),
                "<b>".into(),
                "f(a);b=\"'`{}[]$|&*%#\\..--".into(),
                "[1]".into(),
                "\0".into(),
                "１".into(),
            ]
        })
        .collect();
    for (at, value) in values.iter().enumerate() {
        for network in 0..60 {
            let source = Source {
                network: network * 1_000 + at as u32,
                session: Some(at as u32 * 77 + network),
                day: 100 + network,
                standing: Standing::LoggedIn,
            };
            site.observe(source, b"GET", b"/", &fields(FieldPlace::Query, "x", value));
            let kinds = KINDS.map(|kind| KindIn { place: FieldPlace::Query, name: b"x", kind });
            site.observe_kinds(source, b"GET", b"/", &kinds, KindNews::Carried);
        }
        store.learn(&site.take());
    }
    assert_eq!(store.counts(), (1, 0));
    assert!(store.held_bytes() <= FIELD_BYTES_MAX, "{} bytes", store.held_bytes());
    let mut plain = Learner::of_numbers();
    plain.learn();
    assert!(plain.store.held_bytes() < 1_500, "{} bytes of a field of numbers", plain.store.held_bytes());
}

/// A thousand fields, most of them plain, as those of applications are, take 2 MiB; a field of text that a
/// thousand networks have sent, less than 8 KiB.
#[test]
fn memory_of_many_fields() {
    let limits = Limits { fields_max: 1_000, ..Limits::default() };
    let (site, mut store) = (Site::default(), Store::new(limits));
    let texts =
        ["two words", "it's (one)", "a\nb", "<b>x</b>", "SELECT 'a'; -- b", "7", "word", "a-b", "x=y&z"];
    for number in 0..1_000u32 {
        for at in 0..60u32 {
            let value = match number % 10 {
                0..4 => at.to_string(),
                4..7 => format!("word{at}"),
                7 => format!("a-{at}"),
                8 => ["asc", "desc"][at as usize % 2].to_owned(),
                _ => format!("{}{at}", texts[at as usize % texts.len()]),
            };
            let source = Source { network: number * 7 + at * 1_000, day: 100 + at % 14, ..Source::default() };
            let mut fields = Fields::default();
            fields.note(FieldPlace::Query, format!("f{}", number % 20).as_bytes(), value.as_bytes());
            site.observe(source, b"GET", format!("/page{}", number / 20).as_bytes(), &fields);
        }
        store.learn(&site.take());
    }
    assert_eq!(store.counts().0, 1_000);
    assert!(store.held_bytes() <= 2 << 20, "{} bytes of a thousand fields", store.held_bytes());
    let mut learner = Learner::new();
    for at in 0..2_000u32 {
        let value = format!("{}{at}", texts[at as usize % texts.len()]);
        learner.sees("/page", "text", &value, at % 1_000, 100 + at % 30);
    }
    assert!(learner.store.held_bytes() < 8 << 10, "{} bytes of a field of text", learner.store.held_bytes());
}

#[test]
fn fields_beyond_the_limits_are_counted() {
    let limits = Limits { fields_max: 320, ..Limits::default() };
    let (site, mut store) = (Site::default(), Store::new(limits));
    let mut add = |page: u32, name: u32, network: u32, day: u32| {
        let mut fields = Fields::default();
        fields.note(FieldPlace::Query, format!("f{name}").as_bytes(), b"1");
        site.observe(
            Source { network, day, ..Source::default() },
            b"GET",
            format!("/p{page}").as_bytes(),
            &fields,
        );
        store.learn(&site.take());
        (store.counts().0, store.beyond().fields)
    };
    for name in 0..PAGE_FIELDS_MAX as u32 {
        add(0, name, name, 1);
    }
    assert_eq!(add(0, 999, 999, 1), (PAGE_FIELDS_MAX, 1), "one page");
    for name in 0..64 {
        add(1, name, 1_000 + name, 1);
        add(1, name, 2_000 + name, 1);
    }
    assert_eq!(add(1, 999, 999, 1), (320, 2), "the site");
    // Tomorrow what nobody else has sent gives way.
    assert_eq!(add(1, 999, 999, 2), (320, 2));
}

/// Pages of many names are one template; ids, UUIDs, dates and hashes are at once.
#[test]
fn templates_of_paths() {
    let mut learner = Learner::new();
    for at in 0..500u32 {
        let (network, day) = (at % 40, 100 + at % 14);
        learner.sees(&format!("/users/{at}/edit"), "a", "1", network, day);
        learner.sees(&format!("/day/2026-11-{:02}", at % 28 + 1), "a", "1", network, day);
        learner.sees(&format!("/wiki/page-{at}-x"), "a", "1", network, day);
        learner.sees("/x/123e4567-e89b-12d3-a456-426614174000", "a", "1", network, day);
    }
    let templates: Vec<&str> = learner.store.fields().map(|(key, _)| &*key.template).collect();
    for expected in ["/users/{number}/edit", "/day/{date}", "/x/{uuid}", "/wiki/{any}"] {
        assert!(templates.contains(&expected), "{expected}: {templates:?}");
    }
    assert!(templates.len() < 80, "{}", templates.len());
    assert!(learner.judges_get("/wiki/never-seen", "a", "1'").is_some());
}

/// Stores of two nodes are, merged, what one node would have learned.
#[test]
fn merging() {
    let mut whole = Learner::new();
    let mut parts = [Learner::new(), Learner::new()];
    for at in 0..560u32 {
        let (value, network, day) = (format!("{at}"), at % 40, 100 + at % 14);
        whole.sees("/item", "id", &value, network, day);
        parts[at as usize / 280].sees("/item", "id", &value, network, day);
    }
    let [mut one, two] = parts;
    one.store.merge(two.store);
    let of = |learner: &Learner| {
        let (key, profile) = learner.store.fields().next().expect("a field");
        (key.clone(), profile.all.clone(), profile.types.clone(), profile.closed)
    };
    assert_eq!(of(&one), of(&whole));
}

/// What an operator vouches for closes a field at once, also where a little of it was seen before or few have
/// sent something else.
#[test]
fn what_is_imported_is_known() {
    let vouched = Limits { thresholds: Thresholds { values: 20, networks: 1, days: 1 }, ..Limits::default() };
    for (seen, networks, expected) in [
        ("", 0, true),
        ("12", 1, true),
        ("a 'text'", 1, true),
        ("a 'text'", 2, true),
        ("a 'text'", 40, false),
    ] {
        let mut import = Learner { store: Store::new(vouched), ..Learner::new() };
        for number in 0..20 {
            import.sees("/item", "id", &number.to_string(), 1_000 + number, 100);
        }
        let mut learner = Learner::new();
        for network in 0..networks {
            learner.sees("/item", "id", seen, network, 100 + network % 14);
        }
        learner.store.merge(import.store);
        let is_closed = learner.judges_get("/item", "id", "1'--").is_some();
        assert_eq!(is_closed, expected, "{seen:?} of {networks}");
    }
}

/// A few who cannot open a field where it is known do not open it by sending something else to another node,
/// whichever takes over what the other one has; many do.
#[test]
fn few_open_no_field_of_another_node() {
    for (networks, expected) in [(1, true), (2, true), (40, false)] {
        for is_known_first in [true, false] {
            let mut other = Learner::new();
            for at in 0..networks * 14 {
                other.sees("/item", "id", "{$where: 'sleep(1)'}", 7_000 + at % networks, 100 + at / networks);
            }
            let (mut one, two) = match is_known_first {
                true => (Learner::of_numbers(), other),
                false => (other, Learner::of_numbers()),
            };
            one.store.merge(two.store);
            let is_closed = one.judges_get("/item", "id", "1'--").is_some();
            assert_eq!(is_closed, expected, "{networks} networks, {is_known_first}");
        }
    }
}

/// Other thresholds hold for what was seen before, too.
#[test]
fn other_thresholds() {
    let mut learner = Learner::new();
    for number in 0..20 {
        learner.sees("/item", "id", &number.to_string(), number, 100);
    }
    assert_eq!(learner.store.counts(), (1, 0));
    let thresholds = Thresholds { values: 20, networks: 20, days: 1 };
    learner.store.set_limits(Limits { thresholds, ..Limits::default() });
    assert_eq!(learner.store.counts(), (1, 1));
}

/// Numbers drawn by Zipf's law from 1 to `of`, as names of companies and pages are.
fn zipf(of: u32, seed: u64) -> impl Iterator<Item = u32> {
    let weights: Vec<f64> = (1..=of).map(|rank| 1.0 / f64::from(rank)).collect();
    let total: f64 = weights.iter().sum();
    let mut state = seed;
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mut at = (state >> 11) as f64 / (1u64 << 53) as f64 * total;
        let rank = weights.iter().position(|weight| {
            at -= weight;
            at < 0.0
        });
        rank.unwrap_or_default() as u32
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Names of which there are many are never taken for a list, however few have come; names of a list are,
    /// once they have come often.
    #[test]
    fn lists_have_stopped_growing(of in 50u32..400, values in 100usize..1_500, seed: u64) {
        let vouched = |values| Limits {
            thresholds: Thresholds { values, networks: 1, days: 1 },
            ..Limits::default()
        };
        let mut learner = Learner { store: Store::new(vouched(100)), ..Learner::new() };
        for (at, name) in zipf(of, seed).take(values).enumerate() {
            learner.sees("/", "company", &format!("Smith & Sons no. {name}"), at as u32, 100);
            let (_, profile) = learner.store.fields().next().expect("a field");
            prop_assert_eq!(profile.closed, None, "after {} values", at + 1);
        }
        let mut learner = Learner { store: Store::new(vouched(100)), ..Learner::new() };
        for at in 0..640u32 {
            learner.sees("/", "company", &format!("Smith & Sons no. {}", at % 32), at, 100);
        }
        let (_, profile) = learner.store.fields().next().expect("a field");
        prop_assert_eq!(profile.closed.map(|closed| closed.form), Some(Form::Enumeration));
    }
}
