//! The public interface of the libraries that applications use, compared with `public-api.txt` of each crate.
//!
//! The snapshot is what the sources declare: each `pub` item with its signature, by file, with the members of
//! enums and `impl` blocks. It is read from the text, so it also has items of private modules, and does
//! not follow re-exports into other crates: a line that changes is a question to the author, not a proof that
//! users break.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

const LIBRARIES: &[&str] = &["portcullis-inspect", "portcullis-embed", "portcullis-tower"];

#[test]
fn what_libraries_offer_is_what_was_agreed() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut changed = Vec::new();
    for name in LIBRARIES {
        let folder = crates.join(name);
        let mut files = Vec::new();
        find(&folder.join("src"), &mut files);
        files.sort();
        let mut is = String::new();
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            let items = declared(text.split("\n#[cfg(test)]").next().unwrap_or_default());
            if !items.is_empty() {
                let path = file.strip_prefix(&folder).unwrap_or(&file).display();
                let _ = writeln!(is, "{path}\n{}", items.concat());
            }
        }
        assert!(is.lines().count() > 20, "{name}: {is}");
        let snapshot = folder.join("public-api.txt");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(&snapshot, &is).unwrap();
        } else if fs::read_to_string(&snapshot).unwrap_or_default() != is {
            changed.push(*name);
        }
    }
    assert!(
        changed.is_empty(),
        "the public interface of {} is another: UPDATE_GOLDEN=1 cargo test -p portcullis-testkit --test it public_api writes \
         it; name what users have to change in CHANGELOG.md",
        changed.join(", ")
    );
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) {
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        match path.is_dir() {
            true => find(&path, files),
            false => files.push(path),
        }
    }
}

/// The public items of a source, with the `impl` and `trait` lines around them, a line each.
fn declared(text: &str) -> Vec<String> {
    let mut items = Vec::new();
    let mut lines = text.lines();
    // The item that the line belongs to.
    let mut within = "";
    while let Some(line) = lines.next() {
        let code = line.trim_start();
        if line.starts_with(|sign: char| sign.is_ascii_alphabetic()) {
            within = line;
        }
        let is_item = ["pub ", "impl", "unsafe impl"].iter().any(|word| code.starts_with(word));
        // The variants of an enum and the members of a trait are public without a word.
        let is_member = line.starts_with("    ") && !line.starts_with("     ");
        let is_variant = within.starts_with("pub enum")
            && is_member
            && code.starts_with(|sign: char| sign.is_ascii_uppercase());
        let is_method = within.starts_with("pub trait") && is_member && code.starts_with("fn ");
        if !is_item && !is_variant && !is_method {
            continue;
        }
        let mut item = code.to_owned();
        // A signature may take several lines.
        while !item.ends_with(['{', ';', '}', ',']) || item.matches('(').count() > item.matches(')').count() {
            let Some(next) = lines.next() else { break };
            item.push(' ');
            item.push_str(next.trim());
        }
        let item = item.trim_end_matches(['{', ';', ',']).trim_end();
        items.push(format!("{}{item}\n", if line.starts_with(' ') { "        " } else { "    " }));
    }
    items
}
