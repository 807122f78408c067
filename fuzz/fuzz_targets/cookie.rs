//! Byte 0: format and separator; the rest: a `Cookie` header. Spans rise and stay inside, names are never
//! empty, and a cookie cut out and parsed alone (format 0) is the same cookie.

#![no_main]

use libfuzzer_sys::fuzz_target;
use portcullis_http::cookie::{CookieFormat, parse};

fuzz_target!(|data: &[u8]| {
    let [options, header @ ..] = data else { return };
    let format = if options & 1 == 0 { CookieFormat::V0 } else { CookieFormat::V1 };
    let separator = (options & 2 != 0).then_some(options >> 2 | 0x20);
    let found = parse(header, format, separator);
    let mut end = 0;
    for cookie in &found.cookies {
        assert!(!cookie.name.is_empty());
        assert!(end <= cookie.name.start && cookie.name.end <= cookie.value.start);
        assert!(cookie.value.end as usize <= header.len());
        end = cookie.value.end;
        assert!(!cookie.full_name(header).is_empty());
        if format == CookieFormat::V0 {
            let alone = &header[cookie.name.start as usize..cookie.value.end as usize];
            let again = parse(alone, format, separator.or(Some(b';'))).cookies;
            if !alone.contains(&b';') {
                assert_eq!(again.len(), 1);
                assert_eq!(again[0].full_name(alone), cookie.full_name(header));
                assert_eq!(again[0].value(alone), cookie.value(header));
            }
        }
    }
});
