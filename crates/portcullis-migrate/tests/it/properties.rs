//! Whatever the configuration: it ends, without a panic; what is written is a valid document; and every directive
//! stands in the report once.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use portcullis_migrate::{From, Migrated, Options, migrate};
use proptest::prelude::*;

const NAMES: &[&str] = &[
    "listen",
    "server_name",
    "proxy_pass",
    "grpc_pass",
    "return",
    "rewrite",
    "modsecurity",
    "modsecurity_rules",
    "modsecurity_rules_file",
    "ssl_certificate",
    "ssl_certificate_key",
    "ssl_protocols",
    "ssl_verify_client",
    "ssl_client_certificate",
    "allow",
    "deny",
    "limit_req",
    "limit_req_zone",
    "limit_req_status",
    "add_header",
    "proxy_set_header",
    "proxy_hide_header",
    "client_max_body_size",
    "gzip",
    "gzip_types",
    "proxy_read_timeout",
    "set_real_ip_from",
    "real_ip_header",
    "resolver",
    "try_files",
    "root",
    "unheard_of",
    "server",
    "least_conn",
    "hash",
    "ip_hash",
    "keepalive",
    "sticky",
    "error_page",
    "proxy_ssl_name",
    "proxy_ssl_trusted_certificate",
    "http2",
];
const BLOCKS: &[&str] = &[
    "http",
    "server",
    "server",
    "server",
    "location",
    "location",
    "upstream",
    "if",
    "stream",
    "limit_except",
];
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
];

#[derive(Clone, Debug)]
struct Item {
    name: String,
    args: Vec<String>,
    block: Option<Vec<Item>>,
}

fn items() -> impl Strategy<Value = Vec<Item>> {
    let args = || prop::collection::vec(prop::sample::select(ARGS).prop_map(str::to_owned), 0..4);
    let leaf = (prop::sample::select(NAMES), args()).prop_map(|(name, args)| Item {
        name: name.to_owned(),
        args,
        block: None,
    });
    let item = leaf.prop_recursive(4, 60, 8, move |inner| {
        let block = prop::collection::vec(inner.clone(), 0..8);
        let named = (prop::sample::select(BLOCKS), args(), block).prop_map(|(name, args, block)| Item {
            name: name.to_owned(),
            args,
            block: Some(block),
        });
        prop_oneof![1 => inner, 2 => named]
    });
    prop::collection::vec(item, 1..8)
}

/// A configuration that can be served, with these directives at all levels.
fn served(inner: Vec<Item>) -> Vec<Item> {
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
fn print(items: &[Item], text: &mut String, lines: &mut Vec<usize>) {
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

fn nginx(text: &str) -> Result<Migrated, String> {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("nginx.conf");
    fs::write(&path, text).unwrap();
    let options = Options { root: root.path().to_owned(), ..Options::default() };
    migrate(From::Nginx, &[path], &options).map_err(|error| error.to_string())
}

/// The number of directives of each line in the report.
fn reported(migrated: &Migrated) -> BTreeMap<usize, usize> {
    let mut lines = BTreeMap::new();
    for item in &migrated.report.items {
        let (_, line) = item.place.rsplit_once(':').unwrap();
        *lines.entry(line.parse().unwrap()).or_default() += 1;
        assert!(!item.note.is_empty(), "{item:?}");
    }
    lines
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn every_directive_of_nginx_is_reported_once(inner in items()) {
        let (mut text, mut lines) = (String::new(), Vec::new());
        print(&served(inner), &mut text, &mut lines);
        match nginx(&text) {
            Ok(migrated) => {
                let expected: BTreeMap<usize, usize> = lines.into_iter().map(|line| (line, 1)).collect();
                prop_assert_eq!(reported(&migrated), expected, "{}", text);
            }
            Err(error) => {
                // A site may have no address that can be said; a document of ours is never wrong.
                prop_assert!(!error.contains("a mistake of ours"), "{}\n{}", error, text);
            }
        }
    }

    #[test]
    fn any_text_ends_without_a_panic(text in "(?s)(http|server|location|listen 80|proxy_pass http://a|[ \n;{}\"'#$\\\\]|.){0,60}") {
        if let Err(error) = nginx(&text) {
            prop_assert!(!error.contains("a mistake of ours"), "{}\n{}", error, text);
        }
    }
}
