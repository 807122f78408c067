//! Load time: what stands for scalars without a value, `0` for a flag that no parser has set. It is the same
//! in every transaction, so it is looked at once.

use crate::Plan;
use crate::prefilter::{PrefilterState, Scan};
use crate::transaction::Transaction;

impl Plan {
    /// Tells the prefilter what comes of such scalars. One that is given a value later is looked at again.
    pub(crate) fn scan_unset(&mut self) {
        let mut blank = Transaction::blank();
        // Some have such a value once the body has been read.
        blank.request_body_end(false);
        let mut state = PrefilterState::default();
        state.reset(&self.prefilter, true);
        for (variable, reader) in self.prefilter.readers.scalars() {
            if let Some(value) = blank.execution().scalar(variable) {
                let store = &mut blank.message.store;
                let value = store.data(value);
                Scan::new(self, store, &mut blank.run.patterns, &mut state).look(reader, value);
            }
        }
        self.prefilter.set_matched(state);
    }
}
