//! Fields that are known by the value of the one beside them.

use std::sync::Arc;

use portcullis_learn::{FieldPlace, Fields, KindIn, KindNews, Knowledge, OPTIONS_MAX, Source, Unusual};

use crate::Learner;

const ATTACK: &str = "1' or '1'='1";
/// The settings of an application, by key: what `value` carries.
const SETTINGS: [(&str, &str); 3] =
    [("page_size", "#"), ("footer", "<p class=\"a\">it's # of (all)</p>"), ("language", "en-GB")];

fn noted(place: FieldPlace, sent: &[(&str, &str)]) -> Fields {
    let mut fields = Fields::default();
    for (name, value) in sent {
        fields.note(place, name.as_bytes(), value.as_bytes());
    }
    fields
}

/// Has a setting learned, from network and day `at`.
fn sees(learner: &mut Learner, place: FieldPlace, sent: &[(&str, &str)], at: u32) {
    let source = Source { network: at % 40, day: 100 + at % 14, ..Source::default() };
    learner.site.observe(source, b"POST", b"/settings", &noted(place, sent));
    learner.learn();
}

/// An application whose settings are known.
fn of_settings(place: FieldPlace) -> Learner {
    let mut learner = Learner::new();
    for at in 0..3_000u32 {
        let (key, value) = SETTINGS[at as usize % 3];
        sees(&mut learner, place, &[("key", key), ("value", &value.replace('#', &at.to_string()))], at / 3);
    }
    learner
}

/// What is unlike its field in a request, by names.
fn judged(learner: &Learner, place: FieldPlace, sent: &[(&str, &str)]) -> Vec<(String, Unusual)> {
    let knowledge = Arc::new(Knowledge::of(&learner.store));
    let mut fields = Fields::default();
    fields.judge_by(knowledge, b"POST", b"/settings");
    for (name, value) in sent {
        fields.note(place, name.as_bytes(), value.as_bytes());
    }
    let unusual = fields.unusual().into_iter();
    unusual.map(|(_, name, unusual)| (String::from_utf8_lossy(&name).into_owned(), unusual)).collect()
}

fn is_value_unlike(learner: &Learner, sent: &[(&str, &str)]) -> bool {
    judged(learner, FieldPlace::Form, sent).iter().any(|(name, _)| name.eq_ignore_ascii_case("value"))
}

/// The value is judged by what it carries beside this key, not by what it carries beside any.
#[test]
fn a_value_is_known_by_its_key() {
    for place in [FieldPlace::Form, FieldPlace::Json, FieldPlace::Query] {
        let learner = of_settings(place);
        for (key, value, is_unlike) in [
            ("page_size", "50", false),
            ("page_size", ATTACK, true),
            ("page_size", "<p class=\"a\">it's</p>", true),
            ("language", "de-AT", false),
            ("language", ATTACK, true),
            ("footer", "<p class=\"a\">it's (new)</p>", false),
            ("footer", "50", false),
        ] {
            let sent = [("key", key), ("value", value)];
            let unusual = judged(&learner, place, &sent);
            assert_eq!(unusual.iter().any(|(name, _)| name == "value"), is_unlike, "{sent:?}: {unusual:?}");
        }
    }
    let learner = of_settings(FieldPlace::Form);
    let unusual = judged(&learner, FieldPlace::Form, &[("key", "page_size"), ("value", ATTACK)]);
    assert!(unusual[0].1.evidence.starts_with("whole numbers only"), "{unusual:?}");
    assert!(!unusual[0].1.syntax.is_empty());
}

/// Whoever sends the key chooses no profile that the application would not use, too: a key that is not known,
/// none, several of them, another spelling, and one that stands elsewhere are as strict as the strictest.
#[test]
fn keys_that_say_nothing_open_nothing() {
    let learner = of_settings(FieldPlace::Form);
    let text = "<p class=\"a\">it's</p>";
    for sent in [
        &[("key", "unknown"), ("value", text)][..],
        &[("value", text)],
        &[("key", "footer "), ("value", text)],
        &[("key", "footer"), ("key", "page_size"), ("value", text)],
        &[("key", "footer"), ("key", "page_size"), ("value", text), ("value", "5")],
        &[("other[key]", "footer"), ("value", text)],
        &[("key", "page_size"), ("VALUE", text)],
        &[("key", "page_size"), ("value[]", text)],
        &[("key", "page_size"), ("value IF key=footer", "x"), ("value", text)],
    ] {
        let unusual = judged(&learner, FieldPlace::Form, sent);
        let is_value = |name: &str| name.eq_ignore_ascii_case("value") || name == "value[]";
        assert!(unusual.iter().any(|(name, _)| is_value(name)), "{sent:?}: {unusual:?}");
    }
    // The same said twice is said.
    assert!(!is_value_unlike(&learner, &[("key", "footer"), ("key", "footer"), ("value", text)]));
    // From the query, where it was never sent.
    let elsewhere = judged(&learner, FieldPlace::Query, &[("key", "page_size"), ("value", ATTACK)]);
    assert!(elsewhere.iter().any(|(name, _)| name == "value"));
}

