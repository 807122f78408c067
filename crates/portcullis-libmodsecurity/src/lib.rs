//! The C interface of libmodsecurity 3 over our engine, so that its connectors (the module of nginx, that of
//! Apache, programs that call it) run our engine without being built anew.
//!
//! ```text
//! connector --msc_*--> ffi ----> RuleSet ------> Cache ------> Ready (an inspector, its logs)
//!                       |        scopes, merged   by content        |
//!                       └------> Transaction <─────────────────────┘
//!                                phases in, intervention and log lines out
//! ```
//!
//! Everything but [`ffi`] is safe Rust and knows no pointers; `ffi` checks what comes in, catches panics, and
//! hands memory out as the headers of libmodsecurity promise. Nothing is buffered across a fork: rules are
//! read by the process that starts the server, transactions run in the ones it forks. A thread is started for
//! events that are sent to another process (`SecEventSocket`), by the first event, and for nothing else. Rule
//! sets with the same content share one plan.

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod audit;
mod body;
mod cache;
mod clock;
pub mod ffi;
mod head;
mod id;
mod intervention;
mod mistakes;
mod outlet;
mod ready;
mod recorder;
mod rule_set;
mod scratch;
mod transaction;

pub use cache::Cache;
pub use intervention::Intervention;
pub use rule_set::RuleSet;
pub use transaction::Transaction;
