//! A Referer that repeats an attack: the browser of a visitor sends the address of the page with each picture
//! and style of it.

use portcullis_event::Event;
use portcullis_http::message::RequestHead;
use portcullis_types::Place;

/// Nothing but the Referer told of an attack, and it names a page of the host that is asked: the request of
/// that page was judged by itself, and one attack makes one offence.
pub(crate) fn is_echo(event: &Event, head: &RequestHead) -> bool {
    let mut referers = head.header("referer");
    let (Some(referer), None) = (referers.next(), referers.next()) else { return false };
    let Some(host) = head.header("host").next() else { return false };
    let of_referer = |target: &str| {
        let name = target.split_once(':').filter(|(of, _)| of.eq_ignore_ascii_case("REQUEST_HEADERS"));
        name.is_some_and(|(_, name)| name.eq_ignore_ascii_case("referer"))
    };
    let findings = event.findings.iter();
    let matches = event.matches.iter().filter(|rule| !rule.target.starts_with("TX:"));
    // A rule tells of one place where it matched: what else is in the request shows no sign of being another.
    is_of(referer, host)
        && (event.matches.is_empty() || is_plain(head.target()))
        && !(event.findings.is_empty() && event.matches.is_empty())
        && findings
            .clone()
            .all(|found| found.place == Place::Header && found.name.eq_ignore_ascii_case("referer"))
        && matches.clone().all(|rule| of_referer(&rule.target))
        && event.findings_omitted + event.findings_below + event.matches_omitted == 0
}

/// `https://a.example/x` and `a.example`
fn is_of(referer: &[u8], host: &[u8]) -> bool {
    let rest = referer.strip_prefix(b"https://").or_else(|| referer.strip_prefix(b"http://"));
    let Some(rest) = rest else { return false };
    let end = rest.iter().position(|b| matches!(b, b'/' | b'?' | b'#')).unwrap_or(rest.len());
    !host.is_empty() && rest[..end].eq_ignore_ascii_case(host)
}

/// Such a target has a picture or style, with a version behind it.
fn is_plain(target: &[u8]) -> bool {
    target.iter().all(|b| b.is_ascii_alphanumeric() || b"/_.-~?=&".contains(b))
        && !target.windows(2).any(|two| two == b"..")
}
