//! The integration tests of the crate: one program, a module for each subject.

#[path = "../../../portcullis-testkit/src/corpora_folder.rs"]
mod corpora_folder;
mod held_out;
mod monotone;
mod work;
