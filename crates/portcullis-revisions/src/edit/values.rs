//! Values at places of the document: what differs is changed, all else stays as it is written.

use std::time::Instant;

use serde_json::Value as Json;
use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};
use toml_edit::{Array, ArrayOfTables, InlineTable, Item, Table, TableLike, Value};

use super::tables::{insert_value, push_value, remove_value};
use super::{ValueEdit, unfit};
use crate::diff::SEARCH_TIME_MAX;
use crate::error::RevisionError;

/// Bytes of a pointer.
const POINTER_BYTES_MAX: usize = 1_000;
/// Parts of a pointer: no key of the document is as deep.
const POINTER_PARTS_MAX: usize = 32;

/// A table or list of at most so many characters is written in one line when it is new.
const LINE_CHARS_MAX: usize = 80;

/// Sets a value, adds one, or removes one.
pub(super) fn set(root: &mut Table, edit: &ValueEdit) -> Result<(), RevisionError> {
    let parts = parts(&edit.pointer)?;
    let Some((last, above)) = parts.split_last() else {
        return Err(unfit("the whole document is no value: name one, such as `/sites/0/mode`"));
    };
    let mut node = Node::Table(root);
    for (depth, part) in above.iter().enumerate() {
        let missing = || unfit(format!("the document has no `/{}`", parts[..=depth].join("/")));
        // What a new value is in comes with it.
        let make = match (&edit.value, parts[depth + 1].as_str()) {
            (None, _) => Make::Nothing,
            (Some(_), "-") => Make::List,
            (Some(_), _) => Make::Table,
        };
        node = node.child(part, make).ok_or_else(missing)?;
    }
    match &edit.value {
        Some(value) => put(node, last, value, &edit.pointer),
        None => remove(node, last, &edit.pointer),
    }
}

/// The parts of a JSON Pointer (RFC 6901). They have a bound: tables that are missing on the way are made,
/// one inside the other, and are written by a function that calls itself for each.
fn parts(pointer: &str) -> Result<Vec<String>, RevisionError> {
    if pointer.len() > POINTER_BYTES_MAX {
        return Err(unfit(format!("a place has at most {POINTER_BYTES_MAX} bytes")));
    }
    let Some(rest) = pointer.strip_prefix('/') else {
        return Err(unfit(format!("`{pointer}` is no place in the document: it begins with `/`")));
    };
    if rest.split('/').count() > POINTER_PARTS_MAX {
        return Err(unfit(format!("a place has at most {POINTER_PARTS_MAX} parts")));
    }
    let part = |part: &str| {
        let is_escape = |rest: &str| rest.starts_with(['0', '1']);
        match part.split('~').skip(1).all(is_escape) {
            true => Ok(part.replace("~1", "/").replace("~0", "~")),
            false => {
                Err(unfit(format!("`{pointer}`: `~` stands before 0 or 1 only (`~0` for `~`, `~1` for `/`)")))
            }
        }
    };
    rest.split('/').map(part).collect()
}

