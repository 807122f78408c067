//! # `length`
//!
//! Turns the input into its length in bytes, in decimal.
//!
//! Result: at most 20 bytes.
//! Example: `abc` becomes `3`.

use std::io::Write;

pub(crate) fn length(input: &[u8], out: &mut Vec<u8>) {
    // Writing to a `Vec` cannot fail.
    let _ = write!(out, "{}", input.len());
}
