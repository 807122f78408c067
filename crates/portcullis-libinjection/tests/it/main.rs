//! The integration tests of the crate: one program, a module for each subject.

mod differential;
mod properties;
mod support;
mod upstream;
