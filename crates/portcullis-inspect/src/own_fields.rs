//! Header fields and cookies that are an application's own: what its scripts and clients send, beside what
//! HTTP and browsers do.

use portcullis_http::message::RequestHead;
use portcullis_learn::{FieldPlace, Fields};
use portcullis_semantic::Issuer;
use portcullis_types::percent_decode;

/// Notes the header fields and cookies of a request that are an application's own. Cookies that the site has
/// issued are known by that.
pub(crate) fn note(head: &RequestHead, issuer: Option<&dyn Issuer>, fields: &mut Fields) {
    for (name, value) in head.fields() {
        if name.eq_ignore_ascii_case(b"cookie") {
            note_cookies(value, issuer, fields);
        } else if is_own(name) {
            fields.note(FieldPlace::Header, name, value.trim_ascii());
        }
    }
}

fn note_cookies(cookies: &[u8], issuer: Option<&dyn Issuer>, fields: &mut Fields) {
    for cookie in cookies.split(|b| *b == b';').map(<[u8]>::trim_ascii) {
        let Some(at) = cookie.iter().position(|b| *b == b'=') else { continue };
        let (name, value) = (&cookie[..at], &cookie[at + 1..]);
        if issuer.is_some_and(|issuer| issuer.has_issued(name, value)) {
            continue;
        }
        let value = match value {
            [b'"', quoted @ .., b'"'] => quoted,
            value => value,
        };
        match value.contains(&b'%') {
            true => fields.note(FieldPlace::Cookie, name, &percent_decode(value, false)),
            false => fields.note(FieldPlace::Cookie, name, value),
        }
    }
}

/// True for header fields of an application's own: those that neither a standard defines nor a browser or a
/// proxy sends by itself, and that scripts may set.
fn is_own(name: &[u8]) -> bool {
    let begins =
        |prefix: &[u8]| name.get(..prefix.len()).is_some_and(|head| head.eq_ignore_ascii_case(prefix));
    if name.is_empty() || begins(b"sec-") || begins(b"proxy-") || begins(b"x-forwarded-") {
        return false;
    }
    let mut slot = slot(name);
    while let Some(known) = SLOTS[slot].checked_sub(1) {
        if NAMES[usize::from(known)].as_bytes().eq_ignore_ascii_case(name) {
            return false;
        }
        slot = (slot + 1) % SLOTS.len();
    }
    true
}

/// A number of the length of a name and of three of its bytes, the same for upper and lower case.
const fn slot(name: &[u8]) -> usize {
    let (first, middle, last) = (name[0] | 0x20, name[name.len() / 2] | 0x20, name[name.len() - 1] | 0x20);
    (name.len() * 53 + first as usize * 7 + middle as usize * 131 + last as usize * 17) % SLOTS.len()
}

/// By the [`slot`] of a name or behind it, its number in [`NAMES`] and one more; 0 where there is none.
static SLOTS: [u8; 1024] = {
    let (mut slots, mut at) = ([0; 1024], 0);
    while at < NAMES.len() {
        let mut slot = slot(NAMES[at].as_bytes());
        while slots[slot] != 0 {
            slot = (slot + 1) % slots.len();
        }
        slots[slot] = at as u8 + 1;
        at += 1;
    }
    slots
};

