//! Rule files with mistakes, and what is said about them. `UPDATE_EXPECT=1` writes the expected files anew.

use std::path::{Path, PathBuf};

use portcullis_seclang::{DiskFiles, Root, parse};

#[test]
fn every_file_gives_the_expected_messages() {
    let folder = Path::new("tests/diagnostics");
    let mut cases: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "conf"))
        .collect();
    cases.sort();
    assert!(cases.len() >= 12, "only {} cases found", cases.len());
    let mut wrong = Vec::new();
    for case in cases {
        let parsed = parse(&[Root::File(case.clone())], &DiskFiles);
        let shown: String = parsed.diagnostics.iter().map(|d| d.render(&parsed.sources) + "\n").collect();
        let shown = format!("{shown}{} directives\n", parsed.document.directives.len());
        let expected_path = case.with_extension("expected");
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(&expected_path, &shown).unwrap();
            continue;
        }
        let expected = std::fs::read_to_string(&expected_path).unwrap_or_default();
        if shown != expected {
            wrong.push(format!("--- {}\n{shown}", expected_path.display()));
        }
    }
    assert!(wrong.is_empty(), "these differ (UPDATE_EXPECT=1 accepts them):\n{}", wrong.join("\n"));
}
