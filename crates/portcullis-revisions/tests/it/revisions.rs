//! Changes: served and written, or nothing.

use std::os::unix::fs::PermissionsExt as _;

use portcullis_revisions::{
    Change, Document, Edit, Exclusion, Live, LiveResult, Origin, RevisionError, Revisions, SemanticExclusion,
};

use crate::common::{DOCUMENT, Place, author};
use crate::edits::scope;

fn text(more: &str) -> Change {
    Change::Text(format!("{DOCUMENT}{more}"))
}

#[test]
fn a_change_serves_and_is_in_the_file() {
    let place = Place::new();
    std::fs::set_permissions(&place.path, std::fs::Permissions::from_mode(0o640)).unwrap();
    let revisions = place.open(false);
    let applied = revisions.apply(&text("# more\n"), place.text().etag(), &author(), 5).unwrap();
    assert_eq!(place.text(), applied.proposal.after);
    assert_eq!(*place.program.loaded.lock().unwrap(), [place.text().as_str()]);
    assert_eq!(std::fs::metadata(&place.path).unwrap().permissions().mode() & 0o777, 0o640);
    let current = revisions.current(6).unwrap();
    assert!(current.is_live);
    assert_eq!((current.revision.number, current.revision.origin), (2, Origin::Change));
    // The same again is no revision.
    let again = revisions.apply(&text("# more\n"), place.text().etag(), &author(), 7).unwrap();
    assert_eq!((again.message, again.revision.number), (None, 2));
    // Back to the first.
    let back = revisions.apply(&Change::Restore(1), place.text().etag(), &author(), 8).unwrap();
    assert_eq!((place.text().as_str(), back.revision.origin), (DOCUMENT, Origin::Restore));
    assert_eq!(
        std::fs::read_dir(place.folder.path())
            .unwrap()
            .filter(|entry| { entry.as_ref().unwrap().file_name().to_string_lossy().contains(".new") })
            .count(),
        0
    );
}

#[test]
fn a_change_for_another_text_is_refused() {
    let place = Place::new();
    let revisions = place.open(false);
    let etag = place.text().etag().to_owned();
    std::fs::write(&place.path, format!("{DOCUMENT}# by hand\n")).unwrap();
    match revisions.apply(&text("# more\n"), &etag, &author(), 5) {
        Err(RevisionError::Changed(now)) => assert_eq!(now, place.text().etag()),
        other => panic!("{other:?}"),
    }
    let current = revisions.current(6).unwrap();
    assert!(!current.is_live);
    assert_eq!((current.revision.number, current.revision.origin), (2, Origin::Outside));
}

#[test]
fn what_the_program_refuses_leaves_no_trace() {
    let place = Place::new();
    let revisions = place.open(false);
    *place.program.fails.lock().unwrap() = Some("rule 1: unknown".to_owned());
    let result = revisions.apply(&text("# more\n"), place.text().etag(), &author(), 5);
    assert!(matches!(result, Err(RevisionError::Refused(why)) if why == "rule 1: unknown"));
    let broken = revisions.apply(&Change::Text("sites = 1\n".to_owned()), place.text().etag(), &author(), 5);
    assert!(matches!(broken, Err(RevisionError::Invalid(_))));
    assert_eq!(place.text().as_str(), DOCUMENT);
    assert_eq!(revisions.list(None, 10).unwrap().len(), 1);
    assert!(revisions.current(6).unwrap().is_live);
}

/// While the program loads a text somebody writes another one into the file.
struct Raced(std::path::PathBuf);

impl Live for Raced {
    fn load(&self, _: &str, write: Box<dyn FnOnce() -> Result<(), String> + Send>) -> LiveResult {
        std::fs::write(&self.0, format!("{DOCUMENT}# by hand\n")).unwrap();
        Some(write().map(|()| String::new()))
    }
}

#[test]
fn a_text_that_comes_meanwhile_is_not_overwritten() {
    let place = Place::new();
    let document = Document::new(&place.path).unwrap();
    let live = Box::new(Raced(place.path.clone()));
    let revisions = Revisions::open(place.folder.path(), document, live, false).unwrap();
    let result = revisions.apply(&text("# more\n"), place.text().etag(), &author(), 5);
    assert!(matches!(result, Err(RevisionError::Refused(why)) if why.contains("in the meantime")));
    assert!(place.text().as_str().ends_with("# by hand\n"));
    let all = revisions.list(None, 10).unwrap();
    assert!(all.iter().all(|head| head.origin == Origin::Outside), "{all:?}");
}

