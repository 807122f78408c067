//! An explanation for a person.

use std::fmt::Write;

use portcullis_event::{Action, DetectionMode, EngineMode, Scores};

use super::not_run::Watched;
use super::{Explanation, Match};

/// Widest value shown before the marked part is cut out of it, in characters.
const VALUE_CHARS_MAX: usize = 100;

/// The whole report. Writing to a string cannot fail.
pub fn print(explanation: &Explanation) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}", one_line(&explanation.request));
    for note in &explanation.notes {
        let _ = writeln!(out, "  note: {}", one_line(note));
    }
    if explanation.body_bytes_not_inspected > 0 {
        let _ =
            writeln!(out, "  note: {} body bytes are not inspected", explanation.body_bytes_not_inspected);
    }
    if let Some(response) = &explanation.response {
        let _ = writeln!(out, "{}", one_line(response));
    }
    if explanation.response_body_bytes_not_inspected > 0 {
        let bytes = explanation.response_body_bytes_not_inspected;
        let _ = writeln!(out, "  note: {bytes} bytes of the response's body are not inspected");
    }
    if let Some(refusal) = &explanation.refusal {
        let _ =
            writeln!(out, "  refused with {} ({}): {}", refusal.status, refusal.name, refusal.explanation);
    }
    for found in &explanation.matches {
        out.push('\n');
        print_match(&mut out, found);
    }
    match (explanation.matches.len(), explanation.matches_not_shown) {
        (0, _) if explanation.mode == DetectionMode::Semantic => {}
        (0, 0) => out.push_str("\nno rule matched\n"),
        (0, _) => out.push_str("\nno rule found anything\n"),
        _ => {}
    }
    if explanation.matches_not_shown > 0 && explanation.mode != DetectionMode::Semantic {
        let n = explanation.matches_not_shown;
        let _ = writeln!(out, "\n{n} matches of rules without a message are not shown; --all shows them");
    }
    if let Some(semantic) = &explanation.semantic {
        semantic.print(&mut out);
    }
    print_not_run(&mut out, explanation);
    if let Some(watched) = &explanation.watched {
        print_watched(&mut out, watched);
    }
    out.push('\n');
    print_scores(&mut out, &explanation.scores);
    print_verdict(&mut out, explanation);
    out
}

fn print_match(out: &mut String, found: &Match) {
    let _ = write!(out, "rule {}, phase {}", found.rule_id, found.phase);
    if let Some(severity) = found.severity {
        let _ = write!(out, ", {severity}");
    }
    let _ = writeln!(out, ": {}", if found.message.is_empty() { "(no message)" } else { &found.message });
    let mut line = |label: &str, text: &str| {
        let _ = writeln!(out, "    {label:<9}{text}");
    };
    if found.operator.is_empty() {
        line("matched", "always (SecAction)");
    } else {
        line("operator", &shorten(&one_line(found.operator.trim_end())));
        line("target", &one_line(&found.target));
        if !found.transformations.is_empty() {
            line("after", &format!("t:{}", found.transformations.join(",t:")));
        }
        if let Some(sent) = &found.value_as_sent {
            line("sent", &shorten(&one_line(sent)));
        }
        line("value", &shorten(&one_line(&found.value)));
        if let Some([start, end]) = found.span {
            let part = found.value.get(start as usize..end as usize).map(|part| shorten(&one_line(part)));
            let part = part.map_or(String::new(), |part| format!(": {part}"));
            line("matched", &format!("bytes {start} to {end}{part}"));
        }
    }
    if !found.data.is_empty() {
        line("data", &shorten(&one_line(&found.data)));
    }
    if !found.points.is_empty() {
        let points: Vec<String> = found.points.iter().map(|p| format!("{} {:+}", p.score, p.added)).collect();
        line("points", &points.join(", "));
    }
    if found.disruptive {
        line("effect", "blocks");
    }
    line("from", &format!("{}:{}", found.file, found.line));
}

/// Ids shown for one reason before the rest is counted.
const IDS_MAX: usize = 12;

