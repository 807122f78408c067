//! Events as a person reads them, from their JSON form.

use std::fmt::Write as _;

use serde_json::Value;

use crate::terminal::{Colour, Paint};

/// A text of the event, or nothing.
pub fn text<'e>(event: &'e Value, path: &str) -> &'e str {
    event.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

fn list<'e>(event: &'e Value, path: &str) -> &'e [Value] {
    event.pointer(path).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Formats the location of a value: `query:q`.
pub fn location(value: &Value) -> String {
    match (text(value, "/place"), text(value, "/name")) {
        (place, "") => place.to_owned(),
        (place, name) => format!("{place}:{name}"),
    }
}

/// The event with control characters of its texts escaped: what a client sends moves no cursor and forges no
/// line.
fn printable(event: &Value) -> Value {
    match event {
        Value::String(text) if text.contains(char::is_control) => {
            let escape = |letter: char| match letter.is_control() {
                true => letter.escape_default().to_string(),
                false => letter.to_string(),
            };
            Value::String(text.chars().map(escape).collect())
        }
        Value::Array(items) => items.iter().map(printable).collect(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| (name.clone(), printable(value))).collect()
        }
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => other.clone(),
    }
}

/// One line: what was done with which request, and why.
pub fn line(event: &Value) -> String {
    one_line(&printable(event))
}

/// The same line for a terminal: what was done stands out.
pub fn painted(event: &Value, paint: Paint) -> String {
    let event = printable(event);
    let done = done(&event);
    let colour = match text(&event, "/verdict/action") {
        "detect" | "log" => Colour::Noticed,
        _ => Colour::Refused,
    };
    // Before it are a time and an id, which have no such word.
    one_line(&event).replacen(&done, &paint.text(colour, &done), 1)
}

fn one_line(event: &Value) -> String {
    let mut out =
        format!("{} {} {} {}", text(event, "/time"), text(event, "/request_id"), done(event), asked(event));
    let _ = write!(out, " from {}", text(event, "/client/addr"));
    match why(event) {
        why if why.is_empty() => {}
        why => drop(write!(out, ": {why}")),
    }
    out
}

/// `deny 403`.
fn done(event: &Value) -> String {
    let action = text(event, "/verdict/action");
    match event.pointer("/verdict/status").and_then(Value::as_u64) {
        Some(status) => format!("{action} {status}"),
        None => action.to_owned(),
    }
}

fn asked(event: &Value) -> String {
    format!(
        "{} {}{}",
        text(event, "/request/method"),
        text(event, "/server/host"),
        text(event, "/request/target")
    )
}

fn why(event: &Value) -> String {
    let scores = list(event, "/scores/semantic").iter();
    let over = |score: &&Value| matches!(text(score, "/outcome"), "blocked" | "detected");
    let scores: Vec<String> = scores
        .filter(over)
        .map(|score| format!("{} in {}", text(score, "/class"), location(score)))
        .collect();
    if !scores.is_empty() {
        return scores.join(", ");
    }
    match text(event, "/verdict/reason") {
        "" => text(event, "/refusal").to_owned(),
        reason => reason.to_owned(),
    }
}

/// Shown on lines of their own, if they say something.
const FIELDS: [(&str, &str); 6] = [
    ("reason", "/verdict/reason"),
    ("site", "/site"),
    ("route", "/route"),
    ("mode", "/mode"),
    ("upstream", "/upstream"),
    ("trouble", "/upstream_error"),
];

/// Counts of what an event leaves out.
const LEFT_OUT: [(&str, &str); 5] = [
    ("other findings", "/findings_omitted"),
    ("findings in values below the threshold", "/findings_below"),
    ("findings that an exception suppresses", "/findings_suppressed"),
    ("other scores", "/scores/semantic_omitted"),
    ("other matches", "/matches_omitted"),
];

/// All that matters, on several lines.
pub fn whole(event: &Value) -> String {
    let event = &printable(event);
    let mut out = format!("{}\n", one_line(event));
    for (name, path) in FIELDS {
        match text(event, path) {
            "" => {}
            value => drop(writeln!(out, "{name:9} {value}")),
        }
    }
    for finding in list(event, "/findings") {
        let _ = writeln!(
            out,
            "finding   {} in {}: {}",
            text(finding, "/kind"),
            location(finding),
            text(finding, "/reason")
        );
        let evidence = text(finding, "/evidence");
        if !evidence.trim().is_empty() {
            let _ = writeln!(out, "          {evidence}");
        }
        let exception = text(finding, "/suppressed_by/exception");
        if !exception.is_empty() {
            let state = if finding["mentioned"] == true { "lowered" } else { "suppressed" };
            let why = text(finding, "/suppressed_by/reason");
            let _ = writeln!(out, "          {state} by {exception}: {why}");
        }
    }
    for score in list(event, "/scores/semantic") {
        let number = |path| score.pointer(path).map(Value::to_string).unwrap_or_default();
        let (class, outcome) = (text(score, "/class"), text(score, "/outcome"));
        let (points, threshold) = (number("/points"), number("/threshold"));
        let _ = writeln!(out, "score     {class} in {}: {points} of {threshold}, {outcome}", location(score));
    }
    for rule in list(event, "/matches") {
        let id = rule.pointer("/rule_id").map(Value::to_string).unwrap_or_default();
        let _ = writeln!(out, "rule      {id} at {}: {}", text(rule, "/target"), text(rule, "/message"));
        let _ = writeln!(out, "          {}", text(rule, "/value"));
    }
    for rule in list(event, "/also_matched") {
        let number = |path| rule.pointer(path).map(Value::to_string).unwrap_or_default();
        let times = rule.pointer("/count").map_or(String::new(), |count| format!(", {count} times"));
        let _ = writeln!(out, "rule      {} at {}{times}", number("/rule_id"), text(rule, "/target"));
    }
    for (what, path) in LEFT_OUT {
        if let Some(count) = event.pointer(path).and_then(Value::as_u64) {
            let _ = writeln!(out, "and       {count} {what}");
        }
    }
    for exception in list(event, "/exceptions") {
        let _ = writeln!(out, "exception {} ({})", text(exception, "/cause"), text(exception, "/policy"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_sends_forges_no_line_and_moves_no_cursor() {
        let event = serde_json::json!({
            "request_id": "r1", "request": {"method": "GET", "target": "/\u{1b}[2Jx\ny\r\u{9b}z"},
            "findings": [{"evidence": "a\nverdict pass"}],
        });
        for text in [line(&event), whole(&event).replace('\n', "")] {
            assert!(!text.contains(char::is_control), "{text:?}");
            assert!(text.contains("/\\u{1b}[2Jx\\ny\\r\\u{9b}z"), "{text}");
        }
        assert_eq!(whole(&event).lines().count(), 3);
    }

    #[test]
    fn evidence_that_nobody_sees_has_no_line() {
        let event = |evidence: &str| serde_json::json!({"findings": [{"evidence": evidence}]});
        let lines = |evidence: &str| whole(&event(evidence)).lines().count();
        assert_eq!((lines("' or"), lines(" "), lines("")), (3, 2, 2));
    }
}
