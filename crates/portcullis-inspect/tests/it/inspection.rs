//! From wire bytes to report: verdict, event, coverage.

use std::sync::Arc;

use crate::common::{self, begin, request_head};
use portcullis_event::{Action, NotInspected};
use portcullis_http::h1::{Compat, Limits, Parsed, RequestParser, ResponseParser};
use portcullis_inspect::{BodyPlan, Inspector, Interruption, Outcome, Rejection, Report, Step};

fn inspector(rules: &str) -> Arc<Inspector> {
    let rules = format!("SecRuleEngine On\nSecRequestBodyAccess On\n{rules}\n");
    Arc::new(common::inspector(common::plan(&rules)))
}

/// Sends a request through phases 1 and 2 and ends the exchange.
fn run(rules: &str, head: &str, body: &[u8], outcome: &Outcome) -> (Step, Report) {
    let inspector = inspector(rules);
    let mut inspection = begin(&inspector);
    let mut parser = RequestParser::new(Limits::default(), Compat::Strict);
    let step = match parser.parse(head.as_bytes()) {
        Parsed::Head(head) => inspection.request_head(&head, None),
        Parsed::Refused { partial, refusal } => inspection.request_head(&partial, Some(refusal)),
        Parsed::NeedMore => panic!("incomplete head"),
    };
    let step = match step {
        Step::Continue if !body.is_empty() => {
            inspection.request_body(body);
            inspection.request_end(false)
        }
        step => step,
    };
    (step, inspection.finish(outcome))
}

const GET: &str = "GET /?q=evil&password=hunter2 HTTP/1.1\r\nHost: h\r\n\r\n";

#[test]
fn a_block_is_a_verdict_and_an_event() {
    let rules = "SecRule ARGS \"@contains evil\" \"id:7,phase:1,deny,status:406,msg:'bad %{MATCHED_VAR}'\"";
    let outcome = Outcome { status: Some(406), ..Outcome::default() };
    let (step, report) = run(rules, GET, b"", &outcome);
    assert_eq!(step, Step::Interrupt(Interruption::Deny { status: 406 }));
    assert_eq!((report.action, report.matched_rules.len()), (Action::Deny, 1));
    let event = report.event.unwrap();
    assert_eq!((event.request_id.as_str(), &*event.site, event.policy_generation), ("r-1", "shop", 3));
    assert_eq!((event.verdict.status, event.verdict.rule_id.unwrap().0), (Some(406), 7));
    assert_eq!(event.verdict.reason, "bad evil");
    let found = &event.matches[0];
    assert_eq!(
        (found.target.as_str(), found.value.as_str(), found.span.unwrap().len()),
        ("ARGS:q", "evil", 4)
    );
    assert!(!event.json_line().contains("hunter2"), "secrets are struck out before the event leaves");
}

#[test]
fn quiet_traffic_makes_no_event() {
    let rules =
        "SecRule ARGS \"@contains nothing\" \"id:7,phase:1,deny\"\nSecAction \"id:8,phase:1,pass,nolog\"";
    let (step, report) = run(rules, GET, b"", &Outcome::default());
    assert_eq!((step, report.action), (Step::Continue, Action::Pass));
    assert!(report.event.is_none() && report.matched_rules.is_empty());
}

#[test]
fn detections_refusals_and_rejections_make_events() {
    let rules = "SecRule ARGS \"@contains evil\" \"id:7,phase:1,pass\"";
    assert_eq!(run(rules, GET, b"", &Outcome::default()).1.action, Action::Detect);
    // A refused head is still looked at by phase 1.
    let (_, report) =
        run(rules, "GET /?q=evil HTTP/1.1\r\nHost: h\r\nBad Header: x\r\n\r\n", b"", &Outcome::default());
    let event = report.event.unwrap();
    assert_eq!((report.action, event.matches.len()), (Action::Refuse, 1));
    assert!(event.refusal.is_some() && event.verdict.status == Some(400));
    let rejection = Some(Rejection { status: 413, reason: "too long".to_owned(), action: Action::Deny });
    let (_, report) = run("", GET, b"", &Outcome { rejection, ..Outcome::default() });
    assert_eq!((report.action, report.event.unwrap().verdict.reason.as_str()), (Action::Deny, "too long"));
}

#[test]
fn what_is_not_inspected_is_counted() {
    let post = |extra: &str| format!("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n{extra}\r\n");
    let outcome = Outcome { request_body_bytes: 100, ..Outcome::default() };
    let unseen = |rules: &str, extra: &str, body: &[u8]| {
        let (_, report) = run(rules, &post(extra), body, &outcome);
        report.coverage.bytes_not_inspected.iter().collect::<Vec<_>>()
    };
    assert_eq!(unseen("", "", &[b'a'; 100]), []);
    assert_eq!(unseen("", "", &[b'a'; 60]), [(NotInspected::OverLimit, 40)]);
    assert_eq!(unseen("SecRequestBodyAccess Off", "", b""), [(NotInspected::BodyAccessOff, 100)]);
    assert_eq!(unseen("SecRuleEngine Off", "", b""), [(NotInspected::EngineOff, 100)]);
    assert_eq!(unseen("", "Content-Encoding: gzip\r\n", &[b'a'; 100]), [(NotInspected::ContentCoding, 100)]);
    assert_eq!(unseen("", "Content-Encoding: identity\r\n", &[b'a'; 100]), []);
}

#[test]
fn responses_are_held_only_if_rules_read_them() {
    let plan = |rules: &str, kind: &str| {
        let inspector = inspector(rules);
        let mut inspection = begin(&inspector);
        inspection.request_head(&request_head(GET), None);
        let response = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: 5\r\n\r\n");
        let head = ResponseParser::new(Limits::default()).parse(response.as_bytes()).unwrap().unwrap();
        assert_eq!(inspection.response_head(&head), Step::Continue);
        inspection.response_body_plan()
    };
    let rule = "SecResponseBodyAccess On\nSecRule RESPONSE_BODY \"@contains x\" \"id:1,phase:4,deny\"";
    assert!(matches!(plan(rule, "text/html; charset=utf-8"), BodyPlan::Hold { limit_bytes: 524_288, .. }));
    assert_eq!(plan(rule, "image/png"), BodyPlan::Skip);
    assert_eq!(plan("SecResponseBodyAccess On", "text/html"), BodyPlan::Skip);
    assert_eq!(
        plan("SecRule RESPONSE_BODY \"@contains x\" \"id:1,phase:4,deny\"", "text/html"),
        BodyPlan::Skip
    );
}
