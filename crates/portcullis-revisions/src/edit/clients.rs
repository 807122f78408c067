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

/// The part of the document whose lists count at a site or route: those of its own, otherwise those of what
/// it is in. Lists of its own, made for one client, would take the place of these.
fn that_counts(root: &mut Table, at: &Scope) -> Result<Scope, RevisionError> {
    let mut at = at.clone();
    while at.site.is_some() && !scope(root, &at)?.table.contains_key("access") {
        at = Scope { site: at.site.filter(|_| at.route.is_some()), route: None };
    }
    Ok(at)
}

fn networks<'a>(root: &'a mut Table, at: &Scope, list: ClientList) -> Result<&'a mut Array, RevisionError> {
    let at = that_counts(root, at)?;
    let place = scope(root, &at)?;
    let access = table(place, "access", false)?;
    let lists = table(access, list.name(), true)?.table;
    let item = lists.entry("networks").or_insert_with(|| Item::Value(Value::Array(Array::new())));
    item.as_array_mut().ok_or_else(|| unfit("`networks` is no list"))
}
