//! The integration tests of the crate: one program, a module for each subject.

mod crs_patterns;
mod gates;
mod pcre;
mod pcre_perl;
mod regex;
