//! `return` and `rewrite`: answers of nginx's own.

use super::syntax::Directive;
use super::{Context, variables};
use crate::model::{Action, PathMatch};
use crate::text;

/// What is known where a redirect stands.
pub(crate) struct Around<'a> {
    /// The first name of the server.
    pub server: Option<&'a str>,
    /// The scheme of its clients, if there is one.
    pub scheme: Option<&'a str>,
    /// Groups of the location's pattern.
    pub groups: Option<usize>,
}

/// What `return` answers; it is settled.
pub(crate) fn answer(item: &Directive, around: &Around<'_>, cx: &mut Context<'_>) -> Option<Action> {
    let first = item.arg(0);
    let (status, text) = match first.parse::<u16>() {
        Ok(status) => (status, item.arg(1)),
        Err(_) => (302, first),
    };
    if matches!(status, 301 | 302 | 303 | 307 | 308) {
        let Some(to) = variables::target(text, around.server, around.scheme, around.groups) else {
            cx.ledger.left(
                item.entry,
                "the target of a redirect may have {host}, {path} and {uri}, not this variable",
            );
            return None;
        };
        cx.ledger.taken(item.entry, "redirect");
        return Some(Action::Redirect { to, status });
    }
    match status {
        444 => {
            cx.ledger.changed(item.entry, "answered with 403; the connection stays");
            Some(Action::Respond { status: 403, body: None })
        }
        200..=599 => {
            let body = (!text.is_empty()).then(|| text.to_owned());
            if text.contains('$') {
                cx.ledger.changed(item.entry, "respond; variables in the text are not replaced");
            } else {
                cx.ledger.taken(item.entry, "respond");
            }
            Some(Action::Respond { status, body })
        }
        _ => {
            cx.ledger.left(item.entry, "an answer has a status of 200 to 599");
            None
        }
    }
}

/// True if this is a redirect of the same request to https.
pub(crate) fn is_to_tls(item: &Directive) -> bool {
    let target = item.arg(item.args.len().saturating_sub(1));
    let to = ["https://$host", "https://$http_host", "https://$server_name"];
    let rest = to.iter().find_map(|start| target.strip_prefix(start));
    item.name == "return" && rest.is_some_and(|rest| rest == "$request_uri" || rest == "$uri$is_args$args")
}

/// What `rewrite REGEX REPLACEMENT FLAG` makes a route of its own for, if it is a redirect, or the request
/// goes on to an upstream with another path.
pub(crate) enum Rewrite {
    Redirect(PathMatch, Action),
    Path(String, String),
}

/// Reads a `rewrite`; `None` if it cannot be expressed, which is settled then.
pub(crate) fn rewrite(item: &Directive, around: &Around<'_>, cx: &mut Context<'_>) -> Option<Rewrite> {
    let (pattern, to, flag) = (item.arg(0), item.arg(1), item.arg(2));
    let Some(groups) = text::groups(pattern) else {
        cx.ledger.left(item.entry, "this pattern cannot be used for a route");
        return None;
    };
    let inner = Around { groups: Some(groups), ..*around };
    let target = variables::target(to.trim_end_matches('?'), inner.server, inner.scheme, inner.groups);
    let is_url = to.starts_with("http://") || to.starts_with("https://") || to.starts_with("$scheme");
    match (target, flag) {
        (Some(to), "permanent" | "redirect") => {
            let status = if flag == "permanent" { 301 } else { 302 };
            cx.ledger.changed(item.entry, "redirect of a route with this pattern; the query is not added");
            Some(Rewrite::Redirect(PathMatch::Pattern(pattern.to_owned()), Action::Redirect { to, status }))
        }
        (Some(to), _) if is_url => {
            cx.ledger.changed(item.entry, "redirect of a route with this pattern; the query is not added");
            Some(Rewrite::Redirect(
                PathMatch::Pattern(pattern.to_owned()),
                Action::Redirect { to, status: 302 },
            ))
        }
        (Some(to), "break") if to.starts_with('/') && !to.contains('{') && text::is_path(&to) => {
            Some(Rewrite::Path(pattern.to_owned(), to))
        }
        _ => {
            cx.ledger.left(item.entry, "say it as `rewrite` or `redirect` of a route");
            None
        }
    }
}

/// `if (...)` around a redirect to https, as certbot and people write it: true if that is what it is.
pub(crate) fn is_tls_condition(item: &Directive) -> bool {
    let condition = item.args.join(" ");
    let condition = condition.trim_start_matches('(').trim_end_matches(')').trim().to_owned();
    let words: Vec<&str> = condition.split_whitespace().map(|word| word.trim_matches(['"', '\''])).collect();
    let about = match words.as_slice() {
        ["$scheme", "=", "http"]
        | ["$scheme", "!=", "https"]
        | ["$https", "=", "" | "off"]
        | ["$https", "!=", "on"] => true,
        ["$host", "=", name] => text::is_host(name),
        _ => false,
    };
    let [only] = item.children() else { return false };
    about && is_to_tls(only)
}
