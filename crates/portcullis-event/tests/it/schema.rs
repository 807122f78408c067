//! The JSON form against `schema/event-v1.json` and against a snapshot.
//!
//! Schema and snapshot are a public interface. After an intended change run
//! `PORTCULLIS_BLESS=1 cargo test -p portcullis-event` and review the difference; a member that goes, changes
//! its name or its meaning needs a new schema version.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::validator;
use portcullis_event::{
    Action, AgentOutcome, AgentWord, AlsoMatched, BlindSpot, Control, ControlKind, DetectionMode, EngineMode,
    Event, Exception, ExceptionCause, ExceptionPolicy, Finding, FindingOutcome, Header, Integration,
    IntegrationKind, NotInspected, Redactor, RuleEffect, RuleInfo, RuleMatch, SCHEMA_VERSION, SemanticScore,
    SuppressedBy, Timestamp, UpstreamError, modsecurity_lines, text,
};
use portcullis_types::{Class, Phase, Place, RuleId, Severity, Span};
use serde_json::Value;

/// An event with every member.
pub fn full() -> Event {
    let mut event = Event::new("01J9ZB3V5Q", Timestamp::from_epoch_millis(1_790_000_000_123));
    event.site = "shop".into();
    event.route = "api".into();
    event.count = 4;
    event.policy_generation = 3;
    event.mode = DetectionMode::Crs;
    event.client = "192.0.2.7:4711".parse::<std::net::SocketAddr>().unwrap().into();
    event.client.country = Some("DE".into());
    event.client.asn = Some(64496);
    event.client.peer = Some("10.0.0.1".into());
    event.client.forwarded_for = vec!["192.0.2.7".into(), "10.0.0.9".into()];
    event.server.addr = "10.0.0.2".into();
    event.server.port = 443;
    event.server.host = "shop.example".into();
    event.server.tls = true;
    event.request.method = "POST".into();
    event.request.target = "/login?next=%2F&token=abcdef".into();
    event.request.protocol = "HTTP/1.1".into();
    event.request.headers = vec![
        Header { name: "User-Agent".into(), value: "curl/8.5\t\"x\"".into() },
        Header { name: "Authorization".into(), value: "Basic Ym9iOmh1bnRlcjI=".into() },
    ];
    event.request.head_bytes = 310;
    event.request.body_bytes = 64;
    event.request.trailers_dropped = 2;
    event.request.oddities = vec!["folded-header".into()];
    event.request.body_error = Some("Multipart parsing error: Final boundary missing (at byte 64)".into());
    event.response.status = Some(403);
    event.response.body_bytes = 512;
    event.duration_us = 1234;
    event.upstream = Some("10.0.0.5:9000".into());
    event.trace_id = Some("4bf92f3577b34da6a3ce929d0e0e4736".into());
    event.verdict.action = Action::Deny;
    event.verdict.status = Some(403);
    event.verdict.rule_id = Some(RuleId(949110));
    event.verdict.phase = Some(Phase::RequestBody);
    event.verdict.control = Some(Control { by: ControlKind::RateLimit, name: "login".into() });
    event.verdict.reason = "Inbound anomaly score 10 reached the threshold of 5".into();
    event.scores.inbound_blocking = Some(10);
    event.scores.inbound_detection = Some(15);
    event.scores.by_class.insert("sql_injection".into(), 10);
    let file: Arc<str> = "/etc/portcullis/rules/sqli.conf".into();
    event.push_match(RuleMatch {
        rule: Arc::new(RuleInfo {
            rule_id: RuleId(942100),
            phase: Phase::RequestBody,
            severity: Some(Severity::Critical),
            operator: "rx".into(),
            argument: "(?i)union\\s+select \"".into(),
            transformations: Box::new(["utf8toUnicode".into(), "urlDecodeUni".into()]),
            tags: Box::new(["attack-sqli".into(), "paranoia-level/1".into()]),
            ver: Some("RULES/1.0".into()),
            rev: None,
            maturity: None,
            accuracy: None,
            file: file.clone(),
            line: 66,
        }),
        message: "SQL injection".into(),
        data: "Matched Data: union select found within ARGS:q: 1 union select\n[id \"1\"]".into(),
        target: "ARGS:q".into(),
        value: text(b"1 union select\n[id \"1\"] \xff", 1024),
        span: Some(Span::new(2, 14)),
        points: 5,
        effect: RuleEffect::None,
    });
    event.push_match(RuleMatch {
        rule: Arc::new(RuleInfo {
            rule_id: RuleId(949110),
            phase: Phase::RequestBody,
            severity: None,
            operator: "ge".into(),
            argument: "%{tx.inbound_anomaly_score_threshold}".into(),
            transformations: Box::new([]),
            tags: Box::new([]),
            ver: None,
            rev: Some("2".into()),
            maturity: None,
            accuracy: None,
            file,
            line: 90,
        }),
        message: "Inbound anomaly score exceeded (10)".into(),
        data: String::new(),
        target: "TX:blocking_inbound_anomaly_score".into(),
        value: "10".into(),
        span: None,
        points: 0,
        effect: RuleEffect::None,
    });
    event.also_matched.push(AlsoMatched {
        rule_id: RuleId(942130),
        target: "ARGS:r".into(),
        points: 5,
        count: 2,
    });
    event.matches_omitted = 2;
    event.verdict.class = Some(Class::Sqli);
    let (place, name) = (Place::Query, "id".to_string());
    event.scores.semantic.push(SemanticScore {
        class: Class::Sqli,
        place,
        name: name.clone(),
        points: 5.625,
        threshold: 1.0,
        outcome: FindingOutcome::Blocked,
    });
    event.scores.semantic_omitted = 1;
    event.push_finding(Finding {
        class: Class::Sqli,
        kind: "sqli.union-select".into(),
        place,
        name,
        decoded: vec!["base64".into()],
        span: Some(Span::new(2, 14)),
        evidence: "union select".into(),
        count: 1,
        below: false,
        mentioned: true,
        suppressed_by: Some(SuppressedBy { exception: "text".into(), reason: "people write of it".into() }),
        points: 4.875,
        reason: "the result of another SELECT is added by UNION".into(),
        reference: "https://owasp.org/www-community/attacks/SQL_Injection".into(),
    });
    // At the address of a secret, and one that is part of a secret of the target.
    for (place, name, evidence) in [
        (Place::Cookie, "session", "' or 1=1"),
        (Place::QueryString, "", "abcde"),
        (Place::RawBody, "", "pwd=x' or 1"),
    ] {
        let finding = event.findings[0].clone();
        event.push_finding(Finding { place, name: name.into(), evidence: evidence.into(), ..finding });
    }
    event.agents.push(AgentWord {
        name: "dlp".into(),
        outcome: AgentOutcome::Block,
        score: 5,
        tags: vec!["card-number".into()],
        reason: "password=hunter2 is in a list".into(),
    });
    event.findings_omitted = 3;
    event.findings_below = 2;
    event.findings_suppressed = 1;
    event.ambiguities = vec!["charset".into(), "name_escape".into()];
    event.trials = vec!["0123456789abcdef".into()];
    event.exceptions = vec![Exception {
        cause: ExceptionCause::RequestBodyOverLimit,
        policy: ExceptionPolicy::DetectOnly,
        limit_bytes: Some(131_072),
    }];
    event.coverage.bytes_inspected = 374;
    event.coverage.not_inspected(NotInspected::OverLimit, 1000);
    event.coverage.not_inspected(NotInspected::Upgraded, 0);
    event.integration =
        Some(Integration { kind: IntegrationKind::Spop, blind_spots: vec![BlindSpot::RequestBodyCut] });
    Redactor::default().redact(&mut event);
    event
}

