//! Programs that call the C interface: one in C, under valgrind where that is installed, and one in Python.

use std::path::PathBuf;
use std::process::Command;

use crate::library::{has, install, output};

fn source(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
}

/// The functions of the C headers of libmodsecurity, and nothing else, can be found in the library.
#[test]
fn the_functions_of_the_headers_and_no_others_are_exported() {
    if !has("nm", "exported functions of libmodsecurity") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let library = install(folder.path());
    let listed = output(Command::new("nm").args(["-D", "--defined-only"]).arg(&library));
    let mut names: Vec<&str> = listed.lines().filter_map(|line| line.split(' ').next_back()).collect();
    names.sort_unstable();
    assert!(names.iter().all(|name| name.starts_with("msc_")), "{names:?}");
    assert_eq!(names.len(), 37, "{names:?}");
    let dynamic = output(Command::new("readelf").arg("-d").arg(&library));
    assert!(dynamic.contains("Library soname: [libmodsecurity.so.3]"), "{dynamic}");
}

#[test]
fn a_program_in_c_gets_what_the_headers_promise() {
    if !has("cc", "C program with libmodsecurity") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let library = install(folder.path());
    let (program, body) = (folder.path().join("program"), folder.path().join("body"));
    std::fs::write(&body, "a=evil").unwrap();
    let mut compiler = Command::new("cc");
    compiler
        .args(["-Wall", "-Wextra", "-Werror", "-g", "-o"])
        .arg(&program)
        .arg(source("program.c"))
        .arg(&library);
    output(&mut compiler);
    let run = |command: &mut Command| {
        let said = output(command.arg(&body).env("LD_LIBRARY_PATH", folder.path()));
        assert!(said.contains("all well"), "{said}");
    };
    run(&mut Command::new(&program));
    if has("valgrind", "C program with libmodsecurity under valgrind") {
        let mut valgrind = Command::new("valgrind");
        valgrind.args(["-q", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite"]);
        run(valgrind.arg(&program));
    }
}

#[test]
fn a_script_in_python_gets_the_same() {
    if !has("python3", "Python script with libmodsecurity") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let library = install(folder.path());
    let said = output(Command::new("python3").arg(source("program.py")).arg(&library));
    assert!(
        said.contains("all well") && said.contains("Rules error. File: <inline rules>. Line: 1."),
        "{said}"
    );
}
