//! Judgement and its presentation.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use super::evidence::{Client, Log};
use super::replay::{Case, Outcomes};
use super::{Options, TestkitError};
use crate::ftw::Evidence;

/// A failed test.
pub(super) struct Failure {
    pub name: String,
    pub family: String,
    /// Each with the stage it belongs to, where there are several.
    pub reasons: Vec<String>,
}

/// A test passes if each of its stages does.
pub(super) fn judge(cases: &[Case], outcomes: &[Outcomes], log: &Log) -> Vec<Failure> {
    let nothing = Client::default();
    let mut failures = Vec::new();
    for (case, outcomes) in cases.iter().zip(outcomes) {
        let mut reasons = Vec::new();
        for (index, stage) in case.test.stages.iter().enumerate() {
            let client = log.client(case.address(index)).unwrap_or(&nothing);
            let found = match outcomes.get(index) {
                Some(exchange) => {
                    stage.output.judge(&Evidence { exchange, ids: &client.ids, log: &client.lines })
                }
                None => vec!["not sent".to_string()],
            };
            let several = case.test.stages.len() > 1;
            reasons.extend(found.into_iter().map(|text| match several {
                true => format!("stage {}: {text}", index + 1),
                false => text,
            }));
        }
        if !reasons.is_empty() {
            failures.push(Failure { name: case.test.name(), family: case.family.to_string(), reasons });
        }
    }
    failures
}

/// Failures with reasons, then a table by family.
pub(super) fn print(cases: &[Case], failures: &[Failure], options: &Options) -> Result<(), TestkitError> {
    let mut list = String::new();
    for failure in failures {
        let _ = writeln!(list, "{}: {}", failure.name, failure.reasons.join("; "));
    }
    for line in list.lines() {
        println!("FAIL {line}");
    }
    if let Some(path) = &options.list_failures {
        std::fs::write(path, &list).map_err(|source| TestkitError::io(path, source))?;
    }
    let mut families: BTreeMap<&str, (usize, usize, usize)> = BTreeMap::new();
    for case in cases {
        let row = families.entry(case.family).or_default();
        row.0 += 1;
        row.1 += case.test.stages.len();
    }
    for failure in failures {
        families.entry(&failure.family).or_default().2 += 1;
    }
    println!("{:<48} {:>6} {:>7} {:>7} {:>7}", "family", "tests", "stages", "passed", "failed");
    for (family, (tests, stages, failed)) in families {
        println!("{family:<48} {tests:>6} {stages:>7} {:>7} {failed:>7}", tests - failed);
    }
    Ok(())
}

/// One line a stage: name, stage, status (0 without a response), ids.
pub(super) fn write_ids(
    cases: &[Case],
    outcomes: &[Outcomes],
    log: &Log,
    path: &Path,
) -> Result<(), TestkitError> {
    let mut list = String::new();
    for (case, outcomes) in cases.iter().zip(outcomes) {
        for (index, outcome) in outcomes.iter().enumerate() {
            let status = outcome.as_ref().map_or(0, |response| response.status);
            let ids = log.client(case.address(index)).into_iter().flat_map(|client| &client.ids);
            let ids: Vec<_> = ids.map(u32::to_string).collect();
            let _ = writeln!(list, "{} {} {status} {}", case.test.name(), index + 1, ids.join(" "));
        }
    }
    std::fs::write(path, list).map_err(|source| TestkitError::io(path, source))
}
