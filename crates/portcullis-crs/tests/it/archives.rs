//! What is recognised as a release, and what makes it genuine.

use portcullis_crs::{Check, Error, Release, known, sha256_hex};

use crate::packing::{Files, crs, module, official, small, with};

fn error(archive: &[u8], check: Check) -> String {
    Release::of_archive(archive, None, &check).unwrap_err().to_string()
}

#[test]
fn the_pinned_crs_is_known_however_it_is_packed() {
    let files = crs();
    for archive in [official(&files), module(&files)] {
        let release = Release::of_archive(&archive, None, &Check::Known).unwrap();
        assert_eq!((release.version, release.is_known), (known::PINNED, true));
        assert!(known::release(known::PINNED).unwrap().digests.contains(&&*release.digest));
    }
}

#[test]
fn one_changed_byte_makes_it_another() {
    let files: Files = crs();
    for index in [0, files.len() / 2, files.len() - 1] {
        let mut changed = files.clone();
        changed[index].1.push(b'\n');
        let text = error(&official(&changed), Check::Known);
        assert!(text.contains("are not those of the CRS release 4.25.0"), "{text}");
    }
    let more = with(files.clone(), "rules/REQUEST-902-MORE.conf", "");
    assert!(matches!(
        Release::of_archive(&official(&more), None, &Check::Known),
        Err(Error::Unverified { known: true, .. })
    ));
    let mut less = files;
    less.retain(|(place, _)| !place.ends_with("unix-shell.data"));
    assert!(error(&module(&less), Check::Known).contains("are not those"));
}

#[test]
fn an_unknown_release_needs_the_checksum_of_its_archive() {
    let archive = official(&small());
    let sum = sha256_hex(&archive);
    let text = error(&archive, Check::Known);
    assert!(text.contains("does not know CRS 9.9.9") && text.contains(&format!("--sha256 {sum}")), "{text}");
    let release = Release::of_archive(&archive, None, &Check::Sha256(sum.to_uppercase())).unwrap();
    assert!(!release.is_known);
    let text = error(&archive, Check::Sha256("0".repeat(64)));
    assert!(text.contains(&sum) && text.contains("nothing was installed"), "{text}");
    assert!(Release::of_archive(&archive, None, &Check::Nothing).is_ok());
}

#[test]
fn another_version_than_the_one_asked_for_is_refused() {
    let archive = official(&small());
    let text = Release::of_archive(&archive, Some(known::PINNED), &Check::Nothing).unwrap_err().to_string();
    assert!(text.contains("has CRS 9.9.9, not 4.25.0"), "{text}");
}

#[test]
fn what_is_no_crs_is_refused_with_what_is_missing() {
    let without = |place: &str| {
        let mut files = small();
        files.retain(|(other, _)| other != place);
        official(&files)
    };
    for (archive, part) in [
        (without("crs-setup.conf.example"), "crs-setup.conf.example is missing"),
        (without("rules/REQUEST-901-INITIALIZATION.conf"), "REQUEST-901-INITIALIZATION.conf is missing"),
        (
            official(&with(small(), "rules/REQUEST-901-INITIALIZATION.conf", "# none")),
            "do not name a version",
        ),
        (
            official(&with(small(), "rules/REQUEST-901-INITIALIZATION.conf", "ver:'OWASP_CRS/../../etc'")),
            "do not name a version",
        ),
    ] {
        let text = error(&archive, Check::Nothing);
        assert!(text.contains(part), "{part}: {text}");
    }
}
