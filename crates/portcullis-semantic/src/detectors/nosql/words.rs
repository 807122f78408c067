//! Operators, methods and names that the detector knows.

use super::{KEY_COMPARES, KEY_JOINS, KEY_MATCHES, KEY_OTHER, KEY_REACHES, KEY_RUNS};
use crate::detectors::purpose::names_secret;
use crate::detectors::scan::{is_one_of, is_word, run};
use crate::{Hint, KindId};

/// The last name before an operator is that of a login's field.
pub(super) fn is_credential(before: &[u8]) -> bool {
    last_word(before).is_some_and(|word| is_one_of(word, PERSONS) || is_one_of(word, PROOFS))
}

/// The same, for a field that proves who the user is.
pub(super) fn is_secret(before: &[u8]) -> bool {
    last_word(before).is_some_and(|word| is_one_of(word, PROOFS) || names_secret(word))
}

fn last_word(before: &[u8]) -> Option<&[u8]> {
    let tail = &before[before.len().saturating_sub(40)..];
    tail.rsplit(|b| !is_word(*b)).find(|word| !word.is_empty())
}

const PERSONS: &[&[u8]] = words!("nosql", "persons");
const PROOFS: &[&[u8]] = words!("nosql", "proofs");

/// Interfaces that take filters by name (`filters[price][$gt]`) have such names on purpose.
pub(super) fn is_filter(name: &[u8]) -> bool {
    let first = &name[..run(name, 0, 24, is_word)];
    is_one_of(
        first,
        &[b"filter", b"filters", b"where", b"query", b"populate", b"sort", b"_where", b"selector"],
    )
}

/// A word of the text is for the filters of an interface.
pub(super) fn speaks_of_filter(text: &[u8]) -> bool {
    const KEYS: &[&[u8]] =
        &[b"filter", b"where", b"query", b"populate", b"pipeline", b"selector", b"criteria", b"match"];
    text.split(|b| !is_word(*b)).any(|word| {
        let word = word.strip_suffix(b"s").unwrap_or(word);
        is_one_of(word.strip_prefix(b"_").unwrap_or(word), KEYS)
    })
}

/// The kind that `$name` as a key notes.
pub(super) fn operator(name: &[u8]) -> Option<KindId> {
    match name {
        b"ne" | b"eq" | b"gt" | b"gte" | b"lt" | b"lte" | b"in" | b"nin" | b"exists" => Some(KEY_COMPARES),
        b"regex" => Some(KEY_MATCHES),
        b"or" | b"and" | b"nor" | b"not" => Some(KEY_JOINS),
        b"where" | b"function" | b"func" | b"accumulator" => Some(KEY_RUNS),
        b"lookup" | b"graphLookup" | b"unionWith" | b"out" | b"merge" => Some(KEY_REACHES),
        b"expr" | b"mod" | b"text" | b"all" | b"elemMatch" | b"size" | b"comment" | b"jsonSchema"
        | b"type" | b"match" | b"project" | b"group" | b"nearSphere" | b"options" => Some(KEY_OTHER),
        _ => None,
    }
}

/// Methods of MongoDB's collections and of the shell's `db`.
pub(super) const METHODS: &[&[u8]] = words!("nosql", "methods");

/// The gate.
pub(super) const HINTS: &[Hint] = hints!("nosql", "gate");
