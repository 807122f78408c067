//! Matchers: which requests a directive is for.

use std::collections::BTreeMap;

use super::syntax::Directive;
use crate::model::PathMatch;
use crate::site::root;
use crate::text;

/// Named matchers of a site.
pub(crate) type Named = BTreeMap<String, Matcher>;

/// What a matcher stands for.
#[derive(Clone, Debug)]
pub(crate) enum Matcher {
    /// Every request.
    All,
    Paths(Vec<PathMatch>),
    /// Clients of these networks, or all others.
    Clients {
        networks: Vec<String>,
        others: bool,
    },
    /// Something that routes cannot ask for.
    Other,
}

/// The matcher of a directive, and its other arguments.
pub(crate) fn of<'a>(item: &'a Directive, named: &Named) -> (Matcher, &'a [String]) {
    let args = item.args();
    match args.first().map(String::as_str) {
        Some("*") => (Matcher::All, &args[1..]),
        Some(first) if first.starts_with('/') => {
            (path(first).map_or(Matcher::Other, |path| Matcher::Paths(vec![path])), &args[1..])
        }
        Some(first) if first.starts_with('@') => {
            (named.get(first).cloned().unwrap_or(Matcher::Other), &args[1..])
        }
        _ => (Matcher::All, args),
    }
}

/// The named matcher that a line or block defines.
pub(crate) fn define(item: &Directive, named: &mut Named) -> bool {
    let lines: Vec<(&str, &[String])> = match item.args() {
        [] => item.children().iter().map(|inner| (inner.name(), inner.args())).collect(),
        [kind, args @ ..] => vec![(kind.as_str(), args)],
    };
    let found = match lines.as_slice() {
        [("path", args)] => args.iter().map(|arg| path(arg)).collect::<Option<Vec<_>>>().map(Matcher::Paths),
        [("path_regexp", args)] => args
            .last()
            .filter(|pattern| text::groups(pattern).is_some())
            .map(|pattern| Matcher::Paths(vec![PathMatch::Pattern(pattern.clone())])),
        [("remote_ip" | "client_ip", args)] => clients(args, false),
        [("not", [kind, args @ ..])] if kind == "remote_ip" || kind == "client_ip" => clients(args, true),
        _ => None,
    };
    let known = found.is_some();
    named.insert(item.name().to_owned(), found.unwrap_or(Matcher::Other));
    known
}

/// Networks, with the name that Caddy has for private ones.
fn clients(args: &[String], others: bool) -> Option<Matcher> {
    const PRIVATE: [&str; 6] =
        ["192.168.0.0/16", "172.16.0.0/12", "10.0.0.0/8", "127.0.0.0/8", "fd00::/8", "::1"];
    let mut networks = Vec::new();
    for arg in args {
        match arg.as_str() {
            "forwarded" => {}
            "private_ranges" => networks.extend(PRIVATE.map(str::to_owned)),
            network if text::is_network(network) => networks.push(network.to_owned()),
            _ => return None,
        }
    }
    (!networks.is_empty()).then_some(Matcher::Clients { networks, others })
}

/// A path with `*` at its end, or a whole one.
fn path(text: &str) -> Option<PathMatch> {
    match text.strip_suffix('*') {
        Some("/" | "") => Some(root()),
        Some(prefix) => {
            (text::is_path(prefix) && !prefix.contains('*')).then(|| PathMatch::Prefix(prefix.to_owned()))
        }
        None => (text::is_path(text) && !text.contains('*')).then(|| PathMatch::Exact(text.to_owned())),
    }
}
