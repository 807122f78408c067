//! Rules in the text of a configuration, some of which name files that the other program has built in.

use crate::model::{RuleKind, RuleSource};
use crate::report::Entry;

/// What an `Include` of such a text stands for.
pub(crate) enum BuiltIn {
    /// The CRS.
    Crs,
    /// Settings of the other program, whose place ours take.
    Settings,
    /// A file like any other.
    No,
}

/// The rule sources of a text, in its order; `built_in` says what an `Include` names.
pub(crate) fn split(text: &str, entry: Entry, built_in: impl Fn(&str) -> BuiltIn) -> Vec<RuleSource> {
    let mut sources: Vec<RuleSource> = Vec::new();
    let mut lines: Vec<&str> = Vec::new();
    let flush = |lines: &mut Vec<&str>, sources: &mut Vec<RuleSource>| {
        if lines.iter().any(|line| !line.trim().is_empty()) {
            sources.push(RuleSource { kind: RuleKind::Inline(lines.join("\n")), entry });
        }
        lines.clear();
    };
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let is_include = words.next().is_some_and(|word| word.eq_ignore_ascii_case("include"));
        match words.next().filter(|_| is_include).map(|name| built_in(name.trim_matches(['"', '\'']))) {
            None | Some(BuiltIn::No) => lines.push(line),
            Some(BuiltIn::Settings) => {}
            Some(BuiltIn::Crs) => {
                flush(&mut lines, &mut sources);
                let crs = RuleSource { kind: RuleKind::Crs, entry };
                if !sources.contains(&crs) {
                    sources.push(crs);
                }
            }
        }
    }
    flush(&mut lines, &mut sources);
    sources
}
