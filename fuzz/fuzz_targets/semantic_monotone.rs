//! Values parted by byte 0xFF: a message of all of them is blocked if a message of one of them is. So nothing
//! that is added to an attack hides it: not the number of values, nor what is found in them, nor the work
//! they take.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use portcullis_semantic::{Analysis, Detectors, Level, Location, Place};

static DETECTORS: LazyLock<Detectors> = LazyLock::new(Detectors::new);

fn is_blocked(values: &[&[u8]]) -> bool {
    let mut analysis = Analysis::new();
    for value in values {
        analysis.value(&DETECTORS, Location::new(Place::Query, b"q"), value);
    }
    analysis.worst(&DETECTORS, Level::Balanced).is_some_and(|worst| worst.blocks(Level::Balanced))
}

fuzz_target!(|data: &[u8]| {
    let values: Vec<&[u8]> = data.split(|&b| b == 0xFF).take(64).collect();
    let Some(attack) = values.iter().find(|value| is_blocked(&[value])) else { return };
    assert!(is_blocked(&values), "others hide {}", attack.escape_ascii());
    // Far more of them than findings are kept.
    let flood: Vec<&[u8]> = values.iter().copied().cycle().take(values.len() * 16).collect();
    assert!(is_blocked(&flood), "many others hide {}", attack.escape_ascii());
});
