//! The integration tests of the crate: one program, a module for each subject.

mod absent_words;
mod captured_misses;
mod common;
mod folding;
mod inventory;
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
