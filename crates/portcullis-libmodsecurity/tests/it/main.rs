//! The integration tests of the crate: one program, a module for each subject.

mod attacks;
mod c_program;
mod collections;
mod fork;
mod library;
mod nginx;
mod nginx_collections;
mod nginx_events;
mod rule_sets;
mod transactions;
mod uploads;
