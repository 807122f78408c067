//! What holds for a site or a part of it.

use super::matcher::{self, Matcher, Named};
use super::syntax::Directive;
use super::{Context, left};
use crate::inline::{self, BuiltIn};
use crate::model::{Engine, HeaderChanges, RuleKind, RuleSource, Settings, Waf};
use crate::sources::absolute;
use crate::{text, units};

/// Reads what these directives say of all requests of a block. What is for some paths only is given back.
pub(crate) fn enter(
    around: &Settings,
    items: &[Directive],
    named: &mut Named,
    cx: &mut Context<'_>,
) -> Settings {
    let mut settings = around.clone();
    for item in items {
        match item.name() {
            name if name.starts_with('@') => match matcher::define(item, named) {
                true => cx.ledger.taken(item.entry, "paths of routes, or lists of clients"),
                false => cx.ledger.left(item.entry, "routes ask for paths, not for this"),
            },
            "coraza_waf" => waf(item, named, &mut settings.waf, cx),
            "header" | "request_header" => header(item, named, &mut settings, cx),
            "encode" => {
                settings.compression.get_or_insert_default();
                cx.ledger.changed(item.entry, "compression, of the usual types");
            }
            "request_body" => body(item, &mut settings, cx),
            _ => continue,
        }
        // What is in their blocks belongs to them; rules are settled where it is known what they are for.
        for inner in item.children().iter().filter(|_| item.name() != "coraza_waf") {
            cx.ledger.taken_if_unsettled(inner.entry, "as its directive says");
        }
    }
    settings
}

fn waf(item: &Directive, named: &Named, waf: &mut Waf, cx: &mut Context<'_>) {
    let (matcher, _) = matcher::of(item, named);
    if matches!(matcher, Matcher::Other | Matcher::Clients { .. }) {
        return cx.leave(item, left::directive("coraza_waf"));
    }
    let mut sources: Vec<RuleSource> = Vec::new();
    let mut detects = false;
    for inner in item.children() {
        match inner.name() {
            "load_owasp_crs" => {
                cx.ledger.taken(inner.entry, "the CRS is installed by `portcullis crs install`")
            }
            "directives" => {
                let text = inner.arg(0);
                detects |= text.contains("@coraza.conf");
                let found = inline::split(text, inner.entry, built_in);
                if found.is_empty() {
                    cx.ledger.taken(inner.entry, "the settings of Coraza, whose place ours take");
                }
                sources.extend(found);
            }
            "include" => {
                let path = absolute(&cx.folder, inner.arg(0));
                sources
                    .push(RuleSource { kind: RuleKind::File { path, optional: false }, entry: inner.entry });
            }
            _ => cx.ledger.left(inner.entry, "not known to the migration"),
        }
    }
    if let Matcher::Paths(paths) = &matcher {
        if paths.len() > 1 || !sources.iter().all(|source| matches!(source.kind, RuleKind::Inline(_))) {
            cx.ledger.changed(item.entry, "its rules hold for the whole site");
        } else {
            cx.ledger.changed(item.entry, "its rules hold for the whole site; name its path in them");
        }
    } else {
        cx.ledger.taken(item.entry, "inspection");
    }
    let says_engine = |source: &RuleSource| match &source.kind {
        RuleKind::Inline(text) => text.to_ascii_lowercase().contains("secruleengine"),
        RuleKind::File { .. } | RuleKind::Crs => false,
    };
    if detects && !sources.iter().any(says_engine) {
        waf.engine = Some(Engine::DetectionOnly);
        cx.ledger
            .changed(item.entry, "engine = \"detection_only\", as Coraza's recommended settings have it");
    }
    waf.on = true;
    waf.rules.extend(sources);
}

fn built_in(name: &str) -> BuiltIn {
    if name.starts_with("@owasp_crs") {
        BuiltIn::Crs
    } else if name.starts_with("@coraza.conf") || name.starts_with("@crs-setup.conf") {
        BuiltIn::Settings
    } else {
        BuiltIn::No
    }
}

