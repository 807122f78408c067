//! A crate has one program of integration tests, `tests/it`, and every file there is a part of it. Cargo says
//! nothing of a file that no `mod` names: its tests would not be run.

use std::fs;
use std::path::{Path, PathBuf};

/// Programs beside `it`, and why.
const APART: &[(&str, &str)] = &[
    ("portcullis/tests/http3.rs", "needs a feature that the other tests are built without"),
    ("portcullis-inspect/tests/memory.rs", "its allocator counts for the whole program"),
];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    entries
}

/// Files in `folder`, and in the folders in it, that `root` does not name; `root` is one of its files.
fn unnamed(folder: &Path, root: &Path) -> (usize, Vec<PathBuf>) {
    let text = fs::read_to_string(root).unwrap();
    let names = |module: &str| {
        let lines = text.lines().map(|line| line.trim_start_matches("pub "));
        lines.into_iter().any(|line| line == format!("mod {module};"))
    };
    let (mut seen, mut missing) = (0, Vec::new());
    for path in entries(folder).into_iter().filter(|path| path != root) {
        let module = path.file_stem().unwrap().to_str().unwrap();
        if path.is_dir() {
            let (more, unnamed) = unnamed(&path, &path.join("mod.rs"));
            seen += more;
            missing.extend(unnamed);
        }
        seen += 1;
        if !names(module) {
            missing.push(path);
        }
    }
    (seen, missing)
}

#[test]
fn every_test_file_is_a_part_of_a_program() {
    let crates = crates();
    let (mut seen, mut wrong) = (0, Vec::new());
    for tests in entries(&crates).iter().map(|path| path.join("tests")).filter(|tests| tests.is_dir()) {
        let it = tests.join("it");
        let (more, unnamed) = unnamed(&it, &it.join("main.rs"));
        seen += more;
        wrong.extend(unnamed);
        let is_program = |path: &PathBuf| {
            path.extension().is_some_and(|end| end == "rs") || path.join("main.rs").is_file() && *path != it
        };
        let apart = |path: &PathBuf| APART.iter().any(|(name, _)| crates.join(name) == *path);
        wrong.extend(entries(&tests).into_iter().filter(|path| is_program(path) && !apart(path)));
    }
    assert!(seen >= 100, "only {seen} files were found");
    assert!(wrong.is_empty(), "name these in a `mod` line of tests/it/main.rs (or mod.rs): {wrong:#?}");
}
