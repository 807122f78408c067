//! The integration tests of the crate: one program, a module for each subject.

mod caps;
mod golden;
mod recognition;
mod warnings;
