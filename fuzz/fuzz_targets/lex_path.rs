//! A path in any encoding: characters are at least a byte, the path that is read ends where it should, its
//! names lie in it in order, and it never climbs further than it has steps up.

#![no_main]

use libfuzzer_sys::fuzz_target;
use portcullis_lex::path::{Path, unit};

fuzz_target!(|text: &[u8]| {
    let mut at = 0;
    while at < text.len() {
        let unit = unit(&text[at..]);
        assert!(unit.len >= 1 && at + unit.len <= text.len());
        at += unit.len;
    }
    let path = Path::read(text, 0, |b| b == b'\n');
    assert!(path.span.end as usize <= text.len());
    assert!(path.climb <= path.ups && path.ups_odd <= path.ups_encoded && path.ups_encoded <= path.ups);
    let mut end = 0;
    for name in path.names() {
        assert!(end <= name.start && name.end <= path.span.end);
        end = name.end;
    }
    let mut buffer = [0; 64];
    assert!(path.target(text, &mut buffer) <= buffer.len());
});
