//! The integration tests of the crate: one program, a module for each subject.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "tests read files and clocks"
)]

mod contents;
mod floods;
mod properties;
mod referer;
mod stored;
mod work;