/// The names of the registry of HTTP fields (RFC 9110, section 16.3.1), but for those that begin with `sec-`
/// and `proxy-`; behind them those that browsers send by themselves and by which proxies name the client, and
/// that are not in it.
const NAMES: [&str; 253] = [
    "a-im",
    "accept",
    "accept-additions",
    "accept-ch",
    "accept-charset",
    "accept-datetime",
    "accept-encoding",
    "accept-features",
    "accept-language",
    "accept-patch",
    "accept-post",
    "accept-ranges",
    "accept-signature",
    "access-control",
    "access-control-allow-credentials",
    "access-control-allow-headers",
    "access-control-allow-methods",
    "access-control-allow-origin",
    "access-control-expose-headers",
    "access-control-max-age",
    "access-control-request-headers",
    "access-control-request-method",
    "age",
    "allow",
    "alpn",
    "alt-svc",
    "alt-used",
    "alternates",
    "amp-cache-transform",
    "apply-to-redirect-ref",
    "authentication-control",
    "authentication-info",
    "authorization",
    "available-dictionary",
    "c-ext",
    "c-man",
    "c-opt",
    "c-pep",
    "c-pep-info",
    "cache-control",
    "cache-status",
    "cal-managed-id",
    "caldav-timezones",
    "capsule-protocol",
    "cdn-cache-control",
    "cdn-loop",
    "cert-not-after",
    "cert-not-before",
    "clear-site-data",
    "client-cert",
    "client-cert-chain",
    "close",
    "cmcd-object",
    "cmcd-request",
    "cmcd-session",
    "cmcd-status",
    "cmsd-dynamic",
    "cmsd-static",
    "concealed-auth-export",
    "configuration-context",
    "connection",
    "content-base",
    "content-digest",
    "content-disposition",
    "content-encoding",
    "content-id",
    "content-language",
    "content-length",
    "content-location",
    "content-md5",
    "content-range",
    "content-script-type",
    "content-security-policy",
    "content-security-policy-report-only",
    "content-style-type",
    "content-type",
    "content-version",
    "cookie",
    "cookie2",
    "cross-origin-embedder-policy",
    "cross-origin-embedder-policy-report-only",
    "cross-origin-opener-policy",
    "cross-origin-opener-policy-report-only",
    "cross-origin-resource-policy",
    "cta-common-access-token",
    "dasl",
    "date",
    "dav",
    "default-style",
    "delta-base",
    "deprecation",
    "depth",
    "derived-from",
    "destination",
    "dictionary-id",
    "differential-id",
    "digest",
    "dpop",
    "dpop-nonce",
    "early-data",
    "ediint-features",
    "etag",
    "expect",
    "expect-ct",
    "expires",
    "ext",
    "forwarded",
    "from",
    "getprofile",
    "hobareg",
    "host",
    "http2-settings",
    "if",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-schedule-tag-match",
    "if-unmodified-since",
    "im",
    "include-referred-token-binding-id",
    "isolation",
    "keep-alive",
    "label",
    "last-event-id",
    "last-modified",
    "link",
    "link-template",
    "location",
    "lock-token",
    "man",
    "max-forwards",
    "memento-datetime",
    "meter",
    "method-check",
    "method-check-expires",
    "mime-version",
    "negotiate",
    "nel",
    "odata-entityid",
    "odata-isolation",
    "odata-maxversion",
    "odata-version",
    "opt",
    "optional-www-authenticate",
    "ordering-type",
    "origin",
    "origin-agent-cluster",
    "oscore",
    "oslc-core-version",
    "overwrite",
    "p3p",
    "pep",
    "pep-info",
    "permissions-policy",
    "pics-label",
    "ping-from",
    "ping-to",
    "position",
    "pragma",
    "prefer",
    "preference-applied",
    "priority",
    "profileobject",
    "protocol",
    "protocol-info",
    "protocol-query",
    "protocol-request",
    "public",
    "public-key-pins",
    "public-key-pins-report-only",
    "range",
    "redirect-ref",
    "referer",
    "referer-root",
    "referrer-policy",
    "refresh",
    "repeatability-client-id",
    "repeatability-first-sent",
    "repeatability-request-id",
    "repeatability-result",
    "replay-nonce",
    "reporting-endpoints",
    "repr-digest",
    "retry-after",
    "safe",
    "schedule-reply",
    "schedule-tag",
    "security-scheme",
    "server",
    "server-timing",
    "set-cookie",
    "set-cookie2",
    "setprofile",
    "signature",
    "signature-input",
    "slug",
    "soapaction",
    "status-uri",
    "strict-transport-security",
    "sunset",
    "surrogate-capability",
    "surrogate-control",
    "tcn",
    "te",
    "timeout",
    "timing-allow-origin",
    "topic",
    "traceparent",
    "tracestate",
    "trailer",
    "transfer-encoding",
    "ttl",
    "upgrade",
    "urgency",
    "uri",
    "use-as-dictionary",
    "user-agent",
    "variant-vary",
    "vary",
    "via",
    "want-content-digest",
    "want-digest",
    "want-repr-digest",
    "warning",
    "www-authenticate",
    "x-content-type-options",
    "x-frame-options",
    // Browsers.
    "dnt",
    "save-data",
    "ect",
    "rtt",
    "downlink",
    "dpr",
    "width",
    "viewport-width",
    "device-memory",
    "x-moz",
    "upgrade-insecure-requests",
    "purpose",
    "x-purpose",
    "x-client-data",
    "service-worker",
    "service-worker-navigation-preload",
    "content-dpr",
    // Proxies.
    "x-real-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-original-forwarded-for",
    "x-envoy-external-address",
    "true-client-ip",
    "cf-connecting-ip",
    "fastly-client-ip",
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Each name is found, in any case, and what an application invents is not.
    #[test]
    fn whose_a_header_is() {
        for name in NAMES {
            assert!(!is_own(name.as_bytes()) && !is_own(name.to_ascii_uppercase().as_bytes()), "{name}");
        }
        for name in ["Sec-Fetch-Site", "Proxy-Foo", "sec-x", "X-Forwarded-For", "x-forwarded-proto", ""] {
            assert!(!is_own(name.as_bytes()), "{name}");
        }
        for name in [
            "X-Requested-With",
            "X-Api-Version",
            "X-Forwarded",
            "tenant",
            "accept-x",
            "hos",
            "x",
            "-",
            "\u{ff}",
        ] {
            assert!(is_own(name.as_bytes()), "{name}");
        }
        assert!(NAMES.len() < 256);
    }

    /// Any value may stand in a cookie.
    #[test]
    fn cookies() {
        let mut fields = Fields::default();
        note_cookies(b"a=1; b=\"x\";;c; =7; d=%27%20or; e=; f=g=h", None, &mut fields);
        let seen: Vec<_> = fields.iter().map(|(field, name)| (name.to_vec(), field.carried.bytes)).collect();
        let expected = [(&b"a"[..], 1), (b"b", 1), (b"d", 4), (b"f", 3)];
        assert_eq!(seen, expected.map(|(name, bytes)| (name.to_vec(), bytes)));
    }
}
