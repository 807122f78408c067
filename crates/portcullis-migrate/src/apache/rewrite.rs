//! `RewriteRule` with its `RewriteCond`s: redirects to https, and requests that are forwarded (`[P]`), as
//! people proxy WebSockets under Apache. Routes carry an `Upgrade` by themselves.

use super::Context;
use super::proxy;
use super::scope::Scope;
use super::syntax::Directive;
use crate::model::{Action, Model, PathMatch, Route, Site};
use crate::site::push;
use crate::text;

/// What the rewrites of a virtual host say.
pub(crate) struct Rewrites<'a> {
    /// Requests are redirected to https.
    pub to_tls: bool,
    forwards: Vec<Forward<'a>>,
}

/// A rule that forwards requests.
struct Forward<'a> {
    rule: &'a Directive,
    conditions: Vec<&'a Directive>,
    when: When,
}

/// Which requests fulfil the conditions of a rule.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    Always,
    /// Those that begin a WebSocket.
    WebSocket,
    /// All but those.
    Plain,
    Unknown,
}

/// Where a rule sends requests.
struct Destination {
    path: PathMatch,
    /// `scheme://authority`.
    url: String,
    rewrite: Option<String>,
}

/// Reads the rewrites of a virtual host; all are settled but those that forward.
pub(crate) fn read<'a>(items: &'a [Directive], cx: &mut Context<'_>) -> Rewrites<'a> {
    let mut conditions: Vec<&Directive> = Vec::new();
    let mut found = Rewrites { to_tls: false, forwards: Vec::new() };
    for item in items {
        match item.name.as_str() {
            "rewritecond" => conditions.push(item),
            "rewriterule" => {
                let conditions = std::mem::take(&mut conditions);
                if is_to_tls(item.arg(1)) && item.arg(2).contains('R') {
                    found.to_tls = true;
                    conditions.iter().chain([&item]).for_each(|part| cx.taken(part, "https.redirect"));
                } else if flags(item.arg(2)).any(|flag| ["p", "proxy"].contains(&flag.as_str())) {
                    let when = when(&conditions);
                    found.forwards.push(Forward { rule: item, conditions, when });
                } else {
                    conditions.iter().chain([&item]).for_each(|part| cx.left(part, WHY));
                }
            }
            "rewriteengine" | "rewriteoptions" | "rewritebase" => cx.taken(item, "as its rules say"),
            "rewritemap" => cx.left(item, WHY),
            _ => {}
        }
    }
    conditions.into_iter().for_each(|item| cx.left(item, WHY));
    found
}

const WHY: &str = "say it as `rewrite` or `redirect` of a route";

