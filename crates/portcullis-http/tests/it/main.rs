//! The integration tests of the crate: one program, a module for each subject.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "tests read files and clocks"
)]

mod body_evasion;
#[path = "../../../portcullis-testkit/src/corpora_folder.rs"]
mod corpora_folder;
mod framing;
mod framing_corpus;
mod h1_properties;
mod multipart_bypasses;
mod request_heads;
