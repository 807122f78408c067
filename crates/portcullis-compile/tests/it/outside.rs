//! Rules that need to know something of the world outside: what they ask, when they ask it, and how they go
//! on.

use std::net::Ipv4Addr;
use std::sync::Arc;

use crate::common::{connection, plan_and_said, plan_with};
use portcullis_engine::{
    Answer, Interruption, NoCollections, Progress, Question, RequestLine, Scratch, Transaction,
};
use portcullis_seclang::MemoryFiles;
use portcullis_testkit::mmdb::{self, Value};

const LISTED: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

fn files() -> MemoryFiles {
    let text = Value::Text;
    let city = Value::Map(vec![
        (
            "city",
            Value::Map(vec![("names", Value::Map(vec![("de", text("Köln")), ("en", text("Cologne"))]))]),
        ),
        ("continent", Value::Map(vec![("code", text("EU"))])),
        (
            "country",
            Value::Map(vec![("iso_code", text("DE")), ("names", Value::Map(vec![("en", text("Germany"))]))]),
        ),
        (
            "location",
            Value::Map(vec![
                ("latitude", Value::Double(50.9375)),
                ("longitude", Value::Double(6.96)),
                ("metro_code", Value::Short(501)),
            ]),
        ),
        ("postal", Value::Map(vec![("code", text("50667"))])),
        (
            "subdivisions",
            Value::List(vec![
                Value::Map(vec![("iso_code", text("NW"))]),
                Value::Map(vec![("iso_code", text("K"))]),
            ]),
        ),
    ]);
    let flat = Value::Map(vec![("country_code", text("US"))]);
    let database =
        mmdb::write(&[("192.0.2.0".parse().unwrap(), 24, city), ("2001:db8::".parse().unwrap(), 32, flat)]);
    let mut files = MemoryFiles::default();
    files.0.insert("geo.mmdb".into(), database);
    files.0.insert("GeoIP.dat".into(), b"\x00\x01\x02 an old one".to_vec());
    files
}

fn load(rules: &str) -> Result<portcullis_engine::Plan, String> {
    let rules = format!("SecRuleEngine On\nSecRequestBodyAccess On\nSecResponseBodyAccess On\n{rules}\n");
    plan_with(&rules, &files())
}

/// The outcome of one exchange: `?name` for each question when it was asked, and the id of each rule when it
/// matched.
struct Seen {
    story: Vec<String>,
    interruption: Option<Interruption>,
    transaction: Box<Transaction>,
}

impl Seen {
    fn tx(&self, key: &str) -> Option<String> {
        let values = self.transaction.tx_values();
        let found = values.into_iter().find(|(name, _)| name == key.as_bytes());
        found.map(|(_, value)| String::from_utf8(value).unwrap())
    }
}

/// Answers each question as `answer` says and resumes.
fn settle(
    transaction: &mut Transaction,
    mut progress: Progress,
    story: &mut Vec<String>,
    answer: &dyn Fn(&str) -> Option<Answer>,
) -> Option<Interruption> {
    let mut told = 0;
    let mut tell = |transaction: &Transaction, story: &mut Vec<String>| {
        let all: Vec<_> =
            transaction.matches().iter().map(|m| transaction.view(m).rule.id.to_string()).collect();
        let known = story.iter().filter(|entry| !entry.starts_with('?')).count().max(told);
        story.extend(all.iter().skip(known).cloned());
        told = all.len();
    };
    loop {
        tell(transaction, story);
        match progress {
            Progress::Done(interruption) => return interruption,
            Progress::Ask => {
                let asked: Vec<_> = transaction
                    .questions()
                    .map(|(id, question)| match question {
                        Question::Address(name) => (id, name.to_owned()),
                        Question::Scan { scanner, content } => {
                            (id, format!("{scanner} {}", String::from_utf8_lossy(content)))
                        }
                    })
                    .collect();
                assert!(!asked.is_empty(), "a phase stopped without a question");
                for (id, question) in asked {
                    story.push(format!("?{question}"));
                    if let Some(answer) = answer(&question) {
                        transaction.answer(id, answer);
                    }
                }
                progress = transaction.resume();
            }
        }
    }
}

