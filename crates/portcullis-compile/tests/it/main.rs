//! The integration tests of the crate: one program, a module for each subject.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "tests read files and clocks"
)]

mod absent_words;
mod captured_misses;
mod common;
mod copies;
mod folding;
mod head_reads;
mod inventory;
mod lint;
mod loads;
mod noise;
mod numbers;
mod outside;
mod patterns;
mod remembered;
mod request_line;
mod semantics;
mod shortcuts;
mod strategies;
