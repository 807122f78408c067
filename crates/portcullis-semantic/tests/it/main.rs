//! The integration tests of the crate: one program, a module for each subject.

mod contents;
mod floods;
mod properties;
mod stored;
mod work;