fn refused() -> Event {
    let mut event = Event::new("r2", Timestamp::default());
    event.engine = EngineMode::DetectionOnly;
    event.verdict.action = Action::Refuse;
    event.verdict.status = Some(400);
    event.refusal = Some("conflicting_length".into());
    event
}

fn dead_upstream() -> Event {
    let mut event = Event::new("r3", Timestamp::default());
    event.upstream = Some("10.0.0.5:9000".into());
    event.upstream_error = Some(UpstreamError::Tls);
    event.upstream_reason = Some("its certificate is not accepted: certificate expired".into());
    event.response.status = Some(502);
    event
}

#[test]
fn events_are_read_back_as_they_were_written() {
    for event in [full(), refused(), dead_upstream()] {
        let line = event.json_line();
        let read = Event::from_json(line.as_bytes()).unwrap();
        assert_eq!(read.json_line(), line);
    }
}

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf()
}

fn schema() -> Value {
    let text =
        std::fs::read_to_string(here().join("schema/event-v1.json")).expect("the schema is checked in");
    serde_json::from_str(&text).expect("the schema is JSON")
}

/// Compares with a file of `tests/snapshots`, or writes it when `PORTCULLIS_BLESS` is set.
fn check_snapshot(name: &str, actual: &str) {
    let path = here().join("tests/snapshots").join(name);
    if std::env::var_os("PORTCULLIS_BLESS").is_some() {
        std::fs::write(&path, actual).expect("writing a snapshot");
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(actual, expected, "{name} changed: see the head of tests/it/schema.rs");
}

#[test]
fn events_conform_to_the_schema() {
    let schema = schema();
    for event in [full(), refused(), dead_upstream(), Event::new("", Timestamp::default())] {
        let line = event.json_line();
        assert_eq!(line.matches('\n').count(), 1);
        let value: Value = serde_json::from_str(&line).expect("a line is JSON");
        assert_eq!(validator::errors(&schema, &value), Vec::<String>::new());
    }
}

#[test]
fn every_name_is_in_the_schema() {
    let schema = schema();
    let check = |pointer: &str, names: &[&str]| {
        let listed = schema.pointer(pointer).and_then(Value::as_array).unwrap_or_else(|| panic!("{pointer}"));
        let listed: Vec<&str> = listed.iter().filter_map(Value::as_str).collect();
        assert_eq!(listed, names, "{pointer}");
    };
    check("/properties/mode/enum", DetectionMode::NAMES);
    check("/properties/engine/enum", EngineMode::NAMES);
    check("/properties/verdict/properties/action/enum", Action::NAMES);
    check("/properties/verdict/properties/control/properties/by/enum", ControlKind::NAMES);
    check("/properties/upstream_error/enum", UpstreamError::NAMES);
    check("/properties/exceptions/items/properties/cause/enum", ExceptionCause::NAMES);
    check("/properties/exceptions/items/properties/policy/enum", ExceptionPolicy::NAMES);
    check("/properties/coverage/properties/bytes_not_inspected/propertyNames/enum", NotInspected::NAMES);
    check("/properties/agents/items/properties/outcome/enum", AgentOutcome::NAMES);
    check("/properties/integration/properties/kind/enum", IntegrationKind::NAMES);
    check("/properties/integration/properties/blind_spots/items/enum", BlindSpot::NAMES);
    assert_eq!(schema["properties"]["schema"]["const"], SCHEMA_VERSION);
}

#[test]
fn the_full_event_has_every_member_of_the_schema() {
    let value: Value = serde_json::from_str(&full().json_line()).expect("a line is JSON");
    let missing: Vec<String> = validator::members(&schema())
        .into_iter()
        .filter(|name| {
            let mut last = name.rsplit('/');
            !contains_key(&value, last.next().unwrap_or_default())
        })
        .collect();
    // A transaction has either a verdict or one of these; and no rule here scores outbound.
    assert_eq!(
        missing,
        [
            "refusal",
            "scores/outbound_blocking",
            "scores/outbound_detection",
            "upstream_error",
            "upstream_reason"
        ]
    );
}

fn contains_key(value: &Value, key: &str) -> bool {
    match value {
        Value::Object(map) => map.contains_key(key) || map.values().any(|v| contains_key(v, key)),
        Value::Array(items) => items.iter().any(|v| contains_key(v, key)),
        _ => false,
    }
}

#[test]
fn the_json_form_does_not_change_silently() {
    let lines: String = [full(), refused(), dead_upstream()].iter().map(Event::json_line).collect();
    check_snapshot("events.jsonl", &lines);
}

#[test]
fn the_modsecurity_form_does_not_change_silently() {
    let lines = modsecurity_lines(&full());
    check_snapshot("modsecurity.log", &lines);
    assert_eq!(lines.lines().count(), 4, "a value cannot begin a line");
    assert_eq!(lines.matches("[id \"").count(), 3, "a value cannot begin a field");
}

#[test]
fn log_lines_say_what_a_rule_allowed_and_where_it_redirected() {
    let mut event = full();
    event.matches.truncate(1);
    let decided = event.matches[0].rule.rule_id;
    let line = |event: &Event| modsecurity_lines(event);
    event.matches[0].effect = RuleEffect::Allowed("Access to phase");
    assert!(line(&event).contains("ModSecurity: Access to phase allowed (phase 2). "), "{}", line(&event));
    event.verdict.action = Action::Redirect;
    event.verdict.rule_id = Some(decided);
    event.verdict.status = Some(302);
    let location = "https://shop.example/\"\n?password=hunter2";
    event.matches[0].effect = RuleEffect::Redirected(location.into());
    Redactor::default().redact(&mut event);
    let lines = line(&event);
    let wanted = "Access denied with redirection to https://shop.example/\\\\\"\\\\n?password=[redacted] using \
                  status 302 (phase 2). ";
    assert!(lines.contains(wanted), "{lines}");
    assert!(!lines.contains("hunter2"));
}

#[test]
fn a_body_refused_for_its_length_has_a_log_line_with_the_limit() {
    let mut event = full();
    assert!(!modsecurity_lines(&event).contains("configured limit"), "detection only refused nothing");
    event.exceptions[0].policy = ExceptionPolicy::Closed;
    event.response.status = Some(413);
    let lines = modsecurity_lines(&event);
    let wanted =
        "ModSecurity: Request body is larger than the configured limit (131072). Deny with code (413) [";
    assert!(lines.contains(wanted), "{lines}");
}

#[test]
fn a_refusal_for_the_work_of_the_rules_has_a_log_line() {
    let mut event = full();
    let spent = |policy| Exception { cause: ExceptionCause::BudgetSpent, policy, limit_bytes: None };
    event.verdict.rule_id = None;
    event.verdict.class = None;
    event.response.status = Some(403);
    let wanted = "ModSecurity: Inspection takes more steps than the rules are allowed (failure.pattern_limit). Deny with \
                  code (403) [";
    for (policy, is_told) in [
        (ExceptionPolicy::Closed, true),
        (ExceptionPolicy::Open, false),
        (ExceptionPolicy::DetectOnly, false),
    ] {
        event.exceptions = vec![spent(policy)];
        assert_eq!(modsecurity_lines(&event).contains(wanted), is_told, "{policy:?}");
    }
    event.exceptions = vec![spent(ExceptionPolicy::Closed)];
    event.verdict.rule_id = Some(RuleId(942100));
    assert!(!modsecurity_lines(&event).contains("more steps"), "a rule denied, and its line says so");
}
