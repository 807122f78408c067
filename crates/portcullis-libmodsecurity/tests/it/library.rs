//! The library as connectors load it, and outside programs that load it.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Puts the library into `folder` under its name.
pub fn install(folder: &Path) -> PathBuf {
    let program = std::env::current_exe().unwrap();
    let built = program.parent().unwrap().join("libmodsecurity.so");
    let library = folder.join("libmodsecurity.so.3");
    std::fs::copy(&built, &library).unwrap_or_else(|error| panic!("{}: {error}", built.display()));
    library
}

/// True if `program` is there; says which test is left out if it is not, and fails in CI, which has it.
pub fn has(program: &str, test: &str) -> bool {
    let found = std::env::var_os("PATH").is_some_and(|path| {
        let mut folders = std::env::split_paths(&path).chain(["/usr/sbin".into()]);
        folders.any(|folder| folder.join(program).is_file())
    });
    assert!(
        found || std::env::var_os("CI").is_none(),
        "{test} needs {program}: scripts/test-tools.sh installs it"
    );
    if !found {
        eprintln!("left out: {test}: there is no {program}");
    }
    found
}

/// Runs `command` to its end; what it wrote, if it succeeded.
pub fn output(command: &mut Command) -> String {
    let done = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{command:?}: {}\n{out}\n{err}", done.status);
    format!("{out}{err}")
}
