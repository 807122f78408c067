//! Matchers: which requests a directive is for.

use std::collections::BTreeMap;

use super::syntax::Directive;
use crate::model::PathMatch;
use crate::site::root;
use crate::text;

/// Named matchers of a site: their paths, or `None` if they ask for something else.
pub(crate) type Named = BTreeMap<String, Option<Vec<PathMatch>>>;

/// What a matcher stands for.
pub(crate) enum Matcher {
    /// Every request.
    All,
    Paths(Vec<PathMatch>),
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
        Some(first) if first.starts_with('@') => match named.get(first) {
            Some(Some(paths)) => (Matcher::Paths(paths.clone()), &args[1..]),
            _ => (Matcher::Other, &args[1..]),
        },
        _ => (Matcher::All, args),
    }
}

/// The named matcher that a line or block defines.
pub(crate) fn define(item: &Directive, named: &mut Named) -> bool {
    let lines: Vec<(&str, &[String])> = match item.args() {
        [] => item.children().iter().map(|inner| (inner.name(), inner.args())).collect(),
        [kind, args @ ..] => vec![(kind.as_str(), args)],
    };
    let paths = match lines.as_slice() {
        [("path", args)] => args.iter().map(|arg| path(arg)).collect::<Option<Vec<_>>>(),
        [("path_regexp", args)] => args
            .last()
            .and_then(|pattern| text::groups(pattern).map(|_| vec![PathMatch::Pattern(pattern.clone())])),
        _ => None,
    };
    let known = paths.is_some();
    named.insert(item.name().to_owned(), paths);
    known
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
