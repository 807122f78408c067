//! `TX`: its values, and rules that look at nothing else and change nothing else.
//!
//! ```text
//!   load time:  rules on TX --> TxRule: one comparison, some assignments --> Block: what a run of them comes to
//!   run time:   guard of the block holds? its effect : each rule in turn
//! ```
//!
//! Most rules that run for every request are of this kind: settings, paranoia levels, sums. They need no
//! values, no transformations and no operator, so they are [instructions](rule) for a small
//! [machine](TxMachine), which runs them at load time as well: a [block](block) of them depends on the keys
//! that it reads and on nothing else.

pub(crate) mod block;
mod machine;
mod readers;
mod rule;
mod store;
mod test;

pub use block::TxBlocks;
pub(crate) use machine::TxMachine;
pub(crate) use readers::{macros_list_matches, private, texts_of};
pub use rule::TxRules;
pub(crate) use rule::{is_silent, sets_tx_alone};
pub(crate) use store::{AGENT_SCORE, INBOUND_SCORE, OUTBOUND_SCORE, TxStore, TxValue};
pub use store::{TxIndex, TxSlot, addend, canonical_int, is_set_by_engine, to_int};
pub use test::LinkTests;
pub(crate) use test::{Compared, Comparison, LinkTest, TxTest};