#[test]
fn a_file_that_cannot_be_written_changes_nothing() {
    let place = Place::new();
    let revisions = place.open(false);
    // A folder at the place of the new text cannot be replaced, whoever one is.
    std::fs::create_dir(place.folder.path().join(".portcullis.toml.new")).unwrap();
    let result = revisions.apply(&text("# more\n"), place.text().etag(), &author(), 5);
    assert!(matches!(result, Err(RevisionError::Refused(why)) if why.contains("cannot be written")));
    assert_eq!((place.text().as_str(), revisions.list(None, 10).unwrap().len()), (DOCUMENT, 1));
}

#[test]
fn a_link_stays_one() {
    let place = Place::new();
    let (real, link) = (place.folder.path().join("real.toml"), &place.path);
    std::fs::rename(link, &real).unwrap();
    std::os::unix::fs::symlink("real.toml", link).unwrap();
    let revisions = place.open(false);
    revisions.apply(&text("# more\n"), place.text().etag(), &author(), 5).unwrap();
    assert!(std::fs::symlink_metadata(link).unwrap().is_symlink());
    assert!(std::fs::read_to_string(real).unwrap().ends_with("# more\n"));
}

#[test]
fn who_keeps_the_document_elsewhere_may_still_look_and_try() {
    let place = Place::new();
    let revisions = place.open(true);
    let change = text("# more\n");
    assert!(revisions.propose(&change, place.text().etag(), 5).is_ok());
    let result = revisions.apply(&change, place.text().etag(), &author(), 5);
    assert!(matches!(result, Err(RevisionError::ReadOnly)));
}

#[test]
fn a_document_beyond_the_bound_is_not_read() {
    let place = Place::new();
    let revisions = place.open(false);
    std::fs::write(&place.path, "#".repeat((1 << 20) + 1)).unwrap();
    assert!(matches!(revisions.current(5), Err(RevisionError::Document(_))));
}

/// Whatever a change is, the document stays one that can be read and changed.
#[test]
fn a_change_beyond_the_bound_is_refused() {
    let place = Place::new();
    let revisions = place.open(false);
    let longest = format!("# {}\n", "x".repeat((1 << 20) - DOCUMENT.len() - 3));
    revisions.apply(&text(&longest), place.text().etag(), &author(), 5).unwrap();
    let before = place.text();
    assert_eq!(before.as_str().len(), 1 << 20);
    let one_more = SemanticExclusion { class: Some("sqli".to_owned()), ..SemanticExclusion::default() };
    let add = Edit::AddExclusion(scope("shop", ""), Exclusion::Semantic(one_more));
    for change in [text(&format!("{longest}#")), Change::Edit(add)] {
        let tried = revisions.propose(&change, before.etag(), 6).unwrap_err();
        let made = revisions.apply(&change, before.etag(), &author(), 6).unwrap_err();
        for error in [tried, made] {
            let RevisionError::Unfit(why) = &error else { panic!("{error:?}") };
            assert!(why.contains("and it may have 1048576; remove exclusions"), "{why}");
        }
    }
    let current = revisions.current(7).unwrap();
    assert_eq!((current.text, current.revision.number, place.text()), (before.clone(), 2, before));
    revisions.apply(&Change::Restore(1), place.text().etag(), &author(), 8).unwrap();
    assert_eq!(place.text().as_str(), DOCUMENT);
}

/// Two that change the same text: one wins, the other is told.
#[test]
fn of_two_changes_one_counts() {
    let place = Place::new();
    let revisions = place.open(false);
    let etag = place.text().etag().to_owned();
    let results: Vec<_> = std::thread::scope(|threads| {
        let each = |number: usize| {
            let (revisions, etag) = (&revisions, &etag);
            threads
                .spawn(move || revisions.apply(&text(&format!("# {number}\n")), etag, &author(), 5).is_ok())
        };
        let all: Vec<_> = (0..8).map(each).collect();
        all.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(results.iter().filter(|is_ok| **is_ok).count(), 1);
    assert_eq!(revisions.list(None, 10).unwrap().len(), 2);
}
