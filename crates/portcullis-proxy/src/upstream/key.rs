//! Keys of consistent hashing: the client's address, a header or a cookie.

use std::net::IpAddr;

use portcullis_balance::hash;
use portcullis_config::HashBy;
use portcullis_http::message::RequestHead;

/// The hash of the request's key; none if it has none.
pub(crate) fn key(by: &HashBy, head: &RequestHead, client: IpAddr) -> Option<u64> {
    match by {
        HashBy::Client => Some(match client.to_canonical() {
            IpAddr::V4(address) => hash(&address.octets()),
            IpAddr::V6(address) => hash(&address.octets()),
        }),
        HashBy::Header(name) => head.header(name).next().filter(|value| !value.is_empty()).map(hash),
        HashBy::Cookie(name) => cookie(head, name.as_bytes()).filter(|value| !value.is_empty()).map(hash),
    }
}

/// The value of the first cookie of this name. Names of cookies have a case.
pub(crate) fn cookie<'h>(head: &'h RequestHead, name: &[u8]) -> Option<&'h [u8]> {
    let pairs = head.header("cookie").flat_map(|value| value.split(|byte| *byte == b';'));
    pairs.map(<[u8]>::trim_ascii).find_map(|pair| pair.strip_prefix(name)?.strip_prefix(b"="))
}
