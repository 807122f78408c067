use portcullis_identity::{Change, Edition, IdentityError, NewUser, Proof, Role, Sites, code_of};

use crate::{NOW, PASSWORD, Place, me};

fn role(role: Role) -> Change {
    Change { role: Some(role), ..Change::default() }
}

#[test]
fn a_user_proves_to_be_one() {
    let place = Place::new();
    let anna = place.user("anna", Role::Analyst);
    assert_eq!(place.server.prove("anna", PASSWORD, None, NOW).unwrap(), Proof::Is(anna));
    for (name, password) in [("anna", "wrong password"), ("Anna", PASSWORD), ("otto", PASSWORD), ("", "")] {
        assert_eq!(place.server.prove(name, password, None, NOW).unwrap(), Proof::Wrong, "{name}");
    }
    let disabled = Change { disabled: Some(true), ..Change::default() };
    place.server.change_user("anna", None, &disabled, &me(), NOW).unwrap();
    assert_eq!(place.server.prove("anna", PASSWORD, None, NOW).unwrap(), Proof::Wrong);
}

#[test]
fn a_code_is_asked_for_and_works_once() {
    let place = Place::new();
    let anna = place.user("anna", Role::Admin);
    let secret = place.server.offer_totp(anna.id).unwrap();
    // An offer alone changes nothing.
    assert!(matches!(place.server.prove("anna", PASSWORD, None, NOW).unwrap(), Proof::Is(_)));
    let wrong = place.server.confirm_totp(&anna, "000000", &me(), NOW);
    assert!(matches!(wrong, Err(IdentityError::Code)));
    place.server.confirm_totp(&anna, &code_of(&secret, NOW), &me(), NOW).unwrap();
    let again = place.server.confirm_totp(&anna, &code_of(&secret, NOW), &me(), NOW);
    assert!(matches!(again, Err(IdentityError::NotFound(_))));

    let later = NOW + 60;
    let code = code_of(&secret, later);
    let prove =
        |password: &str, code: Option<&str>| place.server.prove("anna", password, code, later).unwrap();
    assert_eq!(prove(PASSWORD, None), Proof::CodeNeeded);
    assert_eq!(prove("wrong password", None), Proof::Wrong);
    assert_eq!(prove("wrong password", Some(&code)), Proof::Wrong);
    // The code that confirmed is used up.
    assert_eq!(prove(PASSWORD, Some(&code_of(&secret, NOW))), Proof::Wrong);
    assert!(matches!(prove(PASSWORD, Some(&code)), Proof::Is(user) if user.totp));
    assert_eq!(prove(PASSWORD, Some(&code)), Proof::Wrong);
    place
        .server
        .change_user("anna", None, &Change { remove_totp: true, ..Change::default() }, &me(), NOW)
        .unwrap();
    assert!(matches!(prove(PASSWORD, None), Proof::Is(_)));
}

#[test]
fn the_last_administrator_stays() {
    let place = Place::new();
    place.user("anna", Role::Admin);
    place.user("otto", Role::Viewer);
    let disabled = Change { disabled: Some(true), ..Change::default() };
    for change in [role(Role::Viewer), disabled.clone()] {
        let result = place.server.change_user("anna", None, &change, &me(), NOW);
        assert!(matches!(result, Err(IdentityError::LastAdmin)), "{result:?}");
    }
    let deleted = place.server.delete_user("anna", None, false, &me(), NOW);
    assert!(matches!(deleted, Err(IdentityError::LastAdmin)));
    assert_eq!(place.server.user("anna").unwrap().unwrap().role, Role::Admin);
    // With another one it may go.
    place.server.change_user("otto", None, &role(Role::Admin), &me(), NOW).unwrap();
    place.server.change_user("anna", None, &disabled, &me(), NOW).unwrap();
    let result = place.server.change_user("otto", None, &role(Role::Viewer), &me(), NOW);
    assert!(matches!(result, Err(IdentityError::LastAdmin)));
    // The command line may delete all.
    place.command_line().delete_user("otto", None, true, &me(), NOW).unwrap();
}

