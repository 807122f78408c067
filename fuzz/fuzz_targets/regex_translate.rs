//! Any bytes as a pattern: the translator returns a pattern or an error that points into it. What it accepts
//! and the engine can build is then searched in the bytes behind the first NUL, with and without captures.

#![no_main]

use libfuzzer_sys::fuzz_target;
use portcullis_match::{Regex, RegexFlags};

/// Long patterns and large counts only make the engine build for long; the translator is what is tested.
const PATTERN_MAX: usize = 200;

fuzz_target!(|data: &[u8]| {
    let Some((&bits, data)) = data.split_first() else { return };
    let flags =
        RegexFlags { case_insensitive: bits & 1 != 0, multi_line: bits & 2 != 0, dot_all: bits & 4 != 0 };
    let nul = data.iter().position(|&b| b == 0).unwrap_or(data.len());
    let (pattern, hay) = data.split_at(nul);
    match Regex::syntax(pattern, flags) {
        Err(error) => {
            assert!(error.offset < pattern.len().max(1), "{error}");
            assert!(!error.message.is_empty());
            return;
        }
        Ok(_) if pattern.len() > PATTERN_MAX || large_count(pattern) => return,
        Ok(_) => {}
    }
    let Ok(regex) = Regex::new(pattern, flags) else { return };
    let mut cache = regex.cache();
    let mut groups = [None; 10];
    let found = regex.is_match_with(&mut cache, hay);
    assert_eq!(found, regex.captures_with(&mut cache, hay, &mut groups));
    assert_eq!(found, regex.is_match(hay));
    assert_eq!(found, groups[0].is_some());
    for span in groups.iter().flatten() {
        assert!(span.end as usize <= hay.len());
    }
});

/// True if a run of three or more digits is in the pattern.
fn large_count(pattern: &[u8]) -> bool {
    pattern.windows(3).any(|digits| digits.iter().all(u8::is_ascii_digit))
}
