//! Open redirects: logged, and blocked where the site lists the hosts to which its pages may lead.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use portcullis_compile::compile;
use portcullis_event::{Action, DetectionMode, Redactor};
use portcullis_http::h1::{Compat, Limits, Parsed, RequestParser};
use portcullis_inspect::{
    ClassAction, Connection, Inspector, Outcome, PolicyNames, Semantic, SemanticPolicy,
};
use portcullis_seclang::{MemoryFiles, Root, parse};
use portcullis_semantic::{Class, Detectors, Level};
use portcullis_store::Store;

static DETECTORS: LazyLock<Arc<Detectors>> = LazyLock::new(|| Arc::new(Detectors::new()));

/// What becomes of a request of `target` at `shop.example.com`, and the class of the event.
fn run(policy: &SemanticPolicy, target: &str) -> (Action, Option<Class>) {
    let files = MemoryFiles::default();
    let parsed = parse(&[Root::Text { name: "test.conf".into(), text: "SecRuleEngine On\n".into() }], &files);
    let plan = compile(&parsed.document, &parsed.sources, &files).plan.expect("rules that compile");
    let semantic = Semantic {
        detectors: Arc::clone(&DETECTORS),
        level: Level::Balanced,
        policy: Arc::new(policy.clone()),
        response_bodies: true,
        response_wait: Duration::MAX,
        upload_limit: None,
    };
    let inspector = Inspector::new(Arc::new(plan), Arc::new(Redactor::default()), Arc::new(Store::default()));
    let inspector = Arc::new(inspector.with_semantic(DetectionMode::Semantic, semantic));
    let connection = Connection {
        client: "192.0.2.7:4711".parse().unwrap(),
        server: "192.0.2.1:80".parse().unwrap(),
        request_id: "r-1".to_owned(),
        epoch_millis: 1_700_000_000_123,
        utc_offset_seconds: 0,
        tls: false,
        environment: Vec::new(),
    };
    let names = PolicyNames { site: "shop".into(), route: "/".into(), generation: 3 };
    let mut inspection = inspector.begin(&names, connection, Box::default());
    let head = format!("GET {target} HTTP/1.1\r\nHost: shop.example.com:8080\r\n\r\n");
    let mut parser = RequestParser::new(Limits::default(), Compat::Strict);
    let Parsed::Head(head) = parser.parse(head.as_bytes()) else { panic!("no head") };
    inspection.request_head(&head, None);
    inspection.request_end(false);
    let report = inspection.finish(&Outcome::default());
    (report.action, report.event.and_then(|event| event.verdict.class))
}

#[test]
fn logged_until_hosts_are_listed() {
    let open = SemanticPolicy::default();
    let listed = SemanticPolicy { hosts: vec!["*.example.net".to_owned()], ..SemanticPolicy::default() };
    for target in [
        "/login?next=https://evil.example/login",
        "/login?returnUrl=%2f%2fevil.example",
        "/out?url=https:evil.example",
        "/out?url=https://shop.example.com@evil.example/",
        "/out?url=https://shop.example.com.evil.example/",
        "/out?url=/%09/evil.example",
        "//evil.example/login",
    ] {
        assert_eq!(run(&open, target), (Action::Detect, Some(Class::Redirect)), "{target}");
        assert_eq!(run(&listed, target), (Action::Deny, Some(Class::Redirect)), "{target}");
    }
    for target in [
        "/login?next=/account",
        "/login?next=https://shop.example.com/account",
        "/login?next=https://SHOP.example.com:8443/account",
        "/search?q=https://evil.example/",
    ] {
        assert_eq!(run(&open, target).0, Action::Pass, "{target}");
        assert_eq!(run(&listed, target).0, Action::Pass, "{target}");
    }
    assert_eq!(run(&listed, "/login?next=https://id.example.net/").0, Action::Pass);
    assert_eq!(run(&open, "/login?next=https://id.example.net/").0, Action::Detect);
}

#[test]
fn the_policy_decides() {
    let said =
        |action| SemanticPolicy { classes: vec![(Class::Redirect, action)], ..SemanticPolicy::default() };
    let target = "/login?next=//evil.example";
    assert_eq!(run(&said(ClassAction::Block), target).0, Action::Deny);
    assert_eq!(run(&said(ClassAction::Off), target).0, Action::Pass);
    assert_eq!(run(&said(ClassAction::Block), "/login?next=https://shop.example.com/").0, Action::Pass);
}
