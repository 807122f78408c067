//! Directives that have no counterpart, and why.

/// Sections for files.
pub(crate) const FILES: &str = "files are not served here: put a server for them behind, and a route to it";
/// Sections with a condition.
pub(crate) const CONDITIONS: &str = "conditions are not read: say it as routes, or as a rule";

/// Why a directive is not taken over, by its name in lower case.
pub(crate) fn why(name: &str) -> Option<&'static str> {
    let known = REASONS.iter().find(|(_, names)| names.contains(&name)).map(|(why, _)| *why);
    known.or_else(|| {
        let found =
            PREFIXES.iter().find(|(_, prefixes)| prefixes.iter().any(|prefix| name.starts_with(prefix)));
        found.map(|(why, _)| *why)
    })
}

const REASONS: &[(&str, &[&str])] = &[
    (
        "a setting of Apache itself; nothing has to stand for it",
        &[
            "user",
            "group",
            "loadmodule",
            "loadfile",
            "pidfile",
            "mutex",
            "serveradmin",
            "serversignature",
            "servertokens",
            "hostnamelookups",
            "traceenable",
            "usecanonicalname",
            "usecanonicalphysicalport",
            "defaultruntimedir",
            "maxkeepaliverequests",
            "startservers",
            "minspareservers",
            "maxspareservers",
            "minsparethreads",
            "maxsparethreads",
            "threadlimit",
            "threadsperchild",
            "maxrequestworkers",
            "maxclients",
            "maxconnectionsperchild",
            "maxrequestsperchild",
            "serverlimit",
            "accessfilename",
            "typesconfig",
            "mimemagicfile",
            "addtype",
            "addhandler",
            "sethandler",
            "addcharset",
            "adddefaultcharset",
            "namevirtualhost",
            "enablesendfile",
            "enablemmap",
            "acceptfilter",
            "protocols",
            "protocolshonororder",
            "setenvif",
            "setenvifnocase",
            "browsermatch",
            "setenv",
            "unsetenv",
            "passenv",
            "fileetag",
            "contentdigest",
            "extendedstatus",
            "allowencodedslashes",
            "httpprotocoloptions",
            "registerhttpmethod",
            "mergeslashes",
            "unsetenvif",
            "serverpath",
            "limitrequestfields",
            "limitrequestfieldsize",
            "limitrequestline",
            "mdcertificateagreement",
        ],
    ),
    (
        FILES,
        &[
            "documentroot",
            "directoryindex",
            "alias",
            "aliasmatch",
            "scriptalias",
            "scriptaliasmatch",
            "options",
            "allowoverride",
            "indexoptions",
            "addicon",
            "addiconbytype",
            "addiconbyencoding",
            "defaulticon",
            "readmename",
            "headername",
            "indexignore",
            "expiresactive",
            "expiresbytype",
            "expiresdefault",
            "addencoding",
            "addlanguage",
            "languagepriority",
            "forcelanguagepriority",
            "userdir",
            "fallbackresource",
            "php_value",
            "php_admin_value",
            "php_flag",
            "php_admin_flag",
        ],
    ),
    (
        "write `access_log` or `error_log` in the document, with a file that Portcullis may write to",
        &[
            "customlog",
            "errorlog",
            "loglevel",
            "logformat",
            "transferlog",
            "globallog",
            "errorlogformat",
            "forensiclog",
        ],
    ),
    (
        "no password is asked for here: keep a server that does behind, or ask it with an agent",
        &[
            "authtype",
            "authname",
            "authuserfile",
            "authgroupfile",
            "authbasicprovider",
            "authdigestprovider",
            "satisfy",
        ],
    ),
    (
        "pages of upstreams pass as they are; `block_page.file` is for our own",
        &["errordocument", "proxyerroroverride"],
    ),
    (
        "the time limits towards clients are `timeouts` of the document",
        &["timeout", "keepalive", "keepalivetimeout", "requestreadtimeout"],
    ),
    ("the proxy writes forwarding headers itself", &["proxyaddheaders", "proxyvia"]),
    ("write `access.allow` and `access.deny` of the site or route", &["order", "allow", "deny"]),
    (
        "cookies of upstreams pass as they are",
        &["proxypassreversecookiedomain", "proxypassreversecookiepath"],
    ),
    (
        "requests are never forwarded where the client says",
        &["proxyrequests", "proxyremote", "proxydomain", "noproxy"],
    ),
    (
        "bodies of upstreams pass as they are",
        &[
            "substitute",
            "proxyhtmlenable",
            "proxyhtmlurlmap",
            "addoutputfilter",
            "setoutputfilter",
            "setinputfilter",
        ],
    ),
    (
        "which failures are tried again is `retry` of the upstream",
        &["proxystatus", "proxybadheader", "proxyiobuffersize"],
    ),
    (CONDITIONS, &["if", "elseif", "else"]),
];

const PREFIXES: &[(&str, &[&str])] = &[
    ("cipher suites, sessions and stapling are those of rustls: docs/tls.md", &["ssl"]),
    ("no password is asked for here: keep a server that does behind", &["auth", "oidc", "mellon"]),
    ("nothing is cached here", &["cache"]),
    ("what is compressed, and how, is `compression`", &["deflate", "brotli", "filter"]),
    ("HTTP/2 is on where there is TLS; its limits are `http2` of the listener", &["h2"]),
    ("rate limits and bans are `rate_limits` and `ban`", &["dos", "qs_"]),
    ("programs do not run here", &["lua", "wsgi", "passenger", "cgi", "script", "fcgi"]),
    ("certificates are ordered with `tls = { acme = {} }` and `[acme]`", &["md"]),
];