impl Rewrites<'_> {
    /// Adds the routes of rules that forward ordinary requests; Apache reads them before any `ProxyPass`.
    pub fn ordinary(
        &self,
        site: &mut Site,
        cx: &mut Context<'_>,
        below: impl Fn(&str, &mut Context<'_>) -> Scope,
    ) {
        for forward in self.forwards.iter().filter(|forward| !forward.is_web_socket()) {
            let destination = forward.destination().filter(|_| forward.when != When::Unknown);
            let Some(destination) = destination else {
                site.lost.extend(forward.rule.entry);
                forward.settle(cx, |cx, part| cx.left(part, WHY));
                continue;
            };
            let scope = below(destination.place(), cx);
            let Some((mut upstream, host, _)) = proxy::upstream(forward.rule, &destination.url, &scope, cx)
            else {
                site.lost.extend(forward.rule.entry);
                continue;
            };
            upstream.read_timeout = upstream.read_timeout.or_else(|| scope.read_timeout.clone());
            let name = cx.model.upstream(upstream);
            let action = Action::Forward { upstream: name.clone(), rewrite: destination.rewrite };
            match push(site, proxy::route(destination.path, action, &scope, Some(&host))) {
                true => forward.settle(cx, |cx, part| cx.taken(part, format!("upstream `{name}`"))),
                false => {
                    forward
                        .settle(cx, |cx, part| cx.left(part, "another route of this site has the same path"));
                }
            }
        }
    }

    /// Settles the rules for WebSockets, once the routes of the site are known: a WebSocket goes where the
    /// other requests of its path go, unless a rule names another upstream.
    pub fn web_sockets(
        &self,
        site: &mut Site,
        cx: &mut Context<'_>,
        below: impl Fn(&str, &mut Context<'_>) -> Scope,
    ) {
        for forward in self.forwards.iter().filter(|forward| forward.is_web_socket()) {
            let Some(destination) = forward.destination() else {
                forward.settle(cx, |cx, part| cx.left(part, WHY));
                continue;
            };
            let scope = below(destination.place(), cx);
            let Some((mut upstream, host, _)) = proxy::upstream(forward.rule, &destination.url, &scope, cx)
            else {
                continue;
            };
            let urls: Vec<&str> = upstream.endpoints.iter().map(|endpoint| endpoint.url.as_str()).collect();
            if let Some(name) = destination.upstream_of(site, cx.model, &urls) {
                let note = format!("WebSockets go to the upstream `{name}` with the other requests");
                forward.settle(cx, |cx, part| cx.taken(part, note.clone()));
                continue;
            }
            let around = destination.around(site).cloned();
            let refused =
                around.as_ref().is_some_and(|route| !matches!(route.action, Action::Forward { .. }));
            let guards = |route: &Route| {
                !route.settings.closed.is_empty()
                    || route.settings.access != scope.settings(None).access
                    || matches!(route.action, Action::Respond { status: 403, .. })
            };
            // Routes with patterns come before those of the paths that are guarded.
            let passes_by =
                matches!(destination.path, PathMatch::Pattern(_)) && site.routes.iter().any(guards);
            if forward.when == When::Unknown || refused || passes_by {
                let why = "write a route with `headers = { upgrade = \"websocket\" }` to this upstream";
                forward.settle(cx, |cx, part| cx.left(part, why));
                continue;
            }
            upstream.read_timeout = upstream.read_timeout.or_else(|| scope.read_timeout.clone());
            let name = cx.model.upstream(upstream);
            let action = Action::Forward { upstream: name.clone(), rewrite: destination.rewrite };
            let mut route = proxy::route(destination.path, action, &scope, Some(&host));
            // Ordinary requests do not go to the upstream of a WebSocket where there is another.
            let conditional = forward.when == When::WebSocket || around.is_some();
            if let Some(around) = around {
                let own = route.settings.request_headers.clone();
                route.settings = around.settings;
                route.settings.request_headers = own;
            }
            let mut note = format!("upstream `{name}`");
            if conditional {
                route.conditions.headers.insert("upgrade".to_owned(), "websocket".to_owned());
                note += " of a route for WebSockets; paths with a route of their own keep that";
            }
            match push(site, route) {
                true => forward.settle(cx, |cx, part| cx.changed(part, note.clone())),
                false => {
                    forward
                        .settle(cx, |cx, part| cx.left(part, "another route of this site has the same path"));
                }
            }
        }
    }
}

impl Forward<'_> {
    fn is_web_socket(&self) -> bool {
        let target = self.rule.arg(1).to_ascii_lowercase();
        self.when == When::WebSocket || target.starts_with("ws://") || target.starts_with("wss://")
    }

    fn settle(&self, cx: &mut Context<'_>, mut settle: impl FnMut(&mut Context<'_>, &Directive)) {
        self.conditions.iter().chain([&self.rule]).for_each(|part| settle(cx, part));
    }

    /// Where the rule sends requests; `None` if a route cannot.
    fn destination(&self) -> Option<Destination> {
        let target = self.rule.arg(1);
        let target = target.strip_suffix("?%{QUERY_STRING}").unwrap_or(target);
        let after = target.find("://")? + 3;
        let end = target[after..].find(['/', '$', '%']).map_or(target.len(), |at| after + at);
        let (url, to) = target.split_at(end);
        let (path, rewrite) = mapping(self.rule.arg(0), to)?;
        let mut destination = Destination { path, url: url.to_ascii_lowercase(), rewrite };
        // A condition on the path is that of the route, if the rule has none of its own.
        let mut uris = self.conditions.iter().filter(|condition| is_subject(condition, "%{REQUEST_URI}"));
        if let (Some(condition), None) = (uris.next(), uris.next()) {
            let pattern = condition.arg(1);
            let is_all = destination.path == crate::site::root() && destination.rewrite.is_none();
            if !is_all || pattern.starts_with(['!', '=', '<', '>', '-']) {
                return None;
            }
            let folds = flags(condition.arg(2)).any(|flag| flag == "nc");
            destination.path = match literal(pattern).filter(|_| !folds) {
                Some((prefix, "")) if pattern.starts_with('^') && text::is_path(&prefix) => {
                    PathMatch::Prefix(prefix)
                }
                _ => {
                    let pattern = if folds { format!("(?i){pattern}") } else { pattern.to_owned() };
                    text::groups(&pattern).map(|_| PathMatch::Pattern(pattern))?
                }
            };
        }
        Some(destination)
    }
}

