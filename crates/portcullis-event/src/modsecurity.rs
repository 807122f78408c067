//! ModSecurity 2's lines in Apache's error log, for tools that read those.

use std::fmt::Write as _;
use std::sync::Arc;

use portcullis_types::{Phase, RuleId, Severity};

use crate::{
    Action, Event, ExceptionCause, ExceptionPolicy, Finding, FindingOutcome, RuleEffect, RuleInfo, RuleMatch,
    SemanticScore, Verdict,
};

/// Bytes of the operator's argument that a line shows, as in ModSecurity 2.
const ARGUMENT_BYTES_MAX: usize = 252;

/// The id by which lines and records name the semantic detector, in the range of the product's own rules.
pub const SEMANTIC_ID: RuleId = RuleId(9_000_200);
/// The text in place of its operator and its file.
const SEMANTIC_OPERATOR: &str = "semantic";

/// The lines of `event`, each ended by a newline: one for a body that its parser could not read, one for each
/// match, one for each score of the semantic detector that passes its threshold, and one for a message
/// refused for the length of its body or for the work that it takes.
pub fn modsecurity_lines(event: &Event) -> String {
    let mut out = String::new();
    if let Some(error) = &event.request.body_error {
        write_remark(event, &escaped(error), &mut out);
    }
    for rule_match in &event.matches {
        write_line(event, rule_match, decides(&event.verdict, rule_match), &mut out);
        out.push('\n');
    }
    for score in event.scores.semantic.iter().filter(|score| score.outcome.passes()) {
        let found = semantic_match(score, event.verdict.phase, event.findings.iter());
        write_line(event, &found, score.outcome == FindingOutcome::Blocked, &mut out);
        out.push('\n');
    }
    for refused in event.exceptions.iter().filter(|exception| exception.policy == ExceptionPolicy::Closed) {
        let status = |usual| event.response.status.unwrap_or(usual);
        let text = match (refused.cause, refused.limit_bytes) {
            (ExceptionCause::RequestBodyOverLimit, Some(limit)) => format!(
                "Request body is larger than the configured limit ({limit}). Deny with code ({})",
                status(413)
            ),
            // Where a rule or the detector decided, its line says so.
            (ExceptionCause::BudgetSpent, _)
                if event.verdict.rule_id.is_none() && event.verdict.class.is_none() =>
            {
                format!(
                    "Inspection takes more steps than the rules are allowed (failure.pattern_limit). Deny with code ({})",
                    status(403)
                )
            }
            _ => continue,
        };
        write_remark(event, &text, &mut out);
    }
    as_apache(out)
}

/// Each backslash twice: Apache escapes what ModSecurity has escaped (`ap_escape_errorlog_item`).
fn as_apache(lines: String) -> String {
    if lines.contains('\\') { lines.replace('\\', r"\\") } else { lines }
}

/// A line about the message that no rule asked for.
fn write_remark(event: &Event, text: &str, out: &mut String) {
    write_begin(event, out);
    out.push_str(text);
    write_end(event, out);
    out.push('\n');
}

/// A score of the semantic detector as if a rule of the product's own had matched: `phase` is when it
/// decided, `findings` are those of the message.
pub fn semantic_match<'f>(
    score: &SemanticScore,
    phase: Option<Phase>,
    findings: impl Iterator<Item = &'f Finding>,
) -> RuleMatch {
    let of_value = |finding: &&Finding| {
        (finding.class, finding.place, &finding.name) == (score.class, score.place, &score.name)
    };
    let kinds: Vec<&str> = findings.filter(of_value).map(|finding| &*finding.kind).collect();
    let colon = if score.name.is_empty() { "" } else { ":" };
    let rule = RuleInfo {
        rule_id: SEMANTIC_ID,
        phase: phase.unwrap_or(Phase::RequestBody),
        severity: Some(Severity::Critical),
        operator: SEMANTIC_OPERATOR.into(),
        argument: score.class.name().into(),
        transformations: Box::default(),
        tags: [format!("attack-{}", score.class).into()].into(),
        ver: None,
        rev: None,
        maturity: None,
        accuracy: None,
        file: SEMANTIC_OPERATOR.into(),
        line: 0,
    };
    RuleMatch {
        rule: Arc::new(rule),
        message: score.class.title().to_owned(),
        data: kinds.join(" "),
        target: format!("{}{colon}{}", score.place.name(), score.name),
        value: String::new(),
        span: None,
        points: 0,
        effect: RuleEffect::None,
    }
}

