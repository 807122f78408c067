//! Tables, and lists of what went wrong.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use portcullis_semantic::Class;

use crate::pad::Padded;
use crate::sample::{Label, Sample};
use crate::{Args, Engine, EvaluateError, Outcome, write};

#[derive(Default)]
struct Row {
    attacks: usize,
    detected: usize,
    refused: usize,
    benign: usize,
    flagged: usize,
    time: Duration,
    classes: BTreeMap<&'static str, usize>,
    wrong: Vec<String>,
}

/// Counts outcomes.
pub struct Report<'a> {
    args: &'a Args,
    class: Option<Class>,
    sets: BTreeMap<String, Row>,
    sources: BTreeMap<(String, String), Row>,
    /// Attacks with weak labels, by set and why.
    weak: BTreeMap<(String, String), Row>,
    features: String,
    /// The description of the engine.
    engine: String,
    /// All that went wrong, for `--missed`.
    missed: String,
    samples: usize,
}

impl<'a> Report<'a> {
    pub fn new(args: &'a Args, class: Option<Class>, engine: &dyn Engine) -> Report<'a> {
        let (sets, sources) = (BTreeMap::new(), BTreeMap::new());
        let mut features = String::new();
        if args.features.is_some() {
            for (_, class, kind) in portcullis_semantic::Detectors::new().kinds() {
                let _ = writeln!(features, "#kind\t{class}\t{}\t{}", kind.id, kind.severity.name());
            }
            for (id, fingerprint) in engine.rules() {
                let _ = writeln!(features, "#plan\t{id} {fingerprint:016x}");
            }
        }
        Report {
            args,
            class,
            sets,
            sources,
            weak: BTreeMap::new(),
            features,
            engine: engine.describe(),
            missed: String::new(),
            samples: 0,
        }
    }

    pub fn count(&mut self, set: &str, sample: &Sample, outcome: &Outcome) {
        self.samples += 1;
        if self.args.features.is_some() {
            self.write_features(set, sample, outcome);
        }
        let show = self.args.show;
        let row = self.sets.entry(set.to_owned()).or_default();
        row.add(sample, outcome);
        let is_wrong = outcome.stopped() != (sample.label == Label::Attack);
        if is_wrong && row.wrong.len() < show {
            row.wrong.push(explain(sample, outcome));
        }
        if is_wrong && self.args.missed.is_some() {
            let what = if sample.label == Label::Attack { "missed" } else { "flagged" };
            let _ = writeln!(self.missed, "{set}: {what}\n{}", explain(sample, outcome));
        }
        if self.args.by_source {
            self.sources.entry((set.to_owned(), sample.source.clone())).or_default().add(sample, outcome);
        }
    }

    /// Counts an attack whose label is weak: `why` says what is wrong with it.
    pub fn count_weak(&mut self, set: &str, why: &str, sample: &Sample, outcome: &Outcome) {
        self.samples += 1;
        self.weak.entry((set.to_owned(), why.to_owned())).or_default().add(sample, outcome);
    }

    /// Writes the features of an attack with text beside it.
    pub fn note_padded(&mut self, set: &str, sample: &Sample, outcome: &Outcome) {
        if self.args.features.is_some() {
            self.samples += 1;
            self.write_features(&format!("padded {set}"), sample, outcome);
        }
    }

    /// The report as text. Writes the features file, if asked for.
    pub fn finish(mut self, padded: Option<Padded>) -> Result<String, EvaluateError> {
        for line in padded.iter().flat_map(Padded::lost).filter(|_| self.args.missed.is_some()) {
            let _ = writeln!(self.missed, "lost {line}");
        }
        if let Some(path) = &self.args.features {
            write(path, &self.features)?;
        }
        if let Some(path) = &self.args.missed {
            write(path, &self.missed)?;
        }
        let mut out = String::new();
        let class = self.class.map_or("all classes", Class::name);
        let _ = writeln!(out, "{} samples, {}, {class}", self.samples, self.engine);
        header(&mut out);
        let mut total = Row::default();
        for (name, row) in &self.sets {
            row.print(&mut out, name);
            for ((_, source), row) in
                self.sources.range((name.clone(), String::new())..).take_while(|((set, _), _)| set == name)
            {
                row.print(&mut out, &format!("  {source}"));
            }
            total.merge(row);
        }
        if self.sets.len() > 1 {
            total.print(&mut out, "all");
        }
        if !self.weak.is_empty() {
            let _ = writeln!(out, "\nnot scored: labels are weak");
        }
        for ((set, why), row) in &self.weak {
            row.print(&mut out, set);
            let _ = writeln!(out, "    {why}");
        }
        for (name, row) in self.sets.iter().filter(|(_, row)| !row.wrong.is_empty()) {
            let _ = writeln!(out, "\n{name}: missed or wrongly flagged");
            for line in &row.wrong {
                let _ = writeln!(out, "{line}");
            }
        }
        if let Some(padded) = padded {
            out.push_str(&padded.table());
            for line in padded.lost().iter().take(self.args.show) {
                let _ = writeln!(out, "lost {line}");
            }
        }
        Ok(out)
    }

    fn write_features(&mut self, set: &str, sample: &Sample, outcome: &Outcome) {
        let label = u8::from(sample.label == Label::Attack);
        let source = sample.source.replace('\t', " ");
        let number = self.samples;
        if outcome.rows.is_empty() {
            let _ = writeln!(self.features, "{number}\t{label}\t{set}\t{source}\t-\t");
        }
        for (class, features) in &outcome.rows {
            let features = features.join(" ");
            let _ = writeln!(self.features, "{number}\t{label}\t{set}\t{source}\t{class}\t{features}");
        }
        for (class, at, over) in &outcome.scores {
            let at = at.replace(char::is_whitespace, "_");
            let _ =
                writeln!(self.features, "{number}\t{label}\t{set}\t{source}\t#score\t{class} {over:.2} {at}");
        }
        for hit in &outcome.rules {
            let spot = hit.spot.replace(char::is_whitespace, "_");
            let field = if hit.is_excused { "made" } else { hit.field };
            let _ = writeln!(
                self.features,
                "{number}\t{label}\t{set}\t{source}\t#rule\t{} {:016x} {} {field} {spot}",
                hit.id, hit.fingerprint, hit.points
            );
        }
    }
}

impl Outcome {
    pub(crate) fn stopped(&self) -> bool {
        self.blocked || self.refused.is_some()
    }
}

impl Row {
    fn add(&mut self, sample: &Sample, outcome: &Outcome) {
        self.time += outcome.duration;
        self.refused += usize::from(outcome.refused.is_some() && !outcome.blocked);
        let stopped = usize::from(outcome.stopped());
        match sample.label {
            Label::Attack => {
                self.attacks += 1;
                self.detected += stopped;
            }
            Label::Benign => {
                self.benign += 1;
                self.flagged += stopped;
            }
        }
        if let Some(class) = outcome.class.filter(|_| outcome.blocked) {
            *self.classes.entry(class.name()).or_default() += 1;
        }
    }

