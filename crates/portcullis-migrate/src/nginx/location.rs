//! `location`: routes of a site.

use std::collections::BTreeMap;

use super::redirect::{self, Around, Rewrite};
use super::scope::Scope;
use super::syntax::Directive;
use super::{Context, leave, left, upstream};
use crate::model::{Action, PathMatch, Route, Site};
use crate::{rules, site, text};

/// The site that locations belong to.
pub(crate) struct Of<'a> {
    pub site: &'a mut Site,
    /// There are locations with patterns, before which `^~` comes.
    pub patterns: bool,
    pub named: BTreeMap<String, Directive>,
    /// Locations around this one.
    pub depth: usize,
}

/// Reads a location, and those in it.
pub(crate) fn read(
    item: &Directive,
    scope: &Scope,
    around: &Around<'_>,
    of: &mut Of<'_>,
    cx: &mut Context<'_>,
) {
    let items = item.children();
    let scope = scope.enter(items, cx);
    if item.arg(0).starts_with('@') {
        return cx.ledger.taken(item.entry, "where try_files leads here");
    }
    let Some((path, groups)) = path(item, of.patterns) else {
        let why = "this path or pattern cannot be one of a route";
        cx.ledger.left(item.entry, why);
        if scope.is_guarded() {
            let pattern = item.args.last().map(|pattern| match item.arg(0).starts_with("~*") {
                true => format!("(?i){pattern}"),
                false => pattern.clone(),
            });
            site::close(of.site, pattern.as_ref(), scope.settings(None), item.entry, cx.ledger);
        }
        return leave(items, why, cx);
    };
    let around = Around { groups, ..*around };
    let mut reader = Location { item, path, scope, rewrite: None };
    let action = reader.action(&around, of, cx);
    for inner in items {
        match inner.name.as_str() {
            "location" if of.depth < 8 => {
                of.depth += 1;
                read(inner, &reader.scope, &around, of, cx);
                of.depth -= 1;
            }
            "if" if redirect::is_tls_condition(inner) => {
                of.site.redirect_to_tls = true;
                cx.ledger.changed(inner.entry, "https.redirect, of the whole site");
                leave(inner.children(), "https.redirect, of the whole site", cx);
            }
            "if" | "location" => {
                let why = "conditions on variables are not known; say it as routes, or as a rule";
                cx.ledger.left(inner.entry, why);
                leave(inner.children(), why, cx);
            }
            _ => {}
        }
    }
    reader.push(action, of, cx);
}

/// What a location matches, and the groups of its pattern.
fn path(item: &Directive, patterns: bool) -> Option<(PathMatch, Option<usize>)> {
    let (modifier, text) = match item.args.as_slice() {
        [path] => match path.strip_prefix("~*").or(path.strip_prefix('~')).or(path.strip_prefix('=')) {
            Some(rest) => (&path[..path.len() - rest.len()], rest),
            None => ("", path.as_str()),
        },
        [modifier, path] => (modifier.as_str(), path.as_str()),
        _ => return None,
    };
    match modifier {
        "" | "^~" | "=" if !text::is_path(text) => None,
        "=" => Some((PathMatch::Exact(text.to_owned()), None)),
        "^~" if patterns => {
            let pattern = format!("^{}", rules::escaped(text));
            text::groups(&pattern).map(|groups| (PathMatch::Pattern(pattern), Some(groups)))
        }
        "" | "^~" => Some((PathMatch::Prefix(text.to_owned()), None)),
        "~" | "~*" => {
            let pattern = if modifier == "~*" { format!("(?i){text}") } else { text.to_owned() };
            text::groups(&pattern).map(|groups| (PathMatch::Pattern(pattern), Some(groups)))
        }
        _ => None,
    }
}

struct Location<'a> {
    item: &'a Directive,
    path: PathMatch,
    scope: Scope,
    /// A pattern and path of `rewrite ... break`.
    rewrite: Option<(String, String)>,
}

