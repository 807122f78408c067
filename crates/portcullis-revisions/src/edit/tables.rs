//! Ways through a document, whether its tables are written as such or in one line.

use toml_edit::{Array, ArrayOfTables, InlineTable, Item, RawString, Table, TableLike, Value};

use super::{Scope, unfit};
use crate::error::RevisionError;

/// A table of a document.
pub(super) struct Place<'a> {
    pub(super) table: &'a mut dyn TableLike,
    /// It is written in one line, so that what is in it must be, too.
    pub(super) is_inline: bool,
}

/// The table of a scope.
pub(super) fn scope<'a>(root: &'a mut Table, scope: &Scope) -> Result<Place<'a>, RevisionError> {
    let Some(site) = &scope.site else { return Ok(Place { table: root, is_inline: false }) };
    let is_site = |table: &dyn TableLike| text(table, "name") == Some(site);
    let found = root.get_mut("sites").and_then(|sites| only(sites, is_site));
    let place = found.ok_or_else(|| unfit(format!("the document has no site `{site}`")))?;
    let Some(route) = &scope.route else { return Ok(place) };
    let is_route = |table: &dyn TableLike| route_name(table) == Some(route);
    let found = place.table.get_mut("routes").and_then(|routes| only(routes, is_route));
    found.ok_or_else(|| {
        unfit(format!(
            "the site `{site}` has no route `{route}`, or several; give the route a `name` in the document"
        ))
    })
}

/// The name of a route here: its own, or its path.
pub(super) fn route_name(table: &dyn TableLike) -> Option<&str> {
    ["name", "path", "path_exact", "path_pattern"].iter().find_map(|key| text(table, key))
}

/// A text of a table.
pub(super) fn text<'a>(table: &'a dyn TableLike, key: &str) -> Option<&'a str> {
    table.get(key)?.as_str()
}

/// The one table of a list that is meant; none if there is none, or another one.
fn only(list: &mut Item, is_meant: impl Fn(&dyn TableLike) -> bool) -> Option<Place<'_>> {
    let mut meant = tables(list).filter(|place| is_meant(place.table));
    let found = meant.next()?;
    meant.next().is_none().then_some(found)
}

/// The tables of a list.
pub(super) fn tables(list: &mut Item) -> Box<dyn Iterator<Item = Place<'_>> + '_> {
    if let Item::ArrayOfTables(tables) = list {
        Box::new(tables.iter_mut().map(|table| Place { table, is_inline: false }))
    } else if let Item::Value(Value::Array(array)) = list {
        let tables = array.iter_mut().filter_map(Value::as_inline_table_mut);
        Box::new(tables.map(|table| Place { table, is_inline: true }))
    } else {
        Box::new(std::iter::empty())
    }
}

/// The table below a key, made if it is not there.
pub(super) fn table<'a>(
    parent: Place<'a>,
    key: &str,
    prefers_inline: bool,
) -> Result<Place<'a>, RevisionError> {
    let is_inline = parent.is_inline || prefers_inline;
    let item = parent.table.entry(key).or_insert_with(|| match is_inline {
        true => Item::Value(Value::InlineTable(InlineTable::new())),
        false => {
            // Without lines of its own it needs no header.
            let mut table = Table::new();
            table.set_implicit(true);
            Item::Table(table)
        }
    });
    let is_inline = item.is_inline_table();
    let table = item.as_table_like_mut().ok_or_else(|| unfit(format!("`{key}` is no table")))?;
    Ok(Place { table, is_inline })
}

/// Adds a table to the list below a key, in the way in which the list is written; a new list is written as
/// tables of their own, unless what it is in is written in one line.
pub(super) fn push(parent: Place<'_>, key: &str, mut table: Table) -> Result<(), RevisionError> {
    let item = parent.table.entry(key).or_insert_with(|| match parent.is_inline {
        true => Item::Value(Value::Array(Array::new())),
        false => Item::ArrayOfTables(ArrayOfTables::new()),
    });
    if let Item::ArrayOfTables(tables) = item {
        table.decor_mut().set_prefix("\n");
        tables.push(table);
        Ok(())
    } else if let Item::Value(Value::Array(array)) = item {
        push_value(array, Value::InlineTable(table.into_inline_table()));
        Ok(())
    } else {
        Err(unfit(format!("`{key}` is no list")))
    }
}

