//! The written form: what decided in full, of the rest the worst few and exact counts, never longer than its
//! limit.

use std::collections::BTreeSet;
use std::sync::Arc;

use portcullis_event::{
    AgentOutcome, AgentWord, Event, Finding, FindingOutcome, RuleInfo, RuleMatch, SemanticScore,
    SuppressedBy, limits, modsecurity_lines, text,
};
use portcullis_types::{Class, Place, RuleId};
use serde_json::Value;

use crate::schema::full;

fn written(event: &Event) -> Value {
    let line = event.json_line();
    assert!(line.len() <= limits::WRITTEN_BYTES_MAX, "{} bytes", line.len());
    serde_json::from_str(&line).unwrap()
}

fn finding(kind: &'static str, name: &str, points: f32, below: bool) -> Finding {
    let mut finding = full().findings[0].clone();
    (finding.kind, finding.name, finding.place) = (kind.into(), name.to_owned(), Place::Form);
    (finding.points, finding.below) = (points, below);
    (finding.mentioned, finding.suppressed_by) = (false, None);
    finding
}

fn rule(id: u32, target: &str, points: i64) -> RuleMatch {
    let found = full().matches[0].clone();
    let rule = Arc::new(RuleInfo { rule_id: RuleId(id), ..RuleInfo::clone(&found.rule) });
    RuleMatch { rule, target: target.to_owned(), points, ..found }
}

/// The semantic detector decided by the field `q`.
fn decided_by_q() -> Event {
    let mut event = full();
    event.verdict.rule_id = None;
    event.matches.clear();
    event.also_matched.clear();
    event.findings.clear();
    (event.findings_omitted, event.findings_below, event.findings_suppressed) = (0, 0, 0);
    event.matches_omitted = 0;
    event.scores.semantic[0] = SemanticScore {
        place: Place::Form,
        name: "q".to_owned(),
        outcome: FindingOutcome::Blocked,
        ..event.scores.semantic[0].clone()
    };
    event
}

#[test]
fn the_value_that_decided_is_told_and_the_rest_counted() {
    let mut event = decided_by_q();
    for number in 0..10 {
        event.push_finding(finding("sqli.union", "q", 1.0 + number as f32, false));
        event.push_finding(finding("sqli.union", &format!("p{number}"), 20.0 - number as f32, number > 4));
    }
    event.push_finding(finding("sqli.comment", "q", 0.5, false));
    let value = written(&event);
    let list = value["findings"].as_array().unwrap();
    let told: Vec<_> = list
        .iter()
        .map(|finding| {
            let name = finding["name"].as_str().unwrap();
            (name, finding["kind"].as_str().unwrap(), finding["count"].as_u64().unwrap_or(1))
        })
        .collect();
    assert_eq!(told, [("q", "sqli.union", 10), ("p0", "sqli.union", 1), ("q", "sqli.comment", 1)]);
    assert_eq!(list[0]["points"], 10.0);
    assert_eq!((&value["findings_omitted"], &value["findings_below"]), (&4.into(), &5.into()));
    // Whoever judges by the event in memory sees all of it.
    assert_eq!((event.findings.len(), event.findings_omitted), (21, 0));
}

/// Those that an exception suppresses have room of their own, one for each exception: the event shows them
/// whatever else was found.
#[test]
fn what_is_suppressed_is_told_beside_what_decided() {
    let by = |exception: &'static str| {
        Some(SuppressedBy { exception: exception.into(), reason: "a reason".into() })
    };
    let mut event = decided_by_q();
    for number in 0..9 {
        event.push_finding(finding("sqli.union", "q", 1.0 + number as f32, false));
        event.push_finding(finding("sqli.union", &format!("p{number}"), 20.0 - number as f32, true));
        let found = finding("path.file", &format!("s{number}"), 0.0, true);
        event.push_finding(Finding { suppressed_by: by("own-file"), ..found });
    }
    // In the value that decided.
    event.push_finding(Finding { suppressed_by: by("pattern"), ..finding("path.file", "q", 0.0, false) });
    let value = written(&event);
    let shown = value["findings"].as_array().unwrap().iter();
    let shown: Vec<_> = shown
        .filter(|finding| finding["suppressed_by"] != Value::Null)
        .map(|finding| (&finding["name"], &finding["suppressed_by"]["exception"], &finding["points"]))
        .map(|(name, exception, points)| format!("{name} {exception} {points}"))
        .collect();
    assert_eq!(shown, ["\"s0\" \"own-file\" 0.0", "\"q\" \"pattern\" 0.0"]);
    assert_eq!((&value["findings_suppressed"], &value["findings_below"]), (&8.into(), &8.into()));
    let back = Event::from_json(event.json_line().as_bytes()).unwrap();
    assert_eq!(back.findings.last().unwrap().suppressed_by, by("pattern"));
}