impl Destination {
    /// A path of the route, of which sections may say more.
    fn place(&self) -> &str {
        match &self.path {
            PathMatch::Prefix(path) | PathMatch::Exact(path) => path,
            PathMatch::Pattern(_) => "/",
        }
    }

    /// The route that takes these requests otherwise.
    fn around<'s>(&self, site: &'s Site) -> Option<&'s Route> {
        let place = self.place();
        let unconditional = site.routes.iter().filter(|route| route.is_unconditional());
        let fitting = unconditional.filter_map(|route| {
            if let PathMatch::Exact(exact) = &route.path
                && *exact == *place
            {
                Some((usize::MAX, route))
            } else if let PathMatch::Prefix(prefix) = &route.path
                && place.starts_with(prefix.as_str())
            {
                Some((prefix.len(), route))
            } else {
                None
            }
        });
        fitting.max_by_key(|(length, _)| *length).map(|(_, route)| route)
    }

    /// The upstream of the route around, if the requests come to the same endpoints and paths by it.
    fn upstream_of(&self, site: &Site, model: &Model, urls: &[&str]) -> Option<String> {
        let route = self.around(site)?;
        let Action::Forward { upstream, rewrite } = &route.action else { return None };
        let (PathMatch::Prefix(own) | PathMatch::Exact(own)) = &route.path else { return None };
        let place = self.place();
        let by_route = format!("{}{}", rewrite.as_ref().unwrap_or(own), place.get(own.len()..)?);
        let by_rule = self.rewrite.as_deref().unwrap_or(place);
        let known = model.upstreams.iter().find(|known| known.name == *upstream)?;
        let same = known.endpoints.iter().map(|endpoint| endpoint.url.as_str()).eq(urls.iter().copied());
        // Of a pattern it is not known which route takes what fits it.
        let is_only = !matches!(self.path, PathMatch::Pattern(_))
            || site.routes.iter().all(|other| other.action == route.action || !other.forwards());
        (same && is_only && by_route == by_rule).then(|| upstream.clone())
    }
}

