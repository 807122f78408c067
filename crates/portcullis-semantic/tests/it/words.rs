//! Lists of words are data: `data/words/`, with the source of each row.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// No longer list of words stands in the detectors' code: it is data, with its source.
const WORDS_MAX: usize = 12;

#[test]
fn long_lists_of_words_are_data() {
    let mut wrong = String::new();
    for path in sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/detectors")) {
        let text = fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
        for (line, count) in lists(code).into_iter().filter(|(_, count)| *count > WORDS_MAX) {
            let _ = writeln!(wrong, "{}:{line}: a list of {count} words", path.display());
        }
    }
    assert!(wrong.is_empty(), "move them to data/words/:\n{wrong}");
}

#[test]
fn lists_in_code() {
    let count = |code: &str| lists(code).into_iter().map(|(_, count)| count).max();
    assert_eq!(count("const A: &[&str] = &[\"a\", // b, \"c\"\n \"b\\\"\", \"c\"];"), Some(3));
    assert_eq!(count("&[Hint::text(\"a\"), Hint::word(\"b\")]"), Some(2));
    assert_eq!(count("[b'\"', b'\\'', b\"a\"]"), Some(1));
    assert_eq!(count("[(b\"a\", 1), (b\"b\", 2)]"), Some(0));
    assert_eq!(count("f(\"a\", \"b\")"), None);
}

/// Each list of a table is used, has no word twice, and a source for each row.
#[test]
fn tables() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let code: String =
        sources(&root.join("src")).iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    let mut wrong = String::new();
    for path in fs::read_dir(root.join("data/words")).unwrap().map(|entry| entry.unwrap().path()) {
        let (table, file) = (fs::read_to_string(&path).unwrap(), path.file_stem().unwrap().to_owned());
        let mut known: Vec<(&str, &str)> = Vec::new();
        for row in table.lines().filter(|row| !row.starts_with('#')) {
            let [list, source, words] = row.split('\t').collect::<Vec<_>>()[..] else {
                let _ = writeln!(wrong, "{}: {row}", path.display());
                continue;
            };
            let is_used = code.contains(&format!("!(\"{}\", \"{list}\")", file.display()));
            if source.is_empty() || !is_used {
                let _ = writeln!(wrong, "{}: {list}: no source, or nothing uses it", path.display());
            }
            for word in words.split(' ') {
                match known.contains(&(list, word)) {
                    true => drop(writeln!(wrong, "{}: {list}: {word} twice", path.display())),
                    false => known.push((list, word)),
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// The sources below `folder`, those of tests left out.
fn sources(folder: &Path) -> Vec<PathBuf> {
    const OF_TESTS: [&str; 5] = ["tests", "allowances", "mutations", "survival", "padding_tests"];
    let mut found = Vec::new();
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if OF_TESTS.contains(&path.file_stem().unwrap().to_str().unwrap()) {
            continue;
        }
        if path.is_dir() {
            found.extend(sources(&path));
        } else {
            found.push(path);
        }
    }
    found
}

/// The lists in brackets of `code`: the line on which each ends, and how many texts it has as elements.
fn lists(code: &str) -> Vec<(usize, usize)> {
    let bytes = code.as_bytes();
    let end_of = |sign: u8, from: usize| {
        bytes[from..].iter().position(|b| *b == sign).map_or(bytes.len(), |at| from + at)
    };
    let (mut open, mut found, mut at) = (Vec::new(), Vec::new(), 0);
    while at < bytes.len() {
        match bytes[at] {
            b'/' if bytes[at..].starts_with(b"//") => at = end_of(b'\n', at),
            b'"' => {
                at += 1;
                while bytes[at] != b'"' {
                    at += 1 + usize::from(bytes[at] == b'\\');
                }
                if let Some((_, count)) = open.last_mut() {
                    *count += 1;
                }
            }
            // A letter, not a lifetime.
            b'\'' if bytes.get(at + 1) == Some(&b'\\') => at = end_of(b'\'', at + 3),
            b'\'' if bytes.get(at + 2) == Some(&b'\'') => at += 2,
            sign @ (b'[' | b'(' | b'{') => {
                let is_hint = code[..at].ends_with("Hint::text") || code[..at].ends_with("Hint::word");
                open.push((if is_hint { b'h' } else { sign }, 0));
            }
            b']' | b')' | b'}' => match open.pop() {
                Some((b'[', count)) => found.push((code[..at].matches('\n').count() + 1, count)),
                Some((b'h', count)) => open.last_mut().into_iter().for_each(|(_, of)| *of += count),
                _ => {}
            },
            _ => {}
        }
        at += 1;
    }
    found
}
