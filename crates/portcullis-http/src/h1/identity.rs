//! Fields by which proxies in front tell who asks and what was asked for. From any other client they are a
//! claim that no application should see.

use super::semantics::reads_as;

/// Prefixes of the names of such fields.
const PREFIXES: [&[u8]; 3] = [b"x-forwarded-", b"x-original-", b"x-rewrite-"];
/// Suffixes of the names of such fields that begin with `x-`.
const SUFFIXES: [&[u8]; 11] = [
    b"-client-ip",
    b"-real-ip",
    b"-remote-ip",
    b"-connecting-ip",
    b"-originating-ip",
    b"proxyuser-ip",
    b"-clientip",
    b"-remote-addr",
    b"-remote-user",
    b"-remote-group",
    b"-remote-groups",
];
/// Whole names.
const NAMES: [&[u8]; 14] = [
    // Read as HTTP_PROXY by programs that get fields in variables.
    b"proxy",
    b"forwarded",
    b"true-client-ip",
    b"client-ip",
    b"cf-connecting-ip",
    b"cf-connecting-ipv6",
    b"fastly-client-ip",
    b"proxy-client-ip",
    b"wl-proxy-client-ip",
    b"remote-user",
    b"front-end-https",
    b"x-host",
    b"x-http-host-override",
    b"x-envoy-external-address",
];

/// Returns true if `name` is one of them, to a reader that gets fields in variables (see [`reads_as`]).
pub(super) fn is_identity(name: &[u8]) -> bool {
    let is_private = name.len() > 2 && reads_as(&name[..2], b"x-");
    let begins = |prefix: &[u8]| name.get(..prefix.len()).is_some_and(|part| reads_as(part, prefix));
    let ends = |suffix: &[u8]| {
        let at = name.len().checked_sub(suffix.len());
        at.is_some_and(|at| at > 0 && reads_as(&name[at..], suffix))
    };
    (is_private
        && (PREFIXES.iter().any(|prefix| begins(prefix)) || SUFFIXES.iter().any(|suffix| ends(suffix))))
        || NAMES.iter().any(|other| reads_as(name, other))
}

#[cfg(test)]
mod tests {
    use super::is_identity;

    #[test]
    fn claims_of_proxies_are_told_by_their_names() {
        for name in [
            "Proxy",
            "X-Original-URL",
            "x-rewrite-url",
            "X_Original_Url",
            "True-Client-IP",
            "true_client_ip",
            "X-Client-IP",
            "X-Cluster-Client-IP",
            "X-Real-IP",
            "CF-Connecting-IP",
            "X-Forwarded-User",
            "X-Forwarded-Prefix",
            "X-Remote-User",
            "Remote_User",
            "X-Azure-ClientIP",
            "X-Original-Host",
            "Forwarded",
            "X-Host",
            "X.Real.IP",
            "X+Real~IP",
            "Client.IP",
            "True!Client*IP",
            "Remote.User",
            "X.Original.URL",
            "X'Forwarded.Prefix",
        ] {
            assert!(is_identity(name.as_bytes()), "{name}");
        }
        for name in [
            "",
            "x-",
            "Host",
            "Cookie",
            "Content-Type",
            "X-Requested-With",
            "X-CSRF-Token",
            "X-Request-Id",
            "X-Ip",
            "X-Zip",
            "X-Equip",
            "Proxy-Status",
            "X-Forwarded",
            "X-Api-Key",
            "X-HTTP-Method-Override",
            "Traceparent",
            "X-Hostname",
            "X.Realty.IP.Count",
            "XX-Real-IP",
        ] {
            assert!(!is_identity(name.as_bytes()), "{name}");
        }
    }
}