fn body(item: &Directive, settings: &mut Settings, cx: &mut Context<'_>) {
    let said = item.children().iter().find(|inner| inner.name() == "max_size");
    settings.body_limit = said.and_then(|said| units::body_limit(said.arg(0)));
    match settings.body_limit {
        Some(_) => cx.ledger.taken(item.entry, "request_body.limit"),
        None => cx.ledger.changed(item.entry, units::LONGER_BODIES),
    }
}

fn header(item: &Directive, named: &Named, settings: &mut Settings, cx: &mut Context<'_>) {
    let (matcher, args) = matcher::of(item, named);
    if !matches!(matcher, Matcher::All) {
        return cx.leave(
            item,
            "headers are changed for a whole site or route: move it into the `handle` of its path",
        );
    }
    let is_request = item.name() == "request_header";
    let changes = if is_request { &mut settings.request_headers } else { &mut settings.response_headers };
    let key = if is_request { "request_headers" } else { "response_headers" };
    if args.is_empty() {
        cx.ledger.taken(item.entry, key);
        for inner in item.children() {
            let settled = change(&inner.words, is_request, changes);
            note(settled, inner, key, cx);
        }
        return;
    }
    let settled = change(args, is_request, changes);
    note(settled, item, key, cx);
}

/// Settles a change of a header by what became of it.
pub(crate) fn note(settled: Result<bool, &'static str>, item: &Directive, key: &str, cx: &mut Context<'_>) {
    match settled {
        Ok(true) => cx.ledger.taken(item.entry, key),
        Ok(false) => cx.ledger.taken(item.entry, "the proxy writes this field itself"),
        Err(why) => cx.ledger.left(item.entry, why),
    }
}

/// `NAME VALUE`, `+NAME VALUE`, `-NAME`; false for fields that the proxy writes.
pub(crate) fn change(
    words: &[String],
    is_request: bool,
    changes: &mut HeaderChanges,
) -> Result<bool, &'static str> {
    let (field, value) = (words.first().map_or("", |field| field), words.get(1).map_or("", |value| value));
    if words.len() > 2 {
        return Err("parts of values are not replaced");
    }
    let name = field.trim_start_matches(['+', '-', '?', '>']).to_ascii_lowercase();
    if text::is_ours(&name) {
        return Ok(false);
    }
    if name.contains('*') || !text::is_field_name(&name) {
        return Err("this is not the name of one header field");
    }
    if name == "host" && (!is_request || field.starts_with(['+', '-'])) {
        return Err("Host can be set for the upstream, and nothing else");
    }
    if field.starts_with('-') {
        changes.remove.push(name);
        return Ok(true);
    }
    let Some(value) = value_of(value) else { return Err("header values do not know this placeholder") };
    let map = if field.starts_with('+') { &mut changes.add } else { &mut changes.set };
    map.insert(name, value);
    Ok(true)
}

/// A value with Caddy's placeholders as ours.
pub(crate) fn value_of(value: &str) -> Option<String> {
    let known = [
        ("{remote_host}", "{client}"),
        ("{client_ip}", "{client}"),
        ("{http.request.remote.host}", "{client}"),
        ("{host}", "{host}"),
        ("{http.request.host}", "{host}"),
        ("{uri}", "{uri}"),
        ("{http.request.uri}", "{uri}"),
        ("{path}", "{path}"),
        ("{http.request.uri.path}", "{path}"),
        ("{http.request.uuid}", "{request_id}"),
    ];
    let replaced = known.iter().fold(value.to_owned(), |value, (from, to)| value.replace(from, to));
    // Whatever is still in braces is a placeholder that we do not have.
    let ours = ["{client}", "{host}", "{uri}", "{path}", "{request_id}"];
    let rest = ours.iter().fold(replaced.clone(), |rest, name| rest.replace(name, ""));
    (!rest.contains('{') && !replaced.chars().any(char::is_control)).then_some(replaced)
}
