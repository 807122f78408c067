//! Byte 0: the naming; byte 1: chunk sizes; the rest: JSON. Any chunking gives the same values and error, and
//! what is accepted here is accepted by serde_json and the other way round (except halves of surrogate
//! pairs).

#![no_main]

use libfuzzer_sys::fuzz_target;
use portcullis_fuzz::same_in_any_chunks;
use portcullis_http::body::{Ambiguity, Json, JsonNames, Limits};

fuzz_target!(|data: &[u8]| {
    let [names, seed, body @ ..] = data else { return };
    let names = if names & 1 == 0 { JsonNames::ModSecurity2 } else { JsonNames::ModSecurity3 };
    let limits = Limits { arguments_max: usize::MAX, path_bytes_max: usize::MAX, ..Limits::default() };
    let new = || Json::with_names(limits.clone(), names);
    let report = same_in_any_chunks(body, *seed, new, Json::feed, Json::finish);
    // serde_json stops at 128 levels.
    let deep = body.iter().filter(|b| matches!(b, b'[' | b'{')).count() > 100;
    if !body.is_empty() && !deep && !report.ambiguities.contains(Ambiguity::LoneSurrogate) {
        // Ignoring a value, it does not look at the encoding of its strings.
        let text = std::str::from_utf8(body);
        let accepted = text.is_ok_and(|text| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok());
        assert_eq!(report.error.is_none(), accepted, "{:?}", report.error);
    }
});
