//! The findings of the semantic detector and the terms of its scores, for `explain`.

use std::fmt::Write;

use portcullis_event::{Finding, FindingOutcome, SemanticScore};
use portcullis_inspect::ScoredValue;
use portcullis_types::Level;
use serde::Serialize;

use super::print::{one_line, shorten};

/// The findings of a request.
#[derive(Debug, Serialize)]
pub struct Semantic {
    /// The level that decides.
    level: &'static str,
    /// Each value with findings, for each class; the worst first.
    values: Vec<Value>,
}

/// One value and one class.
#[derive(Debug, Serialize)]
struct Value {
    #[serde(flatten)]
    score: SemanticScore,
    /// The terms of the score.
    terms: Vec<Term>,
    findings: Vec<Finding>,
}

#[derive(Debug, Serialize)]
struct Term {
    name: String,
    weight: f32,
}

impl Semantic {
    /// Explains `values` at `level`.
    pub fn new(level: Level, values: Vec<ScoredValue>) -> Semantic {
        let value = |value: ScoredValue| Value {
            score: value.score,
            terms: value.terms.into_iter().map(|(name, weight)| Term { name, weight }).collect(),
            findings: value.findings,
        };
        Semantic { level: level.name(), values: values.into_iter().map(value).collect() }
    }

    /// For a person.
    pub fn print(&self, out: &mut String) {
        if self.values.is_empty() {
            out.push_str("\nthe semantic detector found nothing\n");
        }
        for value in &self.values {
            value.print(out, self.level);
        }
    }
}

impl Value {
    fn print(&self, out: &mut String, level: &str) {
        let score = &self.score;
        let at = match score.name.is_empty() {
            true => score.place.name().to_owned(),
            false => format!("{}:{}", score.place.name(), one_line(&score.name)),
        };
        let _ = writeln!(out, "\n{} in {at}", score.class.title());
        for finding in &self.findings {
            let state = match (&finding.suppressed_by, finding.mentioned) {
                (None, _) => "",
                (Some(_), true) => ", mentioned",
                (Some(_), false) => ", suppressed",
            };
            let _ = writeln!(out, "    {}{state}: {}", finding.kind, finding.reason);
            if let Some(by) = &finding.suppressed_by {
                let _ = writeln!(out, "        by       {}: {}", by.exception, by.reason);
            }
            let span =
                finding.span.map_or(String::new(), |span| format!("bytes {} to {}: ", span.start, span.end));
            let _ = writeln!(out, "        evidence {span}{}", shorten(&one_line(&finding.evidence)));
            if !finding.decoded.is_empty() {
                let _ = writeln!(out, "        decoded  {}", finding.decoded.join(", then "));
            }
            let _ = writeln!(out, "        see      {}", finding.reference);
        }
        let terms: Vec<String> =
            self.terms.iter().map(|term| format!("{} {:+.2}", term.name, term.weight)).collect();
        let _ = writeln!(out, "    terms    {}", terms.join(", "));
        let verdict = match score.outcome {
            FindingOutcome::Below => "stays below",
            FindingOutcome::Excluded => "does not count here (off or excluded), or it would pass",
            FindingOutcome::Blocked | FindingOutcome::Detected => "passes",
        };
        let (points, threshold) = (score.points, score.threshold);
        let _ = writeln!(out, "    score    {points:.2} {verdict} {threshold:.2}, the threshold of {level}");
    }
}
