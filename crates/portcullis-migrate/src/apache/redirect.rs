//! `Redirect` and `RedirectMatch`.

use super::Context;
use super::syntax::Directive;
use crate::model::{Action, PathMatch};
use crate::{rules, text};

/// The path and answer of a `Redirect` or `RedirectMatch`; it is settled.
pub(crate) fn read(item: &Directive, cx: &mut Context<'_>) -> Option<(PathMatch, Action)> {
    let (status, rest) = match (item.name.as_str(), item.args.as_slice()) {
        ("redirectpermanent", rest) => (301, rest),
        ("redirecttemp", rest) => (302, rest),
        (_, [status, rest @ ..]) if status_of(status).is_some() => (status_of(status)?, rest),
        (_, rest) => (302, rest),
    };
    let is_pattern = item.name == "redirectmatch";
    let (path, target) = match rest {
        [path, target] => (path.as_str(), Some(target.as_str())),
        [path] => (path.as_str(), None),
        _ => {
            cx.left(item, "a redirect has a path and a target");
            return None;
        }
    };
    if !(300..400).contains(&status) {
        let found = pattern(path, is_pattern).filter(|_| (400..=599).contains(&status) && target.is_none());
        return match found {
            Some(path) => {
                cx.taken(item, "respond");
                Some((path, Action::Respond { status, body: None }))
            }
            None => {
                cx.left(item, "this answer cannot be one of a route");
                None
            }
        };
    }
    let target = target.unwrap_or_default();
    let known = matches!(status, 301 | 302 | 303 | 307 | 308);
    let is_target = ["https://", "http://", "/"].iter().any(|start| target.starts_with(start))
        && !target.contains(['{', '%'])
        && !target.chars().any(char::is_control);
    let groups = pattern(path, is_pattern).and_then(|path| {
        if let PathMatch::Pattern(pattern) = &path { text::groups(pattern) } else { Some(0) }
    });
    let in_range = |at: usize| {
        target[at + 1..]
            .chars()
            .next()
            .and_then(|c| c.to_digit(10))
            .is_some_and(|number| groups.is_some_and(|all| number as usize <= all))
    };
    let groups_fit = !is_pattern || target.match_indices('$').all(|(at, _)| in_range(at));
    if !known || !is_target || groups.is_none() || !groups_fit || (!is_pattern && target.contains('$')) {
        cx.left(item, "this redirect cannot be one of a route");
        return None;
    }
    if is_pattern {
        cx.changed(item, "redirect of a route with this pattern; the query is not added");
        return Some((pattern(path, true)?, Action::Redirect { to: target.to_owned(), status }));
    }
    // What is behind the path is added to the target.
    if path == "/" {
        cx.taken(item, "redirect");
        let to = format!("{}{{uri}}", target.trim_end_matches('/'));
        let to = if to.starts_with("{uri}") { "/".to_owned() } else { to };
        return Some((PathMatch::Prefix("/".to_owned()), Action::Redirect { to, status }));
    }
    cx.changed(item, "redirect of a route with a pattern; the query is not added");
    let pattern = format!("^{}(.*)$", rules::escaped(path));
    Some((PathMatch::Pattern(pattern), Action::Redirect { to: format!("{target}$1"), status }))
}

fn status_of(text: &str) -> Option<u16> {
    match text {
        "permanent" => Some(301),
        "temp" => Some(302),
        "seeother" => Some(303),
        "gone" => Some(410),
        number => number.parse().ok(),
    }
}

fn pattern(path: &str, is_pattern: bool) -> Option<PathMatch> {
    match is_pattern {
        true => text::groups(path).map(|_| PathMatch::Pattern(path.to_owned())),
        false => text::is_path(path).then(|| PathMatch::Prefix(path.to_owned())),
    }
}