/// A place of the document with what is there.
enum Node<'a> {
    /// The value of a key, and whether it has to be in one line.
    Item(&'a mut Item, bool),
    Value(&'a mut Value),
    Table(&'a mut Table),
}

/// What is made where nothing is.
#[derive(Clone, Copy)]
enum Make {
    Nothing,
    Table,
    List,
}

impl<'a> Node<'a> {
    /// The part of a table or list.
    fn child(self, part: &str, make: Make) -> Option<Node<'a>> {
        match self.into_table() {
            Ok((table, is_inline)) => {
                if table.get(part).is_none_or(Item::is_none) {
                    let made = match make {
                        Make::Nothing => return None,
                        Make::List => Item::Value(Value::Array(Array::new())),
                        Make::Table if is_inline => Item::Value(Value::InlineTable(InlineTable::new())),
                        Make::Table => {
                            // Without lines of its own it needs no header.
                            let mut new = Table::new();
                            new.set_implicit(true);
                            Item::Table(new)
                        }
                    };
                    table.insert(part, made);
                }
                table.get_mut(part).map(|item| Node::Item(item, is_inline))
            }
            Err(Node::Item(Item::ArrayOfTables(tables), _)) => tables.get_mut(index(part)?).map(Node::Table),
            Err(Node::Item(Item::Value(Value::Array(array)), _) | Node::Value(Value::Array(array))) => {
                array.get_mut(index(part)?).map(Node::Value)
            }
            Err(_) => None,
        }
    }

    /// The table and whether what is in it has to be in one line; the place itself if it has no table.
    fn into_table(self) -> Result<(&'a mut dyn TableLike, bool), Node<'a>> {
        match self {
            Node::Table(table) | Node::Item(Item::Table(table), _) => {
                let is_dotted = table.is_dotted();
                Ok((table, is_dotted))
            }
            Node::Item(Item::Value(Value::InlineTable(table)), _)
            | Node::Value(Value::InlineTable(table)) => Ok((table, true)),
            other @ (Node::Item(..) | Node::Value(_)) => Err(other),
        }
    }
}

/// The place in a list. There is one spelling of it, without a sign or zeros in front.
fn index(part: &str) -> Option<usize> {
    part.parse().ok().filter(|at: &usize| at.to_string() == part)
}

/// Puts a value at a key, at a place of a list, or behind its last one (`-`).
fn put(node: Node<'_>, key: &str, value: &Json, pointer: &str) -> Result<(), RevisionError> {
    match node.into_table() {
        Ok((table, is_inline)) => merge_member(table, is_inline, key, value),
        Err(node) => {
            let mut list = match list_of(&node) {
                Some(list) => list,
                None => return Err(unfit(format!("`{pointer}` is in no table and no list"))),
            };
            match index(key) {
                Some(at) if at < list.len() => list[at] = value.clone(),
                _ if key == "-" => list.push(value.clone()),
                _ => return Err(unfit(format!("the document has no `{pointer}`"))),
            }
            merge(node, &Json::Array(list))
        }
    }
}

fn remove(node: Node<'_>, key: &str, pointer: &str) -> Result<(), RevisionError> {
    let missing = || unfit(format!("the document has no `{pointer}`"));
    match node.into_table() {
        Ok((table, _)) => table.remove(key).map(drop).ok_or_else(missing),
        Err(node) => {
            let mut list = list_of(&node).ok_or_else(missing)?;
            let at = index(key).filter(|at| *at < list.len()).ok_or_else(missing)?;
            list.remove(at);
            merge(node, &Json::Array(list))
        }
    }
}

/// The values of a list.
fn list_of(node: &Node<'_>) -> Option<Vec<Json>> {
    if let Node::Item(item, _) = node {
        match json_of(item) {
            Json::Array(list) => Some(list),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Object(_) => None,
        }
    } else if let Node::Value(Value::Array(array)) = node {
        Some(array.iter().map(json_of_value).collect())
    } else {
        None
    }
}

/// Makes the value of a key that of `new`.
fn merge_member(
    table: &mut dyn TableLike,
    is_inline: bool,
    key: &str,
    new: &Json,
) -> Result<(), RevisionError> {
    match table.get_mut(key) {
        Some(item) if !item.is_none() => merge(Node::Item(item, is_inline), new),
        _ => {
            // Among tables of their own, one more.
            let is_among = !is_inline && table.iter().all(|(_, item)| item.is_table());
            let item = match table_of(new)? {
                Some(own) if is_among => Some(Item::Table(own)),
                _ => item_of(new, is_inline)?,
            };
            if let Some(item) = item {
                table.insert(key, item);
            }
            Ok(())
        }
    }
}

/// Makes what is there that of `new`: members and elements that are equal stay as they are written.
fn merge(node: Node<'_>, new: &Json) -> Result<(), RevisionError> {
    match (node, new) {
        (Node::Item(item, _), new) if json_of(item) == *new => Ok(()),
        // The first entries of a list: as they would be written in a list that was not there.
        (Node::Item(item, is_inline), Json::Array(_)) if json_of(item) == Json::Array(Vec::new()) => {
            *item = item_of(new, is_inline)?.unwrap_or_default();
            Ok(())
        }
        (Node::Item(Item::ArrayOfTables(tables), _), Json::Array(list))
            if !list.is_empty() && list.iter().all(Json::is_object) =>
        {
            merge_tables(tables, list)
        }
        (
            Node::Item(Item::Value(Value::Array(array)), _) | Node::Value(Value::Array(array)),
            Json::Array(list),
        ) => merge_array(array, list),
        (node, Json::Object(members)) => match node.into_table() {
            Ok((table, is_inline)) => {
                let there: Vec<String> = table.iter().map(|(key, _)| key.to_owned()).collect();
                let is_gone = |key: &&String| members.get(*key).is_none_or(Json::is_null);
                there.iter().filter(is_gone).for_each(|key| drop(table.remove(key)));
                members
                    .iter()
                    .filter(|(_, value)| !value.is_null())
                    .try_for_each(|(key, value)| merge_member(table, is_inline, key, value))
            }
            Err(node) => replace(node, new),
        },
        (node, new) => replace(node, new),
    }
}

/// Puts another kind of value in place of what is there.
fn replace(node: Node<'_>, new: &Json) -> Result<(), RevisionError> {
    let mut value = value_of(new)?;
    match node {
        Node::Item(Item::Value(there), _) | Node::Value(there) => {
            *value.decor_mut() = there.decor().clone();
            *there = value;
            Ok(())
        }
        Node::Item(item, _) => {
            *item = Item::Value(value);
            Ok(())
        }
        Node::Table(_) => Err(unfit("an entry that is written as a table of its own stays a table")),
    }
}

/// The steps from one list to another, the last place first.
fn steps(old: &[Json], new: &[Json]) -> Vec<DiffOp> {
    let texts = |list: &[Json]| list.iter().map(Json::to_string).collect::<Vec<_>>();
    let deadline = Instant::now() + SEARCH_TIME_MAX;
    let (old, new) = (texts(old), texts(new));
    let mut steps = capture_diff_slices_deadline(Algorithm::Myers, &old, &new, Some(deadline));
    steps.reverse();
    steps
}

fn merge_array(array: &mut Array, new: &[Json]) -> Result<(), RevisionError> {
    let old: Vec<Json> = array.iter().map(json_of_value).collect();
    for step in steps(&old, new) {
        let (_, there, wanted) = step.as_tag_tuple();
        if matches!(step, DiffOp::Equal { .. }) {
            continue;
        }
        let both = there.len().min(wanted.len());
        (there.start + both..there.end).rev().for_each(|at| remove_value(array, at));
        for (at, wanted) in wanted.clone().skip(both).enumerate() {
            let at = there.start + both + at;
            let value = value_of(&new[wanted])?;
            if at == array.len() { push_value(array, value) } else { insert_value(array, at, value) }
        }
        for (at, wanted) in there.zip(wanted) {
            if let Some(value) = array.get_mut(at) {
                merge(Node::Value(value), &new[wanted])?;
            }
        }
    }
    Ok(())
}

fn merge_tables(tables: &mut ArrayOfTables, new: &[Json]) -> Result<(), RevisionError> {
    let old: Vec<Json> = tables.iter().map(json_of_table).collect();
    for step in steps(&old, new) {
        let (_, there, wanted) = step.as_tag_tuple();
        if matches!(step, DiffOp::Equal { .. }) {
            continue;
        }
        let both = there.len().min(wanted.len());
        (there.start + both..there.end).rev().for_each(|at| drop(tables.remove(at)));
        for (at, wanted) in wanted.clone().skip(both).enumerate() {
            if let Some(table) = table_of(&new[wanted])? {
                tables.insert(there.start + both + at, table);
            }
        }
        for (at, wanted) in there.zip(wanted) {
            if let Some(table) = tables.get_mut(at) {
                merge(Node::Table(table), &new[wanted])?;
            }
        }
    }
    Ok(())
}

/// A new value of a key: in one line, or as a table or tables of its own. None for null.
fn item_of(new: &Json, is_inline: bool) -> Result<Option<Item>, RevisionError> {
    if new.is_null() {
        return Ok(None);
    }
    let value = value_of(new)?;
    if is_inline || value.to_string().trim().chars().count() <= LINE_CHARS_MAX {
        return Ok(Some(Item::Value(value)));
    }
    Ok(Some(if let Json::Object(_) = new {
        table_of(new)?.map_or(Item::Value(value), Item::Table)
    } else if let Json::Array(list) = new
        && list.iter().all(Json::is_object)
    {
        let mut tables = ArrayOfTables::new();
        for each in list {
            if let Some(table) = table_of(each)? {
                tables.push(table);
            }
        }
        Item::ArrayOfTables(tables)
    } else {
        Item::Value(value)
    }))
}

/// A table of its own; none if it is no object.
fn table_of(new: &Json) -> Result<Option<Table>, RevisionError> {
    let Json::Object(members) = new else { return Ok(None) };
    let mut table = Table::new();
    table.decor_mut().set_prefix("\n");
    for (key, value) in named_first(members) {
        if let Some(item) = item_of(value, false)? {
            table.insert(key, item);
        }
    }
    Ok(Some(table))
}

/// The members in the order in which people write them: what names or locates the table first.
fn named_first(members: &serde_json::Map<String, Json>) -> Vec<(&String, &Json)> {
    const FIRST: [&str; 8] =
        ["name", "kind", "address", "url", "hosts", "path", "path_exact", "path_pattern"];
    let place = |key: &String| FIRST.iter().position(|first| first == key).unwrap_or(FIRST.len());
    let mut all: Vec<_> = members.iter().collect();
    all.sort_by_key(|(key, _)| place(key));
    all
}

/// A new value in one line.
fn value_of(new: &Json) -> Result<Value, RevisionError> {
    Ok(match new {
        Json::Bool(truth) => Value::from(*truth),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Value::from(whole),
            // A whole number that TOML has not would become another one.
            (None, Some(other)) if !number.is_u64() => Value::from(other),
            (None, _) => return Err(unfit(format!("the number {number} is out of range"))),
        },
        Json::String(text) => string(text),
        Json::Array(list) => Value::Array(list.iter().map(value_of).collect::<Result<Array, _>>()?),
        Json::Object(members) => {
            let mut table = InlineTable::new();
            for (key, value) in named_first(members) {
                if !value.is_null() {
                    table.insert(key, value_of(value)?);
                }
            }
            Value::InlineTable(table)
        }
        Json::Null => return Err(unfit("null is no value of a list")),
    })
}

/// A text: of several lines as it is, between `'''`, if that can be.
fn string(text: &str) -> Value {
    let is_plain = |char: char| char == '\n' || char == '\t' || !char.is_control();
    let fits = text.contains('\n') && !text.contains("''") && !text.ends_with('\'');
    if fits
        && text.chars().all(is_plain)
        && let Ok(value) = format!("'''\n{text}'''").parse::<Value>()
    {
        return value;
    }
    Value::from(text)
}

fn json_of(item: &Item) -> Json {
    match item {
        Item::None => Json::Null,
        Item::Value(value) => json_of_value(value),
        Item::Table(table) => json_of_table(table),
        Item::ArrayOfTables(tables) => tables.iter().map(json_of_table).collect(),
    }
}

fn json_of_table(table: &Table) -> Json {
    table.iter().map(|(key, item)| (key.to_owned(), json_of(item))).collect()
}

fn json_of_value(value: &Value) -> Json {
    match value {
        Value::String(text) => text.value().as_str().into(),
        Value::Integer(number) => (*number.value()).into(),
        Value::Float(number) => (*number.value()).into(),
        Value::Boolean(truth) => (*truth.value()).into(),
        Value::Datetime(date) => date.value().to_string().into(),
        Value::Array(array) => array.iter().map(json_of_value).collect(),
        Value::InlineTable(table) => {
            table.iter().map(|(key, value)| (key.to_owned(), json_of_value(value))).collect()
        }
    }
}
