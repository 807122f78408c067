//! Load time: what stands for scalars without a value, `0` for a flag that no parser has set. It is the same
//! in every transaction, so it is looked at once.

use crate::Plan;
use crate::transaction::Transaction;

use super::{Ask, Candidates, Selection};

impl Candidates {
    /// Notes what such scalars come to. One that is given a value later is looked at again.
    pub(super) fn find_unset(&mut self, plan: &Plan) {
        let mut blank = Transaction::blank();
        // Some have such a value once the body has been read.
        blank.request_body_end(false);
        let mut selection = Selection::default();
        selection.reset(self, true);
        for variable in self.prefilter.scalars() {
            if let Some(value) = blank.execution().scalar(variable) {
                let values = &mut blank.message.store;
                let value = values.data(value);
                selection.scan_with(self, plan, values, &mut blank.run.patterns, |scan| {
                    scan.scan_as(variable, value);
                });
            }
        }
        self.unset = selection.state.matched().to_vec();
        // Whether such a candidate finds something in the value that comes is still to be asked.
        for (at, candidate) in self.list.iter().enumerate() {
            if matches!(candidate.ask, Ask::CapturesMisses) {
                self.unset[at / 64] &= !(1 << (at % 64));
            }
        }
        self.always = selection.steps;
    }
}
