//! The table of crates in `ARCHITECTURE.md` is what the manifests say: who may use whom, and who does input
//! and output.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Crates of others that a crate without input and output may use: they compute.
const THAT_COMPUTE: &[&str] = &[
    "aho-corasick",
    "brotli-decompressor",
    "bstr",
    "data-encoding",
    "encoding_rs",
    "flate2",
    "hmac",
    // Zones of the system are read by `portcullis-exchange` alone, which asks for them.
    "jiff",
    // Without its default features it neither reads files nor asks servers.
    "jsonschema",
    "maxminddb",
    "md-5",
    "memchr",
    // Anonymous memory alone, for long bodies.
    "memmap2",
    "miniz_oxide",
    "prost",
    "regex-automata",
    "regex-syntax",
    "ruzstd",
    "serde",
    "serde-saphyr",
    "serde_json",
    "sha1",
    "sha2",
];

/// The settings file by which clippy refuses input and output in pure crates, each with its reason.
const PURE: &str = "crates/pure.clippy.toml";

/// Places that may do what [`PURE`] forbids.
const EXCEPTIONS: &[(&str, &str)] =
    &[("portcullis-seclang/src/files.rs", "`DiskFiles` is what portcullis-load gives to the parser")];

/// A row of the table.
struct Row {
    name: String,
    does_io: bool,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The rows of the table, and the names of the crates that are for development only.
fn documented() -> (Vec<Row>, BTreeSet<String>) {
    let page = read("ARCHITECTURE.md");
    let (_, section) = page.split_once("\n## Crates\n").expect("the section on crates");
    let (section, _) = section.split_once("\n## ").expect("a section behind it");
    let (table, below) = section.split_once("Development only").expect("crates for development");
    let rows = table.lines().filter_map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let name = cells.first()?.strip_prefix('`')?.strip_suffix('`')?.to_owned();
        assert_eq!(cells.len(), 4, "crate, what it is, what it does not know, input and output: {line}");
        Some(Row { name, does_io: cells[3] != "none" })
    });
    let others = below.split('`').skip(1).step_by(2).filter(|name| name.starts_with("portcullis-"));
    (rows.collect(), others.map(str::to_owned).collect())
}

/// Names below `[dependencies]`, which is where what a crate ships with stands.
fn dependencies(name: &str) -> Vec<String> {
    section(name, "dependencies]")
}

fn section(name: &str, title: &str) -> Vec<String> {
    let manifest = read(format!("crates/{name}/Cargo.toml"));
    let sections = manifest.split("\n[").filter(|section| section.starts_with(title));
    let lines = sections.flat_map(|section| section.lines().skip(1));
    let keys = lines.filter_map(|line| line.split(['.', ' ', '=']).next());
    keys.filter(|key| !key.is_empty() && !key.starts_with('#')).map(str::to_owned).collect()
}

/// The text of all sources below a folder, if there is one.
fn sources(folder: &Path) -> String {
    let Ok(entries) = fs::read_dir(folder) else { return String::new() };
    let texts = entries.map(|entry| entry.unwrap().path()).map(|path| {
        if path.is_dir() { sources(&path) } else { fs::read_to_string(&path).unwrap_or_default() }
    });
    texts.collect()
}

/// Every dependency is named in the source, by the name that its library has there.
#[test]
fn no_dependency_is_unused() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for folder in fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path()) {
        let Some(name) = folder.file_name().and_then(|name| name.to_str()) else { continue };
        if !folder.join("Cargo.toml").is_file() {
            continue;
        }
        let program = sources(&folder.join("src"));
        let tests = ["tests", "examples", "benches"].map(|part| sources(&folder.join(part))).concat();
        for (title, text) in [("dependencies]", &program), ("dev-dependencies]", &(program.clone() + &tests))]
        {
            for used in section(name, title) {
                seen += 1;
                let library = match used.as_str() {
                    "md-5" => "md5".to_owned(),
                    other => other.replace('-', "_"),
                };
                if !text.contains(&format!("{library}::")) && !text.contains(&format!("use {library}")) {
                    wrong.push(format!("{name}: {used}"));
                }
            }
        }
    }
    assert!(seen >= 150, "only {seen} dependencies were found");
    assert!(wrong.is_empty(), "not used: {wrong:#?}");
}

