//! Load time: what stands for scalars without a value, `0` for a flag that no parser has set. It is the same in every transaction, so it
//! is looked at once.

use crate::Plan;
use crate::prefilter::{Scan, Sifted};
use crate::transaction::Transaction;

impl Plan {
    /// Tells the sieve what comes of such scalars. One that is given a value later is looked at again.
    pub(crate) fn scan_unset(&mut self) {
        let mut run = Transaction::of_nobody();
        // Some have such a value once the body has been read.
        run.request_body_end(false);
        let mut sifted = Sifted::default();
        sifted.reset(&self.sieve, true);
        for (variable, source) in self.sieve.lanes.scalars() {
            if let Some(value) = run.scalar(variable) {
                let value = run.store.data(value);
                Scan::new(self, &mut run.store, &mut run.patterns, &mut sifted).look(source, value);
            }
        }
        self.sieve.settle(sifted);
    }
}
