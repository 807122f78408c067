//! Everything the program says to people, in one file that can be read in one sitting: `tests/messages.txt`.
//! A changed message shows as a difference there:
//! `UPDATE_GOLDEN=1 cargo test --workspace --test it messages::` writes the file anew.
//!
//! The texts are not collected by hand: help comes from the program, descriptions from the schema and the
//! catalogue of metrics, and the rest is every text in the source of a shipped crate that has three words.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::served::program;
use portcullis_metrics::catalogue;

/// Crates that say nothing to people, or whose texts are data: tables of words.
const WITHOUT_WORDS: &[&str] = &["portcullis-libinjection", "portcullis-lex"];
/// Crates that are never shipped.
const NOT_SHIPPED: &[&str] =
    &["portcullis-differential", "portcullis-proof", "portcullis-reference", "portcullis-testkit"];
/// Files and folders whose texts are data: country codes, attacks, texts that requests are padded with, a
/// table of the documents.
const DATA: &[&str] = &[
    "portcullis-access/src/country.rs",
    "portcullis-advise/src/probes",
    "portcullis-engine/src/geo.rs",
    "portcullis-evaluate/src/padding.rs",
    "portcullis-evaluate/src/survival.rs",
    "portcullis-evaluate/src/wire.rs",
];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

#[test]
fn all_messages_are_in_the_list() {
    let mut list =
        "What Portcullis says to people. Made by crates/portcullis/tests/it/messages.rs, never by hand.\n"
            .to_owned();
    help(&mut list);
    descriptions(&mut list);
    let metrics = catalogue::ALL.iter().map(|metric| format!("{}: {}", metric.name, metric.help));
    section(&mut list, "Metrics", metrics);
    let mut seen = 0;
    for folder in sorted(&crates()).iter().filter(|path| path.is_dir()) {
        let name = folder.file_name().unwrap().to_str().unwrap();
        if WITHOUT_WORDS.contains(&name) || NOT_SHIPPED.contains(&name) {
            continue;
        }
        let mut texts = BTreeSet::new();
        collect(&folder.join("src"), &mut texts);
        seen += texts.len();
        section(&mut list, &format!("Texts of {name}"), texts.iter().map(|text| format!("{text:?}")));
    }
    assert!(seen >= 1_500, "only {seen} texts were found");
    let path = crates().join("../tests/messages.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &list).unwrap();
    }
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
    let (known_lines, lines) = (lines(&known), lines(&list));
    let new: Vec<_> = lines.difference(&known_lines).collect();
    let gone: Vec<_> = known_lines.difference(&lines).collect();
    assert!(
        known == list,
        "tests/messages.txt is old. Read what is new by the rules for words in CONTRIBUTING.md, then run this test with \
         UPDATE_GOLDEN=1.\nnew: {new:#?}\ngone: {gone:#?}"
    );
}

fn section(list: &mut String, title: &str, lines: impl Iterator<Item = String>) {
    let mut lines = lines.peekable();
    if lines.peek().is_some() {
        let _ = writeln!(list, "\n# {title}\n");
        lines.for_each(|line| {
            let _ = writeln!(list, "{line}");
        });
    }
}