#[test]
fn every_rule_is_named_and_error_log_lines_stay() {
    let mut event = full();
    event.matches.retain(|found| found.points == 0);
    event.also_matched.clear();
    event.matches_omitted = 0;
    for number in 0..40 {
        for target in ["ARGS:a", "ARGS:b"] {
            event.push_match(rule(942_000 + number, target, i64::from(number % 6)));
        }
    }
    let value = written(&event);
    let ids = |list: &str| -> Vec<u64> {
        let list = value[list].as_array().unwrap();
        list.iter().map(|found| found["rule_id"].as_u64().unwrap()).collect()
    };
    // The rule that blocked, and those that added most to the score, each once.
    assert_eq!(ids("matches"), [949_110, 942_005, 942_011]);
    let all: BTreeSet<u64> = ids("matches").into_iter().chain(ids("also_matched")).collect();
    assert_eq!(all.len(), 41);
    let counted = |list: &Value| -> u64 {
        let list = list.as_array().unwrap();
        list.iter().map(|found| found["count"].as_u64().unwrap_or(1)).sum()
    };
    assert_eq!(counted(&value["matches"]) + counted(&value["also_matched"]), 81);
    assert_eq!(value["matches_omitted"], Value::Null);
    let lines = modsecurity_lines(&event);
    assert!((942_000..942_040).all(|id| lines.matches(&format!("[id \"{id}\"]")).count() == 2));
}

#[test]
fn a_score_that_blocked_is_told_before_higher_ones_that_only_log() {
    let mut event = decided_by_q();
    let score = event.scores.semantic.remove(0);
    event.scores.semantic_omitted = 0;
    for number in 0..12 {
        let outcome = if number < 9 { FindingOutcome::Detected } else { FindingOutcome::Below };
        event.scores.semantic.push(SemanticScore { name: format!("p{number}"), outcome, ..score.clone() });
    }
    event.scores.semantic.push(score);
    event.push_finding(finding("sqli.union", "q", 1.0, false));
    let value = written(&event);
    let scores = value["scores"]["semantic"].as_array().unwrap();
    assert_eq!((scores[0]["name"].as_str(), scores.len()), (Some("q"), 7));
    assert_eq!(value["scores"]["semantic_omitted"], 6);
}

/// Everything that a client can fill, with what takes the most bytes in JSON.
#[test]
fn no_client_makes_it_longer_than_its_limit() {
    for byte in [0x01, b'"', 0xff, b'a'] {
        let filled = |most: usize| text(&vec![byte; 4 * most], most);
        let mut event = full();
        event.matches.clear();
        event.findings.clear();
        event.also_matched.clear();
        (event.findings_omitted, event.findings_below, event.findings_suppressed) = (0, 0, 0);
        event.matches_omitted = 0;
        event.request.target = filled(limits::REQUEST_TARGET_BYTES_MAX);
        event.request.method = filled(limits::REQUEST_TOKEN_BYTES_MAX);
        event.request.protocol = filled(limits::REQUEST_TOKEN_BYTES_MAX);
        event.server.host = filled(limits::REQUEST_TOKEN_BYTES_MAX);
        event.verdict.reason = filled(limits::MESSAGE_BYTES_MAX);
        event.client.forwarded_for = vec![filled(limits::REQUEST_TOKEN_BYTES_MAX); limits::FORWARDED_FOR_MAX];
        let agent = AgentWord {
            name: "dlp".into(),
            outcome: AgentOutcome::Block,
            score: 5,
            tags: vec!["t".repeat(64); 16],
            reason: filled(500),
        };
        event.agents = vec![agent; 4];
        let score = event.scores.semantic[0].clone();
        for number in 0..limits::SEMANTIC_SCORES_MAX {
            let name = filled(limits::TARGET_NAME_BYTES_MAX - 2) + &number.to_string();
            event.scores.semantic.push(SemanticScore { name, class: Class::Xss, ..score.clone() });
        }
        for number in 0..limits::MATCHES_MAX + 10 {
            let mut found = rule(900_000 + number as u32, &filled(limits::TARGET_NAME_BYTES_MAX), 5);
            let rule = RuleInfo::clone(&found.rule);
            let tags: Box<[Box<str>]> = vec!["OWASP_CRS/ATTACK-SQLI".into(); 12].into();
            found.rule = Arc::new(RuleInfo { tags, ..rule });
            found.value = filled(limits::VALUE_BYTES_MAX);
            found.data = filled(limits::DATA_BYTES_MAX);
            found.message = filled(limits::MESSAGE_BYTES_MAX);
            event.push_match(found);
        }
        for number in 0..limits::FINDINGS_MAX + 10 {
            let name = filled(limits::TARGET_NAME_BYTES_MAX - 2) + &number.to_string();
            let mut found = finding("sqli.union", &name, number as f32, number % 2 == 0);
            found.evidence = filled(limits::VALUE_BYTES_MAX);
            if number % 3 == 0 {
                let (exception, reason) = ("embedded-documents".into(), "r".repeat(64).into());
                found.suppressed_by = Some(SuppressedBy { exception, reason });
            }
            event.push_finding(found);
        }
        let value = written(&event);
        let number = |path: &str| value.pointer(path).and_then(Value::as_u64).unwrap_or(0) as usize;
        let counted = |path: &str| -> usize {
            let list = value.pointer(path).and_then(Value::as_array).unwrap();
            list.iter().map(|one| one["count"].as_u64().unwrap_or(1) as usize).sum()
        };
        let findings = counted("/findings") + number("/findings_omitted") + number("/findings_below");
        let findings = findings + number("/findings_suppressed");
        assert_eq!(findings, limits::FINDINGS_MAX + 10);
        let matches = counted("/matches") + counted("/also_matched") + number("/matches_omitted");
        assert_eq!(matches, limits::MATCHES_MAX + 10);
        assert!(value["matches"].as_array().unwrap().len() > 1);
    }
}
