use portcullis_identity::{AUDIT_CHANGE_MAX, Actor, AuditFilter, NewEntry};

use crate::{NOW, Place};

/// Entries of three authors by turns, one a second.
fn filled(entries: u64) -> Place {
    let place = Place::new();
    for number in 0..entries {
        let author = Actor::new(["user:anna", "user:otto", "token:1 (ci)"][(number % 3) as usize]);
        let action = ["user.create", "user.change", "ban.add"][(number / 3 % 3) as usize];
        place.server.record(&author, action, &format!("object {}", number % 2), "", NOW + number).unwrap();
    }
    place
}

#[test]
fn entries_are_found_by_author_action_object_and_time() {
    let place = filled(18);
    let numbers = |filter: AuditFilter| -> Vec<i64> {
        let found = place.server.look_at_audit(&filter, None, 100).unwrap();
        assert_eq!(found.rest, None);
        found.entries.into_iter().map(|entry| entry.number).collect()
    };
    let some = |text: &str| Some(text.to_owned());
    let all: Vec<i64> = (1..=18).rev().collect();
    assert_eq!(numbers(AuditFilter::default()), all);
    let of = |fits: &dyn Fn(i64) -> bool| {
        all.iter().copied().filter(|number| fits(number - 1)).collect::<Vec<_>>()
    };
    assert_eq!(numbers(AuditFilter { actor: some("ANNA"), ..AuditFilter::default() }), of(&|n| n % 3 == 0));
    let action = |text: &str| AuditFilter { action: some(text), ..AuditFilter::default() };
    assert_eq!(numbers(action("user.")), of(&|n| n / 3 % 3 < 2));
    assert_eq!(numbers(action("user.create")), of(&|n| n / 3 % 3 == 0));
    // The beginning of an action is none, and no text is a pattern.
    for nothing in ["user", "user.c", "%", "user_create", "", "."] {
        assert!(numbers(action(nothing)).is_empty(), "{nothing}");
    }
    assert_eq!(numbers(AuditFilter { object: some("t 1"), ..AuditFilter::default() }), of(&|n| n % 2 == 1));
    assert!(numbers(AuditFilter { object: some("%"), ..AuditFilter::default() }).is_empty());
    let time = AuditFilter { from: Some(NOW + 3), to: Some(NOW + 6), ..AuditFilter::default() };
    assert_eq!(numbers(time), [6, 5, 4]);
    let both = AuditFilter {
        actor: some("anna"),
        from: Some(NOW + 3),
        to: Some(u64::MAX),
        ..AuditFilter::default()
    };
    assert_eq!(numbers(both), of(&|n| n % 3 == 0 && n >= 3));
}

/// However few fit, a look goes through a bounded part of the trail; looks one behind the other see all of
/// it, each entry once.
#[test]
fn looks_are_bounded_and_miss_nothing() {
    let place = Place::new();
    let rare = Actor::new("user:rare");
    // One statement for many.
    let connection = rusqlite::Connection::open(place.folder.path().join(portcullis_identity::FILE)).unwrap();
    let fill = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 24999)
        INSERT INTO audit (time, actor, action, object, detail)
            SELECT ?1 + i, 'user:often', 'login', 'x', '' FROM n";
    place.server.record(&rare, "login", "first", "", NOW).unwrap();
    connection.execute(fill, [NOW as i64]).unwrap();
    place.server.record(&rare, "login", "last", "", NOW).unwrap();
    let filter = AuditFilter { actor: Some("rare".to_owned()), ..AuditFilter::default() };
    let (mut before, mut found, mut looks) = (None, Vec::new(), 0);
    loop {
        let look = place.server.look_at_audit(&filter, before, 10).unwrap();
        found.extend(look.entries.into_iter().map(|entry| entry.object));
        looks += 1;
        before = look.rest;
        if before.is_none() {
            break;
        }
    }
    assert_eq!((found, looks), (vec!["last".to_owned(), "first".to_owned()], 3));
    // Full pages, too.
    let (mut before, mut count) = (None, 0);
    loop {
        let look = place.server.look_at_audit(&AuditFilter::default(), before, 777).unwrap();
        count += look.entries.len();
        before = look.rest;
        if before.is_none() {
            break;
        }
    }
    assert_eq!(count, 25_001);
    for odd in [0, -1, i64::MIN] {
        assert!(place.server.look_at_audit(&filter, Some(odd), 10).unwrap().entries.is_empty());
    }
}

#[test]
fn a_difference_is_kept_up_to_its_bound() {
    let place = Place::new();
    let record = |change: &str| {
        let entry = NewEntry { action: "config.change", object: "revision 1", detail: "", change };
        place.server.record_entry(&Actor::new("user:anna"), &entry, NOW).unwrap();
        place.server.audit(None, 1).unwrap().remove(0).change
    };
    assert_eq!(record("@@ -1 +1 @@\n-a\n+ä\n"), "@@ -1 +1 @@\n-a\n+ä\n");
    let long = "+ä line of the document\n".repeat(2000);
    let kept = record(&long);
    assert!(kept.chars().count() < AUDIT_CHANGE_MAX + 100, "{}", kept.len());
    let (lines, said) = kept.trim_end().rsplit_once('\n').unwrap();
    assert!(long.starts_with(lines) && said.contains("the revision has all of it"), "{said}");
    // One line that is too long is none.
    assert!(record(&"x".repeat(AUDIT_CHANGE_MAX + 1)).starts_with('…'));
}
