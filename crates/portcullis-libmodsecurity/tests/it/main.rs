//! The integration tests of the crate: one program, a module for each subject.

mod c_program;
mod library;
mod nginx;
mod rule_sets;
mod transactions;
