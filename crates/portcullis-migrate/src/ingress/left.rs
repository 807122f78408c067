//! Settings of ingress-nginx that have no counterpart, and why.

use crate::inline::BuiltIn;

/// What an `Include` of a snippet names.
pub(crate) fn built_in(name: &str) -> BuiltIn {
    if name.contains("owasp-modsecurity-crs") {
        BuiltIn::Crs
    } else if name.ends_with("/modsecurity/modsecurity.conf") {
        BuiltIn::Settings
    } else {
        BuiltIn::No
    }
}

/// Why a key of the ConfigMap is left.
pub(crate) fn config_map(key: &str) -> &'static str {
    match key {
        "http-snippet" | "server-snippet" | "location-snippet" | "main-snippet" | "stream-snippet" => SNIPPET,
        "proxy-set-headers" | "add-headers" | "custom-headers" => {
            "it names another ConfigMap: write its fields in request_headers and response_headers of the sites"
        }
        "custom-http-errors" => "pages of upstreams pass as they are; `block_page.file` is for our own",
        _ if key.starts_with("log-") || key.contains("access-log") || key.starts_with("error-log") => {
            "write `access_log` in the document"
        }
        _ if key.starts_with("ssl-") => {
            "cipher suites, sessions and stapling are those of rustls: docs/tls.md"
        }
        _ if key.starts_with("worker-")
            || key.starts_with("upstream-keepalive")
            || key.starts_with("keep-alive") =>
        {
            NGINX
        }
        _ if key.contains("opentelemetry") || key.contains("otel") => "traces are `tracing` of the document",
        _ => NGINX,
    }
}

/// Why an annotation is left.
pub(crate) fn annotation(name: &str) -> &'static str {
    match name {
        "configuration-snippet" | "server-snippet" | "stream-snippet" => SNIPPET,
        "modsecurity-transaction-id" => "the id of a request is our own, `{request_id}`",
        "limit-connections" | "limit-rate" | "limit-rate-after" => {
            "the number of connections is bounded by `limits` of the document"
        }
        "limit-whitelist" | "limit-allowlist" => "write `except` in `rate_limits`",
        "default-backend" | "custom-http-errors" => {
            "pages of upstreams pass as they are; `block_page.file` is for our own"
        }
        "proxy-next-upstream" | "proxy-next-upstream-tries" | "proxy-next-upstream-timeout" => {
            "which failures are tried again is `retry` of the upstream"
        }
        "from-to-www-redirect" => "write a site for the other name with a redirect",
        "custom-headers" => "it names a ConfigMap: write its fields in response_headers",
        _ if name.starts_with("auth-") || name == "satisfy" || name.starts_with("global-auth") => {
            "no password is asked for here, and nobody else is: keep a server that does behind, or ask it with an agent"
        }
        _ if name.starts_with("cors-") || name == "enable-cors" => {
            "write the fields in response_headers, or let the application answer"
        }
        _ if name.starts_with("canary") => {
            "shares of traffic by header or weight: `weight` of an endpoint, or a route with `headers`"
        }
        _ if name.starts_with("proxy-ssl-") => "write `tls` of the upstream, with files that are mounted",
        _ if name.starts_with("ssl-") => "cipher suites and sessions are those of rustls: docs/tls.md",
        _ if name.starts_with("session-cookie") || name.starts_with("affinity") => {
            "the cookie is a session cookie with a value of our own"
        }
        _ if name.starts_with("mirror") => "requests are not copied",
        _ => NGINX,
    }
}

/// True if an annotation lets only some requests through, in a way that a document cannot say.
pub(crate) fn guards(name: &str, value: &str) -> bool {
    match name {
        "auth-url" | "auth-type" => !value.is_empty(),
        "auth-tls-secret" => true,
        "configuration-snippet" | "server-snippet" | "auth-snippet" => {
            let says = |line: &str| {
                let mut words = line.split_whitespace();
                let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
                matches!(first, "deny" | "auth_request" | "auth_basic" | "limit_except")
                    || (first == "return" && second.starts_with('4'))
            };
            value.lines().flat_map(|line| line.split(['{', ';', '}'])).any(says)
        }
        _ => false,
    }
}

const SNIPPET: &str =
    "directives of nginx: give them to `portcullis migrate nginx`, or say them in the document";
const NGINX: &str = "a setting of nginx itself, or one that nothing here stands for";
