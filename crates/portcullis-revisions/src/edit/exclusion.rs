//! Exclusions: entries of `semantic.exclude`, and directives of SecLang that take a target from a rule.

use toml_edit::{Item, Table, TableLike, Value};

use super::tables::{Place, push, remove_value, route_name, scope, set, table, tables, text};
use super::{Exclusion, RuleExclusion, Scope, SemanticExclusion, unfit};
use crate::error::RevisionError;
use crate::exclusions::{Identity, RULE_DIRECTIVES};

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
    let semantic = table(place, "semantic", false)?;
    let mut entry = Table::new();
    let members = [
        ("class", &exclusion.class),
        ("kind", &exclusion.kind),
        ("location", &exclusion.location),
        ("path", &exclusion.path),
        ("until", &exclusion.until),
        ("reason", &exclusion.reason),
    ];
    for (key, value) in members {
        if let Some(value) = value {
            entry.insert(key, Item::Value(Value::from(value.as_str())));
        }
    }
    push(semantic, "exclude", entry)
}

fn add_rule(root: &mut Table, at: &Scope, exclusion: &RuleExclusion) -> Result<(), RevisionError> {
    if at.route.is_some() {
        return Err(unfit("rules are those of a site: name no route"));
    }
    let place = scope(root, at)?;
    let Some(rules) = place.table.get_mut("rules").and_then(Item::as_table_like_mut) else {
        return Err(unfit(format!("{at} has no `rules`")));
    };
    let directive = directive(exclusion)?;
    let mut lines = text(rules, "directives").unwrap_or_default().to_owned();
    if lines.lines().any(|line| line.trim() == directive) {
        return Err(unfit(format!("{at} has this exclusion already")));
    }
    if !lines.is_empty() && !lines.ends_with('\n') {
        lines.push('\n');
    }
    if let Some(reason) = &exclusion.reason {
        lines.push_str(&format!("# {}\n", reason.replace(char::is_control, " ")));
    }
    lines.push_str(&directive);
    lines.push('\n');
    set(rules, "directives", lines);
    Ok(())
}

/// The directive of an exclusion.
fn directive(exclusion: &RuleExclusion) -> Result<String, RevisionError> {
    let RuleExclusion { rule_id, target, .. } = exclusion;
    let Some(target) = target else { return Ok(format!("{} {rule_id}", RULE_DIRECTIVES[0])) };
    // What stands between quotes here must not end them, begin another target or continue the line.
    let is_plain = |byte: u8| (0x20..0x7f).contains(&byte) && !b"\"'`,|!&#\\ ".contains(&byte);
    let (collection, name) = target.split_once(':').unwrap_or((target, ""));
    let is_pattern = name.len() > 2 && name.starts_with('/') && name.ends_with('/');
    let is_name = |name: &str| name.bytes().all(|byte| is_plain(byte) || is_pattern && byte == b'\\');
    let is_collection =
        !collection.is_empty() && collection.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    if !is_collection || !is_name(name) || target.ends_with(':') {
        return Err(unfit(format!(
            "`{target}` cannot be excluded: a target is a variable as events name it, such as `ARGS:comment`"
        )));
    }
    Ok(format!("{} {rule_id} \"!{target}\"", RULE_DIRECTIVES[1]))
}

pub(super) fn remove(root: &mut Table, id: &str) -> Result<(), RevisionError> {
    let mut removed = false;
    if let Some(sites) = root.get_mut("sites") {
        for Place { table: site, .. } in tables(sites) {
            let mut at = Scope { site: text(site, "name").map(str::to_owned), route: None };
            removed = removed || remove_from(site, &at, id);
            if let Some(routes) = site.get_mut("routes") {
                for Place { table: route, .. } in tables(routes) {
                    at.route = route_name(route).map(str::to_owned);
                    removed = removed || remove_from(route, &at, id);
                }
            }
        }
    }
    match removed {
        true => Ok(()),
        false => Err(unfit(format!("the document has no exclusion `{id}`"))),
    }
}

/// Removes the first exclusion of a site or route that has this id.
fn remove_from(place: &mut dyn TableLike, at: &Scope, id: &str) -> bool {
    let semantic = place.get_mut("semantic").and_then(Item::as_table_like_mut);
    if let Some(list) = semantic.and_then(|semantic| semantic.get_mut("exclude")) {
        let is_meant = |table: &dyn TableLike| {
            Identity::Semantic(["class", "location", "path", "kind"].map(|key| text(table, key))).id(at) == id
        };
        let index = tables(list).position(|place| is_meant(place.table));
        match (index, list) {
            (Some(index), Item::ArrayOfTables(tables)) => {
                tables.remove(index);
                return true;
            }
            (Some(index), Item::Value(Value::Array(array))) => {
                remove_value(array, index);
                return true;
            }
            _ => {}
        }
    }
    let Some(rules) = place.get_mut("rules").and_then(Item::as_table_like_mut) else { return false };
    let Some(lines) = text(rules, "directives") else { return false };
    let Some(left) = without_line(lines, |line| Identity::Rule(line).id(at) == id) else { return false };
    match left.trim().is_empty() {
        true => drop(rules.remove("directives")),
        false => set(rules, "directives", left),
    }
    true
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
