//! The integration tests of the crate: one program, a module for each subject.

mod common;
mod delivery;
mod hostile;
mod room;
