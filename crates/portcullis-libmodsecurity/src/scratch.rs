//! Buffers of finished transactions, for the next ones of the same thread.

use std::cell::RefCell;

use portcullis_inspect::{Memo, Scratch};

/// Buffers kept for each thread: a worker has several transactions at a time, most of them waiting.
const KEPT_MAX: usize = 8;

thread_local! {
    static KEPT: RefCell<(Memo, Vec<Scratch>)> = RefCell::default();
}

/// Buffers for a transaction.
pub(crate) fn take() -> Scratch {
    // A thread that ends has no buffers any more.
    let kept = KEPT.try_with(|kept| {
        let mut kept = kept.borrow_mut();
        let (memo, spare) = &mut *kept;
        spare.pop().unwrap_or_else(|| Scratch::sharing(memo))
    });
    kept.unwrap_or_default()
}

/// Gives buffers back.
pub(crate) fn give(scratch: Scratch) {
    let _ = KEPT.try_with(|kept| {
        let (_, spare) = &mut *kept.borrow_mut();
        if spare.len() < KEPT_MAX {
            spare.push(scratch);
        }
    });
}
