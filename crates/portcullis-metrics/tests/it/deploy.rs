//! Dashboards and alert rules speak of metrics and labels that exist.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use portcullis_metrics::{Kind, Metric, catalogue};
use serde_json::Value;

fn deploy(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(name)
}

/// The metric that a series of this name belongs to.
fn metric(series: &str) -> Option<&'static Metric> {
    let find = |name: &str| catalogue::ALL.iter().find(|metric| metric.name == name).copied();
    let of_histogram = ["_bucket", "_count", "_sum"].iter().find_map(|end| series.strip_suffix(end));
    find(series).or_else(|| of_histogram.and_then(find).filter(|metric| metric.kind == Kind::Histogram))
}

/// Returns the mistakes of an expression: series that do not exist, and labels that none of its metrics has.
fn mistakes(expression: &str, used: &mut BTreeSet<&'static str>) -> Vec<String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut wrong = Vec::new();
    let mut labels: BTreeSet<&str> = ["le"].into();
    for word in expression.split(|c: char| !is_name(c)).filter(|word| word.starts_with("portcullis_")) {
        match metric(word) {
            Some(metric) => {
                used.insert(metric.name);
                labels.extend(metric.labels);
            }
            None => wrong.push(format!("no metric `{word}`")),
        }
    }
    let lists = expression.split(" by (").skip(1).filter_map(|rest| rest.split(')').next());
    let grouped = lists.flat_map(|list| list.split(',')).map(str::trim);
    let braces = expression.split('{').skip(1).filter_map(|rest| rest.split('}').next());
    let matched = braces.flat_map(|list| list.split(',')).filter_map(|pair| pair.split(['=', '!']).next());
    let matched = matched.map(str::trim);
    let unknown = grouped.chain(matched).filter(|label| !labels.contains(label));
    wrong.extend(unknown.map(|label| format!("no label `{label}` in `{expression}`")));
    wrong
}

#[test]
fn mistakes_are_seen() {
    let check = |expression: &str| mistakes(expression, &mut BTreeSet::new());
    assert_eq!(check("sum by (site) (rate(portcullis_requests_total{status=~\"5..\"}[5m]))"), [""; 0]);
    assert_eq!(check("portcullis_requests_totl"), ["no metric `portcullis_requests_totl`"]);
    assert_eq!(check("portcullis_requests_total_bucket").len(), 1, "a counter has no buckets");
    assert_eq!(check("sum by (sight) (portcullis_requests_total)").len(), 1);
    assert_eq!(check("portcullis_requests_total{sight=\"a\"}").len(), 1);
}

#[test]
fn dashboards_show_metrics_that_exist() {
    let mut files: Vec<PathBuf> = std::fs::read_dir(deploy("grafana"))
        .expect("the dashboards")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    assert_eq!(files.len(), 3);
    let (mut used, mut uids) = (BTreeSet::new(), BTreeSet::new());
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a dashboard");
        let dashboard: Value = serde_json::from_str(&text).expect("JSON");
        let name = file.file_stem().and_then(|name| name.to_str()).expect("a name");
        assert_eq!(dashboard["uid"], name, "the file has the name of its dashboard");
        assert!(uids.insert(name.to_string()) && dashboard["title"].is_string());
        let mut ids = BTreeSet::new();
        for panel in dashboard["panels"].as_array().expect("panels") {
            let title = panel["title"].as_str().expect("a title");
            assert!(ids.insert(panel["id"].as_u64().expect("an id")), "{name}: {title}");
            if panel["type"] == "row" {
                continue;
            }
            let targets = panel["targets"].as_array().expect("targets");
            assert!(!targets.is_empty(), "{name}: {title}");
            for target in targets {
                let expression = target["expr"].as_str().expect("an expression");
                assert_eq!(mistakes(expression, &mut used), [""; 0], "{name}: {title}");
            }
        }
    }
    for needed in [
        &catalogue::REQUESTS,
        &catalogue::REQUEST_DURATION,
        &catalogue::UPSTREAM_HEALTHY,
        &catalogue::UPSTREAM_RETRIES,
        &catalogue::AGENT_BREAKER,
        &catalogue::AGENT_FAILURES,
        &catalogue::AGENT_TIMEOUTS,
        &catalogue::AGENT_BYPASSES,
    ] {
        assert!(used.contains(needed.name), "{} is on no dashboard", needed.name);
    }
}

/// `promtool` checks the syntax and a few cases (`make test`).
#[test]
fn alerts_are_about_metrics_that_exist() {
    let text = std::fs::read_to_string(deploy("prometheus/alerts.yml")).expect("the alerts");
    let mut expressions: Vec<String> = Vec::new();
    let mut is_folded = false;
    for line in text.lines() {
        let trimmed = line.trim();
        match trimmed.strip_prefix("expr:") {
            Some(rest) => {
                is_folded = rest.trim() == ">";
                expressions.push(rest.trim().trim_start_matches('>').to_string());
            }
            None if trimmed.starts_with("for:") || trimmed.starts_with("labels:") => is_folded = false,
            None if is_folded => {
                let last = expressions.last_mut().expect("begun");
                last.push(' ');
                last.push_str(trimmed);
            }
            None => {}
        }
    }
    assert_eq!(expressions.len(), text.matches("- alert:").count());
    assert!(expressions.len() >= 14);
    for expression in expressions {
        assert_eq!(mistakes(&expression, &mut BTreeSet::new()), [""; 0]);
    }
}
