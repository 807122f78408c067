use portcullis_identity::{Change, IdentityError, Origin, Proof, Provided, Role, Sites, User};

use crate::{NOW, PASSWORD, Place, me};

const ISSUER: &str = "https://login.example";

fn provided(subject: &str, name: &str, role: Role) -> Provided {
    Provided {
        issuer: ISSUER.to_owned(),
        subject: subject.to_owned(),
        name: name.to_owned(),
        role,
        sites: None,
    }
}

impl Place {
    fn admit(&self, who: &Provided) -> Result<User, IdentityError> {
        self.server.admit(who, Some("192.0.2.1".to_owned()), NOW).map(|(user, _)| user)
    }
}

#[test]
fn a_user_of_a_provider_is_known_by_issuer_and_subject() {
    let place = Place::new();
    let anna = place.admit(&provided("1", "Anna@Shop.example", Role::Analyst)).unwrap();
    let origin = Origin::Oidc { issuer: ISSUER.to_owned(), subject: "1".to_owned() };
    assert_eq!((&*anna.name, anna.role, &anna.origin), ("anna@shop.example", Role::Analyst, &origin));
    // The name at the provider changes, the user does not.
    let again = place.admit(&provided("1", "anne", Role::Analyst)).unwrap();
    assert_eq!(again, anna);
    let other =
        Provided { issuer: "https://other.example".to_owned(), ..provided("1", "anna", Role::Viewer) };
    assert_ne!(place.admit(&other).unwrap().id, anna.id);
    assert_eq!(place.command_line().users(None, 10).unwrap().len(), 2);
    assert_eq!(place.actions(), ["user.create", "user.create"]);
    let secret = place.server.start_session(&anna, "192.0.2.1", "Firefox", &me(), NOW).unwrap();
    assert_eq!(place.server.session_of(&secret, "192.0.2.1", NOW).unwrap().unwrap().user, anna);
}

#[test]
fn the_role_is_that_of_the_last_login() {
    let place = Place::new();
    let anna = place.admit(&provided("1", "anna", Role::Admin)).unwrap();
    let secret = place.server.start_session(&anna, "192.0.2.1", "Firefox", &me(), NOW).unwrap();
    let lower = place.admit(&provided("1", "anna", Role::Viewer)).unwrap();
    assert_eq!(place.server.session_of(&secret, "192.0.2.1", NOW).unwrap().unwrap().user.role, Role::Viewer);
    // A login that was on its way with the higher role does not begin a session.
    let stale = place.server.start_session(&anna, "192.0.2.1", "Firefox", &me(), NOW);
    assert!(matches!(stale, Err(IdentityError::Changed)) && lower.version > anna.version);
    // Without a role the sessions end.
    assert_eq!(place.server.dismiss(ISSUER, "1").unwrap().as_deref(), Some("anna"));
    assert_eq!(place.server.session_of(&secret, "192.0.2.1", NOW).unwrap(), None);
    assert_eq!(place.server.dismiss(ISSUER, "2").unwrap(), None);
}

#[test]
fn a_user_of_a_provider_has_no_password_and_no_code() {
    let place = Place::new();
    let anna = place.admit(&provided("1", "anna", Role::Admin)).unwrap();
    for password in ["", PASSWORD] {
        assert_eq!(place.server.prove("anna", password, None, NOW).unwrap(), Proof::Wrong);
    }
    let changes = [
        Change { password: Some("another fine password".to_owned()), ..Change::default() },
        Change { role: Some(Role::Viewer), ..Change::default() },
    ];
    for change in changes {
        let result = place.server.change_user("anna", None, &change, &me(), NOW);
        assert!(matches!(result, Err(IdentityError::Provided)), "{change:?}: {result:?}");
    }
    assert!(matches!(place.server.offer_totp(anna.id), Err(IdentityError::NotFound(_))));
}

