//! Every `@rx` pattern of the CRS compiles. The rules are not part of this repository: `make crs` fetches
//! them, and without them the test fails.

use portcullis_match::{Regex, RegexFlags};
use std::collections::BTreeSet;
use std::time::Instant;

#[test]
fn every_crs_pattern_compiles() {
    let rules = portcullis_testkit::crs::rules().unwrap_or_else(|missing| panic!("{missing}")).join("rules");
    let mut patterns = BTreeSet::new();
    for entry in std::fs::read_dir(rules).expect("a folder of rules") {
        let path = entry.expect("readable directory").path();
        if path.extension().is_some_and(|e| e == "conf") {
            collect(&std::fs::read_to_string(&path).expect("readable rule file"), &mut patterns);
        }
    }
    assert!(patterns.len() >= 280, "only {} patterns found: is this the CRS?", patterns.len());

    let begun = Instant::now();
    let mut failures = Vec::new();
    let (mut bytes, mut largest) = (0, 0);
    for pattern in &patterns {
        match Regex::new(pattern.as_bytes(), RegexFlags::default()) {
            Ok(regex) => {
                bytes += regex.memory_bytes();
                largest = largest.max(regex.memory_bytes());
                let mut cache = regex.cache();
                for hay in [&b""[..], b"id=1&name=x", b"\xff\xfe\x00"] {
                    assert_eq!(regex.is_match(hay), regex.is_match_with(&mut cache, hay), "{pattern}");
                }
            }
            Err(error) => failures.push(format!("{error}: {pattern:.200}")),
        }
    }
    println!("{} patterns, {:?}, {bytes} bytes, largest {largest}", patterns.len(), begun.elapsed());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Adds the arguments of `"@rx ..."` and `"!@rx ..."` in SecLang text.
fn collect(text: &str, patterns: &mut BTreeSet<String>) {
    for line in text.lines().filter(|line| !line.trim_start().starts_with('#')) {
        let Some(start) = ["\"@rx ", "\"!@rx "].iter().find_map(|op| line.find(op).map(|at| at + op.len()))
        else {
            continue;
        };
        let mut pattern = String::new();
        let mut escaped = false;
        for c in line[start..].chars() {
            match c {
                '"' if !escaped => break,
                '"' => {
                    pattern.pop();
                    pattern.push('"');
                    escaped = false;
                }
                c => {
                    pattern.push(c);
                    escaped = c == '\\' && !escaped;
                }
            }
        }
        patterns.insert(pattern);
    }
}
