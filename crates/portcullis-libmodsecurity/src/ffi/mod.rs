//! The functions of libmodsecurity's C headers, over the safe part of the crate. The only place with
//! `unsafe`.
//!
//! What callers promise, by those headers: pointers come from the function that makes such a thing and are
//! not used after the one that frees it; texts end with a NUL, or have their length beside them; a
//! transaction or a rule set is used by one thread at a time. A null pointer is no error of theirs: the
//! function does nothing.
//!
//! A panic ends at the function it happened in. For a transaction it means that its inspection has ended: it
//! is refused with 500 where its rules block, and passes where they do not ([`Transaction::fail`]); either
//! way the server's log has a line.
//!
//! Memory that callers free with `free()` (the log and the address of an intervention, texts of errors) comes
//! from the C library's `malloc`, whatever allocator Rust has.
//!
//! [`Transaction::fail`]: crate::Transaction::fail

#![allow(unsafe_code, reason = "a C interface; each block says why it is sound")]

mod instance;
mod pointers;
mod rules;
mod transaction;

pub use instance::*;
pub use rules::*;
pub use transaction::*;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LazyLock;

use crate::Cache;

/// What all rule sets of the process share: the interface gives `msc_create_rules_set` nothing that could
/// carry it.
static CACHE: LazyLock<Cache> = LazyLock::new(Cache::default);

/// Runs `work`; `None` if it panicked. The standard library has written what happened to standard error,
/// which servers have in their error log.
fn caught<T>(work: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(value) => Some(value),
        Err(payload) => {
            // Dropping it could panic in turn.
            std::mem::forget(payload);
            None
        }
    }
}
