//! Directives of Caddy that have no counterpart, and why.

/// Why a global option is left.
pub(crate) fn option(name: &str) -> &'static str {
    match name {
        "admin" => "the admin API of Portcullis is `admin.console`",
        "log" => "write `access_log` in the document",
        "metrics" => "metrics are at `admin.listen`",
        "protocols" | "max_header_size" | "timeouts" | "keepalive_interval" => {
            "limits towards clients are `timeouts`, `limits` and `http2`"
        }
        "local_certs" | "skip_install_trust" | "pki" => {
            "certificates of an authority of one's own are files here"
        }
        "layer4" => "only HTTP is served",
        _ => "a setting of Caddy itself; nothing has to stand for it",
    }
}

/// Directives that let only authenticated clients through.
pub(crate) const GUARDS: &[&str] =
    &["basic_auth", "basicauth", "forward_auth", "authorize", "authenticate", "authentik", "jwtauth", "oidc"];

/// Why a directive of a site is left.
pub(crate) fn directive(name: &str) -> &'static str {
    match name {
        "file_server" | "root" | "try_files" | "templates" | "php_fastcgi" | "browse" | "fs"
        | "frankenphp" | "php_server" => {
            "files and FastCGI are not served here: put a server for them behind, and a route to it"
        }
        name if GUARDS.contains(&name) => {
            "nobody is asked for a password here: keep a server that does behind, or ask it with an agent"
        }
        "log" | "log_append" | "log_skip" | "skip_log" | "log_name" => "write `access_log` in the document",
        "handle_errors" | "error" | "intercept" => {
            "pages of upstreams pass as they are; `block_page.file` is for our own"
        }
        "rate_limit" => "write `rate_limits` of the site or route",
        "rewrite" | "uri" | "method" | "map" | "vars" | "invoke" | "copy_response" => {
            "paths are rewritten by `rewrite` of a route; variables are not known"
        }
        "tracing" => "traces are `tracing` of the document",
        "acme_server" | "metrics" | "push" | "forward_proxy" | "webdav" | "mercure" | "vulcain" => {
            "no such service is here"
        }
        "cache" => "nothing is cached here",
        "coraza_waf" => "rules for a condition that a site cannot have",
        _ => "not known to the migration",
    }
}
