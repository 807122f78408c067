//! `corpus-run --evasions`: the body and parser evasions through the real proxy, judged one by one.
//!
//! The corpus carries the same five payloads in a hundred forms. A form must be blocked (403) or rejected
//! (another 4xx); a `control` form must be blocked. A form that passes counts against the percentage unless
//! it is one of [`UNREAD`], where no application would come to the payload.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use serde::Deserialize;

use crate::client::{Connection, Exchange, Failure};
use crate::{TestkitError, base64, corpora};

/// The corpus.
pub const FILE: &str = "robustness/body-parsing-evasion.jsonl";

/// Forms in which no application reads the payload, with the reason: they may pass. Looked at by hand, one by
/// one.
pub const UNREAD: &[(&str, &str, &str)] = &[
    ("multipart", "filename-decoy", "the content of an uploaded image: no reader takes it for a field"),
    (
        "urlencoded",
        "base64-value",
        "no framework decodes Base64 by itself; that is the application's own code",
    ),
    ("urlencoded", "hex-value", "no framework decodes hex by itself; that is the application's own code"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Blocked,
    Rejected,
    Passed,
    Broken,
}

#[derive(Deserialize)]
struct Line {
    family: String,
    mutator: String,
    class: String,
    method: String,
    uri: String,
    headers: Vec<(String, String)>,
    body_b64: Option<String>,
    note: Option<String>,
    backend: Option<String>,
}

/// Counts of one form or family.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Tally {
    blocked: usize,
    rejected: usize,
    passed: usize,
    broken: usize,
    /// Passed, and no application would read the payload.
    unread: usize,
    /// The classes of payload that passed.
    through: Vec<String>,
}

impl Tally {
    fn add(&mut self, verdict: Verdict, unread: bool, class: &str) {
        match verdict {
            Verdict::Blocked => self.blocked += 1,
            Verdict::Rejected => self.rejected += 1,
            Verdict::Passed if unread => self.unread += 1,
            Verdict::Passed => {
                self.passed += 1;
                self.through.push(class.to_string());
            }
            Verdict::Broken => self.broken += 1,
        }
    }

    fn sent(&self) -> usize {
        self.judged() + self.unread
    }

    /// Those that count.
    fn judged(&self) -> usize {
        self.blocked + self.rejected + self.passed + self.broken
    }

    fn percent(&self) -> f64 {
        100.0 * (self.blocked + self.rejected) as f64 / self.judged().max(1) as f64
    }
}

/// The result of the run.
struct Summary {
    /// By family.
    families: BTreeMap<String, Tally>,
    /// By family and mutator, with what the corpus notes on it.
    forms: BTreeMap<(String, String), (Tally, String)>,
    all: Tally,
    /// `control` forms that were not blocked.
    controls_missed: Vec<String>,
}

/// Sends every evasion to `target` and prints the table. True if the percentage is reached, every control
/// form is blocked and nothing broke.
pub fn run(
    target: SocketAddr,
    at_least: f64,
    count: Option<usize>,
    limit: Duration,
) -> Result<bool, TestkitError> {
    let lines: Vec<Line> = corpora::records(FILE)?;
    if count.is_some_and(|count| count != lines.len()) {
        return Err(TestkitError::Run(format!(
            "the corpus has {} requests, another number than asked for",
            lines.len()
        )));
    }
    let mut summary = Summary {
        families: BTreeMap::new(),
        forms: BTreeMap::new(),
        all: Tally::default(),
        controls_missed: Vec::new(),
    };
    let mut connection = None;
    for (index, line) in lines.into_iter().enumerate() {
        let body = line.body_b64.as_deref().map(base64::decode);
        let body = match body {
            Some(None) => {
                return Err(TestkitError::parse(FILE, Some(index + 1), "`body_b64` is not Base64"));
            }
            Some(Some(body)) => Some(body),
            None => None,
        };
        let request = corpora::Request {
            family: line.family.clone(),
            tier: String::new(),
            method: line.method.clone(),
            uri: line.uri.clone(),
            headers: line.headers.clone(),
            body,
        };
        let answer = exchange(&mut connection, target, &request.wire(true), limit);
        summary.count(&line, verdict(&answer));
    }
    Ok(summary.print(at_least))
}

