//! The store as its callers see it: events in, pages out, whatever happens to process and files in between.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests")]

mod common;
mod durability;
mod facets;
mod histogram;
mod hostile;
mod pages;
mod recorder;
mod rollups;
