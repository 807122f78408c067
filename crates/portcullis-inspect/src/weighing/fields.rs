//! The fields in which rules match: their kinds, and what the site made them for.

use std::cell::OnceCell;
use std::collections::HashSet;

use portcullis_engine::{Match, TransactionView};
use portcullis_semantic::{Location, takes_plain_value, takes_search};
use portcullis_types::Place;

use super::spot::{Kind, Spot};

/// A kind of field, as its place and its name tell. Benign traffic triggers other rules in each: a rule has a
/// weight for each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Field {
    /// A field of the body that the site made for texts, markup, code or statements.
    Document,
    /// A parameter for search terms.
    Search,
    /// A parameter that takes a number, an identifier or a short word.
    Plain,
    /// Any other parameter of the query.
    Query,
    /// Any other field of the body.
    Body,
    /// A cookie.
    Cookie,
    /// A header field.
    Header,
    /// The path, alone or with the query.
    Path,
    /// The name, the field or a header of an uploaded file.
    File,
    /// Everything else: names, the query or the body as one, XML, what is no value.
    Other,
}

impl Field {
    /// All of them, in the order of the table of weights.
    pub const ALL: [Field; 10] = [
        Field::Document,
        Field::Search,
        Field::Plain,
        Field::Query,
        Field::Body,
        Field::Cookie,
        Field::Header,
        Field::Path,
        Field::File,
        Field::Other,
    ];

    /// The name in the features for training.
    pub fn name(self) -> &'static str {
        match self {
            Field::Document => "document",
            Field::Search => "search",
            Field::Plain => "plain",
            Field::Query => "query",
            Field::Body => "body",
            Field::Cookie => "cookie",
            Field::Header => "header",
            Field::Path => "path",
            Field::File => "file",
            Field::Other => "other",
        }
    }
}

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

    /// The kind of the field in which the rule matched.
    pub fn kind(&self, record: &Match, spot: &Spot) -> Field {
        match spot.kind() {
            Kind::Argument => self.argument(record),
            Kind::Cookie => Field::Cookie,
            Kind::Header => Field::Header,
            Kind::Path | Kind::Target => Field::Path,
            Kind::File => Field::File,
            Kind::Name | Kind::Query | Kind::Body | Kind::Xml | Kind::Other(_) => Field::Other,
        }
    }

    fn argument(&self, record: &Match) -> Field {
        let name = Spot::argument(record.variable, self.transaction.matched_key(record)).unwrap_or_default();
        if self.of_body(record, |name| Location::new(Place::Form, name).takes_documents()) {
            Field::Document
        } else if takes_plain_value(name) {
            Field::Plain
        } else if takes_search(name) {
            Field::Search
        } else if self.query_has(name) {
            Field::Query
        } else {
            Field::Body
        }
    }

    /// True if the rule matched in a field of the body whose name `is` such. A field that the query has, too,
    /// is none: a match does not say which of the two it was in.
    pub fn of_body(&self, record: &Match, is: impl FnOnce(&[u8]) -> bool) -> bool {
        let name = Spot::argument(record.variable, self.transaction.matched_key(record));
        name.is_some_and(|name| is(name) && !self.query_has(name))
    }

    /// True if the rule matched in the parameter that says where a login leads back to.
    pub fn names_redirect(&self, record: &Match) -> bool {
        let name = Spot::argument(record.variable, self.transaction.matched_key(record));
        name.is_some_and(portcullis_semantic::names_redirect)
    }

    fn query_has(&self, name: &[u8]) -> bool {
        let names = || self.transaction.query_names().map(<[u8]>::to_ascii_lowercase).collect();
        self.query.get_or_init(names).contains(&name.to_ascii_lowercase())
    }
}
