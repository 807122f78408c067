//! The integration tests of the crate: one program, a module for each subject.

mod bodies;
mod endings;
mod served;
mod verdicts;
