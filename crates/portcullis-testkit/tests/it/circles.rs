//! Files of a crate that import each other in a circle can only be read all at once.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Files in circles, by crate; none in others. Whoever breaks a circle writes here what is left.
const IN_CIRCLES: &[(&str, usize)] = &[
    ("portcullis-advise", 2),
    ("portcullis-api", 7),
    ("portcullis-compile", 5),
    ("portcullis-config", 9),
    ("portcullis-declared", 8),
    ("portcullis-discovery", 2),
    ("portcullis-embed", 2),
    ("portcullis-engine", 19),
    ("portcullis-evaluate", 2),
    ("portcullis-event", 2),
    ("portcullis-event-store", 3),
    ("portcullis-exchange", 3),
    ("portcullis-http", 2),
    ("portcullis-identity", 3),
    ("portcullis-inspect", 9),
    ("portcullis-loadgen", 3),
    ("portcullis-log", 3),
    ("portcullis-match", 4),
    ("portcullis-migrate", 14),
    ("portcullis-prefilter", 9),
    ("portcullis-proxy", 3),
    ("portcullis-reference", 5),
    ("portcullis-seclang", 11),
    ("portcullis-semantic", 11),
    ("portcullis-share", 3),
    ("portcullis-sinks", 2),
    ("portcullis-store", 7),
    ("portcullis-tower", 2),
];

/// Module paths of files below `src`, with their texts.
type Sources = BTreeMap<Vec<String>, String>;

fn read(folder: &Path, module: &[String], sources: &mut Sources) {
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let own = match &*stem {
            "lib" | "main" | "mod" => module.to_vec(),
            _ => [module, &[stem]].concat(),
        };
        if path.is_dir() {
            read(&path, &own, sources);
        } else if path.extension().is_some_and(|end| end == "rs") {
            sources.insert(own, fs::read_to_string(&path).unwrap());
        }
    }
}

/// Takes a path, or a tree of them as in `use`, from the start of `text`; returns what stands behind it.
fn tree<'t>(mut text: &'t str, mut path: Vec<&'t str>, found: &mut Vec<Vec<&'t str>>) -> &'t str {
    loop {
        let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
        path.push(&text[..end]);
        let Some(rest) = text[end..].strip_prefix("::") else {
            found.push(path);
            return &text[end..];
        };
        text = rest;
        let Some(mut list) = rest.strip_prefix('{') else { continue };
        loop {
            list = list.trim_start_matches([' ', '\n', ',']);
            if list.is_empty() || list.starts_with('}') {
                return list.strip_prefix('}').unwrap_or(list);
            }
            list = tree(list, path.clone(), found);
            list = list.trim_start_matches(|c| c != ',' && c != '}');
        }
    }
}

/// The other files that the text of a module names by `crate::` or `super::`, tests aside.
fn imports(module: &[String], text: &str, sources: &Sources) -> BTreeSet<Vec<String>> {
    let text = text.split("\n#[cfg(test)]\nmod ").next().unwrap_or_default();
    let code: String = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| [line, "\n"])
        .collect();
    let mut paths = Vec::new();
    for (at, _) in code.match_indices("crate::").chain(code.match_indices("super::")) {
        if !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':') {
            tree(&code[at..], Vec::new(), &mut paths);
        }
    }
    let files = paths.into_iter().map(|path| {
        let mut at = if path[0] == "crate" { Vec::new() } else { module.to_vec() };
        for part in path {
            match part {
                "crate" | "self" => {}
                "super" => drop(at.pop()),
                part => at.push(part.to_owned()),
            }
        }
        while !sources.contains_key(&at) && at.pop().is_some() {}
        at
    });
    files.filter(|file| file != module).collect()
}

/// The files that import themselves by way of others.
fn in_circles(sources: &Sources) -> Vec<String> {
    let imports: BTreeMap<_, _> =
        sources.iter().map(|(module, text)| (module, imports(module, text, sources))).collect();
    let comes_back = |start: &Vec<String>| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![start]);
        while let Some(module) = next.pop() {
            next.extend(imports.get(module).into_iter().flatten().filter(|module| seen.insert(*module)));
        }
        seen.contains(start)
    };
    sources.keys().filter(|module| comes_back(module)).map(|module| module.join("::")).collect()
}

#[test]
fn no_crate_has_more_circles() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let (mut seen, mut wrong) = (0, Vec::new());
    for folder in fs::read_dir(crates).unwrap().map(|entry| entry.unwrap().path()) {
        let Some(name) = folder.file_name().and_then(|name| name.to_str()) else { continue };
        if !folder.join("src").is_dir() {
            continue;
        }
        let mut sources = Sources::new();
        read(&folder.join("src"), &[], &mut sources);
        seen += sources.len();
        let known = IN_CIRCLES.iter().find(|(known, _)| *known == name).map_or(0, |(_, files)| *files);
        let found = in_circles(&sources);
        if found.len() != known {
            wrong.push(format!(
                "{name}: {known} files were known, {} are: {}",
                found.len(),
                found.join(", ")
            ));
        }
    }
    assert!(seen >= 1_000, "only {seen} files were found");
    assert!(
        wrong.is_empty(),
        "break the circle, or write into IN_CIRCLES what is left of it:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn circles_are_found() {
    let source = |module: &str, text: &str| {
        (module.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect(), text.to_owned())
    };
    let mut sources = Sources::from([
        source("", "mod a; pub use a::A;"),
        source("a", "use crate::{b::{self, c::C as D}, e};\n// crate::f::F\n"),
        source("b/c", "fn f() { super::super::e::run(); }"),
        source("e", "use crate::f;\n#[cfg(test)]\nmod tests { use crate::a::A; }"),
        source("f", "use std::fmt;"),
    ]);
    assert!(in_circles(&sources).is_empty());
    sources.extend([source("f", "pub(crate) use super::a::A;")]);
    assert_eq!(in_circles(&sources), ["a", "b::c", "e", "f"]);
}
