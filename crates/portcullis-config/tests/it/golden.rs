//! Documents in, checked settings or the exact error out. Each `tests/golden/NAME.toml` or `.yaml` has a
//! `NAME.toml.expected` beside it; `UPDATE_GOLDEN=1 cargo test` rewrites those, and the diff is what a review
//! looks at.

use std::path::{Path, PathBuf};

use portcullis_config::{Config, Format};

const CASES: usize = 73;

#[test]
fn golden_documents() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut documents: Vec<PathBuf> = std::fs::read_dir(&folder)
        .expect("the golden folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| Format::of(path).is_some())
        .collect();
    documents.sort();
    let mut different = Vec::new();
    for path in &documents {
        let name = path.file_name().expect("a name").to_str().expect("UTF-8");
        // Without HTTP/3 it has another mistake: that.
        if name.starts_with("http3-") && !cfg!(feature = "http3") {
            continue;
        }
        let text = std::fs::read_to_string(path).expect("a document");
        let format = Format::of(path).expect("filtered above");
        let shown = match Config::parse(&text, format, name) {
            Ok(config) => format!("{config:#?}\n"),
            Err(error) => format!("{error}\n"),
        };
        check(&folder.join(format!("{name}.expected")), &shown, name, &mut different);
    }
    assert_eq!(documents.len(), CASES, "golden documents found");
    assert!(different.is_empty(), "differ from their .expected: {different:?}");
}

#[test]
fn the_checked_in_schema_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/config.schema.json");
    let mut different = Vec::new();
    check(&path, &portcullis_config::json_schema(), "docs/config.schema.json", &mut different);
    assert!(different.is_empty(), "docs/config.schema.json is old; run the test with UPDATE_GOLDEN=1");
}

#[test]
fn the_manual_shows_a_valid_document() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    let text = std::fs::read_to_string(path).expect("the manual");
    let document = text.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    let document = document.expect("a document in the manual");
    let config =
        Config::parse(document, Format::Toml, "manual.toml").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((config.sites.len(), config.upstreams.len(), config.policies.len()), (1, 2, 2));
}

fn check(path: &Path, shown: &str, name: &str, different: &mut Vec<String>) {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, shown).expect("written");
    } else if std::fs::read_to_string(path).ok().as_deref() != Some(shown) {
        eprintln!("== {name}\n{shown}");
        different.push(name.to_string());
    }
}
