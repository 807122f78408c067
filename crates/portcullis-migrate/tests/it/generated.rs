//! Configurations made of words that mean something, in any order.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use proptest::prelude::*;

const NAMES: &str = "\
listen server_name proxy_pass grpc_pass return rewrite modsecurity modsecurity_rules
modsecurity_rules_file ssl_certificate ssl_certificate_key ssl_protocols ssl_verify_client
ssl_client_certificate allow deny limit_req limit_req_zone limit_req_status add_header
proxy_set_header proxy_hide_header client_max_body_size gzip gzip_types proxy_read_timeout
set_real_ip_from real_ip_header resolver try_files root unheard_of server least_conn hash ip_hash
keepalive sticky error_page proxy_ssl_name proxy_ssl_trusted_certificate http2";

const BLOCKS: &str = "\
http server server server location location upstream if stream limit_except";

const APACHE: &str = "\
ServerName ServerAlias ServerAdmin ProxyPass ProxyPassMatch ProxyPassReverse ProxyPreserveHost
ProxyTimeout Redirect RedirectMatch RewriteEngine RewriteCond RewriteRule Header RequestHeader
Require SSLEngine SSLCertificateFile SSLCertificateKeyFile SSLProtocol SSLVerifyClient
SSLCACertificateFile SecRuleEngine SecRule SecRuleRemoveById RemoteIPHeader RemoteIPInternalProxy
RemoteIPProxyProtocol LimitRequestBody AddOutputFilterByType BalancerMember ProxySet Define Listen
DocumentRoot UnheardOf IncludeOptional";

const SECTIONS: &str = "\
Location LocationMatch Directory IfModule IfDefine Proxy If RequireAny RequireAll Limit LimitExcept
VirtualHost Files Macro";

const CADDY: &str = "\
reverse_proxy handle handle_path route redir respond abort header request_header encode tls bind
coraza_waf directives load_owasp_crs request_body max_size file_server basic_auth log uri @a @b
lb_policy health_uri header_up header_down transport to unheard_of path import_not rate_limit";

const ANNOTATIONS: &str = "\
enable-modsecurity enable-owasp-core-rules enable-owasp-modsecurity-crs modsecurity-snippet
ssl-redirect force-ssl-redirect rewrite-target use-regex app-root permanent-redirect
permanent-redirect-code server-alias backend-protocol proxy-body-size proxy-read-timeout affinity
session-cookie-name load-balance upstream-hash-by upstream-vhost limit-rps limit-rpm
limit-burst-multiplier whitelist-source-range denylist-source-range configuration-snippet auth-url
canary hsts hsts-max-age hsts-preload use-proxy-protocol use-forwarded-headers proxy-real-ip-cidr
ssl-protocols hide-headers use-gzip gzip-types unheard-of";

const SETTINGS: &str = "\
MULTISITE_NOT LISTEN_HTTP HTTP_PORT HTTPS_PORT USE_CUSTOM_SSL CUSTOM_SSL_CERT CUSTOM_SSL_KEY
AUTO_LETS_ENCRYPT EMAIL_LETS_ENCRYPT REDIRECT_HTTP_TO_HTTPS SSL_PROTOCOLS USE_REAL_IP REAL_IP_FROM
REAL_IP_HEADER USE_MODSECURITY USE_MODSECURITY_CRS MODSECURITY_CRS_VERSION
MODSECURITY_SEC_RULE_ENGINE MODSECURITY_SEC_AUDIT_ENGINE SECURITY_MODE X_FRAME_OPTIONS CUSTOM_HEADER
ALLOWED_METHODS REMOVE_HEADERS USE_GZIP MAX_CLIENT_SIZE WHITELIST_IP BLACKLIST_IP USE_LIMIT_REQ LIMIT_REQ_URL
LIMIT_REQ_RATE REVERSE_PROXY_HOST REVERSE_PROXY_URL REVERSE_PROXY_HEADERS REVERSE_PROXY_READ_TIMEOUT
CUSTOM_CONF_MODSEC_x CUSTOM_CONF_MODSEC_CRS_x USE_ANTIBOT SERVE_FILES UNHEARD_OF";

const ARGS: &[&str] = &[
    "80",
    "443",
    "ssl",
    "[::]:8080",
    "127.0.0.1:81",
    "unix:/x",
    "default_server",
    "proxy_protocol",
    "a.example",
    "*.a.example",
    ".b.example",
    "~^x",
    "_",
    "http://a",
    "http://a:8080/x/",
    "https://b",
    "https://$host$request_uri",
    "http://$x",
    "/",
    "/a/",
    "=",
    "~",
    "~*",
    "^~",
    "@app",
    "\\.php$",
    "^/a/(.*)$",
    "/b/$1",
    "break",
    "permanent",
    "on",
    "off",
    "301",
    "403",
    "444",
    "999",
    "all",
    "10.0.0.0/8",
    "10.0.0.0/99",
    "zone=a:1m",
    "rate=5r/s",
    "burst=3",
    "$binary_remote_addr",
    "Host",
    "X-A",
    "$host",
    "{client}",
    "{nobody}",
    "1m",
    "0",
    "99999999999999999999",
    "5s",
    "TLSv1.3",
    "/etc/a.pem",
    "$uri",
    "id:1",
    "cookie",
    "weight=2",
    "backup",
    "text/css",
    "\u{e9}",
    "a b",
    "\"",
    "'''",
    "\\",
    "\n",
    "($scheme = http)",
    "($host = a.example)",
    "\u{7f}",
    "GET",
    "POST",
];