/// The path of a rule's pattern, and what the upstream gets in its place.
fn mapping(pattern: &str, to: &str) -> Option<(PathMatch, Option<String>)> {
    let with_rewrite = |path: String, to: String| {
        let rewrite = (path != to).then_some(to);
        (PathMatch::Prefix(path), rewrite)
    };
    let whole =
        ["", "^", ".*", "^.*", "^.*$", "(.*)", "^(.*)", "^(.*)$", "(/.*)", "^(/.*)", "^(/.*)$", "^/", "/"];
    if whole.contains(&pattern) && (to == "%{REQUEST_URI}" || (to == "$1" && pattern.contains('('))) {
        return Some((crate::site::root(), None));
    }
    if let Some((prefix, rest)) =
        literal(pattern).filter(|(prefix, _)| pattern.starts_with('^') || prefix == "/")
    {
        let base = to.strip_suffix("$1").unwrap_or_default();
        match rest {
            // `^/?(.*)`: the path without its slash.
            "/?(.*)" | "/?(.*)$" if prefix.is_empty() && text::is_path(base) => {
                return Some(with_rewrite("/".to_owned(), base.to_owned()));
            }
            "(.*)" | "(.*)$" if text::is_path(&prefix) && text::is_path(base) => {
                return Some(with_rewrite(prefix, base.to_owned()));
            }
            "(/.*)" | "(/.*)$" if text::is_path(&prefix) && (base.is_empty() || text::is_path(base)) => {
                return Some(with_rewrite(prefix + "/", format!("{base}/")));
            }
            "$" if text::is_path(&prefix) && text::is_path(to) && !to.contains(['$', '%', '{']) => {
                let rewrite = (prefix != to).then(|| to.to_owned());
                return Some((PathMatch::Exact(prefix), rewrite));
            }
            _ => {}
        }
    }
    let groups = text::groups(pattern)?;
    let path = PathMatch::Pattern(pattern.to_owned());
    if to == "%{REQUEST_URI}" {
        return Some((path, None));
    }
    let in_range = |at: usize| {
        to[at + 1..].starts_with(|c: char| c.to_digit(10).is_some_and(|n| n > 0 && n as usize <= groups))
    };
    let usable =
        text::is_path(to) && !to.contains(['%', '{']) && to.match_indices('$').all(|(at, _)| in_range(at));
    usable.then(|| (path, Some(to.to_owned())))
}

/// The text that a pattern begins with, and the rest of the pattern.
fn literal(pattern: &str) -> Option<(String, &str)> {
    let mut prefix = String::new();
    let mut rest = pattern.strip_prefix('^').unwrap_or(pattern);
    loop {
        let mut chars = rest.chars();
        match (chars.next(), chars.clone().next()) {
            (Some(c), Some('?' | '*' | '+' | '{')) if c != '\\' => return Some((prefix, rest)),
            (Some('\\'), Some(c)) if c.is_ascii_punctuation() => {
                prefix.push(c);
                rest = &rest[2..];
                if rest.starts_with(['?', '*', '+', '{']) {
                    return None;
                }
            }
            (Some(c), _) if c.is_ascii_alphanumeric() || "/-_~%@:,&=;!'".contains(c) => {
                prefix.push(c);
                rest = chars.as_str();
            }
            _ => return (!rest.contains('|')).then_some((prefix, rest)),
        }
    }
}

/// What conditions say of the requests.
fn when(conditions: &[&Directive]) -> When {
    let mut when = When::Always;
    let several = conditions.iter().any(|condition| flags(condition.arg(2)).any(|flag| flag == "or"));
    for condition in conditions {
        let pattern = condition.arg(1).to_ascii_lowercase();
        let (plain, negated) = match pattern.strip_prefix('!') {
            Some(plain) => (plain, true),
            None => (pattern.as_str(), false),
        };
        let word = plain.trim_start_matches(['=', '^']).trim_end_matches('$').trim_matches('"');
        let this = if is_subject(condition, "%{HTTP:Upgrade}") && word == "websocket" {
            if negated { When::Plain } else { When::WebSocket }
        } else if is_subject(condition, "%{HTTP:Connection}") && word.contains("upgrade") && !negated {
            When::WebSocket
        } else if is_subject(condition, "%{REQUEST_URI}") && !several {
            continue;
        } else {
            When::Unknown
        };
        when = match (when, this) {
            (When::Always, this) => this,
            (when, this) if when == this => this,
            _ => When::Unknown,
        };
    }
    when
}

fn is_subject(condition: &Directive, subject: &str) -> bool {
    condition.arg(0).eq_ignore_ascii_case(subject)
}

/// The flags of `[P,L]`, in lower case.
fn flags(text: &str) -> impl Iterator<Item = String> {
    text.trim_matches(['[', ']']).split(',').map(|flag| flag.trim().to_ascii_lowercase())
}

fn is_to_tls(target: &str) -> bool {
    let hosts = ["https://%{HTTP_HOST}", "https://%{SERVER_NAME}"];
    let rest = hosts.iter().find_map(|start| target.strip_prefix(start));
    rest.is_some_and(|rest| ["%{REQUEST_URI}", "/$1", "$1", "/%{REQUEST_URI}"].contains(&rest))
}
