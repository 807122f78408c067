//! The integration tests of the crate: one program, a module for each subject.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "tests read files and clocks"
)]

mod both;
mod chunks;
mod common;
mod declared;
#[path = "../../../portcullis-declared/tests/it/descriptors.rs"]
#[allow(dead_code, reason = "the tests of that crate use the rest")]
mod descriptors;
mod inspection;
mod redirects;
mod rule_exclusions;
mod shared_arguments;
mod trials;
