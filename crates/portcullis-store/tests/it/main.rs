//! The integration tests of the crate: one program, a module for each subject.

mod processes;
mod redis;
mod restart;
