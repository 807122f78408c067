//! What the history keeps.

use portcullis_revisions::{Change, Origin, RevisionError};

use crate::common::{DOCUMENT, Place, author};

#[test]
fn old_texts_make_room_for_new_ones() {
    let place = Place::new();
    let revisions = place.open(false);
    let large = "#".repeat(900 << 10);
    for number in 0..80 {
        let text = format!("{DOCUMENT}# {number}\n{large}\n");
        revisions.apply(&Change::Text(text), place.text().etag(), &author(), 2).unwrap();
    }
    let all = revisions.list(None, 1000).unwrap();
    let bytes: u64 = all.iter().map(|head| head.bytes).sum();
    assert!(bytes <= 64 << 20 && bytes > 60 << 20, "{bytes}");
    assert_eq!(all[0].number, 81);
    assert!(all.iter().zip(&all[1..]).all(|(newer, older)| newer.number == older.number + 1));
    let oldest = revisions.get(all.last().unwrap().number).unwrap();
    assert!(oldest.before.is_none());
    assert!(matches!(revisions.get(1), Err(RevisionError::NotFound)));
}

#[test]
fn a_history_outlives_the_program() {
    let place = Place::new();
    let revisions = place.open(false);
    revisions.apply(&Change::Text(format!("{DOCUMENT}# x\n")), place.text().etag(), &author(), 7).unwrap();
    drop(revisions);
    std::fs::write(&place.path, format!("{DOCUMENT}# y\n")).unwrap();
    let revisions = place.open(false);
    let all = revisions.list(None, 10).unwrap();
    let shown: Vec<_> = all.iter().map(|head| (head.number, head.origin, head.author.as_deref())).collect();
    let expected =
        [(3, Origin::Outside, None), (2, Origin::Change, Some("user:anna")), (1, Origin::Outside, None)];
    assert_eq!(shown, expected);
    assert_eq!(revisions.list(Some(3), 1).unwrap()[0].number, 2);
    let one = revisions.get(2).unwrap();
    assert_eq!(
        (one.before.as_deref(), one.head.reason.as_str(), one.head.time),
        (Some(DOCUMENT), "because", 7)
    );
}

#[test]
fn others_may_not_read_the_history() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    let _revisions = place.open(false);
    let mode = std::fs::metadata(place.folder.path().join("revisions.db")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}