/// Objects in an array stand in the same order with both of their fields.
#[test]
fn elements_of_an_array() {
    let mut learner = Learner::new();
    for at in 0..3_000u32 {
        let (key, value) = SETTINGS[at as usize % 3];
        let value = value.replace('#', &at.to_string());
        let sent = [("rows.rows.key", "page_size"), ("rows.rows.value", "5"), ("rows.rows.key", key)];
        sees(&mut learner, FieldPlace::Json, &[&sent[..], &[("rows.rows.value", &value)]].concat(), at / 3);
    }
    let sent = |first, second| {
        [
            ("rows.rows.key", "footer"),
            ("rows.rows.value", first),
            ("rows.rows.key", "page_size"),
            ("rows.rows.value", second),
        ]
    };
    assert!(judged(&learner, FieldPlace::Json, &sent("<p class=\"a\">it's</p>", "5")).is_empty());
    assert_eq!(judged(&learner, FieldPlace::Json, &sent("5", ATTACK)).len(), 1);
}

/// Where what stands beside a field is no list of few values, nothing is kept by it; and however many keys a
/// network makes up, it makes up no fields by them.
#[test]
fn keys_that_are_no_list() {
    let mut learner = Learner::new();
    for at in 0..2_000u32 {
        let key = format!("key number {at}");
        sees(&mut learner, FieldPlace::Form, &[("key", &key), ("value", "5")], at);
    }
    assert_eq!(learner.store.counts().0, 2);
    let mut learner = of_settings(FieldPlace::Form);
    assert_eq!(learner.store.counts().0, 2 + SETTINGS.len());
    for at in 0..5_000u32 {
        let source = Source { network: 7_777, day: 114 + at % 5, ..Source::default() };
        let sent = noted(FieldPlace::Form, &[("key", &format!("made-up-{at}")), ("value", ATTACK)]);
        learner.site.observe(source, b"POST", b"/settings", &sent);
        learner.learn();
    }
    assert!(learner.store.counts().0 <= 2 + OPTIONS_MAX, "{}", learner.store.counts().0);
    for key in ["page_size", "made-up-0", "made-up-40"] {
        assert!(is_value_unlike(&learner, &[("key", key), ("value", ATTACK)]), "{key}");
    }
    // A new key that many send is one of the application's.
    for at in 0..80u32 {
        sees(&mut learner, FieldPlace::Form, &[("key", "made-up-0"), ("value", "it's 'new'")], at);
    }
    assert!(!is_value_unlike(&learner, &[("key", "made-up-0"), ("value", "it's 'new'")]));
    assert!(is_value_unlike(&learner, &[("key", "made-up-1"), ("value", "it's 'new'")]));
}

/// While requests are refused for what the field carries, it is not known beside which key that is right.
#[test]
fn refused_requests_close_no_variant() {
    for (refused, expected) in [(true, false), (false, true)] {
        let mut learner = Learner::new();
        for at in 0..6_000u32 {
            let (key, value) = SETTINGS[at as usize % 3];
            let (key, value) = if key == "footer" { (key, "plain") } else { (key, value) };
            sees(
                &mut learner,
                FieldPlace::Form,
                &[("key", key), ("value", &value.replace('#', "5"))],
                at / 3,
            );
            let source = Source { network: at % 7, day: 100 + at / 3 % 14, ..Source::default() };
            let found = [KindIn { place: FieldPlace::Form, name: b"value", kind: "" }];
            if refused {
                learner.site.observe_kinds(source, b"POST", b"/settings", &found, KindNews::Refused);
            }
        }
        assert_eq!(is_value_unlike(&learner, &[("key", "footer"), ("value", ATTACK)]), expected, "{refused}");
    }
}

/// What is kept of it is read again.
#[test]
fn kept() {
    let learner = of_settings(FieldPlace::Form);
    let text = learner.store.to_text();
    let store =
        portcullis_learn::Store::from_text(text.as_bytes(), *learner.store.limits()).expect("its own text");
    let again = Learner { store, ..Learner::new() };
    assert_eq!(again.store.to_text(), text);
    assert!(is_value_unlike(&again, &[("key", "page_size"), ("value", ATTACK)]));
    assert!(!is_value_unlike(&again, &[("key", "footer"), ("value", "<b>it's</b> (x)")]));
}
