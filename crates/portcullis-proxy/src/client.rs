//! The address of the client: the peer of the socket, unless a trusted proxy says otherwise.

use std::net::SocketAddr;

use portcullis_access::Whereabouts;
use portcullis_config::{AddressHeader, ClientAddress};
use portcullis_event::{Client, limits, text};
use portcullis_http::forwarded;
use portcullis_http::message::RequestHead;

/// The address of the client. The port is 0 where only a header named the address.
pub(crate) fn address(settings: &ClientAddress, peer: SocketAddr, head: &RequestHead) -> SocketAddr {
    let trusted = |address| settings.trusts(address);
    let values = |name| head.header(name).collect::<Vec<_>>();
    let found = match settings.header {
        None => return peer,
        Some(AddressHeader::XForwardedFor) => {
            forwarded::x_forwarded_for(values("x-forwarded-for"), peer.ip(), trusted)
        }
        Some(AddressHeader::Forwarded) => forwarded::forwarded(values("forwarded"), peer.ip(), trusted),
    };
    match found == peer.ip().to_canonical() {
        true => peer,
        false => SocketAddr::new(found, 0),
    }
}

/// The id that a trusted proxy gave the request, if such ids are kept and it is one.
pub(crate) fn request_id(settings: &ClientAddress, peer: SocketAddr, head: &RequestHead) -> Option<String> {
    const BYTES_MAX: usize = 128;
    if !settings.keeps_request_ids || !settings.trusts(peer.ip()) {
        return None;
    }
    let mut values = head.header("x-request-id");
    let (id, None) = (std::str::from_utf8(values.next()?).ok()?, values.next()) else { return None };
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=:@".contains(&byte);
    ((1..=BYTES_MAX).contains(&id.len()) && id.bytes().all(is_fit)).then(|| id.to_string())
}

/// The client as events show it.
pub(crate) fn describe(
    settings: &ClientAddress,
    (client, place): (SocketAddr, Whereabouts),
    peer: SocketAddr,
    head: &RequestHead,
) -> Client {
    let mut shown = Client::from(client);
    shown.country = place.country.map(|code| code.to_string());
    shown.asn = place.asn;
    if client.ip() != peer.ip() {
        shown.peer = Some(peer.ip().to_string());
    }
    if settings.header == Some(AddressHeader::XForwardedFor) && settings.trusts(peer.ip()) {
        let entries = head.header("x-forwarded-for").flat_map(|value| value.split(|byte| *byte == b','));
        let entries = entries.take(limits::FORWARDED_FOR_MAX);
        shown.forwarded_for =
            entries.map(|entry| text(entry.trim_ascii(), limits::REQUEST_TOKEN_BYTES_MAX)).collect();
    }
    shown
}
