//! Byte 0: chunk sizes; up to the first NUL: the content type's parameters; the rest: a multipart body. Any
//! chunking gives the same parts, flags and error.

#![no_main]

use libfuzzer_sys::fuzz_target;
use portcullis_fuzz::same_in_any_chunks;
use portcullis_http::body::{Limits, Multipart};

fuzz_target!(|data: &[u8]| {
    let [seed, data @ ..] = data else { return };
    let nul = data.iter().position(|&b| b == 0).unwrap_or(0);
    let parameters = if nul == 0 { b"; boundary=b" } else { &data[..nul] };
    let body = data.get(nul + usize::from(nul > 0)..).unwrap_or_default();
    let content_type = [b"multipart/form-data", parameters].concat();
    let limits = Limits { multipart_parts_max: 9, multipart_files_max: 2, no_files_bytes_max: 9_000, ..Limits::default() };
    let new = || Multipart::new(limits.clone(), &content_type);
    let report = same_in_any_chunks(body, *seed, new, Multipart::feed, Multipart::finish);
    assert!(report.no_files_bytes <= report.bytes);
    assert!(!report.multipart.error || report.error.is_some());
});