    fn merge(&mut self, other: &Row) {
        self.attacks += other.attacks;
        self.detected += other.detected;
        self.refused += other.refused;
        self.benign += other.benign;
        self.flagged += other.flagged;
        self.time += other.time;
        for (class, count) in &other.classes {
            *self.classes.entry(class).or_default() += count;
        }
    }

    fn print(&self, out: &mut String, name: &str) {
        let share = |part: usize, of: usize| match of {
            0 => "-".to_owned(),
            _ => format!("{:.2} %", part as f64 * 100.0 / of as f64),
        };
        let balanced = match (self.attacks, self.benign) {
            (0, _) | (_, 0) => "-".to_owned(),
            (attacks, benign) => {
                let sensitivity = self.detected as f64 / attacks as f64;
                let specificity = 1.0 - self.flagged as f64 / benign as f64;
                format!("{:.2} %", (sensitivity + specificity) * 50.0)
            }
        };
        let samples = (self.attacks + self.benign).max(1);
        let time = self.time.as_secs_f64() * 1e6 / samples as f64;
        let classes: Vec<String> =
            self.classes.iter().map(|(class, count)| format!("{class} {count}")).collect();
        let _ = writeln!(
            out,
            "{name:<40} {:>7} {:>10} {:>7} {:>9} {:>10} {:>8} {time:>8.1}  {}",
            self.attacks,
            share(self.detected, self.attacks),
            self.benign,
            share(self.flagged, self.benign),
            balanced,
            self.refused,
            classes.join(", ")
        );
    }
}

fn header(out: &mut String) {
    let _ = writeln!(
        out,
        "{:<40} {:>7} {:>10} {:>7} {:>9} {:>10} {:>8} {:>8}  blocked as",
        "set", "attacks", "detected", "benign", "flagged", "balanced", "refused", "us each"
    );
}

/// One wrong outcome: what it was, where the worst findings stand, and how the score came together.
fn explain(sample: &Sample, outcome: &Outcome) -> String {
    let mut line = format!("  [{}] {}\n", sample.source, sample.content.summary());
    let verdict = match (outcome.blocked, outcome.refused) {
        (true, _) => format!("blocked as {}", outcome.class.map_or("?", Class::name)),
        (false, Some(refusal)) => format!("refused: {refusal}"),
        (false, None) => "passed".to_owned(),
    };
    let terms: Vec<String> =
        outcome.terms.iter().map(|(name, weight)| format!("{name} {weight:+.1}")).collect();
    let _ =
        write!(line, "      {verdict}, {:.1} points at {}: {}", outcome.points, outcome.at, terms.join(", "));
    line
}
