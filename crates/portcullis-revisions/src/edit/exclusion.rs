//! Exclusions: entries of `semantic.exclude` and `rules.exclude`; directives that take a target from a rule
//! are removed, too.

use toml_edit::{Array, Item, Table, TableLike, Value};

use super::tables::{Place, push, remove_value, route_name, scope, set, table, tables, text};
use super::{Exclusion, RuleExclusion, Scope, SemanticExclusion, unfit};
use portcullis_config::{ExclusionIdentity, exclusion_end};

use crate::error::RevisionError;
use crate::exclusions::{id_of, of_profile};

pub(super) fn add(root: &mut Table, at: &Scope, exclusion: &Exclusion) -> Result<(), RevisionError> {
    if at.site.is_none() {
        return Err(unfit("an exclusion is one of a site or a route: name the site"));
    }
    match exclusion {
        Exclusion::Semantic(exclusion) => add_semantic(root, at, exclusion),
        Exclusion::Rule(exclusion) => add_rule(root, at, exclusion),
    }
}

fn add_semantic(root: &mut Table, at: &Scope, exclusion: &SemanticExclusion) -> Result<(), RevisionError> {
    let place = scope(root, at)?;
    if at.route.is_some() && !place.table.contains_key("semantic") {
        // What a route says takes the place of all that its site says.
        return Err(unfit(format!(
            "{at} has no `semantic` of its own: that of the site counts there; add the exclusion to the site, with the \
             path"
        )));
    }
    let parts = [&exclusion.class, &exclusion.location, &exclusion.path, &exclusion.kind];
    let identity = ExclusionIdentity::Semantic(parts.map(Option::as_deref));
    let semantic = table(place, "semantic", false)?;
    is_new(semantic.table, at, &id_of(at, &identity), &exclusion.until)?;
    let mut entry = Table::new();
    let members = [
        ("class", &exclusion.class),
        ("kind", &exclusion.kind),
        ("location", &exclusion.location),
        ("path", &exclusion.path),
        ("until", &exclusion.until),
        ("reason", &exclusion.reason),
        ("author", &exclusion.author),
    ];
    fill(&mut entry, &members, exclusion.trial);
    push(semantic, "exclude", entry)
}

fn fill(entry: &mut Table, members: &[(&str, &Option<String>)], trial: bool) {
    if trial {
        // Not last: it will be taken out of tables in one line, too.
        entry.insert("trial", Item::Value(Value::from(true)));
    }
    for (key, value) in members {
        if let Some(value) = value {
            entry.insert(key, Item::Value(Value::from(value.as_str())));
        }
    }
}

fn add_rule(root: &mut Table, at: &Scope, exclusion: &RuleExclusion) -> Result<(), RevisionError> {
    if at.route.is_some() {
        return Err(unfit("rules are those of a site: name no route"));
    }
    let place = scope(root, at)?;
    if !place.table.contains_key("rules") {
        return Err(unfit(format!("{at} has no `rules`")));
    }
    let rules = table(place, "rules", false)?;
    let parts = [exclusion.target.as_deref(), exclusion.path.as_deref()];
    let id = id_of(at, &ExclusionIdentity::Rule(&[exclusion.rule_id], parts));
    is_new(rules.table, at, &id, &exclusion.until)?;
    let mut entry = Table::new();
    entry.insert("rules", Item::Value(Value::Array(Array::from_iter([i64::from(exclusion.rule_id)]))));
    let members = [
        ("target", &exclusion.target),
        ("path", &exclusion.path),
        ("until", &exclusion.until),
        ("reason", &exclusion.reason),
        ("author", &exclusion.author),
    ];
    fill(&mut entry, &members, exclusion.trial);
    push(rules, "exclude", entry)
}

pub(super) fn remove(root: &mut Table, id: &str) -> Result<(), RevisionError> {
    match first(root, &mut |place, at| remove_from(place, at, id)) {
        true => Ok(()),
        false => Err(unfit(match profile_of(root, id) {
            Some(profile) => format!(
                "the exclusion `{id}` is of the profile `{profile}`: take the name out of the `profiles` of the \
                 site, and write those exclusions of it that are to stay"
            ),
            None => format!("the document has no exclusion `{id}`"),
        })),
    }
}

/// The profile of a site that the exclusion with this id is of.
fn profile_of(root: &mut Table, id: &str) -> Option<String> {
    let mut found = None;
    first(root, &mut |place, at| {
        let part = |table: &dyn TableLike, key| {
            table.get(key).and_then(Item::as_str).map(str::to_owned).unwrap_or_default()
        };
        let names = place.get("profiles").and_then(Item::as_array).into_iter().flatten();
        let strings = names.filter_map(|each| match each.as_inline_table() {
            Some(table) => Some((part(table, "name"), part(table, "path"))),
            None => Some((each.as_str()?.to_owned(), String::new())),
        });
        let tables = place.get("profiles").and_then(Item::as_array_of_tables).into_iter().flatten();
        let tables = tables.map(|table| (part(table, "name"), part(table, "path")));
        let mut taken = strings.chain(tables);
        let is_it = |(name, path): &(String, String)| of_profile(name, path, at).any(|each| each.id == id);
        found = taken.find(is_it).map(|(name, _)| name);
        found.is_some()
    });
    found
}

