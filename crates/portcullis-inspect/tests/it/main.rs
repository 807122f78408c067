//! The integration tests of the crate: one program, a module for each subject.

mod both;
mod chunks;
mod common;
mod inspection;
mod redirects;
mod shared_arguments;
