//! The OWASP CRS on this machine: rules, setup file and regression tests, laid out by `make crs`.

use std::path::PathBuf;

use crate::{TestkitError, workspace};

/// Names another folder with the rules.
pub const RULES_VARIABLE: &str = "PORTCULLIS_CRS";
/// Names another folder with the regression tests.
pub const TESTS_VARIABLE: &str = "PORTCULLIS_CRS_TESTS";

const HOW: &str = "run make crs, or name another folder";

/// The folder with `crs-setup.conf` or its example, and `rules/`: `PORTCULLIS_CRS`, or `.portcullis/crs` in
/// the workspace.
pub fn rules() -> Result<PathBuf, TestkitError> {
    rules_in(workspace::folder(RULES_VARIABLE, ".portcullis/crs"))
}

/// `path`, if the CRS was extracted there.
pub fn rules_in(path: PathBuf) -> Result<PathBuf, TestkitError> {
    let has_setup = ["crs-setup.conf", "crs-setup.conf.example"].iter().any(|name| path.join(name).is_file());
    match has_setup && path.join("rules").is_dir() {
        true => Ok(path),
        false => Err(TestkitError::Missing { what: "the CRS", path, how: HOW }),
    }
}

/// The folder with the regression tests: `PORTCULLIS_CRS_TESTS`, or `.portcullis/crs-tests` in the workspace.
pub fn tests() -> Result<PathBuf, TestkitError> {
    tests_in(workspace::folder(TESTS_VARIABLE, ".portcullis/crs-tests"))
}

/// `path`, if it is a folder.
pub fn tests_in(path: PathBuf) -> Result<PathBuf, TestkitError> {
    match path.is_dir() {
        true => Ok(path),
        false => Err(TestkitError::Missing { what: "the CRS regression tests", path, how: HOW }),
    }
}

/// The folder of a CRS release with its tests.
pub const TESTS_IN_RELEASE: &str = "tests/regression/tests";