/// Adds a value to an array, on a line of its own if the others have one. A comment behind the last value
/// stays there.
pub(super) fn push_value(array: &mut Array, value: impl Into<Value>) {
    let mut value = value.into();
    let prefix = array.iter().last().and_then(|last| last.decor().prefix()?.as_str()).map(str::to_owned);
    match prefix {
        Some(prefix) if prefix.contains('\n') => {
            // Of comments before the last one only the indentation is taken.
            let indentation = prefix.rsplit('\n').next().unwrap_or_default().to_owned();
            let trailing = array.trailing().as_str().unwrap_or_default().to_owned();
            let suffix = array.iter().last().and_then(|last| last.decor().suffix()?.as_str());
            let suffix = suffix.unwrap_or_default().to_owned();
            // Without a comma behind it the comment belongs, for the parser, to the value.
            let (comment, rest) = match (suffix.split_once('\n'), trailing.split_once('\n')) {
                (Some((comment, rest)), _) => (comment, format!("\n{rest}{trailing}")),
                (None, Some((comment, rest))) => (comment, format!("\n{rest}")),
                (None, None) => ("", trailing.clone()),
            };
            value.decor_mut().set_prefix(format!("{}\n{indentation}", comment.trim_end()));
            if suffix.contains('\n') {
                array.iter_mut().last().map(|last| last.decor_mut().set_suffix("")).unwrap_or_default();
            }
            array.set_trailing(rest);
            array.push_formatted(value);
        }
        _ => array.push(value),
    }
}

/// Puts a value before another one of an array, on a line of its own if that has one. A comment behind the
/// value before it stays there.
pub(super) fn insert_value(array: &mut Array, index: usize, value: impl Into<Value>) {
    let mut value = value.into();
    let Some(next) = array.get_mut(index) else { return push_value(array, value) };
    let prefix = next.decor().prefix().and_then(RawString::as_str).unwrap_or_default().to_owned();
    match prefix.find('\n') {
        Some(end) => {
            let indentation = prefix.rsplit('\n').next().unwrap_or_default();
            value.decor_mut().set_prefix(format!("{}\n{indentation}", &prefix[..end]));
            next.decor_mut().set_prefix(&prefix[end..]);
            array.insert_formatted(index, value);
        }
        None => {
            if index == 0 && prefix.is_empty() {
                next.decor_mut().set_prefix(" ");
            }
            array.insert(index, value);
        }
    }
}

/// Removes a value from an array with the comment behind it. What stands behind the value before it belongs,
/// for the parser, to the value that is removed.
pub(super) fn remove_value(array: &mut Array, index: usize) {
    let removed = array.remove(index);
    let before = removed.decor().prefix().and_then(RawString::as_str).unwrap_or_default();
    let Some(end) = before.find('\n') else { return };
    let kept = before[..end].to_owned();
    let with = |after: &str| format!("{kept}{}", after.find('\n').map_or("", |end| &after[end..]));
    match array.get_mut(index) {
        Some(next) => {
            let after = next.decor().prefix().and_then(RawString::as_str).unwrap_or_default();
            let prefix = with(after);
            next.decor_mut().set_prefix(prefix);
        }
        None => {
            let trailing = with(array.trailing().as_str().unwrap_or_default());
            array.set_trailing(trailing);
        }
    }
}

/// Sets the value of a key, keeps what is written around it.
pub(super) fn set(table: &mut dyn TableLike, key: &str, value: impl Into<Value>) {
    let mut value = value.into();
    if let Some(Item::Value(there)) = table.get(key) {
        *value.decor_mut() = there.decor().clone();
    }
    match table.get_mut(key) {
        Some(item) => *item = Item::Value(value),
        None => {
            table.insert(key, Item::Value(value));
        }
    }
}
