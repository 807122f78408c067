//! The integration tests of the crate: one program, a module for each subject.

mod golden;
mod hostile;
mod properties;