const APACHE_ARGS: &[&str] = &[
    "/",
    "/a",
    "/a/",
    "^/b/(.*)$",
    "http://a/",
    "https://b:8443/x",
    "balancer://app",
    "balancer://app/",
    "!",
    "ajp://c",
    "http://d/$1",
    "On",
    "Off",
    "all",
    "granted",
    "denied",
    "ip",
    "10.0.0.0/8",
    "host",
    "set",
    "unset",
    "always",
    "X-A",
    "Host",
    "%{REMOTE_ADDR}s",
    "{client}",
    "{other}",
    "permanent",
    "410",
    "gone",
    "https://%{HTTP_HOST}%{REQUEST_URI}",
    "[R=301,L]",
    "ws://127.0.0.1:9000/$1",
    "wss://b/x/$1",
    "http://c%{REQUEST_URI}",
    "[P,L]",
    "%{HTTP:Upgrade}",
    "websocket",
    "^/?(.*)",
    "%{REQUEST_URI}",
    "GET",
    "PUT",
    "all",
    "denied",
    "^",
    "*:443",
    "*",
    "a.example",
    "mod_x.c",
    "!mod_x.c",
    "${FOO}",
    "FOO",
    "DEFLATE",
    "text/html",
    "5",
    "99999999999",
    "timeout=3",
    "lbmethod=bybusyness",
    "/none*",
    "require",
    "-all +TLSv1.3",
    "id:1",
    "\"",
    "'''",
    "\\",
    "\u{e9}",
    "X-Forwarded-For",
    "~",
];

const CADDY_ARGS: &[&str] = &[
    "/a/*",
    "/a*",
    "/a",
    "*",
    "@a",
    "@b",
    "127.0.0.1:1",
    ":3000",
    "https://a",
    "h2c://b:1",
    "unix//x",
    "{upstream}",
    "path",
    "method",
    "GET",
    "least_conn",
    "header",
    "X-A",
    "-X-A",
    "+X-A",
    "?X",
    "Host",
    "{host}",
    "{remote_host}",
    "{other}",
    "permanent",
    "301",
    "403",
    "999",
    "https://x{uri}",
    "/new",
    "strip_prefix",
    "http",
    "8MB",
    "internal",
    "a@b.c",
    "0.0.0.0",
    "gzip",
    "static",
    "SecRuleEngine On",
    "Include @owasp_crs/*.conf",
    "Include @coraza.conf-recommended",
    "$1",
    "\u{e9}",
    "'''",
    "``",
];

const VALUES: &[&str] = &[
    "true",
    "false",
    "yes",
    "no",
    "1",
    "0",
    "99999999999",
    "/x",
    "/$1",
    "/$9",
    "{a}",
    "https://a$request_uri",
    "http://$x",
    "301",
    "GRPC",
    "HTTPS",
    "FCGI",
    "8m",
    "10.0.0.0/8",
    "0.0.0.0/0",
    "10.0.0.0/8, ::1",
    "cookie",
    "ewma",
    "$http_x",
    "$binary_remote_addr",
    "a.example,b.example",
    "SecRuleEngine On\nInclude /etc/nginx/owasp-modsecurity-crs/nginx-modsecurity.conf",
    "X-A,Host,Server",
    "TLSv1.3",
    "\u{e9}",
    "",
    "'''",
    "http://a:8080/x",
    "~ ^/a",
    "2r/s",
    "2r/h",
    "DetectionOnly",
    "X-A: b",
    "X-A",
    "detect",
    "X-A $host;Y z",
    "GET|POST",
    "GET|PROPFIND",
];

