//! Every word of both reference manuals is known, and each works, is read with a warning, or is refused with
//! a reason: what `portcullis_seclang::standing` says of a word is what the compiler does with it.
//!
//! If one of these tests fails because a word works now, change its row in `standing.rs` and make the page
//! anew: `UPDATE_GOLDEN=1 cargo test -p portcullis-compile --test it inventory`.

mod page;
mod samples;
mod words;

use std::path::Path;

use portcullis_compile::compile;
use portcullis_decode::Transformation;
use portcullis_seclang::actions::{ActionName, CtlOption};
use portcullis_seclang::directives::DirectiveName;
use portcullis_seclang::operators::OperatorName;
use portcullis_seclang::standing::{self, Standing};
use portcullis_seclang::{Level, MemoryFiles, Root, parse};
use portcullis_types::Variable;

/// Words that `known` does not know.
fn unknown(words: &str, known: impl Fn(&str) -> bool) -> Vec<&str> {
    words.split_whitespace().filter(|word| !known(word)).collect()
}

#[test]
fn every_word_is_known() {
    let none: Vec<&str> = Vec::new();
    assert_eq!(unknown(words::DIRECTIVES, |w| DirectiveName::from_name(w).is_some()), none);
    assert_eq!(unknown(words::VARIABLES, |w| Variable::from_name(w).is_some()), none);
    assert_eq!(unknown(words::OPERATORS, |w| OperatorName::from_name(w).is_some()), none);
    assert_eq!(unknown(words::TRANSFORMATIONS, |w| Transformation::from_name(w).is_some()), none);
    assert_eq!(unknown(words::ACTIONS, |w| ActionName::from_name(w).is_some()), none);
    assert_eq!(unknown(words::CTL_OPTIONS, |w| CtlOption::from_name(w).is_some()), none);
}

#[test]
fn every_row_of_the_tables_is_a_word_of_some_manual() {
    let listed = |words: &str, name: &str| words.split_whitespace().any(|w| w.eq_ignore_ascii_case(name));
    for name in DirectiveName::ALL.iter().map(|d| d.name()) {
        assert!(listed(words::DIRECTIVES, name), "{name}");
    }
    for name in Variable::ALL.iter().map(|v| v.name()) {
        assert!(listed(words::VARIABLES, name), "{name}");
    }
    for name in OperatorName::ALL.iter().map(|o| o.name()) {
        assert!(listed(words::OPERATORS, name), "{name}");
    }
    for name in ActionName::ALL.iter().map(|a| a.name()) {
        assert!(listed(words::ACTIONS, name), "{name}");
    }
    for name in CtlOption::ALL.iter().map(|o| o.name()) {
        assert!(listed(words::CTL_OPTIONS, name), "{name}");
    }
    for name in Transformation::ALL.iter().map(|t| t.name()) {
        assert!(listed(words::TRANSFORMATIONS, name), "{name}");
    }
}

/// Errors and warnings of `rules`: level, message, hint.
fn diagnose(rules: &str) -> Vec<(Level, String, String)> {
    let mut files = MemoryFiles::default();
    for (name, text) in samples::FILES {
        files.0.insert((*name).into(), text.as_bytes().to_vec());
    }
    files.0.insert("geo.mmdb".into(), portcullis_testkit::mmdb::write(&[]));
    let parsed = parse(&[Root::Text { name: "test.conf".into(), text: rules.as_bytes().to_vec() }], &files);
    let mut all = parsed.diagnostics.clone();
    if !parsed.has_errors() {
        all.extend(compile(&parsed.document, &parsed.sources, &files).diagnostics);
    }
    all.into_iter().map(|d| (d.severity, d.message, d.hint.unwrap_or_default())).collect()
}

/// Checks one word: `rules` uses it.
fn check(word: &str, standing: Standing, rules: &str, wrong: &mut Vec<String>) {
    let found = diagnose(rules);
    let said = |level: Level, text: &str, hint: &str| {
        found.iter().any(|(l, m, h)| *l == level && m.contains(text) && h.contains(hint))
    };
    let errors = found.iter().any(|(level, ..)| *level == Level::Error);
    let right = match standing {
        Standing::Works | Standing::Differs(_) => !errors,
        Standing::NoEffect(why) => !errors && (word.starts_with("ctl:") || said(Level::Warning, why, "")),
        Standing::Vain(refusal) => !errors && said(Level::Warning, refusal.why, refusal.instead),
        Standing::Refused(refusal) => said(Level::Error, refusal.why, refusal.instead),
    };
    if !right {
        wrong.push(format!("{word}: standing.rs says {standing:?}\n{rules}{found:?}"));
    }
}

#[test]
fn every_word_works_or_is_refused_as_the_table_says() {
    let mut wrong = Vec::new();
    for &d in DirectiveName::ALL {
        check(d.name(), standing::directive(d), &samples::directive(d), &mut wrong);
    }
    for &v in Variable::ALL {
        check(v.name(), standing::variable(v), &samples::variable(v), &mut wrong);
    }
    for &o in OperatorName::ALL {
        check(o.name(), standing::operator(o), &samples::operator(o), &mut wrong);
    }
    for &t in Transformation::ALL {
        let rules = format!("SecRule ARGS x id:1,t:{}\n", t.name());
        check(t.name(), standing::transformation(t), &rules, &mut wrong);
    }
    for &a in ActionName::ALL {
        check(a.name(), standing::action(a), &samples::action(a), &mut wrong);
    }
    for &o in CtlOption::ALL {
        check(&format!("ctl:{}", o.name()), standing::ctl(o), &samples::ctl(o), &mut wrong);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn the_reference_page_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/seclang-reference.md");
    let page = page::page();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, page).expect("written");
    } else if std::fs::read_to_string(&path).ok().as_deref() != Some(page.as_str()) {
        panic!("docs/seclang-reference.md is old; run this test with UPDATE_GOLDEN=1");
    }
}