impl Location<'_> {
    /// What happens to its requests.
    fn action(
        &mut self,
        around: &Around<'_>,
        of: &mut Of<'_>,
        cx: &mut Context<'_>,
    ) -> Option<(Action, Option<String>)> {
        let items = self.item.children();
        if self.scope.denied {
            let why = "every client is refused here: respond = { status = 403 }";
            for item in items
                .iter()
                .filter(|item| ["proxy_pass", "grpc_pass", "return"].contains(&item.name.as_str()))
            {
                cx.ledger.left(item.entry, why);
            }
            return Some((Action::Respond { status: 403, body: None }, None));
        }
        let mut found = None;
        for item in items.iter().filter(|item| item.name == "rewrite") {
            match redirect::rewrite(item, around, cx) {
                Some(Rewrite::Redirect(path, action)) => {
                    push(Route::new(path, action, self.scope.settings(None)), of, item, cx)
                }
                Some(Rewrite::Path(pattern, to)) if self.rewrite.is_none() => {
                    self.rewrite = Some((pattern, to));
                    cx.ledger.changed(item.entry, "rewrite of a route with this pattern");
                }
                Some(Rewrite::Path(..)) => cx.ledger.left(item.entry, "a route has one rewrite"),
                None => {}
            }
        }
        for item in items {
            match item.name.as_str() {
                "return" => found = redirect::answer(item, around, cx).map(|action| (action, None)),
                "proxy_pass" | "grpc_pass" => {
                    found = self.forward(item, cx);
                    if found.is_none() {
                        of.site.lost.push(item.entry);
                    }
                }
                "fastcgi_pass" | "uwsgi_pass" | "scgi_pass" => of.site.lost.push(item.entry),
                "try_files" => {
                    let named = self.try_files(item, of, cx);
                    if named.is_none() {
                        cx.ledger.left(item.entry, left::FILES);
                    }
                    found = found.or(named);
                }
                _ => {}
            }
        }
        found
    }

    /// The upstream, and the Host that nginx would send it.
    fn forward(&mut self, item: &Directive, cx: &mut Context<'_>) -> Option<(Action, Option<String>)> {
        let target = upstream::target(item, &self.scope, cx)?;
        let rewrite = match (&self.rewrite, target.path) {
            // nginx drops the path of the URL where the request was rewritten.
            (Some((pattern, to)), _) => {
                self.path = PathMatch::Pattern(pattern.clone());
                Some(to.clone())
            }
            (None, path) => path.filter(|path| self.path != PathMatch::Prefix(path.clone())),
        };
        let rewrite = match &self.path {
            PathMatch::Pattern(pattern) if self.rewrite.is_none() && rewrite.is_some() => {
                // `^~` beside patterns: what is behind the prefix is kept.
                let with_rest = format!("{pattern}(.*)$");
                self.path = PathMatch::Pattern(with_rest);
                rewrite.map(|to| to + "$1")
            }
            PathMatch::Prefix(_) | PathMatch::Exact(_) | PathMatch::Pattern(_) => rewrite,
        };
        Some((Action::Forward { upstream: target.upstream, rewrite }, Some(target.host)))
    }

    /// `try_files ... @name` of an application that serves all that is not a file.
    fn try_files(
        &mut self,
        item: &Directive,
        of: &Of<'_>,
        cx: &mut Context<'_>,
    ) -> Option<(Action, Option<String>)> {
        let named = of.named.get(item.args.last()?)?.clone();
        let pass =
            named.children().iter().find(|item| matches!(item.name.as_str(), "proxy_pass" | "grpc_pass"))?;
        self.scope = self.scope.enter(named.children(), cx);
        let action = self.forward(pass, cx)?;
        cx.ledger.changed(item.entry, "files are not served here: all of these requests go to the upstream");
        Some(action)
    }

    fn push(self, action: Option<(Action, Option<String>)>, of: &mut Of<'_>, cx: &mut Context<'_>) {
        let (action, host) = match action {
            Some(found) => {
                cx.ledger.taken(self.item.entry, "route");
                found
            }
            None if self.item.children().iter().any(|item| item.name == "location") => {
                return cx.ledger.taken(self.item.entry, "routes of the locations in it");
            }
            None => {
                cx.ledger.left(
                    self.item.entry,
                    "nothing here can be forwarded: a route answers 404, so that no other takes these requests",
                );
                (Action::Respond { status: 404, body: None }, None)
            }
        };
        push(Route::new(self.path, action, self.scope.settings(host.as_deref())), of, self.item, cx);
    }
}

/// Adds a route, unless one with the same path is there.
fn push(route: Route, of: &mut Of<'_>, item: &Directive, cx: &mut Context<'_>) {
    if !site::push(of.site, route) {
        cx.ledger.left(item.entry, "another route of this site has the same path");
    }
}

/// A `rewrite` of a server: a redirect is a route; anything else changes what locations see.
pub(crate) fn server_rewrite(
    item: &Directive,
    scope: &Scope,
    around: &Around<'_>,
    of: &mut Of<'_>,
    cx: &mut Context<'_>,
) {
    match redirect::rewrite(item, around, cx) {
        Some(Rewrite::Redirect(path, action)) => {
            push(Route::new(path, action, scope.settings(None)), of, item, cx);
        }
        Some(Rewrite::Path(..)) => cx.ledger.left(item.entry, "say it as `rewrite` of a route"),
        None => {}
    }
}