/// The line for one match, without a newline:
///
/// ```text
/// [Mon Sep 21 14:13:20.123000 2026] [security2:error] [client 192.0.2.7:4711] [client 192.0.2.7] ModSecurity: Warning.
/// Pattern match "..." at ARGS:q. [file "..."] [line "66"] [id "942100"] [msg "..."] [data "..."] [severity "CRITICAL"]
/// [ver "..."] [tag "..."] [hostname "..."] [uri "/"] [unique_id "..."]
/// ```
///
/// Times are UTC. `uri` is the target's path. Quotes, backslashes and bytes outside printable ASCII are
/// escaped, so that nothing a client sends can begin a new line or field.
pub fn modsecurity_line(event: &Event, rule_match: &RuleMatch) -> String {
    let mut out = String::with_capacity(512);
    write_line(event, rule_match, decides(&event.verdict, rule_match), &mut out);
    as_apache(out)
}

fn write_line(event: &Event, m: &RuleMatch, decided: bool, out: &mut String) {
    write_begin(event, out);
    write_decision(&event.verdict, m, decided, out);
    write_message(m, out);
    write_end(event, out);
}

fn write_begin(event: &Event, out: &mut String) {
    let client = &event.client;
    let _ = write!(
        out,
        "[{}] [security2:error] [client {}:{}] [client {}] ModSecurity: ",
        event.time.apache(),
        client.addr,
        client.port,
        client.addr
    );
}

fn write_end(event: &Event, out: &mut String) {
    field(out, "hostname", &event.server.host);
    field(out, "uri", path(&event.request.target));
    field(out, "unique_id", &event.request_id);
}

/// The line without time, client, host, path and id: what part H of an audit record says of a match. Without
/// a verdict it does not say either what was done: the match was not to be logged elsewhere. `decided`: the
/// verdict resulted from it.
pub fn modsecurity_message(verdict: Option<&Verdict>, decided: bool, m: &RuleMatch) -> String {
    let mut out = String::with_capacity(512);
    if let Some(verdict) = verdict {
        write_decision(verdict, m, decided, &mut out);
    }
    write_message(m, &mut out);
    out
}

/// Describes the operator's finding: `Pattern match "..." at ARGS:q.`
pub fn modsecurity_finding(m: &RuleMatch) -> String {
    let mut out = String::with_capacity(128);
    write_finding(m, &mut out);
    out
}

fn write_message(m: &RuleMatch, out: &mut String) {
    let rule = &*m.rule;
    write_finding(m, out);
    field(out, "file", &rule.file);
    field(out, "line", &rule.line.to_string());
    field(out, "id", &rule.rule_id.to_string());
    optional(out, "rev", rule.rev.as_deref());
    optional(out, "msg", Some(&m.message));
    if !m.data.is_empty() {
        out.push_str(" [data \"");
        escape_into(&m.data, Escapes::Data, out);
        out.push_str("\"]");
    }
    optional(out, "severity", rule.severity.map(Severity::name));
    optional(out, "ver", rule.ver.as_deref());
    for (name, value) in [("maturity", rule.maturity), ("accuracy", rule.accuracy)] {
        if let Some(value) = value {
            field(out, name, &value.to_string());
        }
    }
    for tag in &rule.tags {
        field(out, "tag", tag);
    }
}

/// True if the verdict is that of the match's rule.
fn decides(verdict: &Verdict, m: &RuleMatch) -> bool {
    verdict.rule_id == Some(m.rule.rule_id)
}

fn write_decision(verdict: &Verdict, m: &RuleMatch, decided: bool, out: &mut String) {
    let phase = m.rule.phase.number();
    let status = verdict.status.unwrap_or(403);
    let _ = match verdict.action {
        Action::Deny if decided => write!(out, "Access denied with code {status} (phase {phase}). "),
        Action::Redirect if decided => {
            let location = match &m.effect {
                RuleEffect::Redirected(location) => escaped(location),
                RuleEffect::None | RuleEffect::Allowed(_) => String::new(),
            };
            write!(
                out,
                "Access denied with redirection to {location} using status {status} (phase {phase}). "
            )
        }
        Action::Proxy if decided => write!(out, "Access denied using proxy to (phase {phase}). "),
        Action::Drop if decided => write!(out, "Access denied with connection close (phase {phase}). "),
        Action::Pass
        | Action::Detect
        | Action::Deny
        | Action::Redirect
        | Action::Drop
        | Action::Proxy
        | Action::Refuse => match m.effect {
            RuleEffect::Allowed(what) => write!(out, "{what} allowed (phase {phase}). "),
            RuleEffect::None | RuleEffect::Redirected(_) => write!(out, "Warning. "),
        },
    };
}

