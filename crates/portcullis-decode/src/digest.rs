//! # `md5`, `sha1`
//!
//! Turns the input into its digest, in raw bytes; `t:sha1,t:hexEncode` gives the usual spelling.
//!
//! Result: 16 or 20 bytes.

use md5::{Digest, Md5};
use sha1::Sha1;

pub(crate) fn md5(input: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&Md5::digest(input));
}

pub(crate) fn sha1(input: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&Sha1::digest(input));
}
