//! Load time: what stands for scalars without a value, `0` for a flag that no parser has set. It is the same in every transaction, so it
//! is looked at once.

use crate::Plan;
use crate::prefilter::{PrefilterState, Scan};
use crate::transaction::Transaction;

impl Plan {
    /// Tells the prefilter what comes of such scalars. One that is given a value later is looked at again.
    pub(crate) fn scan_unset(&mut self) {
        let mut run = Transaction::of_nobody();
        // Some have such a value once the body has been read.
        run.request_body_end(false);
        let mut state = PrefilterState::default();
        state.reset(&self.prefilter, true);
        for (variable, reader) in self.prefilter.readers.scalars() {
            if let Some(value) = run.scalar(variable) {
                let value = run.store.data(value);
                Scan::new(self, &mut run.store, &mut run.patterns, &mut state).look(reader, value);
            }
        }
        self.prefilter.set_matched(state);
    }
}
