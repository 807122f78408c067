//! Questions to a table of events: the same answers as those of the event store, and what cannot happen.
#![allow(clippy::unwrap_used, reason = "tests")]

mod events;
mod hostile;
mod properties;
mod same;
mod server;