#[test]
fn a_change_is_for_the_version_that_was_read() {
    let place = Place::new();
    place.user("root", Role::Admin);
    let anna = place.user("anna", Role::Viewer);
    let changed =
        place.server.change_user("anna", Some(anna.edition()), &role(Role::Analyst), &me(), NOW).unwrap();
    assert!(changed.version > anna.version && changed.role == Role::Analyst);
    let stale = place.server.change_user("anna", Some(anna.edition()), &role(Role::Admin), &me(), NOW);
    assert!(matches!(stale, Err(IdentityError::Changed)));
    let stale = place.server.delete_user("anna", Some(anna.edition()), false, &me(), NOW);
    assert!(matches!(stale, Err(IdentityError::Changed)));
    // One who is created anew is another.
    let other = Edition { id: 99, ..changed.edition() };
    let stale = place.server.delete_user("anna", Some(other), false, &me(), NOW);
    assert!(matches!(stale, Err(IdentityError::Changed)));
    // Nothing to change makes no version.
    let same = place.server.change_user("anna", None, &role(Role::Analyst), &me(), NOW).unwrap();
    assert_eq!(same.version, changed.version);
    assert_eq!(place.actions(), ["user.create", "user.create", "user.change"]);
}

#[test]
fn there_is_one_first_administrator() {
    let place = Place::new();
    let first = |name: &str| place.server.create_first_admin(name, PASSWORD, &me(), NOW);
    assert_eq!(first("anna").unwrap().role, Role::Admin);
    assert!(matches!(first("otto"), Err(IdentityError::Exists)));
}

#[test]
fn names_and_passwords_are_checked() {
    let place = Place::new();
    let create = |name: &str, password: &str| {
        let new = NewUser {
            name: name.to_owned(),
            role: Role::Viewer,
            sites: Sites::All,
            password: password.to_owned(),
        };
        place.server.create_user(&new, &me(), NOW)
    };
    for name in ["", "Anna", "a b", "a/b", "ä", &"x".repeat(65), "a\0"] {
        assert!(matches!(create(name, PASSWORD), Err(IdentityError::Invalid(_))), "{name}");
    }
    assert!(matches!(create("anna", "short"), Err(IdentityError::Password(_))));
    assert!(create("anna@shop.example", PASSWORD).is_ok());
    assert!(matches!(create("anna@shop.example", PASSWORD), Err(IdentityError::Exists)));
    let weak = Change { password: Some("short".to_owned()), ..Change::default() };
    let result = place.server.change_user("anna@shop.example", None, &weak, &me(), NOW);
    assert!(matches!(result, Err(IdentityError::Password(_))));
}

#[test]
fn limits_to_sites_are_never_lost() {
    let place = Place::new();
    let named = |names: &[&str]| Sites::named(names.iter().map(|&name| name.to_owned()));
    let long = "a".repeat(201);
    for wrong in [&[][..], &[""], &["a\nb"], &["a", "\u{0}"], &[&long]] {
        assert!(named(wrong).is_err(), "{wrong:?}");
    }
    let many: Vec<String> = (0..101).map(|number| number.to_string()).collect();
    assert!(Sites::named(many).is_err());
    let sites = named(&["shop", "blog", "shop"]).unwrap();
    assert!(sites.admit("shop") && !sites.admit("Shop") && !sites.admit("") && !sites.admit("shop\nblog"));
    let new = NewUser {
        name: "anna".to_owned(),
        role: Role::Viewer,
        sites: sites.clone(),
        password: PASSWORD.to_owned(),
    };
    place.server.create_user(&new, &me(), NOW).unwrap();
    assert_eq!(place.command_line().user("anna").unwrap().unwrap().sites, sites);
    let refused = NewUser { name: "otto".to_owned(), role: Role::Admin, ..new };
    assert!(matches!(place.server.create_user(&refused, &me(), NOW), Err(IdentityError::Invalid(_))));
    // A file that says nothing sensible does not stand for all sites.
    let connection = rusqlite::Connection::open(place.folder.path().join(portcullis_identity::FILE)).unwrap();
    for odd in ["", "\n", "a\n\nb"] {
        connection.execute("UPDATE users SET sites = ?", [odd]).unwrap();
        assert!(place.server.user("anna").is_err(), "{odd:?}");
    }
}
