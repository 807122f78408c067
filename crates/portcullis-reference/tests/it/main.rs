//! The integration tests of the crate: one program, a module for each subject.

mod anything;
mod collections;
mod compatibility;
mod crs_suite;
mod generated;
mod semantics;
mod support;