/// One request over the open connection; once more over a new one if the old one was closed meanwhile.
fn exchange(
    connection: &mut Option<Connection>,
    target: SocketAddr,
    bytes: &[u8],
    limit: Duration,
) -> Result<Exchange, Failure> {
    if let Some(open) = connection.as_mut().filter(|open| open.reusable()) {
        let outcome = open.exchange(bytes, limit);
        if !matches!(outcome, Err(Failure::Closed)) {
            return outcome;
        }
    }
    let source = IpAddr::V4(Ipv4Addr::new(127, 3, 0, 1));
    connection.insert(Connection::open(target, Some(source), limit)?).exchange(bytes, limit)
}

fn verdict(answer: &Result<Exchange, Failure>) -> Verdict {
    match answer {
        Ok(answer) => match answer.status {
            403 => Verdict::Blocked,
            400..500 => Verdict::Rejected,
            200..400 => Verdict::Passed,
            _ => Verdict::Broken,
        },
        Err(_) => Verdict::Broken,
    }
}

impl Summary {
    fn count(&mut self, line: &Line, verdict: Verdict) {
        let unread = UNREAD.iter().any(|(family, form, _)| *family == line.family && *form == line.mutator);
        let notes: Vec<&str> =
            [&line.note, &line.backend].into_iter().flatten().map(|n| n.as_str()).collect();
        let form = self.forms.entry((line.family.clone(), line.mutator.clone())).or_default();
        form.1 = notes.join("; ");
        form.0.add(verdict, unread, &line.class);
        self.families.entry(line.family.clone()).or_default().add(verdict, unread, &line.class);
        self.all.add(verdict, unread, &line.class);
        if line.mutator.starts_with("control") && verdict != Verdict::Blocked {
            self.controls_missed.push(format!("{} {} ({})", line.family, line.mutator, line.class));
        }
    }

    fn print(&self, at_least: f64) -> bool {
        println!(
            "{:<14} {:>6} {:>8} {:>9} {:>7} {:>7} {:>8}",
            "family", "sent", "blocked", "rejected", "passed", "unread", "stopped"
        );
        let row = |name: &str, tally: &Tally| {
            println!(
                "{name:<14} {:>6} {:>8} {:>9} {:>7} {:>7} {:>7.1}%",
                tally.sent(),
                tally.blocked,
                tally.rejected,
                tally.passed,
                tally.unread,
                tally.percent()
            );
        };
        self.families.iter().for_each(|(name, tally)| row(name, tally));
        row("all", &self.all);
        for ((family, mutator), (tally, notes)) in &self.forms {
            if tally.passed > 0 {
                let notes = if notes.is_empty() { String::new() } else { format!(" [{notes}]") };
                println!("passed  {family} {mutator}: {}{notes}", tally.through.join(", "));
            }
            if tally.broken > 0 {
                println!("BROKEN  {family} {mutator}: {}", tally.broken);
            }
        }
        for missed in &self.controls_missed {
            println!("MISSED  control form {missed}");
        }
        for (family, mutator, why) in UNREAD {
            println!("unread  {family} {mutator}: {why}");
        }
        let reached = self.all.percent() >= at_least;
        if !reached {
            println!("below the {at_least} % that were asked for");
        }
        reached && self.controls_missed.is_empty() && self.all.broken == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(mutator: &str) -> Line {
        Line {
            family: "json".into(),
            mutator: mutator.into(),
            class: "xss".into(),
            method: "POST".into(),
            uri: "/".into(),
            headers: Vec::new(),
            body_b64: None,
            note: None,
            backend: None,
        }
    }

    #[test]
    fn a_passed_control_or_a_low_share_fails_the_run() {
        let check = |verdicts: &[(&str, Verdict)], want: bool| {
            let mut summary = Summary {
                families: BTreeMap::new(),
                forms: BTreeMap::new(),
                all: Tally::default(),
                controls_missed: Vec::new(),
            };
            verdicts.iter().for_each(|(mutator, verdict)| summary.count(&line(mutator), *verdict));
            assert_eq!(summary.print(50.0), want, "{verdicts:?}");
        };
        use Verdict::*;
        check(&[("control", Blocked), ("x", Rejected), ("y", Passed)], true);
        check(&[("control", Blocked), ("x", Passed), ("y", Passed)], false);
        check(&[("control", Rejected), ("x", Blocked)], false);
        check(&[("control", Blocked), ("x", Broken)], false);
    }
}