fn print_not_run(out: &mut String, explanation: &Explanation) {
    if !explanation.not_run.is_empty() {
        out.push_str("\nrules that did not run\n");
    }
    for group in &explanation.not_run {
        let _ = writeln!(out, "    {:<4} {}: {}", group.rules.len(), group.why, ids(&group.rules));
    }
    if !explanation.left_out.is_empty() {
        out.push_str("\nvalues that rules were not shown\n");
    }
    for left_out in &explanation.left_out {
        let target = one_line(&left_out.target);
        let _ = writeln!(out, "    {target}: {}: {}", left_out.why, ids(&left_out.rules));
    }
}

fn ids(rules: &[u32]) -> String {
    let shown: Vec<String> = rules.iter().take(IDS_MAX).map(u32::to_string).collect();
    let more = rules.len().saturating_sub(IDS_MAX);
    shown.join(" ") + &if more > 0 { format!(" and {more} more") } else { String::new() }
}

fn print_watched(out: &mut String, watched: &Watched) {
    let _ = writeln!(out, "\nrule {}", watched.rule_id);
    if let Some(why) = &watched.not_run {
        let _ = writeln!(out, "    did not run: {why}");
    } else if watched.tests.is_empty() {
        out.push_str("    ran and found none of its targets in the request\n");
    }
    for test in &watched.tests {
        let verdict = if test.matched { "matches" } else { "no" };
        let after = match test.transformations.as_slice() {
            [] => String::new(),
            names => format!(" after t:{}", names.join(",t:")),
        };
        let operator = shorten(&one_line(test.operator.trim_end()));
        let _ = writeln!(
            out,
            "    link {} {}{after}: {}",
            test.link,
            one_line(&test.target),
            shorten(&one_line(&test.value))
        );
        let _ = writeln!(out, "        {operator}: {verdict}");
    }
}

fn print_scores(out: &mut String, scores: &Scores) {
    let parts = [
        ("inbound blocking", scores.inbound_blocking),
        ("inbound detection", scores.inbound_detection),
        ("outbound blocking", scores.outbound_blocking),
        ("outbound detection", scores.outbound_detection),
    ];
    let named = parts.iter().filter_map(|(name, score)| score.map(|score| format!("{name} {score}")));
    let by_class = scores.by_class.iter().map(|(class, score)| format!("{class} {score}"));
    let all: Vec<String> = named.chain(by_class).collect();
    if !all.is_empty() {
        let _ = writeln!(out, "scores   {}", all.join(", "));
    }
}

fn print_verdict(out: &mut String, explanation: &Explanation) {
    let verdict = &explanation.verdict;
    let _ = write!(out, "verdict  {}", verdict.action);
    if let Some(status) = verdict.status {
        let _ = write!(out, " {status}");
    }
    if let (Some(rule), Some(phase)) = (verdict.rule_id, verdict.phase) {
        let _ = write!(out, " by rule {rule} in phase {}", phase.number());
    } else if let (Some(class), Some(phase)) = (verdict.class, verdict.phase) {
        let _ = write!(out, " by findings of {class} in phase {}", phase.number());
    }
    if !verdict.reason.is_empty() {
        let _ = write!(out, ": {}", one_line(&verdict.reason));
    }
    out.push('\n');
    if verdict.action == Action::Detect {
        let why = match explanation.engine {
            EngineMode::DetectionOnly => "the rules only detect (SecRuleEngine DetectionOnly)",
            EngineMode::Blocking => "no rule asked for more; the request goes to the upstream",
            EngineMode::Off => "the engine is off",
        };
        let _ = writeln!(out, "         {why}");
    }
}

/// Control characters as escapes, so that a value stays in its line and cannot command the terminal.
pub fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out
}

/// Cut to what fits a line.
pub fn shorten(text: &str) -> String {
    match text.char_indices().nth(VALUE_CHARS_MAX) {
        Some((cut, _)) => format!("{}... ({} bytes)", &text[..cut], text.len()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{one_line, shorten};

    #[test]
    fn values_stay_in_their_line() {
        assert_eq!(one_line("a\r\nb\x1b[31m é"), "a\\r\\nb\\u{1b}[31m é");
        assert_eq!(shorten(&"é".repeat(101)), format!("{}... (202 bytes)", "é".repeat(100)));
    }
}
