//! Open redirects: logged, and blocked where the site lists the hosts to which its pages may lead, or where
//! the address hides its host.

use crate::common::{begin, request_head, semantic_inspector};
use portcullis_event::Action;
use portcullis_inspect::{ClassAction, Outcome, SemanticPolicy};
use portcullis_semantic::Class;

/// Returns the action for a request of `target` at `shop.example.com`, and the class of the event.
fn run(policy: &SemanticPolicy, target: &str) -> (Action, Option<Class>) {
    let mut inspection = begin(&semantic_inspector("SecRuleEngine On\n", policy.clone()));
    let head = request_head(&format!("GET {target} HTTP/1.1\r\nHost: shop.example.com:8080\r\n\r\n"));
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
        "/out?url=%2f%2fevil.example",
        "/out?url=https://shop.example.com.evil.example/",
        "/login?next=https://user@evil.example/",
        "//evil.example/login",
    ] {
        assert_eq!(run(&open, target), (Action::Detect, Some(Class::Redirect)), "{target}");
        assert_eq!(run(&listed, target), (Action::Deny, Some(Class::Redirect)), "{target}");
    }
    for target in [
        "/login?next=/account",
        "/login?next=https://shop.example.com/account",
        "/login?next=https://SHOP.example.com:8443/account",
        "/login?next=//shop.example.com/account",
        "/search?q=https://evil.example/",
    ] {
        assert_eq!(run(&open, target).0, Action::Pass, "{target}");
        assert_eq!(run(&listed, target).0, Action::Pass, "{target}");
    }
    // A user name that looks like a host misleads servers and readers that compare addresses by prefix.
    let embedded = "/out?url=https://shop.example.com@evil.example/";
    assert_eq!(run(&open, embedded), (Action::Deny, Some(Class::Ssrf)));
    assert_eq!(run(&listed, "/login?next=https://id.example.net/").0, Action::Pass);
    assert_eq!(run(&open, "/login?next=https://id.example.net/").0, Action::Detect);
}

/// Nobody writes an address of the site so: only a browser sees the host in it.
#[test]
fn hidden_hosts_are_blocked() {
    let open = SemanticPolicy::default();
    for target in [
        "/login?returnUrl=%2f%2fevil.example",
        "/out?next=//evil.example/a.png",
        "/login?next=/%5cevil.example",
        "/out?url=https:evil.example",
        "/out?url=/%09/evil.example",
        "/out?url=%5c%5cevil.example",
        "/out?url=///evil.example/x",
        "/login?next=//shop.example.com@evil.example/",
    ] {
        assert_eq!(run(&open, target).0, Action::Deny, "{target}");
    }
    assert_eq!(run(&open, "/login?next=/%5cevil.example").1, Some(Class::Redirect));
    let logs = SemanticPolicy { classes: vec![(Class::Redirect, ClassAction::Log)], ..open };
    assert_eq!(run(&logs, "/login?next=/%5cevil.example").0, Action::Detect);
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
