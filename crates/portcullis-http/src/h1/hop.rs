//! Hop-by-hop header fields, which concern one connection only and are not passed on (RFC 9110, section
//! 7.6.1).

use super::semantics::reads_as;
use crate::message::{Fields, list};

/// The most options of `Connection` that are honoured as names of fields to remove.
const NAMED_MAX: usize = 32;

/// Fields made anew or dropped for every hop, whatever `Connection` says. `Expect` is here because the proxy
/// answers it.
pub fn is_hop_by_hop(name: &[u8]) -> bool {
    match name.len() {
        2 => name.eq_ignore_ascii_case(b"te"),
        6 => name.eq_ignore_ascii_case(b"expect"),
        7 => name.eq_ignore_ascii_case(b"trailer") || name.eq_ignore_ascii_case(b"upgrade"),
        10 => name.eq_ignore_ascii_case(b"connection") || name.eq_ignore_ascii_case(b"keep-alive"),
        14 => name.eq_ignore_ascii_case(b"http2-settings"),
        16 => name.eq_ignore_ascii_case(b"proxy-connection"),
        18 => name.eq_ignore_ascii_case(b"proxy-authenticate"),
        19 => name.eq_ignore_ascii_case(b"proxy-authorization"),
        _ => false,
    }
}

/// True for `Content-Length` and `Transfer-Encoding`.
pub fn is_framing(name: &[u8]) -> bool {
    match name.len() {
        14 => name.eq_ignore_ascii_case(b"content-length"),
        17 => name.eq_ignore_ascii_case(b"transfer-encoding"),
        _ => false,
    }
}

/// The fields that `Connection` names.
#[derive(Debug, Default)]
pub struct Named<'h>(Vec<&'h [u8]>);

impl<'h> Named<'h> {
    /// Reads the `Connection` fields.
    pub fn of(fields: Fields<'h>) -> Self {
        let values =
            fields.filter(|(name, _)| name.eq_ignore_ascii_case(b"connection")).map(|(_, value)| value);
        Named(values.flat_map(list).filter(|option| !is_end_to_end(option)).take(NAMED_MAX).collect())
    }

    /// True if `Connection` names `name`.
    pub fn contains(&self, name: &[u8]) -> bool {
        self.0.iter().any(|option| option.eq_ignore_ascii_case(name))
    }
}

/// Fields meant for every recipient. A client may not have them removed behind the rules' back by naming them
/// in `Connection`: the application would then see another request than was inspected.
fn is_end_to_end(name: &[u8]) -> bool {
    const PREFIXES: [&[u8]; 3] = [b"content-", b"x-forwarded-", b"sec-"];
    const NAMES: [&[u8]; 10] = [
        b"host",
        b"cookie",
        b"authorization",
        b"origin",
        b"referer",
        b"forwarded",
        b"x-real-ip",
        b"cache-control",
        b"via",
        b"range",
    ];
    NAMES.iter().any(|other| reads_as(name, other))
        || PREFIXES.iter().any(|prefix| name.get(..prefix.len()).is_some_and(|start| reads_as(start, prefix)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes() {
        for name in ["TE", "Connection", "keep-alive", "Upgrade", "Proxy-Connection", "Trailer", "Expect"] {
            assert!(is_hop_by_hop(name.as_bytes()), "{name}");
        }
        for name in
            ["Host", "Content-Type", "Cookie", "X-Forwarded-Host", "content_type", "Sec-WebSocket-Key"]
        {
            assert!(!is_hop_by_hop(name.as_bytes()), "{name}");
        }
        assert!(
            is_end_to_end(b"content_type") && is_end_to_end(b"X-Forwarded-For") && !is_end_to_end(b"x-own")
        );
    }
}
