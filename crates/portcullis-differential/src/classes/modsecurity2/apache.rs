//! Reasons for Apache to refuse a request, and for its module to lose part of a value: looked for in the
//! request itself.

use portcullis_decode::Transformation;
use portcullis_reference::Request;
use portcullis_types::percent_decode;

use super::super::Case;
use crate::Link;

/// The request has something that Apache answers 400 to before any rule.
pub(super) fn refuses(request: &Request) -> bool {
    let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    let odd_field = request.headers.iter().any(|(name, value)| {
        let control = |byte: &u8| (*byte < b' ' && *byte != b'\t') || *byte == 0x7f;
        name.is_empty() || !name.iter().all(is_token) || value.iter().any(control)
    });
    let hosts: Vec<&[u8]> = request
        .headers
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case(b"Host"))
        .map(|(_, value)| value.as_slice())
        .collect();
    let is_host = |byte: &u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(byte);
    let odd_host = hosts.len() != 1 || !hosts.iter().all(|host| host.iter().all(is_host));
    odd_field || odd_host || is_odd_target(&request.uri)
}

/// A target that is no path, or has bytes or escapes that no path may have.
fn is_odd_target(target: &[u8]) -> bool {
    let path = target.split(|&byte| byte == b'?').next().unwrap_or_default();
    let bad_byte = |byte: &u8| *byte <= b' ' || *byte >= 0x7f || b"\"<>\\^`{|}".contains(byte);
    let bad_escape = |at: usize| match path.get(at + 1..at + 3) {
        Some(digits) => !digits.iter().all(u8::is_ascii_hexdigit) || digits == b"00",
        None => true,
    };
    let escapes = path.iter().enumerate().filter(|(_, byte)| **byte == b'%').any(|(at, _)| bad_escape(at));
    // A path that climbs above the root.
    let climbs = path.windows(2).any(|pair| pair == b"..")
        || path.windows(3).any(|three| three.eq_ignore_ascii_case(b"%2e"));
    !target.starts_with(b"/") || target.iter().any(bad_byte) || escapes || climbs
}

/// One of the transformations that stop at a zero byte meets one, or makes one, in a piece of the request on
/// the link's way.
pub(super) fn loses_what_follows_a_zero(link: &Link, case: &Case<'_>) -> bool {
    let stops = |name: &str| matches!(name, "cmdLine" | "sqlHexDecode" | "base64DecodeExt");
    on_the_way(link, case, &|name, steps| {
        let [.., before, after] = steps else { return false };
        stops(name) && (before.contains(&0) || after.contains(&0))
    })
}

/// One of the transformations that read up to a zero byte comes behind one that made a piece of the request
/// shorter.
pub(super) fn reads_beyond(link: &Link, case: &Case<'_>) -> bool {
    let reads = |name: &str| matches!(name, "base64Decode" | "cmdLine" | "sqlHexDecode" | "base64DecodeExt");
    on_the_way(link, case, &|name, steps| {
        let [earlier @ .., before, _] = steps else { return false };
        reads(name) && earlier.iter().any(|value| value.len() > before.len())
    })
}

/// `is_such` holds for a transformation of the link and the values up to it, its own last, of some piece of
/// the request.
fn on_the_way(link: &Link, case: &Case<'_>, is_such: &dyn Fn(&str, &[Vec<u8>]) -> bool) -> bool {
    let names: Vec<&str> = link.actions.iter().filter_map(|action| action.strip_prefix("t:")).collect();
    let own = names.iter().rposition(|name| *name == "none").map_or(0, |at| at + 1);
    let names = names.get(own..).unwrap_or_default();
    let entries = case.ours.trace.iter().chain(&case.theirs.trace).map(|entry| entry.value.to_vec());
    let tx = case.ours.tx.iter().flatten().map(|(_, value)| value.to_vec());
    pieces(case.request).into_iter().chain(entries).chain(tx).any(|piece| {
        let mut steps = vec![piece];
        names.iter().any(|name| {
            let value = steps.last().cloned().unwrap_or_default();
            let mut made = Vec::new();
            let changed = Transformation::from_name(name).is_some_and(|t| t.apply(&value, &mut made));
            steps.push(if changed { made } else { value });
            is_such(name, &steps)
        })
    })
}

/// Returns the possible values of the request, raw and with escapes undone.
fn pieces(request: &Request) -> Vec<Vec<u8>> {
    let wire = crate::wire(request);
    let cuts = |byte: &u8| b"&=?;,\"'<> \r\n".contains(byte);
    let mut out: Vec<Vec<u8>> =
        wire.split(cuts).filter(|piece| !piece.is_empty()).map(<[u8]>::to_vec).collect();
    // Whole lines, too: a field's value has blanks and separators in it.
    out.extend(wire.split(|&byte| byte == b'\n').map(<[u8]>::to_vec));
    let decoded: Vec<Vec<u8>> = out.iter().map(|piece| percent_decode(piece, true)).collect();
    out.extend(decoded);
    out
}
