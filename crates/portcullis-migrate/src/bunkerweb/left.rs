//! Settings that have no counterpart, and why.

/// Why a setting is left, by its name, with or without that of a service before it.
pub(crate) fn why(key: &str) -> &'static str {
    let reason = REASONS.iter().find(|(_, parts)| parts.iter().any(|part| key.contains(part)));
    reason.map_or("a setting of BunkerWeb itself, or one that nothing here stands for", |(why, _)| *why)
}

const REASONS: &[(&str, &[&str])] = &[
    (
        "a setting of BunkerWeb itself; nothing has to stand for it",
        &["API_", "DATABASE_", "BUNKERWEB_INSTANCES"],
    ),
    (
        "files and FastCGI are not served here: put a server for them behind, and a route to it",
        &["SERVE_FILES", "ROOT_FOLDER", "REMOTE_PHP", "LOCAL_PHP", "CLIENT_CACHE"],
    ),
    (
        "nobody is asked for a password or to be human here: keep a server that does behind, or ask it with an agent",
        &["AUTH_BASIC", "ANTIBOT", "AUTH_REQUEST"],
    ),
    ("clients are banned by `ban`, by what inspection finds", &["BAD_BEHAVIOR"]),
    (
        "write lists of `access`, with files or countries (`geo`) if need be",
        &["BLACKLIST", "WHITELIST", "GREYLIST", "COUNTRY"],
    ),
    ("a rule may ask a block list in DNS: `@rbl`", &["DNSBL", "BUNKERNET", "CROWDSEC"]),
    ("write the fields in response_headers", &["CORS", "COOKIE_FLAGS", "COOKIE_AUTO"]),
    ("the number of connections is bounded by `limits` of the document", &["LIMIT_CONN"]),
    ("plugins of the CRS go into the folder of the CRS", &["CRS_PLUGINS"]),
    (
        "cipher suites and sessions are those of rustls, and files are named in `tls`: docs/tls.md",
        &["SSL_", "LETS_ENCRYPT"],
    ),
    ("pages of upstreams pass as they are; `block_page.file` is for our own", &["ERRORS", "INTERCEPT"]),
    ("write `access_log` in the document", &["LOG_FORMAT", "ACCESS_LOG", "ERROR_LOG", "LOG_LEVEL"]),
    ("bodies of upstreams pass as they are", &["INJECT_BODY", "INJECT_HEAD"]),
];
