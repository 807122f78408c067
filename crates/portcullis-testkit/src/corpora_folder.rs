//! The folder of the corpora, and whether a test may do without them.
//!
//! Only `std` is used: tests of crates that the testkit does not build on include this file by its path.

use std::io::Write;
use std::path::{Path, PathBuf};

/// Names another folder with the corpora.
pub const VARIABLE: &str = "PORTCULLIS_CORPORA";
/// Names a file to which tests that are left out add a line each.
const LEFT_OUT: &str = "PORTCULLIS_LEFT_OUT";

/// `PORTCULLIS_CORPORA`, or `../shared/corpora` beside the workspace root, whether it is there or not.
pub fn folder() -> PathBuf {
    named().unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpora"))
}

/// The corpora, for the test that calls it. They are no part of the repository, so a machine may have none:
/// the test is then left out, which is said on standard error, and the result is none. Where they are named,
/// and on CI (`CI` is set), they must be there.
pub fn for_test() -> Option<PathBuf> {
    let folder = folder();
    if folder.is_dir() {
        return Some(folder);
    }
    let is_ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false");
    let shown = folder.display();
    assert!(
        named().is_none() && !is_ci,
        "this test needs the corpora, which are not in {shown}: put them there, or name their folder in {VARIABLE}"
    );
    let thread = std::thread::current();
    let line = format!("left out, since it needs the corpora: {}\n", thread.name().unwrap_or("a test"));
    // Past the harness, which shows what a test prints only if it fails.
    let _ = std::io::stderr().write_all(line.as_bytes());
    if let Some(file) = std::env::var_os(LEFT_OUT) {
        let file = std::fs::OpenOptions::new().append(true).create(true).open(file);
        let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
    }
    None
}

fn named() -> Option<PathBuf> {
    std::env::var_os(VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from)
}
