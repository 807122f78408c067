//! A URL: its parts lie in it in order, its hosts in its authority, and a host that is an address reads the
//! same again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use portcullis_lex::url::{Address, Host, Url, scheme_before};

fuzz_target!(|text: &[u8]| {
    let Some(colon) = text.iter().position(|&b| b == b':') else { return };
    let start = scheme_before(text, colon);
    assert!(start <= colon);
    let Some(url) = Url::read(text, start, colon, |b| b == b'"') else { return };
    assert!(url.scheme.end <= url.authority.start && url.authority.end == url.path.start);
    assert!(url.path.end == url.span.end && url.span.end as usize <= text.len());
    for bytes in url.hosts(text) {
        let host = Host::read(bytes);
        if let Some(Address::V4 { address, .. }) = host.address {
            let again = Host::read(address.to_string().as_bytes());
            assert_eq!(again.address, Some(Address::V4 { address, is_odd: false }));
        }
    }
});