fn words(text: &'static str) -> Vec<&'static str> {
    text.split_whitespace().collect()
}

/// A directive.
#[derive(Clone, Debug)]
pub struct Item {
    name: String,
    args: Vec<String>,
    block: Option<Vec<Item>>,
}

pub fn items() -> impl Strategy<Value = Vec<Item>> {
    let args = || prop::collection::vec(prop::sample::select(ARGS).prop_map(str::to_owned), 0..4);
    let leaf = (prop::sample::select(words(NAMES)), args()).prop_map(|(name, args)| Item {
        name: name.to_owned(),
        args,
        block: None,
    });
    let item = leaf.prop_recursive(4, 60, 8, move |inner| {
        let block = prop::collection::vec(inner.clone(), 0..8);
        let named = (prop::sample::select(words(BLOCKS)), args(), block)
            .prop_map(|(name, args, block)| Item { name: name.to_owned(), args, block: Some(block) });
        prop_oneof![1 => inner, 2 => named]
    });
    prop::collection::vec(item, 1..8)
}

fn tree(
    names: &'static str,
    blocks: &'static str,
    args: &'static [&'static str],
) -> impl Strategy<Value = Vec<Item>> {
    let args = move || prop::collection::vec(prop::sample::select(args).prop_map(str::to_owned), 0..4);
    let leaf = (prop::sample::select(words(names)), args()).prop_map(|(name, args)| Item {
        name: name.to_owned(),
        args,
        block: None,
    });
    let item = leaf.prop_recursive(3, 40, 6, move |inner| {
        let block = prop::collection::vec(inner.clone(), 0..6);
        let named = (prop::sample::select(words(blocks)), args(), block)
            .prop_map(|(name, args, block)| Item { name: name.to_owned(), args, block: Some(block) });
        prop_oneof![2 => inner, 1 => named]
    });
    prop::collection::vec(item, 1..8)
}

pub fn sections() -> impl Strategy<Value = Vec<Item>> {
    tree(APACHE, SECTIONS, APACHE_ARGS)
}

pub fn blocks() -> impl Strategy<Value = Vec<Item>> {
    tree(CADDY, CADDY, CADDY_ARGS)
}

pub fn annotations() -> impl Strategy<Value = BTreeMap<&'static str, &'static str>> {
    prop::collection::btree_map(prop::sample::select(words(ANNOTATIONS)), prop::sample::select(VALUES), 0..10)
}

/// What is before the name of a setting, the name, what is behind it, and its value.
pub type Setting = (&'static str, &'static str, &'static str, String);

pub fn settings() -> impl Strategy<Value = Vec<Setting>> {
    let value = prop::sample::select(VALUES).prop_map(|value| value.replace('\n', " "));
    let setting = (
        prop::sample::select(&["", "", "sure.example_"][..]),
        prop::sample::select(words(SETTINGS)),
        prop::sample::select(&["", "", "_1", "_2"][..]),
        value,
    );
    prop::collection::vec(setting, 0..16)
}

pub fn print_apache(items: &[Item], text: &mut String, lines: &mut Vec<usize>) {
    for item in items {
        lines.push(text.matches('\n').count() + 1);
        let args: String = item
            .args
            .iter()
            .map(|arg| format!(" \"{}\"", arg.replace('\\', "\\\\").replace('"', "\\\"")))
            .collect();
        match &item.block {
            None => text.push_str(&format!("{}{args}\n", item.name)),
            Some(block) => {
                text.push_str(&format!("<{}{args}>\n", item.name));
                print_apache(block, text, lines);
                text.push_str(&format!("</{}>\n", item.name));
            }
        }
    }
}

pub fn print_caddy(items: &[Item], text: &mut String, lines: &mut Vec<usize>) {
    for item in items {
        lines.push(text.matches('\n').count() + 1);
        let args: String = item.args.iter().map(|arg| format!(" \"{arg}\"")).collect();
        match &item.block {
            None => text.push_str(&format!("{}{args}\n", item.name)),
            Some(block) => {
                text.push_str(&format!("{}{args} {{\n", item.name));
                print_caddy(block, text, lines);
                text.push_str("}\n");
            }
        }
    }
}

/// A configuration that can be served, with these directives at all levels.
pub fn served(inner: Vec<Item>) -> Vec<Item> {
    let leaf = |name: &str, args: &[&str]| Item {
        name: name.to_owned(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        block: None,
    };
    let mut location = inner.clone();
    location.push(leaf("proxy_pass", &["http://127.0.0.1:9000"]));
    let mut server = vec![leaf("listen", &["8081"]), leaf("server_name", &["sure.example"])];
    server.extend(inner.clone());
    server.push(Item { name: "location".into(), args: vec!["/".into()], block: Some(location) });
    let mut http = inner;
    http.push(Item { name: "server".into(), args: Vec::new(), block: Some(server) });
    vec![Item { name: "http".into(), args: Vec::new(), block: Some(http) }]
}

/// Each directive begins a line of its own; gives the lines.
pub fn print(items: &[Item], text: &mut String, lines: &mut Vec<usize>) {
    for item in items {
        lines.push(text.matches('\n').count() + 1);
        text.push_str(&item.name);
        for arg in &item.args {
            let quoted = arg.replace('\\', "\\\\").replace('"', "\\\"");
            let _ = write!(text, " \"{quoted}\"");
        }
        match &item.block {
            None => text.push_str(";\n"),
            Some(block) => {
                text.push_str(" {\n");
                print(block, text, lines);
                text.push_str("}\n");
            }
        }
    }
}
