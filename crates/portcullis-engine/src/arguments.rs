//! Access to the parsed arguments of a request body, so that the semantic detector need not parse the same
//! body again.

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
        let store = &self.transaction.message.store;
        (0..store.class_len(Class::ArgsPost)).map(|at| {
            let value = store.class_value(Class::ArgsPost, at);
            (store.text(store.key(value)), store.text(store.data(value)))
        })
    }
}

impl Transaction {
    /// The arguments of the request body that has ended, if any parser that reads it with
    /// [`Options`](portcullis_http::body::Options) as they are by default, second readings included, would
    /// find just these and nothing wrong: it is a form or JSON, whole, and has one reading only.
    pub fn body_arguments(&self) -> Option<BodyArguments<'_>> {
        let processor = self.message.body.plain_processor()?;
        let count = |class| self.message.store.class_len(class);
        let has_one_reading = count(Class::ArgsPostReadings) + count(Class::ArgsPostNamesReadings) == 0;
        has_one_reading.then_some(BodyArguments { transaction: self, processor })
    }
}
