//! Rules read before a fork, transactions behind it.

use std::collections::HashSet;
use std::process::Command;

use crate::library::{has, install, output};

#[test]
fn children_of_a_fork_write_whole_records_with_ids_of_their_own() {
    if !has("cc", "forking C program with libmodsecurity") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (library, program) = (install(folder.path()), folder.path().join("fork"));
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/fork.c");
    let mut compiler = Command::new("cc");
    output(compiler.args(["-Wall", "-Wextra", "-Werror", "-o"]).arg(&program).args([source]).arg(&library));
    output(Command::new(&program).arg(folder.path()).env("LD_LIBRARY_PATH", folder.path()));
    let audit = std::fs::read_to_string(folder.path().join("audit.log")).unwrap();
    let (mut ids, mut uris) = (HashSet::new(), HashSet::new());
    let mut lines = audit.lines();
    while let Some(line) = lines.next() {
        if line.ends_with("-A--") {
            let about = lines.next().unwrap();
            ids.insert(about.split("] ").nth(1).unwrap().split(' ').next().unwrap().to_owned());
        } else if line.starts_with("GET /evil?") {
            uris.insert(line.to_owned());
        }
    }
    assert_eq!((ids.len(), uris.len()), (1000, 1000), "each has a record and an id of its own");
    assert_eq!(audit.matches("-Z--\n").count(), 1000, "each record has its end");
}
