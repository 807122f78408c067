//! The folder of the releases after installations that succeed and fail.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use portcullis_crs::{Check, Error, Release, installed, stage};

use crate::packing::{Files, crs, official, small, with};

fn release(files: &Files) -> Release {
    Release::of_archive(&official(files), None, &Check::Nothing).unwrap()
}

/// The names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn releases_lie_beside_each_other_and_current_leads_to_the_last() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("new/crs");
    let first = stage(&release(&crs()), &dir).unwrap();
    assert!(!first.was_there && first.rule_files > 20, "{first:?}");
    assert_eq!(fs::read_link(&first.current).unwrap(), Path::new("4.25.0"));
    stage(&release(&small()), &dir).unwrap();
    assert_eq!(names(&dir), ["4.25.0", "9.9.9", "current"]);
    assert_eq!(names(&dir.join("current/rules")), ["REQUEST-901-INITIALIZATION.conf", "words.data"]);
    let again = stage(&release(&crs()), &dir).unwrap();
    assert!(again.was_there);
    let found = installed(&dir).unwrap();
    let found: Vec<_> = found.iter().map(|one| (one.version.to_string(), one.is_current)).collect();
    assert_eq!(found, [("4.25.0".to_owned(), true), ("9.9.9".to_owned(), false)]);
}

#[test]
fn other_users_may_read_the_rules() {
    let place = tempfile::tempdir().unwrap();
    let outcome = stage(&release(&small()), place.path()).unwrap();
    let mode = |path: &str| fs::metadata(outcome.folder.join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(""), mode("rules"), mode("rules/words.data")), (0o755, 0o755, 0o644));
}

#[test]
fn rules_that_do_not_compile_leave_nothing_behind() {
    let place = tempfile::tempdir().unwrap();
    let broken = with(small(), "rules/REQUEST-999-X.conf", "SecRule ARGZ \"@rx (\" \"id:1,phase:2,deny\"\n");
    let text = stage(&release(&broken), place.path()).unwrap_err().to_string();
    assert!(text.contains("ARGZ") && text.contains("nothing was installed"), "{text}");
    assert!(names(place.path()).is_empty(), "{:?}", names(place.path()));
}

#[test]
fn a_folder_with_other_rules_is_left_alone() {
    let place = tempfile::tempdir().unwrap();
    let outcome = stage(&release(&small()), place.path()).unwrap();
    // An operator's own settings are no rules of the release.
    fs::write(outcome.folder.join("crs-setup.conf"), "# ours").unwrap();
    assert!(stage(&release(&small()), place.path()).unwrap().was_there);
    for (name, text) in [("words.data", "other"), ("REQUEST-950-OURS.conf", "# ours")] {
        let path = outcome.folder.join("rules").join(name);
        let before = fs::read(&path).ok();
        fs::write(&path, text).unwrap();
        let error = stage(&release(&small()), place.path()).unwrap_err();
        assert!(matches!(&error, Error::Other { .. }), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        match before {
            Some(before) => fs::write(&path, before).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
    }
    assert_eq!(names(place.path()), ["9.9.9", "current"]);
}

#[test]
fn a_folder_where_nothing_can_be_written_is_an_error_with_its_path() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("file");
    fs::write(&file, "").unwrap();
    let text = stage(&release(&small()), &file.join("crs")).unwrap_err().to_string();
    assert!(text.contains("file/crs") && text.contains("--to DIR"), "{text}");
    // `current` that is no link is somebody's folder.
    fs::create_dir(place.path().join("current")).unwrap();
    let text = stage(&release(&small()), place.path()).unwrap_err().to_string();
    assert!(text.contains("not a link"), "{text}");
}