#[test]
fn a_disabled_user_of_a_provider_does_not_log_in() {
    let place = Place::new();
    let anna = place.admit(&provided("1", "anna", Role::Admin)).unwrap();
    let secret = place.server.start_session(&anna, "192.0.2.1", "Firefox", &me(), NOW).unwrap();
    let disabled = Change { disabled: Some(true), ..Change::default() };
    place.server.change_user("anna", None, &disabled, &me(), NOW).unwrap();
    assert_eq!(place.server.session_of(&secret, "192.0.2.1", NOW).unwrap(), None);
    let refused = place.admit(&provided("1", "anna", Role::Admin));
    assert!(matches!(refused, Err(IdentityError::Disabled)));
    // Deleted, they are another user at the next login.
    place.server.delete_user("anna", None, false, &me(), NOW).unwrap();
    assert_ne!(place.admit(&provided("1", "anna", Role::Admin)).unwrap().id, anna.id);
}

/// Whoever chooses a name at the provider does not become somebody else here.
#[test]
fn names_that_are_taken_get_a_number() {
    let place = Place::new();
    let root = place.user("root", Role::Admin);
    let names = ["root", "ROOT", "r\u{2060}oot", "ro/ot\0", "root-2"];
    let admitted: Vec<String> = names
        .iter()
        .enumerate()
        .map(|(at, name)| place.admit(&provided(&at.to_string(), name, Role::Viewer)).unwrap().name)
        .collect();
    assert_eq!(admitted, ["root-2", "root-3", "root-4", "root-5", "root-2-2"]);
    assert_eq!(place.server.prove("root", PASSWORD, None, NOW).unwrap(), Proof::Is(root));
    for (subject, name) in [("a", ""), ("b", "\u{4e2d}\u{6587}")] {
        assert!(place.admit(&provided(subject, name, Role::Viewer)).unwrap().name.starts_with("oidc"));
    }
    let long = place.admit(&provided("long", &"x".repeat(5000), Role::Viewer)).unwrap();
    assert_eq!(long.name.len(), 60);
}

/// While the provider is away only local administrators can log in, so one of them stays.
#[test]
fn the_last_local_administrator_stays() {
    let place = Place::new();
    place.admit(&provided("1", "anna", Role::Admin)).unwrap();
    // It does not stop the first start either.
    place.server.create_first_admin("root", PASSWORD, &me(), NOW).unwrap();
    let deleted = place.server.delete_user("root", None, false, &me(), NOW);
    assert!(matches!(deleted, Err(IdentityError::LastAdmin)));
    place.server.delete_user("anna", None, false, &me(), NOW).unwrap();
}

/// The limits of a provider's user are given here and outlast logins; a login that makes an administrator of
/// the user takes none of them away.
#[test]
fn limits_to_sites_outlast_logins() {
    let place = Place::new();
    let (anna, _) = place.server.admit(&provided("1", "anna", Role::Viewer), None, NOW).unwrap();
    assert!(anna.sites.is_all());
    let sites = Sites::named(["shop".to_owned()]).unwrap();
    let change = Change { sites: Some(sites.clone()), ..Change::default() };
    place.server.change_user("anna", None, &change, &me(), NOW).unwrap();
    for role in [Role::Viewer, Role::Admin] {
        let (anna, _) = place.server.admit(&provided("1", "anna", role), None, NOW).unwrap();
        assert_eq!((anna.role, &anna.sites), (role, &sites));
    }
    // Where groups give sites, those of the last login count.
    for given in [Sites::named(["blog".to_owned()]).unwrap(), Sites::All] {
        let who = Provided { sites: Some(given.clone()), ..provided("1", "anna", Role::Viewer) };
        let (anna, _) = place.server.admit(&who, None, NOW).unwrap();
        assert_eq!(anna.sites, given);
        let who =
            Provided { sites: Some(given.clone()), ..provided(&given.to_string(), "new", Role::Viewer) };
        assert_eq!(place.server.admit(&who, None, NOW).unwrap().0.sites, given);
    }
}
