//! Byte 0: the separator; byte 1: chunk sizes; the rest: a form. Any chunking gives the same arguments, and
//! there are as many as the separators say.

#![no_main]

use libfuzzer_sys::fuzz_target;
use portcullis_fuzz::same_in_any_chunks;
use portcullis_http::body::{Limits, UrlEncoded};

fuzz_target!(|data: &[u8]| {
    let [separator, seed, body @ ..] = data else { return };
    let limits = Limits { arguments_max: usize::MAX, ..Limits::default() };
    let new = || UrlEncoded::with_separator(limits.clone(), *separator);
    let report = same_in_any_chunks(body, *seed, new, UrlEncoded::feed, UrlEncoded::finish);
    let separators = body.iter().filter(|&b| b == separator).count();
    let open_end = body.last().is_some_and(|last| last != separator);
    assert_eq!(report.arguments, separators + usize::from(open_end));
    assert!(report.error.is_none());
});
