//! Buffers of finished transactions, for the next ones of the same thread.

use std::cell::RefCell;

use portcullis_inspect::{Memo, Scratch};

/// Buffers kept for each thread: a worker has several transactions at a time, most of them waiting.
const KEPT_MAX: usize = 8;

thread_local! {
    #[allow(clippy::vec_box, reason = "inspections take boxes and give them back")]
    static KEPT: RefCell<(Memo, Vec<Box<Scratch>>)> = RefCell::default();
}

/// Buffers for a transaction.
pub(crate) fn take() -> Box<Scratch> {
    // A thread that ends has no buffers any more.
    let kept = KEPT.try_with(|kept| {
        let mut kept = kept.borrow_mut();
        let (memo, spare) = &mut *kept;
        spare.pop().unwrap_or_else(|| Box::new(Scratch::sharing(memo)))
    });
    kept.unwrap_or_default()
}

/// Gives buffers back.
pub(crate) fn give(scratch: Box<Scratch>) {
    let _ = KEPT.try_with(|kept| {
        let (_, spare) = &mut *kept.borrow_mut();
        if spare.len() < KEPT_MAX {
            spare.push(scratch);
        }
    });
}
