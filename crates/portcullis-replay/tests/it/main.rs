//! Tests of `portcullis-replay`.

mod curl;
