//! The integration tests of the crate: one program, a module for each subject.

mod architecture;
mod circles;
mod crs_files;
mod layout;
mod public_api;
