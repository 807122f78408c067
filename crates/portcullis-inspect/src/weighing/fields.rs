//! The purpose of the fields in which rules match.

use std::cell::OnceCell;
use std::collections::HashSet;

use portcullis_engine::{Match, TransactionView};
use portcullis_semantic::Location;
use portcullis_types::Place;

use super::spot::Spot;

/// The fields of one message.
pub(super) struct Fields<'t> {
    transaction: TransactionView<'t>,
    /// The names of the query's arguments in small letters, made when they are first asked for.
    query: OnceCell<HashSet<Vec<u8>>>,
}

impl<'t> Fields<'t> {
    pub fn new(transaction: TransactionView<'t>) -> Fields<'t> {
        Fields { transaction, query: OnceCell::new() }
    }

    /// True if the site made the field in which the rule matched for documents.
    pub fn takes_documents(&self, record: &Match) -> bool {
        self.of_body(record, |name| Location::new(Place::Form, name).takes_documents())
    }

    /// True if the rule matched in a field of the body whose name `is` such. A field that the query has, too,
    /// is none: a match does not say which of the two it was in.
    pub fn of_body(&self, record: &Match, is: impl FnOnce(&[u8]) -> bool) -> bool {
        let name = Spot::argument(record.variable, self.transaction.matched_key(record));
        name.is_some_and(|name| is(name) && !self.query_has(name))
    }

    fn query_has(&self, name: &[u8]) -> bool {
        let names = || self.transaction.query_names().map(<[u8]>::to_ascii_lowercase).collect();
        self.query.get_or_init(names).contains(&name.to_ascii_lowercase())
    }
}
