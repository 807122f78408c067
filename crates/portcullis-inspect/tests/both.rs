//! Mode `both`: the score of rules about the same kind of attack is evidence for the semantic detector.

use std::sync::Arc;
use std::time::Duration;

use portcullis_compile::compile;
use portcullis_event::{Action, DetectionMode, FindingOutcome, Redactor};
use portcullis_http::h1::{Compat, Limits, Parsed, RequestParser};
use portcullis_inspect::{
    ClassAction, Connection, Exclusion, Inspector, Outcome, PolicyNames, Report, Semantic, SemanticPolicy,
};
use portcullis_seclang::{MemoryFiles, Root, parse};
use portcullis_semantic::{Class, Detector, Detectors, Found, Hint, Input, Level, Profile, kinds};
use portcullis_store::Store;
use portcullis_types::Span;

kinds! {
    reference "https://example.org/";
    SUSPICION "test.suspicion" Error "what is not enough by itself";
}

/// Finds the word `suspicion`: one point below the threshold.
#[derive(Debug)]
struct Suspicious;

static PROFILE: Profile = Profile::new(Class::Sqli, KINDS).hints(&[Hint::text("suspicion")]);

impl Detector for Suspicious {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn detect(&self, input: &Input<'_>, found: &mut Found<'_>) {
        found.add(SUSPICION, Span::new(0, input.text.len()));
    }
}

const RULES: &str = "SecRuleEngine On\nSecRequestBodyAccess On\n\
    SecRule ARGS:sqli \"@gt 0\" \"id:1,phase:1,pass,log,setvar:tx.sql_injection_score=%{MATCHED_VAR}\"\n\
    SecRule ARGS:xss \"@gt 0\" \"id:2,phase:1,pass,log,setvar:tx.xss_score=%{MATCHED_VAR}\"\n";

fn run(mode: DetectionMode, policy: SemanticPolicy, query: &str) -> Report {
    let files = MemoryFiles::default();
    let parsed = parse(&[Root::Text { name: "test.conf".into(), text: RULES.into() }], &files);
    let plan = compile(&parsed.document, &parsed.sources, &files).plan.expect("rules that compile");
    let detectors = Arc::new(Detectors::of(vec![Box::new(Suspicious)]).expect("weights"));
    let semantic = Semantic {
        detectors,
        level: Level::Balanced,
        policy: Arc::new(policy),
        response_bodies: true,
        response_wait: Duration::MAX,
    };
    let inspector = Inspector::new(Arc::new(plan), Arc::new(Redactor::default()), Arc::new(Store::default()));
    let inspector = Arc::new(inspector.with_semantic(mode, semantic));
    let client = "192.0.2.7:4711".parse().unwrap();
    let connection = Connection {
        client,
        server: "192.0.2.1:80".parse().unwrap(),
        request_id: "r-1".to_owned(),
        epoch_millis: 1_700_000_000_123,
        utc_offset_seconds: 0,
        tls: false,
        environment: Vec::new(),
    };
    let names = PolicyNames { site: "shop".into(), route: "/".into(), generation: 3 };
    let mut inspection = inspector.begin(&names, connection, Box::default());
    let head = format!("GET /?{query} HTTP/1.1\r\nHost: h\r\n\r\n");
    let mut parser = RequestParser::new(Limits::default(), Compat::Strict);
    let Parsed::Head(head) = parser.parse(head.as_bytes()) else { panic!("no head") };
    inspection.request_head(&head, None);
    inspection.request_end(false);
    inspection.finish(&Outcome::default())
}

#[track_caller]
fn check(mode: DetectionMode, query: &str, action: Action) {
    assert_eq!(run(mode, SemanticPolicy::default(), query).action, action, "{query}");
}

#[test]
fn a_suspicion_and_rules_of_the_same_kind_make_an_attack() {
    let (both, semantic) = (DetectionMode::Both, DetectionMode::Semantic);
    check(both, "q=a+suspicion+here&sqli=15", Action::Deny);
    // Neither alone, nor rules of another kind, nor where rules are not evidence.
    check(both, "q=a+suspicion+here", Action::Pass);
    check(both, "q=nothing+here&sqli=15", Action::Detect);
    check(both, "q=a+suspicion+here&xss=15", Action::Detect);
    check(semantic, "q=a+suspicion+here&sqli=15", Action::Detect);
}

#[test]
fn the_score_says_what_rules_added() {
    let report = run(DetectionMode::Both, SemanticPolicy::default(), "q=a+suspicion+here&sqli=15");
    assert_eq!(report.findings, [(Class::Sqli, FindingOutcome::Blocked)]);
    let event = report.event.unwrap();
    let score = &event.scores.semantic[0];
    assert!(score.points >= score.threshold && score.outcome == FindingOutcome::Blocked, "{score:?}");
    assert_eq!((event.verdict.class, event.verdict.rule_id), (Some(Class::Sqli), None));
}

#[test]
fn an_exclusion_holds_against_rules_too() {
    let exclusion = Exclusion { name: Some("q".to_owned()), ..Exclusion::default() };
    let policy = SemanticPolicy { exclusions: vec![exclusion], ..SemanticPolicy::default() };
    let report = run(DetectionMode::Both, policy, "q=a+suspicion+here&sqli=15");
    assert_eq!(report.action, Action::Detect);
    assert_eq!(report.findings, [(Class::Sqli, FindingOutcome::Excluded)]);
    let policy =
        SemanticPolicy { classes: vec![(Class::Sqli, ClassAction::Log)], ..SemanticPolicy::default() };
    let report = run(DetectionMode::Both, policy, "q=a+suspicion+here&sqli=15");
    assert_eq!(report.findings, [(Class::Sqli, FindingOutcome::Detected)]);
}