fn run(rules: &str, target: &str, body: (&str, &[u8]), answer: &dyn Fn(&str) -> Option<Answer>) -> Seen {
    let plan = load(rules).unwrap_or_else(|shown| panic!("{shown}"));
    let mut transaction =
        Transaction::new(Arc::new(plan), Arc::new(NoCollections), Scratch::default(), &connection());
    transaction.keep_quiet_matches();
    let line = format!("POST {target} HTTP/1.1");
    let request = RequestLine {
        line: line.as_bytes(),
        method: b"POST",
        target: target.as_bytes(),
        protocol: b"HTTP/1.1",
    };
    let length = body.1.len().to_string();
    let headers = [("Host", "h"), ("Content-Type", body.0), ("Content-Length", &length)]
        .map(|(n, v)| (n.as_bytes(), v.as_bytes()));
    let mut story = Vec::new();
    let (t, s) = (&mut transaction, &mut story);
    let progress = t.request_head(request, headers);
    let interruption = settle(t, progress, s, answer)
        .or_else(|| {
            t.request_body(body.1);
            let progress = t.request_end(false);
            settle(t, progress, s, answer)
        })
        .or_else(|| {
            let headers = [(b"Content-Type".as_slice(), b"text/html".as_slice())];
            let progress = t.response_head(b"HTTP/1.1", 200, headers);
            settle(t, progress, s, answer)
        })
        .or_else(|| {
            t.response_body(b"<p>");
            let progress = t.response_end(false);
            settle(t, progress, s, answer)
        });
    let progress = t.logging();
    settle(t, progress, s, answer);
    t.finish();
    Seen { story, interruption, transaction }
}

/// A GET whose lookups are answered: what begins with one of `listed` is.
fn lookups(rules: &str, target: &str, listed: &[&str]) -> Seen {
    run(rules, target, ("text/plain", b""), &|name| {
        Some(match listed.iter().any(|listed| name.starts_with(listed)) {
            true => Answer::Address(LISTED),
            false => Answer::Nothing,
        })
    })
}

#[test]
fn a_listed_address_matches() {
    let rules =
        r#"SecRule REMOTE_ADDR "@rbl list.example" "id:1,phase:1,deny,status:429,capture,logdata:'%{TX.0}'""#;
    let seen = lookups(rules, "/", &["7.2.0.192."]);
    assert_eq!(seen.story, ["?7.2.0.192.list.example", "1"]);
    assert_eq!(seen.interruption, Some(Interruption::Deny { status: 429 }));
    let text = "RBL lookup of 7.2.0.192.list.example succeeded at REMOTE_ADDR.";
    assert_eq!(seen.tx("0").unwrap(), text);
    let view = seen.transaction.view(&seen.transaction.matches()[0]);
    assert_eq!(view.log_data, text.as_bytes());
    let seen = lookups(rules, "/", &[]);
    assert_eq!((seen.story, seen.interruption), (vec!["?7.2.0.192.list.example".to_owned()], None));
}

#[test]
fn the_values_of_a_link_are_asked_for_at_once_and_answers_last() {
    let rules = r#"SecRule ARGS "@rbl l.example" "id:1,phase:1,pass,setvar:tx.n=+1,setvar:tx.last=%{MATCHED_VAR}"
SecRule ARGS:b|ARGS:c "@rbl l.example" "id:2,phase:2,pass"
SecRule ARGS:a "@rbl m.example" "id:3,phase:2,pass"
SecRule ARGS:b "!@rbl l.example" "id:4,phase:2,pass""#;
    let seen = lookups(rules, "/?a=1.1.1.1&b=2.2.2.2&b=2.2.2.2&c=x.example&d=no%20name", &["1.", "x."]);
    assert_eq!(
        seen.story,
        [
            "?1.1.1.1.l.example",
            "?2.2.2.2.l.example",
            "?x.example.l.example",
            "1",
            "1",
            "2",
            "?1.1.1.1.m.example",
            "3",
            "4",
            "4"
        ]
    );
    assert_eq!((seen.tx("n").unwrap(), seen.tx("last").unwrap()), ("2".to_owned(), "x.example".to_owned()));
}

