//! Checks for the tests of detectors: the kinds that are found, and whether they block.

use std::sync::LazyLock;

use crate::{Analysis, Class, Detectors, Level, Location, Place};

static DETECTORS: LazyLock<Detectors> = LazyLock::new(Detectors::new);

/// The kinds of `class` found in `text`, mentioned ones with `~`, and whether `balanced` blocks by any class.
pub(crate) fn look(class: Class, place: Place, name: &str, text: &[u8]) -> (String, bool) {
    let mut analysis = Analysis::new();
    analysis.value(&DETECTORS, Location::new(place, name.as_bytes()), text);
    let of_class = analysis.findings().iter().filter(|finding| finding.class == class);
    let names: Vec<String> = of_class
        .map(|finding| {
            let id = finding.kind.id.split_once('.').map_or(finding.kind.id, |(_, id)| id);
            let row = finding.suppressed_by.map_or(String::new(), |row| format!("!{row}"));
            format!("{id}{}{row}", if finding.mentioned { "~" } else { "" })
        })
        .collect();
    let worst = analysis.worst(&DETECTORS, Level::Balanced);
    (names.join(" "), worst.is_some_and(|worst| worst.blocks(Level::Balanced)))
}

/// `text` in a query parameter has all of the kinds `wanted`, and is blocked.
#[track_caller]
pub(crate) fn blocks(class: Class, text: &str, wanted: &str) {
    blocks_at(class, Place::Query, text, wanted);
}

/// `text` at `place` has all of the kinds `wanted`, and is blocked.
#[track_caller]
pub(crate) fn blocks_at(class: Class, place: Place, text: &str, wanted: &str) {
    let (have, is_blocked) = look(class, place, "q", text.as_bytes());
    for kind in wanted.split_whitespace() {
        assert!(have.split_whitespace().any(|k| k == kind), "{text}\n  wanted {kind}\n  have   {have}");
    }
    assert!(is_blocked, "{text} is not blocked: {have}");
}

/// `text` in a form's field passes, whatever is found.
#[track_caller]
pub(crate) fn passes(class: Class, text: &str) {
    passes_at(class, Place::Form, "text", text);
}

/// `text` at `place` passes, whatever is found.
#[track_caller]
pub(crate) fn passes_at(class: Class, place: Place, name: &str, text: &str) {
    let (have, is_blocked) = look(class, place, name, text.as_bytes());
    assert!(!is_blocked, "{text}: {have}");
}
