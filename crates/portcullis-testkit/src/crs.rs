//! The OWASP CRS on this machine: rules, set-up file and regression tests, laid out by `make crs`.

use std::path::PathBuf;

use crate::{TestkitError, workspace};

/// Names another folder with the rules.
pub const RULES_VARIABLE: &str = "PORTCULLIS_CRS";
/// Names another folder with the regression tests.
pub const TESTS_VARIABLE: &str = "PORTCULLIS_CRS_TESTS";

const HOW: &str = "run make crs";

/// The folder with `crs-setup.conf` and `rules/`: `PORTCULLIS_CRS`, or `.portcullis/crs` in the workspace.
pub fn rules() -> Result<PathBuf, TestkitError> {
    let path = workspace::folder(RULES_VARIABLE, ".portcullis/crs");
    match path.join("crs-setup.conf").is_file() && path.join("rules").is_dir() {
        true => Ok(path),
        false => Err(TestkitError::Missing { what: "the CRS", path, how: HOW }),
    }
}

/// The folder with the regression tests: `PORTCULLIS_CRS_TESTS`, or `.portcullis/crs-tests` in the workspace.
pub fn tests() -> Result<PathBuf, TestkitError> {
    let path = workspace::folder(TESTS_VARIABLE, ".portcullis/crs-tests");
    match path.is_dir() {
        true => Ok(path),
        false => Err(TestkitError::Missing { what: "the CRS regression tests", path, how: HOW }),
    }
}
