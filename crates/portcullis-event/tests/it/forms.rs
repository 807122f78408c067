//! CEF and OCSF: the finding is in each, and each is what its standard says.
//!
//! `snapshots/ocsf-1.4.0.json` is the JSON schema of class Detection Finding with profile Security Control,
//! as the PyPI package `ocsf-json-schema` derives it from the schema of OCSF (Apache-2.0), without attributes
//! that we do not write, titles, patterns and lengths. What is not in it is refused.

use std::collections::BTreeSet;

use portcullis_event::{
    Action, Control, ControlKind, Event, Exception, ExceptionCause, ExceptionPolicy, Gravity, Timestamp,
    UpstreamError, modsecurity_lines, text,
};
use portcullis_types::{Class, Place, RuleId};
use serde_json::Value;

use crate::schema::full;
use crate::validator;

fn cef(event: &Event) -> String {
    let mut out = Vec::new();
    event.write_cef_line("1.2.3", &mut out);
    String::from_utf8(out).unwrap()
}

fn ocsf(event: &Event) -> Value {
    let mut out = Vec::new();
    event.write_ocsf_line("1.2.3", &mut out);
    assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), 1);
    let value: Value = serde_json::from_slice(&out).unwrap();
    let schema: Value = serde_json::from_str(include_str!("../snapshots/ocsf-1.4.0.json")).unwrap();
    let errors = validator::errors(&schema, &value);
    assert!(errors.is_empty(), "{errors:#?}\n{value:#}");
    value
}

fn empty() -> Event {
    Event::new("r1", Timestamp::from_epoch_millis(1_790_000_000_123))
}

/// The semantic detector decided, by a finding that is neither the first nor the last.
fn semantic() -> Event {
    let mut event = full();
    event.verdict.rule_id = None;
    event.verdict.control = None;
    event.verdict.class = Some(Class::Sqli);
    let mut finding = event.findings[0].clone();
    (finding.class, finding.kind, finding.place) = (Class::Sqli, "sqli.union".into(), Place::Query);
    (finding.name, finding.evidence) = ("q".to_owned(), "union select a|b=c\\d\r\nCEF:0|".to_owned());
    finding.points = 9.0;
    event.findings.insert(1, finding.clone());
    finding.points = 1.0;
    finding.evidence = "less".to_owned();
    event.findings.push(finding);
    event.scores.semantic.clear();
    event
}

#[test]
fn the_lead_is_what_decided() {
    let event = semantic();
    let lead = event.lead();
    assert_eq!((&*lead.class, lead.kind, &*lead.location), ("sqli", "sqli.union", "query:q"));
    assert_eq!(lead.evidence, "union select a|b=c\\d\r\nCEF:0|");
    assert_eq!(event.others().count(), event.findings.len() + event.matches.len() - 1);
    // Of rules, the one that found something, not the one that compares the score with the threshold.
    let mut event = full();
    event.verdict.class = None;
    let lead = event.lead();
    assert_eq!((lead.rule, &*lead.class, &*lead.location), (Some(RuleId(942100)), "sqli", "ARGS:q"));
    assert!(lead.evidence.contains("1 union select"), "{lead:?}");
    assert_eq!(empty().lead(), Default::default());
    let mut refused = empty();
    refused.refusal = Some("length-and-transfer-encoding".into());
    assert_eq!(refused.lead().title, "length-and-transfer-encoding");
}

#[test]
fn a_brief_event_has_the_lead_and_counts_the_rest() {
    for event in [semantic(), full(), empty()] {
        let brief = event.brief(200);
        let (whole, short) = (event.lead(), brief.lead());
        assert_eq!((whole.kind, whole.rule, &whole.location), (short.kind, short.rule, &short.location));
        assert!(brief.findings.len() + brief.matches.len() <= 1);
        let all = |event: &Event| {
            event.findings.len()
                + event.matches.len()
                + (event.findings_omitted + event.matches_omitted) as usize
        };
        assert_eq!(all(&event), all(&brief));
        assert!(brief.json_line().len() < 3000, "{}", brief.json_line());
    }
}

#[test]
fn cef_has_the_finding_and_escapes_what_is_in_it() {
    let line = cef(&semantic());
    let (head, rest) = line.split_once("|8|").unwrap();
    assert!(head.starts_with("CEF:0|Portcullis|Portcullis WAF|1.2.3|sqli.union|"), "{head}");
    assert!(rest.ends_with('\n') && !rest.trim_end().contains(['\n', '\r']), "{rest}");
    for part in [
        "externalId=01J9ZB3V5Q ",
        "act=deny outcome=blocked cat=sqli ",
        "src=192.0.2.7 spt=4711 ",
        r"cs2=union select a|b\=c\\d\r\nCEF:0| cs2Label=evidence ",
        "cs3=query:q cs3Label=location ",
        "cs4=shop cs4Label=site ",
    ] {
        assert!(rest.contains(part), "{part} in {rest}");
    }
    let mut event = full();
    (event.verdict.class, event.verdict.control) = (None, None);
    let line = cef(&event);
    assert!(
        line.contains("|942100|SQL injection|8|") && line.contains(" cs1=942100 cs1Label=rule "),
        "{line}"
    );
    event.count = 40;
    assert!(cef(&event).contains(" cnt=40 ") && !cef(&empty()).contains(" cnt="));
    event.client.addr = "2001:db8::1".into();
    event.request.method = "A\u{85}B\u{0}C\u{2028}".into();
    let line = cef(&event);
    assert!(line.contains(" c6a2=2001:db8::1 c6a2Label=Source IPv6 Address "), "{line}");
    assert!(
        !line.contains(" src=") && line.contains(r"requestMethod=A\xc2\x85B\x00C\xe2\x80\xa8 "),
        "{line}"
    );
    assert!(cef(&empty()).contains("|pass|pass|2|"), "{}", cef(&empty()));
}

