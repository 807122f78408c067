//! The difference between two texts.

use std::time::Duration;

use similar::TextDiff;

/// The longest time that the search for the shortest difference takes; then a longer one does.
pub(crate) const SEARCH_TIME_MAX: Duration = Duration::from_millis(200);

/// The difference, in the unified format, with so many lines around each change; empty if nothing did.
pub fn diff(before: &str, after: &str, context_lines: usize) -> String {
    let mut config = TextDiff::configure();
    config.timeout(SEARCH_TIME_MAX);
    let diff = config.diff_lines(before, after);
    diff.unified_diff().context_radius(context_lines).to_string()
}