/// Writes the operator's finding in the words that ModSecurity 2 uses for it.
fn write_finding(m: &RuleMatch, out: &mut String) {
    let rule = &*m.rule;
    let (negated, operator) = match rule.operator.strip_prefix('!') {
        Some(name) => (true, name),
        None => (false, &*rule.operator),
    };
    let shown = {
        let end = rule.argument.floor_char_boundary(ARGUMENT_BYTES_MAX);
        let mut shown = escaped(&rule.argument[..end]);
        if end < rule.argument.len() {
            shown.push_str(" ...");
        }
        shown
    };
    let target = escaped(&m.target);
    let _ = match (operator, negated) {
        ("", _) => write!(out, "Unconditional match in SecAction."),
        (SEMANTIC_OPERATOR, _) => write!(out, "Semantic detector found {shown} at {target}."),
        (name, true) => write!(out, "Match of \"{name} {shown}\" against \"{target}\" required."),
        ("rx", _) => write!(out, "Pattern match \"{shown}\" at {target}."),
        ("pm" | "pmf" | "pmFromFile", _) => {
            let found = m.span.and_then(|s| m.value.get(s.range())).unwrap_or_default();
            write!(out, "Matched phrase \"{}\" at {target}.", escaped(found))
        }
        ("detectSQLi", _) => write!(out, "detected SQLi using libinjection at {target}."),
        ("detectXSS", _) => write!(out, "detected XSS using libinjection at {target}."),
        ("eq" | "ge" | "gt" | "le" | "lt", _) => {
            write!(out, "Operator {} matched {shown} at {target}.", operator.to_ascii_uppercase())
        }
        ("streq" | "beginsWith" | "endsWith" | "within" | "contains", _) => {
            write!(out, "String match \"{shown}\" at {target}.")
        }
        ("ipMatch" | "ipMatchF" | "ipMatchFromFile", _) => {
            write!(out, "IPmatch: \"{shown}\" matched at {target}.")
        }
        ("validateByteRange" | "validateUrlEncoding" | "validateUtf8Encoding", _) => {
            write!(out, "Invalid encoding or byte found by {operator} at {target}.")
        }
        (name, _) => write!(out, "Operator {name} matched \"{shown}\" at {target}."),
    };
}

fn path(target: &str) -> &str {
    target.split(['?', '#']).next().unwrap_or_default()
}

fn field(out: &mut String, name: &str, value: &str) {
    let _ = write!(out, " [{name} \"");
    escape_into(value, Escapes::Text, out);
    out.push_str("\"]");
}

fn optional(out: &mut String, name: &str, value: Option<&str>) {
    if let Some(value) = value.filter(|value| !value.is_empty()) {
        field(out, name, value);
    }
}

fn escaped(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    escape_into(value, Escapes::Text, &mut out);
    out
}

/// The way in which ModSecurity 2 writes bytes that would end a field or a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Escapes {
    /// As C does (`log_escape`).
    Text,
    /// In hex (`log_escape_hex`).
    Data,
}

fn escape_into(value: &str, escapes: Escapes, out: &mut String) {
    let bytes = value.as_bytes();
    for (at, &byte) in bytes.iter().enumerate() {
        let name = match byte {
            // The event's way to write a byte that is no text.
            b'\\' if is_byte(&bytes[at..]) => {
                out.push('\\');
                continue;
            }
            b'"' | b'\\' => Some(char::from(byte)),
            0x20..=0x7e => {
                out.push(char::from(byte));
                continue;
            }
            0x08 => Some('b'),
            b'\t' => Some('t'),
            b'\n' => Some('n'),
            0x0b => Some('v'),
            b'\r' => Some('r'),
            _ => None,
        };
        out.push('\\');
        match name.filter(|_| escapes == Escapes::Text) {
            Some(name) => out.push(name),
            None => {
                let _ = write!(out, "x{byte:02x}");
            }
        }
    }
}

/// True if `text` begins with the `\xhh` of [`text`](crate::text).
fn is_byte(text: &[u8]) -> bool {
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    matches!(text, [b'\\', b'x', high @ b'8'..=b'f', low, ..] if is_digit(high) && is_digit(low))
}
