//! The integration tests of the crate: one program, a module for each subject.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "tests read files and clocks"
)]

mod formats;
