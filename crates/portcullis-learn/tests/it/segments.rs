//! Segments of paths that are values.

use std::sync::Arc;

use portcullis_learn::{FieldPlace, Fields, Knowledge, NEW_SHARE, SEGMENTS_MAX, Source};

use crate::Learner;

/// The fields of a request for `path` without parameters, as the proxy has them.
fn asked(learner: &Learner, path: &str) -> Fields {
    let mut fields = Fields::default();
    fields.judge_by(learner.site.knowledge(), b"GET", path.as_bytes());
    fields
}

fn sees(learner: &mut Learner, path: &str, network: u32, day: u32) {
    let fields = asked(learner, path);
    learner.site.observe(Source { network, day, ..Source::default() }, b"GET", path.as_bytes(), &fields);
}

/// Has all learned that was seen, and judged by from now on.
fn publish(learner: &mut Learner) {
    learner.learn();
    learner.site.publish(Knowledge::of(&learner.store));
}

/// What is unlike it in a path: the path above, and whether it has signs of code.
fn unlike(learner: &Learner, path: &str) -> Vec<(String, bool)> {
    let unusual = asked(learner, path).unusual().into_iter();
    unusual
        .map(|(place, name, unusual)| {
            assert_eq!(place, FieldPlace::PathSegment);
            (String::from_utf8_lossy(&name).into_owned(), !unusual.syntax.is_empty())
        })
        .collect()
}

/// A site with numbers below `/users` and below their posts, from 40 networks in 14 days.
fn of_numbers() -> Learner {
    let mut learner = Learner::new();
    for at in 0..800u32 {
        let (network, day) = (at % 40, 100 + at % 14);
        sees(&mut learner, &format!("/users/{at}/posts/{at}"), network, day);
        sees(&mut learner, "/users/list", network, day);
        sees(&mut learner, &format!("/files/report%20({at}).pdf"), network, day);
        if at % 20 == 19 {
            publish(&mut learner);
        }
    }
    publish(&mut learner);
    learner
}

/// Where a path carries numbers, what is no name and no number is unlike it, however it is spelled; names are
/// other pages, and so is what nobody has asked for above it.
#[test]
fn a_path_that_carries_numbers() {
    let learner = of_numbers();
    let above = || "/users".to_owned();
    for (path, expected) in [
        ("/users/7", vec![]),
        ("/users/list", vec![]),
        ("/users/new-one", vec![]),
        ("/users/7/unknown", vec![]),
        ("/users/7%27--", vec![(above(), true)]),
        ("/Users//7'%20or%201=1", vec![(above(), true)]),
        ("/users/x/../7'--", vec![(above(), true)]),
        ("/users/7%2527%20or%201", vec![(above(), true)]),
        ("/users/7%20seven", vec![(above(), false)]),
        ("/users/7'/posts/1", vec![(above(), true)]),
        ("/users/7/posts/1'", vec![("/users/7/posts".to_owned(), true)]),
        // Some servers take what stands behind an encoded slash or a semicolon for a part of the value.
        ("/users/7%2F1%20or%201=1", vec![(above(), true)]),
        ("/users/7%252f'", vec![(above(), true)]),
        ("/users/7%5C'", vec![(above(), true)]),
        ("/users/x%2f../7;'or'1", vec![(above(), true)]),
        ("/users/%2f/%2f/7%3B(x)/posts/3", vec![(above(), true)]),
        ("/users/7;jsessionid=1F.node-2/posts/3", vec![]),
        ("/users/7/it's", vec![]),
        ("/files/it's (new).pdf", vec![]),
        ("/other/7'", vec![]),
        ("/7'", vec![]),
    ] {
        assert_eq!(unlike(&learner, path), expected, "{path}");
    }
    let evidence = |path| asked(&learner, path).unusual().remove(0).2.evidence.to_string();
    assert!(evidence("/users/7'").starts_with("whole numbers only: "), "{}", evidence("/users/7'"));
}

