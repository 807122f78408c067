use portcullis_identity::{Edition, IdentityError, Role, VIEW_NAME_MAX, VIEW_PLACE_MAX, VIEWS_MAX};

use crate::{NOW, Place, me};

#[test]
fn views_are_those_of_their_user() {
    let place = Place::new();
    let (anna, otto) = (place.user("anna", Role::Viewer), place.user("otto", Role::Admin));
    let server = &place.server;
    let first = server.save_view(anna.id, None, " attacks ", "#/events?kind=all", NOW).unwrap();
    assert_eq!((&*first.name, &*first.place, first.saved), ("attacks", "#/events?kind=all", NOW));
    let second = server.save_view(anna.id, None, "Überblick", "#/overview", NOW).unwrap();
    server.save_view(otto.id, None, "attacks", "#/events", NOW).unwrap();
    assert_eq!(place.command_line().views(anna.id).unwrap(), [first.clone(), second.clone()]);
    // Changed and deleted by whom they belong to alone.
    assert!(matches!(
        server.save_view(otto.id, Some(first.id), "x", "#/x", NOW),
        Err(IdentityError::NotFound(_))
    ));
    assert!(matches!(server.delete_view(otto.id, first.id), Err(IdentityError::NotFound(_))));
    let renamed = server.save_view(anna.id, Some(first.id), "all", &first.place, NOW + 5).unwrap();
    assert_eq!((renamed.id, renamed.saved), (first.id, NOW + 5));
    // The name of another is taken, its own is not.
    assert!(matches!(
        server.save_view(anna.id, Some(first.id), "Überblick", "#/", NOW),
        Err(IdentityError::ViewExists)
    ));
    assert!(matches!(server.save_view(anna.id, None, "all", "#/", NOW), Err(IdentityError::ViewExists)));
    server.save_view(anna.id, Some(first.id), "all", "#/events?kind=noted", NOW).unwrap();
    server.delete_view(anna.id, second.id).unwrap();
    assert!(matches!(server.delete_view(anna.id, second.id), Err(IdentityError::NotFound(_))));
    assert_eq!(server.views(anna.id).unwrap().len(), 1);
    // They go with their user, and whoever gets the name next has none.
    let edition = Some(Edition { id: anna.id, version: anna.version });
    server.delete_user("anna", edition, false, &me(), NOW).unwrap();
    let again = place.user("anna", Role::Viewer);
    assert_eq!((server.views(anna.id).unwrap(), server.views(again.id).unwrap()), (vec![], vec![]));
    assert_eq!(server.views(otto.id).unwrap().len(), 1);
}

#[test]
fn views_are_bounded() {
    let place = Place::new();
    let anna = place.user("anna", Role::Viewer);
    let save = |name: &str, to: &str| place.server.save_view(anna.id, None, name, to, NOW);
    let longest = format!("#/{}", "a".repeat(VIEW_PLACE_MAX - 2));
    for (name, to) in [
        ("", "#/events"),
        ("  ", "#/events"),
        ("a\nb", "#/events"),
        (&*"n".repeat(VIEW_NAME_MAX + 1), "#/events"),
        ("n", ""),
        ("n", "https://elsewhere.example/"),
        ("n", "javascript:alert(1)"),
        ("n", "#/events?filter=a b"),
        ("n", "#/\u{e9}"),
        ("n", &*format!("{longest}a")),
    ] {
        assert!(matches!(save(name, to), Err(IdentityError::Invalid(_))), "{name} {to}");
    }
    save(&"ü".repeat(VIEW_NAME_MAX), &longest).unwrap();
    for number in 1..VIEWS_MAX {
        save(&format!("view {number}"), "#/events").unwrap();
    }
    assert!(matches!(save("one more", "#/events"), Err(IdentityError::Invalid(_))));
    // At the bound, those that are there can still be changed.
    let first = place.server.views(anna.id).unwrap().remove(0);
    place.server.save_view(anna.id, Some(first.id), "other", "#/rules", NOW).unwrap();
}