/// The help of the program and of each of its commands.
fn help(list: &mut String) {
    let ask = |arguments: &[&str]| {
        let output = Command::new(program()).args(arguments).arg("--help").output().unwrap();
        assert!(output.status.success(), "{arguments:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let text = ask(&[]);
    let (_, below) = text.split_once("\nCommands:\n").expect("a list of commands");
    let commands = below.lines().take_while(|line| !line.is_empty());
    let names: Vec<&str> = commands
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(names.len() >= 8, "{names:?}");
    section(list, "portcullis --help", text.lines().map(str::to_owned));
    for name in names {
        section(list, &format!("portcullis {name} --help"), ask(&[name]).lines().map(str::to_owned));
    }
}

/// Adds the schema's description of each key of a configuration document.
fn descriptions(list: &mut String) {
    let text = std::fs::read_to_string(crates().join("../docs/config.schema.json")).unwrap();
    let schema: serde_json::Value = serde_json::from_str(&text).unwrap();
    let mut found = Vec::new();
    describe(&schema, "", &mut found);
    assert!(found.len() >= 300, "{}", found.len());
    section(list, "Configuration keys", found.into_iter());
}

fn describe(schema: &serde_json::Value, place: &str, found: &mut Vec<String>) {
    let Some(members) = schema.as_object() else { return };
    if let Some(text) = members.get("description").and_then(|text| text.as_str()) {
        let value = members.get("const").and_then(|value| value.as_str()).unwrap_or_default();
        let value = if value.is_empty() { String::new() } else { format!(" = {value}") };
        found.push(format!("{place}{value}: {}", text.replace('\n', " ")));
    }
    for (name, member) in members {
        let below = match name.as_str() {
            "properties" | "$defs" => "",
            _ => name,
        };
        let below = if place.is_empty() || below.is_empty() {
            format!("{place}{below}")
        } else {
            format!("{place}.{below}")
        };
        match member {
            serde_json::Value::Object(_) => describe(member, &below, found),
            serde_json::Value::Array(items) => items.iter().for_each(|item| describe(item, place, found)),
            _ => {}
        }
    }
}

fn sorted(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// The texts for people in the source below `folder`, its tests left out.
fn collect(folder: &Path, texts: &mut BTreeSet<String>) {
    for path in sorted(folder) {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let is_test = ["tests", "testing"].contains(&name) || name.ends_with("_tests") || name == "test_sink";
        if is_test || DATA.iter().any(|data| path == crates().join(data)) {
            continue;
        }
        if path.is_dir() {
            collect(&path, texts);
            continue;
        }
        let source = std::fs::read_to_string(&path).unwrap();
        let mut source = source.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        if path.components().any(|part| part.as_os_str() == "portcullis-semantic") {
            // The other texts of detectors are what they look for.
            let Some((_, kinds)) = source.split_once("\nkinds! {") else { continue };
            source = kinds.split("\n}").next().unwrap_or_default();
        }
        texts.extend(literals(source).into_iter().filter(|text| is_for_people(text)));
    }
}

/// It has three words, and is neither a message of HTTP nor a rule.
fn is_for_people(text: &str) -> bool {
    let letters = |word: &str| word.chars().filter(char::is_ascii_alphabetic).count();
    let is_code = text.contains("\r\n")
        || ["SecRule ", "SecAction ", "[[", "GET "].iter().any(|start| text.starts_with(start));
    text.split_whitespace().filter(|word| letters(word) >= 2).count() >= 3 && !is_code
}

/// The texts in quotes of a source, escapes undone as far as people see them.
fn literals(source: &str) -> Vec<String> {
    let (mut found, mut rest) = (Vec::new(), source);
    while let Some(first) = rest.chars().next() {
        if rest.starts_with("//") {
            rest = rest.split_once('\n').map_or("", |(_, rest)| rest);
        } else if rest.starts_with("#[expect(") {
            // Its reason is for those who read the source.
            rest = rest.split_once(")]").map_or("", |(_, rest)| rest);
        } else if let Some((text, behind)) = raw(rest) {
            found.push(text.to_owned());
            rest = behind;
        } else if first == '"' {
            let (text, behind) = quoted(&rest[1..]);
            found.push(text);
            rest = behind;
        } else if let Some(behind) = character(rest) {
            rest = behind;
        } else {
            // A word at a time, so that the `r` of another word opens no raw text.
            let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            rest = &rest[word.max(first.len_utf8())..];
        }
    }
    found
}

/// `r"..."`, `r#"..."#`, and the same of bytes.
fn raw(rest: &str) -> Option<(&str, &str)> {
    let begin = rest.strip_prefix("br").or_else(|| rest.strip_prefix('r'))?;
    let hashes = &begin[..begin.len() - begin.trim_start_matches('#').len()];
    let text = begin[hashes.len()..].strip_prefix('"')?;
    text.split_once(&format!("\"{hashes}"))
}

fn quoted(rest: &str) -> (String, &str) {
    let (mut text, mut characters) = (String::new(), rest.char_indices());
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (text, &rest[at + 1..]),
            '\\' => match characters.next() {
                Some((_, 'n')) => text.push('\n'),
                Some((_, 'r')) => text.push('\r'),
                Some((_, 't')) => text.push('\t'),
                // Continues in the next line, without its indentation.
                Some((at, '\n')) => {
                    let behind = rest[at..].trim_start();
                    let (more, behind) = quoted(behind);
                    return (text + &more, behind);
                }
                Some((_, other)) => text.push(other),
                None => break,
            },
            other => text.push(other),
        }
    }
    (text, "")
}

/// Behind a character in quotes; `'a` of a lifetime is none.
fn character(rest: &str) -> Option<&str> {
    let inside = rest.strip_prefix('\'')?;
    if let Some(escape) = inside.strip_prefix('\\') {
        let mut behind = escape.chars();
        behind.next();
        return behind.as_str().split_once('\'').map(|(_, rest)| rest);
    }
    let mut behind = inside.chars();
    behind.next();
    behind.as_str().strip_prefix('\'')
}

#[test]
fn texts_are_found_in_a_source() {
    let source = r###"
        /// "no text of a comment"
        fn a<'a>(b: &'a str) -> char { say("one \"two\" \
            three"); say(r#"raw "four" text"#); '"' } // "nor this one"
        const C: &str = "last";
    "###;
    assert_eq!(literals(source), ["one \"two\" three", "raw \"four\" text", "last"]);
    assert!(is_for_people("there is no listener `{}`") && !is_for_people("text/plain; charset"));
}
