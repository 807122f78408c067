//! Addresses and networks in the lists of clients.

use toml_edit::{Array, Item, Table, Value};

use super::tables::{push_value, remove_value, scope, table};
use super::{ClientList, Scope, unfit};
use crate::error::RevisionError;

pub(super) fn add(root: &mut Table, at: &Scope, list: ClientList, client: &str) -> Result<(), RevisionError> {
    let array = networks(root, at, list)?;
    if array.iter().any(|there| there.as_str() == Some(client)) {
        return Err(unfit(format!("`{client}` is on the list `{}` of {at} already", list.name())));
    }
    push_value(array, client);
    Ok(())
}

pub(super) fn remove(
    root: &mut Table,
    at: &Scope,
    list: ClientList,
    client: &str,
) -> Result<(), RevisionError> {
    let array = networks(root, at, list)?;
    let is_meant = |(index, there): (usize, &Value)| (there.as_str() == Some(client)).then_some(index);
    let found: Vec<usize> = array.iter().enumerate().filter_map(is_meant).collect();
    // From the end: the places of the others stay.
    found.iter().rev().for_each(|index| remove_value(array, *index));
    if found.is_empty() {
        return Err(unfit(format!(
            "`{client}` is not among the `networks` of the list `{}` of {at}; files that a list names are not \
             changed here",
            list.name()
        )));
    }
    Ok(())
}

fn networks<'a>(root: &'a mut Table, at: &Scope, list: ClientList) -> Result<&'a mut Array, RevisionError> {
    let place = scope(root, at)?;
    if at.site.is_some() && !place.table.contains_key("access") {
        // Lists of its own would take the place of those that count there now.
        return Err(unfit(format!(
            "{at} has no lists of its own: those of the site or the document count there; change these, or give it \
             `access` in the document"
        )));
    }
    let access = table(place, "access", false)?;
    let lists = table(access, list.name(), true)?.table;
    let item = lists.entry("networks").or_insert_with(|| Item::Value(Value::Array(Array::new())));
    item.as_array_mut().ok_or_else(|| unfit("`networks` is no list"))
}
