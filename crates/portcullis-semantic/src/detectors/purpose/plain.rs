//! Fields for plain values: numbers, identifiers, short words from a list.
//!
//! Nobody types a sentence there, so that what looks like a piece of one is meant.

use super::name::{NAME_BYTES_MAX, has_last_word, is_plain_name};
use super::queries::is_search;
use crate::{Location, Place};

/// The name is that of a field that takes a number, an identifier or a short word: `id`, `page`, `sort_by`.
pub fn takes_plain_value(name: &[u8]) -> bool {
    name.len() <= NAME_BYTES_MAX && has_last_word(name, PLAIN_WORDS)
}

/// The name, the same for all readers, is that of a field for search terms.
pub fn takes_search(name: &[u8]) -> bool {
    name.len() <= NAME_BYTES_MAX && is_plain_name(name) && is_search(Location::new(Place::Query, name))
}

const PLAIN_WORDS: &[&[u8]] = words!("purpose", "plain");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_values() {
        for name in ["id", "user_id", "itemId", "page", "ids[0]", "orderby"] {
            assert!(takes_plain_value(name.as_bytes()), "{name}");
        }
        for name in [
            "identity",
            "q",
            "name",
            "comment",
            "page_title",
            "order_note",
            "x",
            "",
            "item.2",
            "filter[status]",
        ] {
            assert!(!takes_plain_value(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn searches() {
        assert!(takes_search(b"q") && takes_search(b"searchTerm") && !takes_search(b"item"));
        // PHP reads `id` there.
        assert!(!takes_search(b"id[]q") && !takes_search(b"id\0q"));
    }
}
