//! A Referer that repeats an attack.

use portcullis_event::Event;
use portcullis_http::message::RequestHead;

/// Nothing but the Referer told of an attack, and it names a page of the host that is asked: the request of
/// that page was judged by itself, and one attack makes one offence.
pub(crate) fn is_echo(event: &Event, head: &RequestHead) -> bool {
    let mut referers = head.header("referer");
    let (Some(referer), None) = (referers.next(), referers.next()) else { return false };
    let Some(host) = head.header("host").next() else { return false };
    is_of(referer, host) && event.is_only_in_referer(head.target())
}

/// `https://a.example/x` and `a.example`
fn is_of(referer: &[u8], host: &[u8]) -> bool {
    let rest = referer.strip_prefix(b"https://").or_else(|| referer.strip_prefix(b"http://"));
    let Some(rest) = rest else { return false };
    let end = rest.iter().position(|b| matches!(b, b'/' | b'?' | b'#')).unwrap_or(rest.len());
    !host.is_empty() && rest[..end].eq_ignore_ascii_case(host)
}