pub(super) fn enforce(root: &mut Table, id: &str) -> Result<(), RevisionError> {
    let mut end_trial = |place: &mut dyn TableLike, at: &Scope| {
        // Another one with the same id, which has ended or will end, may count already.
        let is_meant = |entry: &Place<'_>| is_on_trial(entry.table) && entry_id(entry.table, at) == id;
        entries(place).find(is_meant).is_some_and(|entry| {
            entry.table.remove("auto_enforce");
            entry.table.remove("trial").is_some()
        })
    };
    match first(root, &mut end_trial) {
        true => Ok(()),
        false => Err(unfit(format!("the document has no exclusion `{id}` on trial"))),
    }
}

fn is_on_trial(entry: &dyn TableLike) -> bool {
    entry.get("trial").and_then(Item::as_bool) == Some(true)
}

/// Runs `edit` on sites and routes until it has done what it is for; false if it never has.
fn first(root: &mut Table, edit: &mut dyn FnMut(&mut dyn TableLike, &Scope) -> bool) -> bool {
    let Some(sites) = root.get_mut("sites") else { return false };
    for Place { table: site, .. } in tables(sites) {
        let mut at = Scope { site: text(site, "name").map(str::to_owned), route: None };
        if edit(site, &at) {
            return true;
        }
        let Some(routes) = site.get_mut("routes") else { continue };
        for Place { table: route, .. } in tables(routes) {
            at.route = route_name(route).map(str::to_owned);
            if edit(route, &at) {
                return true;
            }
        }
    }
    false
}

/// The entries of the exclusions of a site or route.
fn entries(place: &mut dyn TableLike) -> impl Iterator<Item = Place<'_>> {
    let lists = place.iter_mut().filter(|(key, _)| ["semantic", "rules"].contains(&key.get()));
    let tables_of = lists.filter_map(|(_, item)| item.as_table_like_mut()?.get_mut("exclude"));
    tables_of.flat_map(tables)
}

/// Removes an exclusion of a site or route that has this id.
fn remove_from(place: &mut dyn TableLike, at: &Scope, id: &str) -> bool {
    for key in ["semantic", "rules"] {
        let table = place.get_mut(key).and_then(Item::as_table_like_mut);
        let list = table.and_then(|table| table.get_mut("exclude"));
        if list.is_some_and(|list| remove_entry(list, at, id)) {
            return true;
        }
    }
    let Some(rules) = place.get_mut("rules").and_then(Item::as_table_like_mut) else { return false };
    let Some(lines) = text(rules, "directives") else { return false };
    let Some(left) = without_line(lines, |line| id_of(at, &ExclusionIdentity::Directive(line)) == id) else {
        return false;
    };
    match left.trim().is_empty() {
        true => drop(rules.remove("directives")),
        false => set(rules, "directives", left),
    }
    true
}

/// The id of an entry of an `exclude`: only those of rules name some.
fn entry_id(table: &dyn TableLike, at: &Scope) -> String {
    let Some(rules) = table.get("rules") else {
        let parts = ["class", "location", "path", "kind"].map(|key| text(table, key));
        return id_of(at, &ExclusionIdentity::Semantic(parts));
    };
    let rules = rules.as_array().into_iter().flatten();
    let rules: Vec<u32> = rules.filter_map(|id| u32::try_from(id.as_integer()?).ok()).collect();
    let parts = ["target", "path"].map(|key| text(table, key));
    id_of(at, &ExclusionIdentity::Rule(&rules, parts))
}

/// Refuses a second exclusion that says the same and ends at the same time. One that has ended may come back
/// with another end.
fn is_new(
    table: &mut dyn TableLike,
    at: &Scope,
    id: &str,
    until: &Option<String>,
) -> Result<(), RevisionError> {
    let is_it =
        |place: Place<'_>| entry_id(place.table, at) == id && text(place.table, "until") == until.as_deref();
    match table.get_mut("exclude").is_some_and(|list| tables(list).any(is_it)) {
        true => Err(unfit(format!("{at} has this exclusion already: `{id}`"))),
        false => Ok(()),
    }
}

/// Removes the entry of an `exclude` with this id. Of several, which differ in their end, the one that ends
/// first goes: it is the one that a later end has made useless.
fn remove_entry(list: &mut Item, at: &Scope, id: &str) -> bool {
    let meant = tables(list).enumerate().filter(|(_, place)| entry_id(place.table, at) == id);
    let end = |place: &Place<'_>| text(place.table, "until").and_then(exclusion_end).unwrap_or(u64::MAX);
    let index = meant.min_by_key(|(_, place)| end(place)).map(|(index, _)| index);
    match (index, list) {
        (Some(index), Item::ArrayOfTables(tables)) => {
            tables.remove(index);
            true
        }
        (Some(index), Item::Value(Value::Array(array))) => {
            remove_value(array, index);
            true
        }
        _ => false,
    }
}

/// The lines without the first directive that is meant, and without the comment right above it.
fn without_line(lines: &str, is_meant: impl Fn(&str) -> bool) -> Option<String> {
    let all: Vec<&str> = lines.lines().collect();
    let index = all.iter().position(|line| crate::exclusions::is_rule_exclusion(line) && is_meant(line))?;
    let has_comment = index > 0 && all[index - 1].trim_start().starts_with('#');
    let skipped = index - usize::from(has_comment)..=index;
    let left = all.iter().enumerate().filter(|(at, _)| !skipped.contains(at));
    Some(left.map(|(_, line)| format!("{line}\n")).collect())
}
