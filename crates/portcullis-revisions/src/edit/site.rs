//! What is inspected at a site or route, and how.

use toml_edit::{Table, TableLike, Value};

use super::tables::{self, scope};
use super::{Scope, SiteSettings, unfit};
use crate::error::RevisionError;

pub(super) fn set(root: &mut Table, at: &Scope, settings: &SiteSettings) -> Result<(), RevisionError> {
    if at.site.is_none() {
        return Err(unfit("these are settings of a site or a route: name one"));
    }
    let table = scope(root, at)?.table;
    for (key, change) in [("mode", &settings.mode), ("engine", &settings.engine), ("level", &settings.level)]
    {
        change_to(table, key, change.as_ref().map(|value| value.as_deref()));
    }
    let Some(paranoia) = settings.paranoia else { return Ok(()) };
    if at.route.is_some() {
        return Err(unfit("the paranoia level is one of a site, not of a route"));
    }
    let Some(rules) = table.get_mut("rules").and_then(|rules| rules.as_table_like_mut()) else {
        return Err(unfit(format!("{at} has no `rules`, so there is no paranoia level to set")));
    };
    change_to(rules, "paranoia", Some(paranoia.map(i64::from)));
    Ok(())
}

fn change_to<V: Into<Value>>(table: &mut dyn TableLike, key: &str, change: Option<Option<V>>) {
    match change {
        None => {}
        Some(None) => drop(table.remove(key)),
        Some(Some(value)) => tables::set(table, key, value),
    }
}
