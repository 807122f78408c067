//! Byte 0: a place; the rest: a value for all detectors, with what its layers of encoding hide. Nothing
//! panics, evidence is bounded, scores are numbers, and a second look says the same.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use portcullis_semantic::{Analysis, Detectors, Level, Location, Place, limits};

static DETECTORS: LazyLock<Detectors> = LazyLock::new(Detectors::new);

fuzz_target!(|data: &[u8]| {
    let [place, value @ ..] = data else { return };
    let place = Place::ALL[usize::from(*place) % Place::ALL.len()];
    let look = || {
        let mut analysis = Analysis::new();
        analysis.value(&DETECTORS, Location::new(place, b"json.@type"), value);
        analysis
    };
    let (first, second) = (look(), look());
    assert_eq!(first.findings().len(), second.findings().len());
    for finding in first.findings() {
        assert!(finding.evidence.len() <= limits::EVIDENCE_BYTES_MAX);
        assert!((finding.value as usize) < first.values().len());
    }
    for score in first.scores(&DETECTORS) {
        assert!(score.points.is_finite());
        assert!(score.blocks(Level::Strict) || !score.blocks(Level::Balanced), "strict is stricter");
    }
});
