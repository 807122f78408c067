//! Programs that call the C interface: one in C, under valgrind where that is installed, and one in Python.

use std::path::{Path, PathBuf};
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

/// Compiles a program of `tests/programs` against the library.
fn compile(name: &str, folder: &Path, library: &Path) -> PathBuf {
    let program = folder.join(name.trim_end_matches(".c"));
    let mut compiler = Command::new("cc");
    compiler.args(["-Wall", "-Wextra", "-Werror", "-g", "-o"]).arg(&program).arg(source(name)).arg(library);
    output(&mut compiler);
    program
}

/// The program under valgrind: reads and writes beyond memory, values that were never set, and memory that
/// nobody can free any more are errors.
fn valgrind(program: &Path) -> Command {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["-q", "--error-exitcode=9", "--leak-check=full"]);
    valgrind.args(["--show-leak-kinds=definite", "--errors-for-leak-kinds=definite"]).arg(program);
    valgrind
}

#[test]
fn a_program_in_c_gets_what_the_headers_promise() {
    if !has("cc", "C program with libmodsecurity") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let library = install(folder.path());
    let body = folder.path().join("body");
    std::fs::write(&body, "a=evil").unwrap();
    let program = compile("program.c", folder.path(), &library);
    let run = |command: &mut Command| {
        let said = output(command.arg(&body).env("LD_LIBRARY_PATH", folder.path()));
        assert!(said.contains("all well"), "{said}");
    };
    run(&mut Command::new(&program));
    if has("valgrind", "C program with libmodsecurity under valgrind") {
        run(&mut valgrind(&program));
    }
}

#[test]
fn calls_in_any_order_with_any_bytes_touch_no_memory_of_others() {
    if !has("cc", "hostile C program with libmodsecurity") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let library = install(folder.path());
    let program = compile("hostile.c", folder.path(), &library);
    // Nobody listens: events wait, and are given up at the end.
    let socket = folder.path().join("events.sock");
    let run = |command: &mut Command, transactions: &str| {
        let command = command.arg(transactions).arg(&socket).env("LD_LIBRARY_PATH", folder.path());
        let said = output(command);
        assert!(said.contains("all well"), "{said}");
    };
    run(&mut Command::new(&program), "5000");
    if has("valgrind", "hostile C program with libmodsecurity under valgrind") {
        let transactions = std::env::var("HOSTILE_TRANSACTIONS");
        run(&mut valgrind(&program), transactions.as_deref().unwrap_or("60"));
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
