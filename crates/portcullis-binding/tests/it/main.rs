//! The integration tests of the crate: one program, a module for each subject.

mod exchanges;
mod queue;
mod settings;