/// A segment is found as its finding names it, and as it is listed.
#[test]
fn found_as_it_is_judged_and_listed() {
    let learner = of_numbers();
    let found = |path: &str, name: &str| {
        let found = learner.store.find(b"GET", path.as_bytes(), FieldPlace::PathSegment, name.as_bytes());
        found.map(|(key, _)| key.template.clone())
    };
    assert_eq!(found("/users/7'", "/users").as_deref(), Some("/users"));
    assert_eq!(found("/users/7/posts/1'", "/users/7/posts").as_deref(), Some("/users/{number}/posts"));
    assert_eq!(found("/users/{number}/posts", "{segment}").as_deref(), Some("/users/{number}/posts"));
}

/// A place in which more names stand than are told apart carries names, whatever numbers are among them.
#[test]
fn a_path_that_carries_names() {
    let mut learner = Learner::new();
    let letters = |number: u32| -> String {
        (0..3).map(|at| char::from(b'a' + (number / 26u32.pow(at) % 26) as u8)).collect()
    };
    for at in 0..2_000u32 {
        let (network, day) = (at % 40, 100 + at % 14);
        sees(&mut learner, &format!("/wiki/{}", 1_000 + at), network, day);
        sees(&mut learner, &format!("/wiki/{}", letters(at % (4 * SEGMENTS_MAX as u32))), network, day);
        if at % 20 == 19 {
            publish(&mut learner);
        }
    }
    publish(&mut learner);
    assert_eq!(unlike(&learner, "/wiki/it's"), []);
    let (_, profile) = learner.store.fields().next().expect("the place");
    assert!(profile.closed.is_none(), "{}", profile.evidence());
}

/// What one network asks for opens no segment, closes none, and takes no more places than other fields do.
#[test]
fn one_network_teaches_nothing_of_paths() {
    let mut learner = of_numbers();
    for at in 0..20_000u32 {
        for path in [format!("/users/{at}'--"), format!("/m{at}/{at}"), format!("/users/n{at}")] {
            // The proxy would not have these learned at all.
            let fields = asked(&Learner::new(), &path);
            let source = Source { network: 7_777, day: 114 + at % 9, ..Source::default() };
            learner.site.observe(source, b"GET", path.as_bytes(), &fields);
        }
        if at % 200 == 199 {
            publish(&mut learner);
        }
    }
    assert_eq!(unlike(&learner, "/users/7'--"), [("/users".to_owned(), true)]);
    let made_up = learner.store.fields().filter(|(key, _)| key.template.starts_with("/m")).count();
    assert!(made_up <= learner.store.limits().fields_max / NEW_SHARE, "{made_up}");
    assert!(learner.store.fields().all(|(key, _)| key.place == FieldPlace::PathSegment));
}

/// What is said of a page that is remembered is what is said of it the first time, and most requests are
/// thinned out.
#[test]
fn remembered_pages() {
    let learner = of_numbers();
    let mut fields = Fields::default();
    let knowledge = learner.site.knowledge();
    for at in 0..600u32 {
        for path in ["/users/7/posts/9", "/users/list", "/users/7'--", "/files/a.pdf"] {
            fields.clear();
            fields.judge_by(Arc::clone(&knowledge), b"GET", path.as_bytes());
            fields.note(FieldPlace::Query, b"q", b"1");
            let is_unusual = !fields.unusual().is_empty();
            assert_eq!(is_unusual, path.ends_with('-'), "{path}, request {at}");
            if !is_unusual {
                fields.clear();
                fields.judge_by(Arc::clone(&knowledge), b"GET", path.as_bytes());
                assert!(fields.unusual().is_empty());
                let source = Source { network: 3, day: 120, ..Source::default() };
                learner.site.observe(source, b"GET", path.as_bytes(), &fields);
            }
        }
    }
    let handed_on = learner.site.take().len();
    assert!((2..200).contains(&handed_on), "{handed_on} of 1,200 with segments");
}
