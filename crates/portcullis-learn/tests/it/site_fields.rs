//! Header fields and cookies, which are the same on all pages of a site.

use portcullis_learn::{FieldPlace, Fields, Key, Knowledge, Order, PAGE_FIELDS_MAX, Source, Unusual};

use crate::Learner;

const COOKIE: FieldPlace = FieldPlace::Cookie;
const HEADER: FieldPlace = FieldPlace::Header;

fn sees(learner: &mut Learner, path: &str, fields: &[(FieldPlace, &str, &str)], network: u32, day: u32) {
    let mut noted = Fields::default();
    noted.judge_by(learner.site.knowledge(), b"GET", path.as_bytes());
    for (place, name, value) in fields {
        noted.note(*place, name.as_bytes(), value.as_bytes());
    }
    noted.unusual();
    learner.site.observe(Source { network, day, ..Source::default() }, b"GET", path.as_bytes(), &noted);
}

/// A site whose cookie `width` and header `X-Version` carry numbers, on every page.
fn of_numbers() -> Learner {
    let mut learner = Learner::new();
    for at in 0..800u32 {
        let number = at.to_string();
        let version = format!("{}.{}", at % 7, at % 5);
        let fields = [(COOKIE, "width", &*number), (HEADER, "X-Version", &*version)];
        sees(&mut learner, &format!("/page{}", at % 50), &fields, at % 40, 100 + at % 14);
        if at % 50 == 49 {
            learner.learn();
            learner.site.publish(Knowledge::of(&learner.store));
        }
    }
    learner.learn();
    learner
}

/// The same, by every way of judging.
fn judges(learner: &mut Learner, path: &str, place: FieldPlace, name: &str, value: &str) -> Option<Unusual> {
    let alone = learner.judges("PATCH", path, place, name, value);
    let mut noted = Fields::default();
    noted.judge_by(Knowledge::of(&learner.store).into(), b"POST", path.as_bytes());
    noted.note(FieldPlace::Query, b"q", b"1");
    noted.note(place, name.as_bytes(), value.as_bytes());
    let found = noted.unusual().into_iter().map(|(.., unusual)| unusual).next();
    assert_eq!(alone, found);
    found
}

/// A cookie and a header are known on any page, by any method, and make no page known.
#[test]
fn known_on_all_pages() {
    let mut learner = of_numbers();
    assert_eq!(learner.store.fields().count(), 2, "one of each, whatever the page");
    for (place, name) in [(COOKIE, "width"), (COOKIE, "Width"), (HEADER, "x-version")] {
        for path in ["/page1", "/never/asked/for", "/"] {
            assert!(judges(&mut learner, path, place, name, "7").is_none());
            let unusual = judges(&mut learner, path, place, name, "7' or 1=1").expect("unlike it");
            assert!(!unusual.syntax.is_empty());
        }
    }
    // A parameter, and a header, that is called so are others.
    for place in [FieldPlace::Query, FieldPlace::Json, HEADER] {
        assert!(judges(&mut learner, "/page1", place, "width", "7' or 1=1").is_none(), "{place:?}");
    }
    assert!(judges(&mut learner, "/*", FieldPlace::Query, "width", "7' or 1=1").is_none());
}

/// They are found by events, and decided on as they are listed.
#[test]
fn found_and_decided_on() {
    let mut learner = of_numbers();
    let (key, _) = learner.store.find(b"POST", b"/page9", COOKIE, b"WIDTH").expect("the cookie");
    let expected =
        Key { template: "*".to_owned(), name: "width".to_owned(), method: "*".to_owned(), place: COOKIE };
    assert_eq!(*key, expected);
    assert!(learner.store.find(b"*", b"*", HEADER, b"x-version").is_some());
    assert_eq!(learner.store.order(&expected, Order::KeepOpen), Ok(()));
    assert!(judges(&mut learner, "/page1", COOKIE, "width", "7'").is_none());
}

/// No hash of any of their values is kept: these may be secrets.
#[test]
fn no_list_of_secrets() {
    let mut learner = Learner::new();
    for at in 0..800u32 {
        let key = ["s3cr3t one", "s3cr3t two"][at as usize % 2];
        sees(&mut learner, "/", &[(HEADER, "x-api-key", key)], at % 40, 100 + at % 14);
    }
    learner.learn();
    let (_, profile) = learner.store.fields().next().expect("the header");
    assert_eq!((profile.options(), profile.closed.is_some()), (0, false));
}

/// A page that made-up cookies have filled has room for others the next day.
#[test]
fn made_up_cookies_give_way() {
    let mut learner = Learner::new();
    for network in 0..9 {
        for at in 0..200 {
            sees(&mut learner, "/", &[(COOKIE, &format!("made-up-{network}-{at}"), "1")], network, 100);
        }
        learner.learn();
    }
    assert_eq!(learner.store.fields().count(), PAGE_FIELDS_MAX);
    sees(&mut learner, "/", &[(COOKIE, "theme", "dark")], 50, 100);
    learner.learn();
    assert!(learner.store.find(b"GET", b"/", COOKIE, b"theme").is_none(), "there is no room");
    sees(&mut learner, "/", &[(COOKIE, "theme", "dark")], 50, 101);
    learner.learn();
    assert!(learner.store.find(b"GET", b"/", COOKIE, b"theme").is_some());
    assert_eq!(learner.store.fields().count(), PAGE_FIELDS_MAX);
}

/// One network with any number of values teaches nothing.
#[test]
fn one_network_teaches_nothing_of_cookies() {
    let mut learner = of_numbers();
    for at in 0..5_000u32 {
        let value = format!("{at}';--");
        sees(&mut learner, "/", &[(COOKIE, "width", &value)], 7_777, 115 + at % 30);
        if at % 500 == 499 {
            learner.learn();
        }
    }
    assert!(judges(&mut learner, "/", COOKIE, "width", "1';--").is_some());
}

/// Where cookies stand in a request does not make its parameters dearer to judge: what is usual stays so.
#[test]
fn usual_requests_stay_usual() {
    let mut learner = of_numbers();
    for at in 0..800u32 {
        sees(&mut learner, "/item", &[(FieldPlace::Query, "id", &at.to_string())], at % 40, 100 + at % 14);
    }
    learner.learn();
    learner.site.publish(Knowledge::of(&learner.store));
    for at in 0..1_600u32 {
        let cookie = (COOKIE, "width", "900");
        let header = (HEADER, "X-Version", "1.2");
        let id = (FieldPlace::Query, "id", "7");
        match at % 3 {
            0 => sees(&mut learner, "/item", &[id, cookie, header], 3, 120),
            1 => sees(&mut learner, "/item", &[cookie, id], 3, 120),
            _ => sees(&mut learner, "/item", &[id], 3, 120),
        }
    }
    let handed_on = learner.site.take().len();
    assert!((3..=3 * (1_600 / 3 / 16 + 2)).contains(&handed_on), "{handed_on}");
}
