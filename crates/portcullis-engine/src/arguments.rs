//! Access to the parsed arguments of a request, so that the semantic detector need not parse the same query
//! and the same body again.

use portcullis_values::Class;

use crate::settings::BodyProcessor;
use crate::transaction::Transaction;

/// The arguments of a request body, and what took it apart.
#[derive(Clone, Copy, Debug)]
pub struct BodyArguments<'t> {
    transaction: &'t Transaction,
    /// A form or JSON.
    pub processor: BodyProcessor,
}

impl<'t> BodyArguments<'t> {
    /// Names and values, in body order.
    pub fn iter(&self) -> impl Iterator<Item = (&'t [u8], &'t [u8])> {
        self.transaction.pairs(Class::ArgsPost)
    }
}

impl Transaction {
    /// The arguments of the request body that has ended, if any parser that reads it with
    /// [`Options`](portcullis_http::body::Options) as they are by default, second readings included, would
    /// find just these and nothing wrong: it is a form or JSON, whole, and has one reading only.
    pub fn body_arguments(&self) -> Option<BodyArguments<'_>> {
        let processor = self.message.body.plain_processor()?;
        let readings = [Class::ArgsPostReadings, Class::ArgsPostNamesReadings];
        self.has_none(readings).then_some(BodyArguments { transaction: self, processor })
    }

    /// The arguments of the query, names and values in order, once the request's head has been
    /// [taken](Transaction::take_request_head), if
    /// [`parse_query_twice`](portcullis_http::body::parse_query_twice) would find just these and nothing
    /// wrong. `None` also where no rule reads them, so that they are not kept.
    pub fn query_arguments(&self) -> Option<impl Iterator<Item = (&[u8], &[u8])>> {
        let readings = [Class::ArgsGetReadings, Class::ArgsGetNamesReadings];
        let is_plain = self.message.is_query_plain && self.has_none(readings);
        is_plain.then(|| self.pairs(Class::ArgsGet))
    }

    fn has_none(&self, classes: [Class; 2]) -> bool {
        classes.iter().all(|class| self.message.store.class_len(*class) == 0)
    }

    fn pairs(&self, class: Class) -> impl Iterator<Item = (&[u8], &[u8])> {
        let store = &self.message.store;
        store.class(class).map(|value| (store.text(store.key(value)), store.text(store.data(value))))
    }
}
