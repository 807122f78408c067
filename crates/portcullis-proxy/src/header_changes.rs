//! Changes of headers that a route or an agent makes.

use portcullis_config::{HeaderChanges, Template};

use crate::template::{Source, fill};

/// Changes of headers, filled in for one request.
#[derive(Default)]
pub(crate) struct Changed {
    pub(crate) remove: Vec<String>,
    pub(crate) set: Vec<(String, Vec<u8>)>,
    pub(crate) add: Vec<(String, Vec<u8>)>,
}

impl Changed {
    /// None if there is nothing to change, which is usual.
    pub(crate) fn new(changes: &HeaderChanges, source: &Source<'_>) -> Option<Box<Changed>> {
        if *changes == HeaderChanges::default() {
            return None;
        }
        let filled = |fields: &[(String, Template)]| {
            fields.iter().map(|(name, value)| (name.clone(), fill(value, source))).collect()
        };
        let (set, add) = (filled(&changes.set), filled(&changes.add));
        Some(Box::new(Changed { remove: changes.remove.clone(), set, add }))
    }

    /// A field of this name does not stay as it was.
    pub(crate) fn replaces(&self, field: &str) -> bool {
        let is_it = |name: &String| name.eq_ignore_ascii_case(field);
        self.remove.iter().any(is_it) || self.set.iter().any(|(name, _)| is_it(name))
    }

    /// The value of a field that is set.
    pub(crate) fn value(&self, name: &str) -> Option<&[u8]> {
        self.set.iter().find(|(set, _)| set == name).map(|(_, value)| &value[..])
    }
}

/// Fields as they are handed to a writer, but for `except`.
pub(crate) fn fields<'c>(
    fields: &'c [(String, Vec<u8>)],
    except: &'c str,
) -> impl Iterator<Item = (&'c str, &'c [u8])> {
    let named = fields.iter().map(|(name, value)| (name.as_str(), &value[..]));
    named.filter(move |(name, _)| *name != except)
}
