//! The integration tests of the crate: one program, a module for each subject.

mod generated;
mod golden;
mod hostile;
mod properties;