#[test]
fn ocsf_is_valid_and_has_the_finding() {
    let found = ocsf(&semantic());
    assert_eq!(
        (&found["severity_id"], &found["action_id"], &found["disposition_id"]),
        (&4.into(), &2.into(), &2.into())
    );
    assert_eq!(found["finding_info"]["types"][0], "sqli");
    assert_eq!(found["finding_info"]["analytic"]["uid"], "sqli.union");
    let data = &found["evidences"][0]["data"];
    assert_eq!(
        (&data["evidence"], &data["location"]),
        (&"union select a|b=c\\d\r\nCEF:0|".into(), &"query:q".into())
    );
    assert_eq!(found["evidences"][0]["src_endpoint"]["ip"], "192.0.2.7");
    let mut event = full();
    (event.verdict.class, event.verdict.control) = (None, None);
    let found = ocsf(&event);
    assert_eq!(found["firewall_rule"]["uid"], "942100");
    assert_eq!(found["firewall_rule"]["match_location"], "ARGS:q");
    event.count = 40;
    assert_eq!(ocsf(&event)["count"], 40);
    event.client.forwarded_for = vec!["evil\nname".into(), "::1".into()];
    assert_eq!(ocsf(&event)["evidences"][0]["http_request"]["x_forwarded_for"], serde_json::json!(["::1"]));
    for action in Action::ALL {
        let mut event = empty();
        event.verdict.action = *action;
        ocsf(&event);
    }
}

#[test]
fn events_without_a_finding_have_a_gravity() {
    let mut event = empty();
    assert_eq!(event.gravity(), Gravity::Noted);
    event.upstream_error = Some(UpstreamError::Connect);
    assert_eq!((event.gravity(), event.gravity().syslog()), (Gravity::Failed, 3));
    assert!(event.summary().starts_with("pass: connect; "), "{}", event.summary());
    let cause = ExceptionCause::BudgetSpent;
    event.exceptions = vec![Exception { cause, policy: ExceptionPolicy::Open, limit_bytes: None }];
    ocsf(&event);
    event.verdict.action = Action::Deny;
    assert_eq!(event.gravity(), Gravity::Stopped);
    event.verdict.control = Some(Control { by: ControlKind::RateLimit, name: "login".into() });
    assert_eq!((event.gravity(), event.gravity().otlp()), (Gravity::Limited, (10, "INFO2")));
    assert!(cef(&event).contains("|rate_limit|"), "{}", cef(&event));
}

/// Of the bytes of a value none is left in the error log that ends a field or a line, and no two look alike;
/// as ModSecurity 2 has them in Apache's log.
#[test]
fn every_byte_has_a_writing_of_its_own() {
    let written = |bytes: &[u8]| {
        let mut event = full();
        event.matches[0].message = text(bytes, 64);
        event.matches[0].data = text(bytes, 64);
        let lines = modsecurity_lines(&event);
        let line = lines.lines().find(|line| line.contains("[id \"942100\"]")).expect("the line of the rule");
        ["msg", "data"].map(|field| {
            let (_, rest) = line.split_once(&format!(" [{field} \"")).expect("the field");
            rest.split_once("\"] [").expect("its end").0.to_owned()
        })
    };
    for field in [0, 1] {
        let all: BTreeSet<String> =
            (0..=255_u8).map(|byte| written(&[b'<', byte, b'>'])[field].clone()).collect();
        assert_eq!(all.len(), 256);
        assert!(all.iter().all(|one| one.bytes().all(|byte| (b' '..=b'~').contains(&byte))), "{all:?}");
    }
    for (bytes, msg, data) in [
        (&b"\xff"[..], r"\\xff", r"\\xff"),
        (b"\0", r"\\x00", r"\\x00"),
        ("\u{e4}".as_bytes(), r"\\xc3\\xa4", r"\\xc3\\xa4"),
        (b"\n", r"\\n", r"\\x0a"),
        (b"\\", r"\\\\", r"\\x5c"),
        (b"a\"b", r#"a\\"b"#, r"a\\x22b"),
        (b"a b", "a b", "a b"),
    ] {
        assert_eq!(written(bytes), [msg, data], "{bytes:02x?}");
    }
}
