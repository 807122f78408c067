//! The committed list of known misses.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::TestkitError;

/// Tests that are known to fail, with the reason.
#[derive(Debug, Default)]
pub struct Expected {
    reasons: BTreeMap<String, String>,
}

impl Expected {
    /// Reads `NAME: reason` lines; `#` begins a comment line. A name without a reason is an error.
    pub fn read(path: &Path) -> Result<Self, TestkitError> {
        let text = std::fs::read_to_string(path).map_err(|source| TestkitError::io(path, source))?;
        Self::parse(&text, path)
    }

    fn parse(text: &str, path: &Path) -> Result<Self, TestkitError> {
        let mut reasons = BTreeMap::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = |message: &str| TestkitError::parse(path, Some(index + 1), message);
            let (name, reason) = line.split_once(':').ok_or_else(|| wrong("expected `NAME: reason`"))?;
            if reason.trim().is_empty() {
                return Err(wrong("a known miss needs its reason"));
            }
            if reasons.insert(name.trim().to_string(), reason.trim().to_string()).is_some() {
                return Err(wrong("listed twice"));
            }
        }
        Ok(Expected { reasons })
    }

    /// Returns the differences between this list and a run, a line each: tests that failed and should not
    /// have, tests listed that passed, and listed names that no test has. Only tests that ran count.
    pub fn differences<'a>(
        &self,
        ran: impl Iterator<Item = String>,
        failed: impl Iterator<Item = &'a str>,
    ) -> Vec<String> {
        let ran: BTreeSet<String> = ran.collect();
        let failed: BTreeSet<&str> = failed.collect();
        let mut out = Vec::new();
        for name in &failed {
            if !self.reasons.contains_key(*name) {
                out.push(format!("UNEXPECTED {name} failed"));
            }
        }
        for name in self.reasons.keys().filter(|name| ran.contains(*name)) {
            if !failed.contains(name.as_str()) {
                out.push(format!("UNEXPECTED {name} passed: take it off the list of known misses"));
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected(text: &str) -> Result<Expected, TestkitError> {
        Expected::parse(text, Path::new("known.txt"))
    }

    #[test]
    fn only_the_same_set_is_fine() {
        let list = expected("# known\n\n1-1: slow\n1-2: old\n").unwrap();
        let ran = || ["1-1", "1-2", "1-3"].map(String::from).into_iter();
        assert_eq!(list.differences(ran(), ["1-1", "1-2"].into_iter()), [""; 0]);
        assert_eq!(list.differences(ran(), ["1-1", "1-2", "1-3"].into_iter()), ["UNEXPECTED 1-3 failed"]);
        assert_eq!(list.differences(ran(), ["1-1"].into_iter()).len(), 1);
        assert_eq!(list.differences(["1-3".to_string()].into_iter(), [].into_iter()), [""; 0]);
    }

    #[test]
    fn a_miss_needs_its_reason() {
        for text in ["1-1", "1-1:", "1-1: a\n1-1: b"] {
            assert!(expected(text).is_err(), "{text}");
        }
    }
}
