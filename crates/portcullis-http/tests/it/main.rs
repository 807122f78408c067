//! The integration tests of the crate: one program, a module for each subject.

mod body_evasion;
#[path = "../../../portcullis-testkit/src/corpora_folder.rs"]
mod corpora_folder;
mod framing;
mod framing_corpus;
mod h1_properties;
mod multipart_bypasses;
mod request_heads;
