//! `portcullis bench` as an operator runs it: bounded, on loopback, and gone when it ends.

use std::process::{Command, Output, Stdio};
use std::time::Instant;

use crate::served::{self, PATIENCE, application, program, says};
use portcullis_testkit::process::{Signal, signal};
use serde_json::Value;

fn bench(arguments: &[&str]) -> Output {
    Command::new(program()).arg("bench").args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let output = bench(arguments);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{told}{}", String::from_utf8_lossy(&output.stdout));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn rows<'a>(report: &'a Value, transport: &str) -> Vec<(&'a str, &'a Value)> {
    let groups = report["groups"].as_array().unwrap();
    let group = groups.iter().find(|group| group["transport"] == transport).unwrap();
    group["rows"].as_array().unwrap().iter().map(|row| (row["name"].as_str().unwrap(), row)).collect()
}

#[test]
fn inspection_is_compared_with_none_in_clear_text_and_over_tls() {
    let arguments = [
        "--json",
        "--seconds",
        "3",
        "--connections",
        "2",
        "--workers",
        "1",
        "--rate",
        "20",
        "--traffic",
        "mixed",
    ];
    let report = json(&arguments);
    assert_eq!(report["schema"], 1);
    for transport in ["plain", "tls"] {
        let rows = rows(&report, transport);
        let names: Vec<&str> = rows.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["no proxy", "off", "semantic"]);
        for (name, row) in &rows {
            assert!(row["answered"].as_u64().unwrap() > 0, "{name}: {row}");
            assert_eq!(row["unexpected"], serde_json::json!({}), "{name}: {row}");
        }
        assert!(rows[1].1["cpu_us"].as_f64().unwrap() > 0.0, "{report:#}");
        assert!(rows[1].1["added_by_inspection"].is_null());
        assert!(rows[2].1["added_by_inspection"]["p99_us"].is_number());
    }
}

#[test]
fn what_is_served_already_is_measured_beside_it() {
    let application = application(|_| says("hello"));
    let url = format!("http://{}", application.address());
    let named = format!("app={url}/");
    let few = ["--json", "--seconds", "2", "--connections", "2", "--workers", "1", "--rate", "20"];
    let report = json(&[&few[..], &["--upstream", &url, "--target", &named]].concat());
    assert_eq!(report["groups"].as_array().unwrap().len(), 1);
    let rows = rows(&report, "plain");
    let names: Vec<&str> = rows.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["no proxy", "off", "semantic", "app"]);
    assert_eq!(rows[3].1["role"], "target");
    assert!(rows[3].1["added_by_proxy"]["p50_us"].is_number());
}

#[test]
fn wrong_answers_fail() {
    let application = application(|_| served::Response { status: 500, ..says("no") });
    let target = format!("http://{}", application.address());
    let few = ["--seconds", "1", "--connections", "1", "--rate", "20", "--targets-only", "--target", &target];
    let output = bench(&few);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("answers that are wrong for what was sent"), "{text}");
}

#[test]
fn mistakes_on_the_command_line_are_told() {
    for (arguments, expected) in [
        (&["--modes", "crs"][..], "need --crs DIR"),
        (&["--target", "http://192.0.2.1:80"], "loopback only"),
        (&["--targets-only"], "--target"),
        (&["--upstream", "http://127.0.0.1:9", "--transport", "tls"], "without TLS"),
        (&["--traffic", "udp"], "one of get, browser"),
        (&["--seconds", "0"], "0 is not in"),
    ] {
        let output = bench(arguments);
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {told}");
        assert!(told.contains(expected), "{arguments:?}: {told}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_signal_ends_everything_that_was_started() {
    use std::io::{BufRead, BufReader};
    let mut bench = Command::new(program())
        .args(["bench", "--seconds", "3600", "--connections", "1", "--workers", "1", "--rate", "10"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(bench.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("warming up")));
    let children = children_of(bench.id());
    assert_eq!(children.len(), 2, "{children:?}");
    signal(bench.id(), Signal::TERM).unwrap();
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = bench.try_wait().unwrap() {
            break status;
        }
        assert!(begin.elapsed() < PATIENCE, "it does not end");
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    assert_eq!(status.code(), Some(1));
    for child in children {
        assert!(!std::path::Path::new(&format!("/proc/{child}")).exists(), "{child} is left");
    }
}

#[cfg(target_os = "linux")]
fn children_of(parent: u32) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parent_of = |process: &u32| {
        let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        let (_, rest) = text.rsplit_once(") ")?;
        rest.split(' ').nth(1)?.parse::<u32>().ok()
    };
    processes.filter(|process| parent_of(process) == Some(parent)).collect()
}