#[test]
fn a_chain_goes_on_where_it_stopped() {
    let rules = r#"SecRule ARGS:a|ARGS:b "@rx ^(.)" "id:1,phase:2,deny,chain,capture,setvar:tx.first=+1"
SecRule REMOTE_ADDR "@rbl l.example" "chain,setvar:tx.second=%{TX.1}%{MATCHED_VAR}"
SecRule MATCHED_VARS_NAMES "@streq ARGS:b" "chain,setvar:tx.third=+1"
SecRule ARGS:host "@rbl m.example" "setvar:tx.fourth=%{RULE.id}""#;
    let seen = lookups(rules, "/?a=x&b=y&host=h.example", &["7.", "h."]);
    assert_eq!(seen.story, ["?7.2.0.192.l.example", "?h.example.m.example", "1"]);
    let tx: Vec<_> = ["first", "second", "third", "fourth"].iter().map(|key| seen.tx(key).unwrap()).collect();
    assert_eq!(tx, ["2", "y192.0.2.7", "1", "1"]);
    assert_eq!(seen.interruption, Some(Interruption::Deny { status: 403 }));
    // An earlier link that does not match spares the question; a later one is not reached.
    assert_eq!(lookups(rules, "/?host=h.example", &["7.", "h."]).story, [""; 0]);
    assert_eq!(lookups(rules, "/?a=x&b=y", &[]).story, ["?7.2.0.192.l.example"]);
}

#[test]
fn skips_hold_across_questions() {
    let rules = r#"SecRule REMOTE_ADDR "@rbl l.example" "id:1,phase:1,pass,skipAfter:END"
SecAction "id:2,phase:1,pass"
SecMarker END
SecRule REMOTE_ADDR "@rbl m.example" "id:3,phase:1,pass,skip:1"
SecAction "id:4,phase:1,pass"
SecAction "id:5,phase:1,pass"
SecAction "id:6,phase:1,pass,ctl:ruleRemoveById=7"
SecRule REMOTE_ADDR "@rbl n.example" "id:7,phase:1,pass""#;
    let ask = ["?7.2.0.192.l.example", "?7.2.0.192.m.example"];
    let story = |listed: &[&str]| lookups(rules, "/", listed).story;
    assert_eq!(story(&["7."]), [ask[0], "1", ask[1], "3", "5", "6"]);
    assert_eq!(story(&[]), [ask[0], "2", ask[1], "4", "5", "6"]);
    assert_eq!(story(&["7.2.0.192.m"]), [ask[0], "2", ask[1], "3", "5", "6"]);
}

#[test]
fn every_phase_can_ask() {
    for phase in 1..=5 {
        let rules = format!(
            "SecAction \"id:1,phase:{phase},pass\"\n\
             SecRule REMOTE_ADDR \"@rbl l.example\" \"id:2,phase:{phase},deny,chain\"\n\
             SecRule REMOTE_ADDR \"@rbl m.example\" \"t:none\"\n\
             SecAction \"id:3,phase:{phase},pass\""
        );
        let seen = lookups(&rules, "/", &["7."]);
        let mut expected = vec!["1", "?7.2.0.192.l.example", "?7.2.0.192.m.example", "2"];
        if phase == 5 {
            expected.push("3");
        }
        assert_eq!(seen.story, expected, "phase {phase}");
        assert_eq!(seen.interruption.is_some(), phase < 5);
    }
}