/// A target with `test = false` has no tests, which would not run; one without it has some, or it is built
/// twice for nothing.
#[test]
fn what_is_built_for_tests_has_tests() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for folder in fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path()) {
        let Ok(manifest) = fs::read_to_string(folder.join("Cargo.toml")) else { continue };
        if !folder.join("src/lib.rs").is_file() {
            continue;
        }
        seen += 1;
        let has_tests = sources(&folder.join("src")).contains("#[test]");
        let library = manifest.split("\n[").find(|part| part.starts_with("lib]")).unwrap_or_default();
        if library.contains("test = false") == has_tests {
            wrong.push(format!("{}: tests in src: {has_tests}", folder.display()));
        }
        let programs = manifest.split("\n[").filter(|part| part.starts_with("[bin]]"));
        if sources(&folder.join("src/bin")).contains("#[test]")
            && programs.into_iter().any(|part| part.contains("test = false"))
        {
            wrong.push(format!("{}: tests in src/bin", folder.display()));
        }
    }
    assert!(seen >= 50, "only {seen} libraries were found");
    assert!(wrong.is_empty(), "`test = false` of [lib] or [[bin]] is wrong: {wrong:#?}");
}

#[test]
fn every_crate_is_in_the_table_or_for_development_only() {
    let (rows, others) = documented();
    let listed: BTreeSet<String> = rows.into_iter().map(|row| row.name).chain(others).collect();
    let crates = fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path());
    let names = crates
        .filter(|path| path.join("Cargo.toml").is_file())
        .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned());
    let mut there: BTreeSet<String> = names.collect();
    there.insert("portcullis-bench".to_owned());
    assert_eq!(listed, there, "left: the table of ARCHITECTURE.md, right: the folders of crates/ and bench/");
}

#[test]
fn a_crate_uses_only_those_above_it() {
    let (rows, others) = documented();
    assert!(rows.len() >= 30, "{} rows", rows.len());
    let mut wrong = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        for used in dependencies(&row.name).iter().filter(|used| used.starts_with("portcullis-")) {
            if others.contains(used) {
                wrong.push(format!("{} is shipped and uses {used}, which is for development only", row.name));
            } else if !rows[..at].iter().any(|above| above.name == *used) {
                wrong.push(format!("{} uses {used}, which does not stand above it", row.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn crates_without_io_use_nothing_that_does_it() {
    let (rows, _) = documented();
    let pure = |name: &str| rows.iter().any(|row| row.name == name && !row.does_io);
    assert!(rows.iter().filter(|row| !row.does_io).count() >= 15);
    let mut wrong = Vec::new();
    for row in &rows {
        let used = dependencies(&row.name);
        let bad = used.iter().filter(|used| !pure(used) && !THAT_COMPUTE.contains(&used.as_str()));
        let list = root().join("crates").join(&row.name).join("clippy.toml");
        if row.does_io {
            if list.exists() {
                wrong.push(format!("{} has a clippy.toml, and the table says that it does I/O", row.name));
            }
            continue;
        }
        wrong.extend(bad.map(|used| format!("{} does no I/O and uses {used}", row.name)));
        if fs::read_to_string(&list).ok() != Some(read(PURE)) {
            wrong.push(format!("{}: link its clippy.toml to {PURE}", row.name));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Proxies, redirects, limits and trusted authorities of our own requests are decided in one place.
#[test]
fn one_crate_builds_clients_of_http() {
    let (rows, _) = documented();
    let builds = |row: &&Row| dependencies(&row.name).iter().any(|used| used == "ureq");
    let found: Vec<&str> = rows.iter().filter(builds).map(|row| row.name.as_str()).collect();
    assert_eq!(found, ["portcullis-fetch"], "ask through `portcullis_fetch::Client`");
}

/// A crate's lints may not switch off what [`PURE`] forbids.
#[test]
fn crates_without_io_keep_the_lints() {
    let (rows, _) = documented();
    let mut wrong = Vec::new();
    for row in rows.iter().filter(|row| !row.does_io) {
        let mut folders = vec![root().join("crates").join(&row.name).join("src")];
        while let Some(folder) = folders.pop() {
            for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                if path.is_dir() {
                    folders.push(path);
                } else if fs::read_to_string(&path)
                    .unwrap()
                    .lines()
                    .any(|line| line.contains("clippy::disallowed") && !line.contains("cfg_attr(test"))
                {
                    let is_exception = |(name, _): &(&str, &str)| root().join("crates").join(name) == path;
                    if !EXCEPTIONS.iter().any(is_exception) {
                        wrong.push(path);
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
