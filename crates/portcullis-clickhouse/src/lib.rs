//! The queries on events, answered by ClickHouse: many nodes write to one table, any console reads it.
//!
//! ```text
//!  filter ──> condition of SQL ──┐
//!  cursor ──> (time_ms, id) ─────┼──> SELECT ... ──HTTP──> keys of events, then the events of these keys
//!  limits ──> settings ──────────┘
//! ```
//!
//! Keys are looked for in windows of time, each eight times longer than the one before it, until a page is
//! full: the newest events that pass are found without a look at the whole table.
//!
//! The table is the one that the sink `clickhouse` writes. Statements are those of ClickHouse 18.16 and of
//! today.
//!
//! - No filter can end a literal: literals are printable ASCII without quotes and backslashes of their own
//!   ([`condition`]). The query is marked as read-only for the database, whatever its user may do.
//! - Answers are bounded in time and bytes. A profile of the user that would cut them short silently is
//!   overruled.
//! - A database that is down, refuses or is late is an error
//!   ([`QueryError`](portcullis_event_store::QueryError)) and is counted. Nothing is tried again here.

#![warn(clippy::wildcard_enum_match_arm)]

mod answer;
mod condition;
mod cursor;
mod facets;
mod histogram;
mod link;
mod source;
mod windows;

pub use condition::condition;
pub use source::Database;