#[test]
fn no_answer_matches_nothing() {
    let rules = r#"SecRule REMOTE_ADDR "@rbl l.example" "id:1,phase:1,deny"
SecRule REMOTE_ADDR "!@rbl l.example" "id:2,phase:1,deny"
SecAction "id:3,phase:1,pass""#;
    for answer in [None, Some(Answer::Unknown)] {
        let seen = run(rules, "/", ("text/plain", b""), &|_| answer.clone());
        // Asked once: a missing answer is remembered, too.
        assert_eq!(seen.story, ["?7.2.0.192.l.example", "3"]);
    }
    // finish() alone takes phase 5 to its end without asking.
    let plan = load(r#"SecRule REMOTE_ADDR "!@rbl l.example" "id:1,phase:5,pass""#).unwrap();
    let mut transaction =
        Transaction::new(Arc::new(plan), Arc::new(NoCollections), Scratch::default(), &connection());
    transaction.keep_quiet_matches();
    transaction.finish();
    assert_eq!((transaction.matches().len(), transaction.questions().count()), (0, 0));
}

#[test]
fn questions_have_a_limit() {
    let target: String = (0..100).map(|n| format!("&a={n}.example")).collect();
    let rules = r#"SecRule ARGS "@rbl l.example" "id:1,phase:1,pass,setvar:tx.n=+1""#;
    let seen = lookups(rules, &format!("/?{target}"), &["1", "2", "3", "4", "5", "6", "7", "8", "9", "0"]);
    assert_eq!(seen.tx("n").unwrap(), Transaction::QUESTIONS_MAX.to_string());
    assert_eq!(seen.transaction.questions_not_asked(), 100 - Transaction::QUESTIONS_MAX as u64);
}

#[test]
fn transformations_and_exclusions_come_before_a_question() {
    let rules = r#"SecAction "id:1,phase:1,pass,nolog,ctl:ruleRemoveTargetById=2;ARGS:b"
SecRule ARGS|!ARGS:c "@rbl l.example" "id:2,phase:1,pass,multiMatch,t:urlDecode,t:lowercase""#;
    let seen = lookups(rules, "/?a=A%252eExample&b=b.example&c=c.example", &["a."]);
    // Two forms of one value, one name.
    assert_eq!(seen.story, ["1", "?a.example.l.example", "2", "2"]);
}

const UPLOADS: &[u8] =
    b"--x\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a.txt\"\r\n\r\ngood\r\n\
    --x\r\nContent-Disposition: form-data; name=\"g\"; filename=\"b.txt\"\r\n\r\nevil\r\n\
    --x\r\nContent-Disposition: form-data; name=\"h\"; filename=\"c.txt\"\r\n\r\n\r\n\
    --x\r\nContent-Disposition: form-data; name=\"t\"\r\n\r\nevil\r\n--x--\r\n";

#[test]
fn uploads_are_scanned() {
    let scan = |rules: &str| {
        run(rules, "/", ("multipart/form-data; boundary=x", UPLOADS), &|question| {
            Some(match question.ends_with(" evil") {
                true => Answer::Found("Evil-1".to_owned()),
                false => Answer::Nothing,
            })
        })
    };
    let both = ["?clamd:/run/c.sock good", "?clamd:/run/c.sock evil", "1"];
    let names = scan(
        r#"SecRule FILES_TMPNAMES "@inspectFile clamd:/run/c.sock" "id:1,phase:2,deny,capture,t:none,logdata:'%{TX.0} in %{MATCHED_VAR_NAME} %{MATCHED_VAR}'""#,
    );
    assert_eq!(names.story, both);
    let view = names.transaction.view(&names.transaction.matches()[0]);
    assert_eq!(view.log_data, b"Evil-1 in FILES_TMPNAMES:g upload-2");
    let contents =
        scan(r#"SecRule FILES_TMP_CONTENT:g "@inspectFile clamd:127.0.0.1:3310" "id:1,phase:2,deny""#);
    assert_eq!(contents.story, ["?clamd:127.0.0.1:3310 evil", "1"]);
    assert_eq!(contents.interruption, Some(Interruption::Deny { status: 403 }));
    // The same file for another rule is no new question.
    let twice = scan(
        "SecRule FILES_TMPNAMES \"@inspectFile clamd:/run/c.sock\" \"id:1,phase:2,pass\"\n\
         SecRule FILES_TMP_CONTENT \"!@inspectFile clamd:/run/c.sock\" \"id:2,phase:2,pass\"",
    );
    // An empty value is not asked about, and approved of.
    assert_eq!(twice.story, [both[0], both[1], "1", "2", "2"]);
}

#[test]
fn geography_is_looked_up_without_asking() {
    let rules = |address: &str| {
        format!(
            "SecGeoLookupDb geo.mmdb\n\
             SecAction \"id:1,phase:1,pass,setvar:tx.ip={address}\"\n\
             SecRule TX:ip \"@geoLookup\" \"id:2,phase:1,pass,setvar:'tx.c=%{{GEO.COUNTRY_CODE}} %{{GEO.CITY}}'\"\n\
             SecRule GEO \"@unconditionalMatch\" \"id:3,phase:1,pass\"\n\
             SecRule &GEO:country_code \"@eq 0\" \"id:4,phase:2,pass\""
        )
    };
    let values = |address: &str| {
        let seen = lookups(&rules(address), "/", &[]);
        let matches = seen.transaction.matches();
        let of_geo = matches.iter().map(|m| seen.transaction.view(m)).filter(|view| view.rule.id.0 == 3);
        let show = |view: portcullis_engine::MatchView<'_>| {
            format!("{}={}", String::from_utf8_lossy(&view.target), String::from_utf8_lossy(view.value))
        };
        (of_geo.map(show).collect::<Vec<_>>().join(" "), seen.tx("c"), seen.story.contains(&"4".to_owned()))
    };
    assert_eq!(
        values("192.0.2.99"),
        (
            "GEO:COUNTRY_CODE=DE GEO:COUNTRY_CODE3=DEU GEO:COUNTRY_NAME=Germany GEO:COUNTRY_CONTINENT=EU GEO:REGION=NW \
             GEO:CITY=Cologne GEO:POSTAL_CODE=50667 GEO:LATITUDE=50.937500 GEO:LONGITUDE=6.960000 GEO:DMA_CODE=501 \
             GEO:AREA_CODE=0"
                .to_owned(),
            Some("DE Cologne".to_owned()),
            false
        )
    );
    let (flat, macros, _) = values("2001:db8::9");
    assert!(flat.starts_with("GEO:COUNTRY_CODE=US GEO:COUNTRY_CODE3=USA GEO:COUNTRY_NAME= "), "{flat}");
    assert_eq!(macros.unwrap(), "US ");
    assert_eq!(values("198.51.100.1"), (String::new(), None, true));
    assert_eq!(values("a.example"), (String::new(), None, true));
    // A later lookup that finds nothing empties GEO.
    let again = rules("192.0.2.1")
        + "\nSecRule REQUEST_METHOD \"@geoLookup\" \"id:5,phase:2,pass\"\n\
         SecRule &GEO \"@eq 0\" \"id:6,phase:2,pass\"";
    assert!(lookups(&again, "/", &[]).story.contains(&"6".to_owned()));
}

#[test]
fn mistakes_say_what_to_do() {
    for (loads, rules, message, hint) in [
        (true, "SecGeoLookupDb GeoIP.dat", "not a MaxMind DB", ".mmdb"),
        (false, "SecGeoLookupDb none.mmdb", "cannot use none.mmdb", ".mmdb"),
        (true, "SecRule ARGS \"@rbl %{tx.zone}\" \"id:1\"", "is not a DNS zone", "no macros"),
        (
            true,
            "SecRule FILES_TMPNAMES \"@inspectFile /bin/scan.sh\" \"id:1\"",
            "may not start programs",
            "clamd:127.0.0.1:3310",
        ),
        (
            false,
            "SecRule FILES_TMPNAMES \"@inspectFile clamd:host\" \"id:1\"",
            "no place of a clamd socket",
            "clamd:/path",
        ),
        (false, "SecRule ARGS \"@inspectFile clamd:/c\" \"id:1\"", "uploaded files only", "FILES_TMPNAMES"),
        (
            false,
            "SecRule FILES_TMPNAMES \"@inspectFile clamd:/c\" \"id:1,t:lowercase\"",
            "transformations",
            "t:none",
        ),
        (true, "SecRule ARGS \"@gsbLookup x\" \"id:1\"", "Google ended", "@rbl"),
        (true, "SecGsbLookupDb x", "Google ended", "@rbl"),
    ] {
        let (plan, shown) = plan_and_said(&format!("SecRuleEngine On\n{rules}\n"), &files());
        assert_eq!(plan.is_some(), loads, "{rules}\n{shown}");
        assert!(shown.contains(message) && shown.contains(hint), "{rules}\n{shown}");
    }
}
